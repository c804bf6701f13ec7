"""Runs in threads, tasks and pools do not mix."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from opentelemetry.sdk.trace import ReadableSpan

from citespan import tracer
from citespan.tracer.testing import RecordedSpans

Attributes = Callable[[ReadableSpan], Mapping[str, object]]


def test_tasks_that_run_at_once_stay_apart(recorded: RecordedSpans, attributes: Attributes) -> None:
    async def ask(n: int) -> None:
        with tracer.run(f"q{n}"):
            await asyncio.sleep(0)
            tracer.retrieved([f"p{n}"])
            await asyncio.sleep(0)
            tracer.answer(f"a{n}")

    async def ask_all() -> None:
        await asyncio.gather(*(ask(n) for n in range(20)))

    asyncio.run(ask_all())
    assert _answers(recorded, attributes) == {f"q{n}": f"a{n}" for n in range(20)}
    assert {record.passage_count for record in recorded.runs()} == {1}


def test_threads_that_run_at_once_stay_apart(recorded: RecordedSpans, attributes: Attributes) -> None:
    together = threading.Barrier(8)

    def ask(n: int) -> None:
        with tracer.run(f"q{n}"):
            together.wait(timeout=10)
            tracer.answer(f"a{n}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert _answers(recorded, attributes) == {f"q{n}": f"a{n}" for n in range(8)}


def test_retrievals_in_a_pool_belong_to_the_run_they_are_given(recorded: RecordedSpans) -> None:
    with tracer.run("q") as run, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: run.retrieved([{"id": f"p{n}", "text": f"t{n}"}]), range(40)))
    assert recorded.run().passage_count == 40
    root = recorded.named("run").context.span_id
    parents = [span.parent.span_id for span in recorded.spans if span.name == "retrieval" and span.parent]
    assert parents == [root] * 40


def test_a_copied_context_takes_the_run_into_a_thread(recorded: RecordedSpans) -> None:
    with tracer.run("q"):
        context = contextvars.copy_context()
        worker = threading.Thread(target=context.run, args=(tracer.retrieved, ["p"]))
        worker.start()
        worker.join()
    assert recorded.run().passage_count == 1


def test_a_task_that_outlives_its_run_starts_a_trace_of_its_own(
    recorded: RecordedSpans, attributes: Attributes
) -> None:
    async def later(go: asyncio.Event) -> None:
        await go.wait()
        with tracer.run("later"):
            tracer.answer("second")

    async def ask() -> None:
        go = asyncio.Event()
        with tracer.run("first"):
            task = asyncio.create_task(later(go))
            tracer.answer("first")
        go.set()
        await task

    asyncio.run(ask())
    assert _answers(recorded, attributes) == {"first": "first", "later": "second"}
    assert len({span.context.trace_id for span in recorded.spans}) == 2


def _answers(recorded: RecordedSpans, attributes: Attributes) -> dict[object, object]:
    runs = [attributes(span) for span in recorded.spans if span.name == "run"]
    return {run["input.value"]: run["output.value"] for run in runs}
