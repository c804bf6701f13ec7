"""Judges by name: those built in, and those that installed packages bring.

A package brings one by an entry point in the group `citespan.judges`: its name is the judge's, its value a function
that takes a `JudgeSpec` (argument and options as typed) and returns a `Judge`, or raises `UsageError`.
Nothing is imported before its judge is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.judges.spec import JudgeSpec, parse_spec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "judge_names", "load_judge"]

GROUP = "citespan.judges"
"""Entry-point group of judges from other packages."""


def load_judge(name: str, *, executor: Executor | None = None) -> Judge:
    """Return the judge called `name`: `lexical`, `chat:gpt-4o-mini`, `entailment:models/hhem`, `cascade:a,b`.

    Any judge takes the option `cache=FILE`, which keeps its verdicts there.

    Args:
        name: The name with its argument and options; `citespan.evaluators.judges.spec` says how it is written.
        executor: Runs the calls of a judge that makes several for one batch.

    Raises:
        UsageError: No judge has that name, or its argument or an option is wrong; the message says what exists.
    """
    return _make(parse_spec(name), executor)


def judge_names() -> list[str]:
    """Return the names that `load_judge` takes, with their arguments in capitals."""
    return [*(usage for usage, _ in _BUILT_IN.values()), *_installed()]


def _make(spec: JudgeSpec, executor: Executor | None) -> Judge:
    options = dict(spec.options)
    cache = options.pop("cache", None)
    plain = JudgeSpec(spec.name, spec.argument, options, spec.members)
    judge = _BUILT_IN[spec.name][1](plain, executor) if spec.name in _BUILT_IN else _make_installed(plain)
    if cache is None:
        return judge
    if not cache:
        raise UsageError("cache= names no file: give one, as in cache=verdicts.sqlite")
    from citespan.evaluators.judges.cached import CachedJudge

    return CachedJudge(judge, cache)


def _make_installed(spec: JudgeSpec) -> Judge:
    point = _installed().get(spec.name)
    if point is None:
        raise UsageError(f"no judge is called {spec.name!r}: choose {', '.join(judge_names())}")
    source = f"judge {spec.name!r} of the package {point.dist.name if point.dist else '(unknown)'}"
    try:
        judge = point.load()(spec)
    except UsageError:
        raise
    except Exception as error:  # another package's code may fail in any way; its user gets one line
        raise UsageError(f"{source} cannot be loaded: {type(error).__name__}: {error}") from error
    if not (hasattr(judge, "judge") and hasattr(judge, "card")):
        raise UsageError(
            f"{source} returned {type(judge).__name__}: expected an object with judge() and card"
        )
    return judge  # type: ignore[no-any-return]  # an entry point loads to Any; its shape was checked above


def _installed() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in _BUILT_IN}


def _lexical(spec: JudgeSpec, executor: Executor | None) -> Judge:
    from citespan.evaluators.judges.lexical import LexicalJudge

    if spec.argument or spec.options:
        raise UsageError("the lexical judge takes no argument and no option but cache=FILE")
    return LexicalJudge()


def _chat(spec: JudgeSpec, executor: Executor | None) -> Judge:
    from citespan.evaluators.judges.chat import ChatJudge, ChatOptions
    from citespan.evaluators.settings import ChatSettings

    if not spec.argument:
        raise UsageError("the chat judge needs a model, as in chat:gpt-4o-mini")
    if "api_key" in spec.options:
        raise UsageError("a key on the command line can be read by others: set OPENAI_API_KEY instead")
    typed = dict(spec.options)
    redact = typed.pop("redact", None)
    told = ChatSettings.load().model_dump(exclude_none=True)
    options = _read_options(ChatOptions, spec, {**told, **typed, "model": spec.argument}, also=("redact",))
    if options.host == "api.openai.com" and options.api_key is None:
        raise UsageError(
            f"chat:{spec.argument} asks {options.host}, which needs a key: set OPENAI_API_KEY, or name another "
            f"endpoint by base_url=URL or OPENAI_BASE_URL"
        )
    return ChatJudge(options, redact=None if redact is None else _import_redactor(redact), executor=executor)


def _import_redactor(path: str) -> Callable[[str], str]:
    from importlib import import_module

    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"redact={path}: expected module:function; {error}") from error
    if not callable(found):
        raise UsageError(f"redact={path} is no function")
    return found  # type: ignore[no-any-return]  # a name from outside; that it returns text is checked when sent


def _entailment(spec: JudgeSpec, executor: Executor | None) -> Judge:
    from citespan.evaluators.judges.entailment import EntailmentOptions, load_entailment_judge

    if not spec.argument:
        raise UsageError("the entailment judge needs a folder or a hub id, as in entailment:models/hhem")
    options = _read_options(EntailmentOptions, spec, {**spec.options, "model": spec.argument})
    return load_entailment_judge(options)


def _cascade(spec: JudgeSpec, executor: Executor | None) -> Judge:
    from citespan.evaluators.judges.cascade import Band, CascadeJudge

    if len(spec.members) < 2:
        raise UsageError("a cascade needs two judges or more, as in cascade:lexical,chat:gpt-4o-mini")
    if any(member.name == "cascade" for member in spec.members):
        raise UsageError("a cascade inside a cascade: write all its judges in one list")
    judges = [_make(member, executor) for member in spec.members]
    return CascadeJudge(judges, _read_options(Band, spec, dict(spec.options)))


_Options = TypeVar("_Options", bound=BaseModel)


def _read_options(
    model: type[_Options], spec: JudgeSpec, values: Mapping[str, object], also: tuple[str, ...] = ()
) -> _Options:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        known = sorted({*model.model_fields, *also, "cache"} - {"model", "api_key"})
        raise _option_error(spec, error, known) from None


def _option_error(spec: JudgeSpec, error: ValidationError, known: list[str]) -> UsageError:
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"]) or "options"
    judge = f"{spec.name}:{spec.argument}" if spec.argument else spec.name
    if first["type"] == "extra_forbidden":
        hint = (
            "; options of the cascade itself come before its first judge" if name in ("low", "high") else ""
        )
        return UsageError(f"{judge} has no option {name!r}: choose {', '.join(known)}{hint}")
    shown = "" if name == "api_key" else f" {first['input']!r}"
    return UsageError(f"{judge}: {name}{shown}: {first['msg'].removeprefix('Value error, ')}")


_Factory = Callable[[JudgeSpec, "Executor | None"], Judge]

_BUILT_IN: Mapping[str, tuple[str, _Factory]] = {
    "lexical": ("lexical", _lexical),
    "chat": ("chat:MODEL", _chat),
    "entailment": ("entailment:FOLDER", _entailment),
    "cascade": ("cascade:FIRST,SECOND", _cascade),
}
"""Judges of this package by name: how each is written, and what makes it."""
