"""`run()`: a `with` block or a decorator round the code that answers one question."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from citespan.tracer.capture import Run
from citespan.tracer.current import start_run
from citespan.tracer.faults import log_fault
from citespan.tracer.spans import SpanBlock

__all__ = ["RunScope", "run"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_QUESTION_NAMES = ("question", "query", "prompt", "message", "text")
"""Parameter names that hold the question of a decorated function, in order of preference."""


class RunScope:
    """What `run(...)` returns: use it in a `with` block, or as a decorator of any kind of function."""

    __slots__ = ("_argument", "_block", "_options", "_question", "_run")

    def __init__(self, question: str | None, argument: str | None, options: Mapping[str, Any]) -> None:
        """Keep what the run will be started with."""
        self._question = question
        self._argument = argument
        self._options = options
        self._run: Run | None = None
        self._block: SpanBlock | None = None

    def __enter__(self) -> Run:
        """Start a run and make it current."""
        self._run = start_run(self._question, **self._options)
        self._block = SpanBlock(self._run.context)
        self._block.enter()
        return self._run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """Finish the run; an exception of the block is recorded and goes on."""
        if self._run is not None and self._block is not None:
            self._block.exit()
            self._run.finish(error)
        return False

    async def __aenter__(self) -> Run:
        """Start a run and make it current."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """Finish the run; an exception of the block is recorded and goes on."""
        return self.__exit__(kind, error, trace)

    def __call__(self, function: Callable[_P, _T]) -> Callable[_P, _T]:
        """Record each call of `function` as a run."""
        wrap: Callable[[Callable[..., Any], _Opener], Callable[..., Any]]
        if inspect.isasyncgenfunction(function):
            wrap = _wrap_async_generator
        elif inspect.isgeneratorfunction(function):
            wrap = _wrap_generator
        elif inspect.iscoroutinefunction(function):
            wrap = _wrap_coroutine
        else:
            wrap = _wrap_function
        opener = _Opener(function, self._question, self._argument, self._options)
        return cast("Callable[_P, _T]", functools.wraps(function)(wrap(function, opener)))


@overload
def run(question: Callable[_P, _T], /) -> Callable[_P, _T]: ...


@overload
def run(
    question: str | None = None,
    *,
    name: str | None = None,
    argument: str | None = None,
    session_id: str | None = None,
    user_id: str | None = None,
    metadata: Mapping[str, object] | None = None,
    tags: Sequence[str] | None = None,
) -> RunScope: ...


def run(
    question: str | Callable[_P, _T] | None = None,
    *,
    name: str | None = None,
    argument: str | None = None,
    session_id: str | None = None,
    user_id: str | None = None,
    metadata: Mapping[str, object] | None = None,
    tags: Sequence[str] | None = None,
) -> RunScope | Callable[_P, _T]:
    """Record how one question is answered.

    ::

        with run("What is the baggage limit?") as r:
            r.retrieved(passages, labels="{n}")
            r.answer(text)


        @run
        def ask(question: str) -> str: ...

    As a decorator, of functions, coroutines and (async) generators, the question is an argument and the
    answer is what comes back: the string returned, or the strings yielded joined. What the function says with
    `answer()` counts before that.

    Args:
        question: What the user asked; or the function to decorate.
        name: Name of the run's span; default `run`, or the function's name.
        argument: For a decorator, the parameter that holds the question; default one named `question`,
            `query`, `prompt`, `message` or `text`, else the first that is given a string.
        session_id: The conversation it belongs to.
        user_id: Who asked.
        metadata: What reports may group by; JSON values.
        tags: Short words to filter by.
    """
    options: dict[str, Any] = {
        "session_id": session_id,
        "user_id": user_id,
        "metadata": metadata,
        "tags": tags,
    }
    if name is not None:
        options["name"] = name
    if callable(question):
        return RunScope(None, argument, options)(question)
    return RunScope(question, argument, options)


class _Opener:
    """Opens the run for one call of a decorated function."""

    __slots__ = ("_argument", "_options", "_question", "_signature")

    def __init__(
        self,
        function: Callable[..., Any],
        question: str | None,
        argument: str | None,
        options: Mapping[str, Any],
    ) -> None:
        self._signature = inspect.signature(function)
        self._question = question
        self._argument = argument
        self._options: dict[str, Any] = {"name": function.__name__, **options}

    def open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
        question = self._question
        try:
            question = self._question_in(args, kwargs) if question is None else question
        except Exception as fault:
            log_fault("the question of a decorated function", fault)
        return start_run(question, **self._options)

    def _question_in(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        try:
            given = self._signature.bind(*args, **kwargs).arguments
        except TypeError:
            return None  # the call itself will raise this to the host
        if self._argument is not None:
            value = given.get(self._argument)
            return None if value is None else str(value)
        named = (given[name] for name in _QUESTION_NAMES if isinstance(given.get(name), str))
        first = (value for value in given.values() if isinstance(value, str))
        return next(named, next(first, None))


def _wrap_function(function: Callable[..., Any], opener: _Opener) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with _Call(opener, args, kwargs) as current:
            return current.result(function(*args, **kwargs))

    return call


def _wrap_coroutine(function: Callable[..., Any], opener: _Opener) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with _Call(opener, args, kwargs) as current:
            return current.result(await function(*args, **kwargs))

    return call


def _wrap_generator(function: Callable[..., Any], opener: _Opener) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        stream = _Stream(opener.open(args, kwargs))
        items = function(*args, **kwargs)
        resume = functools.partial(items.send, None)
        try:
            while True:
                with stream.step():
                    try:
                        item = resume()
                    except StopIteration as stop:
                        return stop.value
                try:
                    resume = functools.partial(items.send, (yield stream.item(item)))
                except GeneratorExit:
                    with stream.step():
                        items.close()
                    raise
                except BaseException as thrown:
                    resume = functools.partial(items.throw, thrown)
        except BaseException as error:
            stream.error = error
            raise
        finally:
            stream.finish()

    return call


def _wrap_async_generator(function: Callable[..., Any], opener: _Opener) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        stream = _Stream(opener.open(args, kwargs))
        items = function(*args, **kwargs)
        resume = functools.partial(items.asend, None)
        try:
            while True:
                with stream.step():
                    try:
                        item = await resume()
                    except StopAsyncIteration:
                        return
                try:
                    resume = functools.partial(items.asend, (yield stream.item(item)))
                except GeneratorExit:
                    with stream.step():
                        await items.aclose()
                    raise
                except BaseException as thrown:
                    resume = functools.partial(items.athrow, thrown)
        except BaseException as error:
            stream.error = error
            raise
        finally:
            stream.finish()

    return call


class _Call:
    """The run of one call that returns once."""

    __slots__ = ("_block", "_run")

    def __init__(self, opener: _Opener, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._run = opener.open(args, kwargs)
        self._block = SpanBlock(self._run.context)

    def __enter__(self) -> _Call:
        self._block.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self._block.exit()
        self._run.finish(error)
        return False

    def result(self, value: _T) -> _T:
        if isinstance(value, str):
            self._run.returned(value)
        return value


class _Stream:
    """The run of one generator: current only while the generator runs, not while its reader does."""

    __slots__ = ("_run", "_texts", "error")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._texts: list[str] = []
        self.error: BaseException | None = None

    def step(self) -> SpanBlock:
        return SpanBlock(self._run.context)

    def item(self, value: _T) -> _T:
        if isinstance(value, str):
            self._texts.append(value)
        return value

    def finish(self) -> None:
        is_closed = isinstance(self.error, GeneratorExit)
        if self._texts:
            self._run.returned("".join(self._texts), is_cut=is_closed)
        self._run.finish(None if is_closed else self.error)
