"""Spans wait in bounded memory, and nobody waits for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from citespan.tracer.outbox import Outbox, OutboxLimits

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = OutboxLimits(delay_seconds=0.01, shutdown_seconds=0.2)


class Collector(SpanExporter):
    """Keeps the messages it gets; waits for `open` first, as a server that hangs does."""

    def __init__(self) -> None:
        self.messages: list[list[str]] = []
        self.open = threading.Event()
        self.open.set()
        self.asked = threading.Event()
        self.is_shut_down = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        self.open.wait(30)
        self.messages.append([span.name for span in spans])
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.is_shut_down = True
        self.open.set()


@contextmanager
def outbox_to(exporter: SpanExporter, limits: OutboxLimits) -> Iterator[tuple[Tracer, Outbox]]:
    provider = TracerProvider(shutdown_on_exit=False, span_limits=SpanLimits(max_span_attributes=10_000))
    outbox = Outbox(exporter, limits)
    provider.add_span_processor(outbox)
    try:
        yield provider.get_tracer("test"), outbox
    finally:
        provider.shutdown()


def end_span(tracer: Tracer, name: str, text: str = "") -> None:
    tracer.start_span(name, attributes={"text": text, "n": 1}).end()


def test_what_ended_is_sent_in_order() -> None:
    collector = Collector()
    with outbox_to(collector, replace(QUICK, delay_seconds=60)) as (tracer, outbox):
        for n in range(5):
            end_span(tracer, str(n))
        assert outbox.force_flush(10_000)
        assert collector.messages == [["0", "1", "2", "3", "4"]]
    assert collector.is_shut_down


def test_a_full_message_does_not_wait_for_the_delay() -> None:
    collector = Collector()
    collector.open.clear()
    with outbox_to(collector, replace(QUICK, delay_seconds=60, message_spans=2)) as (tracer, _):
        end_span(tracer, "a")
        assert not collector.asked.wait(0.05)
        end_span(tracer, "b")
        assert collector.asked.wait(10)


def test_messages_are_bounded_in_spans_and_bytes() -> None:
    collector = Collector()
    limits = replace(QUICK, delay_seconds=60, message_spans=3, message_bytes=4000)
    with outbox_to(collector, limits) as (tracer, outbox):
        collector.open.clear()
        # A span counts 600 bytes and its text: 1600 each, so two fit into 4000; the large one goes alone.
        for name, size in (
            ("a", 1000),
            ("b", 1000),
            ("c", 1000),
            ("large", 9000),
            ("d", 0),
            ("e", 0),
            ("f", 0),
            ("g", 0),
        ):
            end_span(tracer, name, "x" * size)
        collector.open.set()
        assert outbox.force_flush(10_000)
    sent = [name for message in collector.messages for name in message]
    assert sent == ["a", "b", "c", "large", "d", "e", "f", "g"]
    assert ["large"] in collector.messages
    assert max(len(message) for message in collector.messages) <= 3


@pytest.mark.usefixtures("faults_logged")
def test_beyond_the_bytes_that_may_wait_spans_are_dropped_and_once_said(
    faults_logged: pytest.LogCaptureFixture,
) -> None:
    collector = Collector()
    collector.open.clear()
    limits = replace(QUICK, waiting_bytes=10_000, message_spans=1)
    with outbox_to(collector, limits) as (tracer, outbox):
        end_span(tracer, "first")
        assert collector.asked.wait(10)
        # The first is on its way. Of the others 1,600 bytes each, six fit into 10,000.
        for n in range(20):
            end_span(tracer, str(n), "x" * 1000)
        collector.open.set()
        assert outbox.force_flush(10_000)
        # Room again: nothing is stuck.
        end_span(tracer, "last")
        assert outbox.force_flush(10_000)
    assert collector.messages == [["first"], *[[str(n)] for n in range(6)], ["last"]]
    assert [record.getMessage() for record in faults_logged.records] == [
        "the collector is down or too slow: spans are dropped (logged once)"
    ]


@pytest.mark.usefixtures("faults_logged")
def test_beyond_the_spans_that_may_wait_they_are_dropped() -> None:
    collector = Collector()
    collector.open.clear()
    with outbox_to(collector, replace(QUICK, waiting_spans=3, message_spans=1)) as (tracer, outbox):
        end_span(tracer, "first")
        assert collector.asked.wait(10)
        for n in range(10):
            end_span(tracer, str(n))
        collector.open.set()
        assert outbox.force_flush(10_000)
    assert collector.messages == [["first"], ["0"], ["1"], ["2"]]


def test_a_server_that_hangs_holds_up_neither_flush_nor_shutdown() -> None:
    collector = Collector()
    collector.open.clear()
    with outbox_to(collector, QUICK) as (tracer, outbox):
        end_span(tracer, "a")
        assert collector.asked.wait(10)
        end_span(tracer, "b")
        assert not outbox.force_flush(50)
        outbox.shutdown()
        # The exporter was told to stop, which ended the export under way; what still waited was given up.
        assert collector.is_shut_down
        assert collector.messages == [["a"]]
        end_span(tracer, "too late")
        assert outbox.force_flush(50)


def test_an_exporter_that_fails_loses_one_message_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Collector):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            if spans[0].name == "bad":
                raise OSError("no route")
            return super().export(spans)

    collector = Failing()
    with outbox_to(collector, replace(QUICK, message_spans=1)) as (tracer, outbox):
        end_span(tracer, "bad")
        end_span(tracer, "good")
        assert outbox.force_flush(10_000)
    assert collector.messages == [["good"]]
    assert "the exporter failed: 1 spans are lost" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_sends_what_is_its_own() -> None:
    """Gunicorn forks after the app was loaded: the child has no thread, and the queue is its parent's."""
    collector = Collector()
    with outbox_to(collector, replace(QUICK, delay_seconds=60)) as (tracer, outbox):
        end_span(tracer, "parent's")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            end_span(tracer, "child's")
            outbox.force_flush(10_000)
            os.write(writer, repr(collector.messages).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            assert pipe.read() == '[["child\'s"]]'
        assert outbox.force_flush(10_000)
    assert collector.messages == [["parent's"]]
