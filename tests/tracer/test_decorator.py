"""`run` as a decorator, and runs round streams."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from citespan import tracer
from citespan.tracer.testing import RecordedSpans

Attributes = Callable[[ReadableSpan], Mapping[str, object]]


def test_a_function_s_question_and_answer_are_its_argument_and_its_result(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    @tracer.run
    def ask(question: str) -> str:
        """Answer."""
        tracer.retrieved(["Green tea wants 80 degrees."], labels="{n}")
        return f"{question} 80 degrees [1]."

    assert ask("Tea?") == "Tea? 80 degrees [1]."
    assert (ask.__name__, ask.__doc__) == ("ask", "Answer.")
    found = attributes(recorded.named("ask"))
    assert (found["input.value"], found["output.value"]) == ("Tea?", "Tea? 80 degrees [1].")
    assert [p.label for p in recorded.run().passages] == ["1"]


def test_a_coroutine_is_recorded_until_it_returns(recorded: RecordedSpans, attributes: Attributes) -> None:
    @tracer.run(name="answer", tags=["async"])
    async def ask(question: str) -> str:
        await asyncio.sleep(0)
        tracer.retrieved(["p"])
        return "a"

    assert inspect.iscoroutinefunction(ask)
    assert asyncio.run(ask("q")) == "a"
    found = attributes(recorded.named("answer"))
    assert (found["input.value"], found["output.value"], found["tag.tags"]) == ("q", "a", ("async",))


def test_a_generator_s_answer_is_what_it_yields(recorded: RecordedSpans, attributes: Attributes) -> None:
    @tracer.run
    def ask(question: str) -> Iterator[str]:
        tracer.retrieved(["p"])
        yield "80 "
        yield "degrees [1]."

    assert inspect.isgeneratorfunction(ask)
    assert list(ask("q")) == ["80 ", "degrees [1]."]
    assert attributes(recorded.named("ask"))["output.value"] == "80 degrees [1]."
    assert len(recorded.run().passages) == 1


def test_an_async_generator_s_answer_is_what_it_yields(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    @tracer.run
    async def ask(question: str) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        tracer.retrieved(["p"])
        yield "80 "
        await asyncio.sleep(0)
        yield "degrees [1]."

    async def read() -> list[str]:
        return [chunk async for chunk in ask("q")]

    assert inspect.isasyncgenfunction(ask)
    assert asyncio.run(read()) == ["80 ", "degrees [1]."]
    assert attributes(recorded.named("ask"))["output.value"] == "80 degrees [1]."
    assert len(recorded.run().passages) == 1


def test_a_run_is_not_current_while_the_reader_of_a_stream_works(recorded: RecordedSpans) -> None:
    @tracer.run
    def ask(question: str) -> Iterator[str]:
        assert tracer.current_run() is not None
        yield "a"

    for _ in ask("q"):
        assert tracer.current_run() is None
        assert trace.get_current_span() is trace.INVALID_SPAN
    assert recorded.named("ask")


def test_streams_read_in_turns_stay_apart(recorded: RecordedSpans, attributes: Attributes) -> None:
    @tracer.run
    def ask(question: str) -> Iterator[str]:
        tracer.retrieved([question])
        yield question
        tracer.retrieved([f"{question} again"])
        yield question

    for _ in zip(ask("a"), ask("b"), strict=True):
        pass
    runs = {
        str(found["input.value"]): str(found["output.value"])
        for span in recorded.spans
        if "input.value" in (found := attributes(span))
    }
    assert runs == {"a": "aa", "b": "bb"}
    assert [record.passage_count for record in recorded.runs()] == [2, 2]


def test_a_stream_that_its_reader_leaves_is_recorded_as_cut(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    @tracer.run
    def ask(question: str) -> Iterator[str]:
        yield "first "
        yield "second"

    stream = ask("q")
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    span = recorded.named("ask")
    assert attributes(span)["output.value"] == "first "
    assert recorded.run().cut == ("answer",)
    assert span.status.status_code is StatusCode.UNSET


def test_a_stream_may_end_in_another_context_than_it_began(recorded: RecordedSpans) -> None:
    """Web servers run each step of a generator in another thread's copy of the context."""

    @tracer.run
    def ask(question: str) -> Iterator[str]:
        yield "a"
        yield "b"

    stream = ask("q")
    for _ in range(3):
        contextvars.copy_context().run(next, stream, None)
    assert len(recorded.runs()) == 1


def test_a_with_block_in_a_generator_may_end_in_another_context(
    recorded: RecordedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    def ask() -> Iterator[str]:
        with tracer.run("q") as run:
            yield "a"
            run.answer("a")

    stream = ask()
    for _ in range(2):
        contextvars.copy_context().run(next, stream, None)
    assert len(recorded.runs()) == 1
    assert not caplog.records


def test_a_failed_stream_is_an_error(recorded: RecordedSpans) -> None:
    @tracer.run
    async def ask(question: str) -> AsyncIterator[str]:
        yield "a"
        raise TimeoutError("the model is gone")

    async def read() -> None:
        async for _ in ask("q"):
            pass

    with pytest.raises(TimeoutError, match="the model is gone"):
        asyncio.run(read())
    assert recorded.named("ask").status.status_code is StatusCode.ERROR


def test_what_is_sent_and_thrown_into_a_stream_reaches_it(recorded: RecordedSpans) -> None:
    def talk(question: str) -> Generator[str, str, str]:
        try:
            said = yield "first"
        except KeyError:
            said = "a key error"
        yield f"heard {said}"
        return "done"

    for decorated in (talk, tracer.run(talk)):
        stream = decorated("q")
        assert next(stream) == "first"
        assert stream.send("hello") == "heard hello"
        with pytest.raises(StopIteration) as stopped:
            next(stream)
        assert stopped.value.value == "done"
        stream = decorated("q")
        next(stream)
        assert stream.throw(KeyError("k")) == "heard a key error"
        stream.close()


def test_what_is_sent_and_thrown_into_an_async_stream_reaches_it(recorded: RecordedSpans) -> None:
    async def talk(question: str) -> AsyncGenerator[str, str]:
        try:
            said = yield "first"
        except KeyError:
            said = "a key error"
        yield f"heard {said}"

    async def converse() -> None:
        for decorated in (talk, tracer.run(talk)):
            stream = decorated("q")
            assert await anext(stream) == "first"
            assert await stream.asend("hello") == "heard hello"
            stream = decorated("q")
            await anext(stream)
            assert await stream.athrow(KeyError("k")) == "heard a key error"
            await stream.aclose()

    asyncio.run(converse())


def test_a_stream_that_its_reader_leaves_is_closed_inside_its_run(recorded: RecordedSpans) -> None:
    closed_in: list[bool] = []

    @tracer.run
    def ask(question: str) -> Iterator[str]:
        try:
            yield "a"
        finally:
            closed_in.append(tracer.current_run() is not None)

    stream = ask("q")
    next(stream)
    del stream
    assert closed_in == [True]


def test_start_run_and_finish_record_a_stream_by_hand(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    run = tracer.start_run("q", session_id="s")
    run.retrieved(["p"], labels=["1"])
    with run.active():
        recorded.provider.get_tracer("other").start_span("model call").end()
    for chunk in ("a", "b"):
        run.answer_chunk(chunk)
    assert not recorded.runs()
    run.finish()
    run.finish()
    run.answer("too late")
    assert attributes(recorded.named("run"))["output.value"] == "ab"
    call = recorded.named("model call")
    assert call.parent is not None
    assert call.parent.span_id == recorded.named("run").context.span_id


def test_what_the_function_says_counts_before_what_it_returns(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    @tracer.run
    def ask(question: str) -> str:
        tracer.answer("the answer [1]", citations=["kb-1"])
        return '{"html": "<p>the answer</p>"}'

    ask("q")
    assert attributes(recorded.named("ask"))["output.value"] == "the answer [1]"
    assert len(recorded.run().citations) == 1


def test_a_result_that_is_no_text_is_no_answer(recorded: RecordedSpans, attributes: Attributes) -> None:
    @tracer.run
    def ask(question: str) -> dict[str, str]:
        return {"answer": "a"}

    assert ask("q") == {"answer": "a"}
    assert "output.value" not in attributes(recorded.named("ask"))


def test_the_question_is_the_argument_that_sounds_like_one(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    class Bot:
        @tracer.run
        def ask(self, tenant: str, query: str) -> str:
            return "a"

        @tracer.run(argument="wish")
        def grant(self, tenant: str, wish: str) -> str:
            return "a"

        @tracer.run
        def greet(self, name: str) -> str:
            return "a"

    Bot().ask("tenant", query="the query")
    Bot().grant("tenant", "the wish")
    Bot().greet("the name")
    questions = [attributes(span)["input.value"] for span in recorded.spans]
    assert questions == ["the query", "the wish", "the name"]


def test_a_wrong_call_raises_what_it_would_without_the_decorator(recorded: RecordedSpans) -> None:
    @tracer.run
    def ask(question: str) -> str:
        return "a"

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'question'"):
        ask()  # type: ignore[call-arg]
