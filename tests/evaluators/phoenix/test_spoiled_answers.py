"""Answers that a network or gateway has spoiled are never taken for Phoenix's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from citespan.evaluators.errors import Unavailable, Unreachable
from citespan.evaluators.phoenix.batches import BatchSender
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.records import Annotation, Project, StoredAnnotation, Target
from citespan.evaluators.phoenix.span_writer import SpanWriter
from citespan.evaluators.phoenix.transport import Transport

PROJECT = Project("UHJvamVjdDox", "demo")
ROW = Annotation("a" * 16, "verdict", "citespan", label="supported")
LOGIN_PAGE = "<!doctype html><html><body>Please log in</body></html>"


def _client(answer: Callable[[httpx.Request], httpx.Response]) -> PhoenixClient:
    connection = Connection("http://phoenix.test")
    return PhoenixClient(connection, http=httpx.MockTransport(answer), sleep=lambda _: None)


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.annotate(Target.SPAN, [ROW]),
        lambda client: client.add_spans(PROJECT, [{"context": {"span_id": "a" * 16}}]),
        lambda client: client.delete_span("a" * 16),
        lambda client: list(client.annotations(PROJECT, Target.SPAN, target_ids=["a" * 16])),
        lambda client: list(client.span_pages(PROJECT)),
    ],
    ids=["annotate", "add_spans", "delete_span", "annotations", "span_pages"],
)
def test_a_web_page_is_no_answer(ask: Callable[[PhoenixClient], object], status: int) -> None:
    client = _client(lambda _: httpx.Response(status, html=LOGIN_PAGE))
    with client, pytest.raises(Unavailable, match="login page") as caught:
        ask(client)
    assert caught.value.status is None  # it says nothing of the trace that was asked for


def test_a_gateways_404_is_not_phoenixs_word_that_there_are_no_rows() -> None:
    """While Phoenix restarts, some ingresses answer 404 for it: then a person's row is there, though it is not seen."""
    answers = [
        httpx.Response(200, json={"data": []}, headers={"x-phoenix-server-version": "20.26.1"}),
        httpx.Response(404, text="None exist", headers={"x-phoenix-server-version": "20.26.1"}),
        httpx.Response(404, text="404 page not found"),
    ]
    with _client(lambda _: answers.pop(0)) as client:

        def ask() -> list[StoredAnnotation]:
            return list(client.annotations(PROJECT, Target.SPAN, target_ids=["a" * 16]))

        assert ask() == []
        assert ask() == []
        with pytest.raises(Unavailable) as caught:
            ask()
    assert caught.value.status is None


def test_rows_are_written_only_when_phoenix_says_so() -> None:
    client = _client(lambda _: httpx.Response(200, json={"message": "welcome"}))
    with client, pytest.raises(Unavailable):
        client.annotate(Target.SPAN, [ROW])


@pytest.mark.parametrize("status", [408, 429])
def test_a_busy_server_is_not_blamed_on_what_was_sent(status: int) -> None:
    asked: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(1)
        return httpx.Response(status, text="slow down")

    with _client(answer) as client:
        sender = BatchSender[Annotation](lambda rows: client.annotate(Target.SPAN, rows), lambda _: 1)
        with pytest.raises(Unavailable, match="too busy"):
            sender.send([ROW] * 100)
    assert len(asked) == 4  # one request and its three tries, not one for each row


def test_an_answer_that_never_ends_is_given_up() -> None:
    now = 0.0

    class Drip(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            nonlocal now
            while now < 10_000:
                now += 1
                yield b" "

    connection = Connection("http://phoenix.test", timeout_seconds=30)
    http = httpx.MockTransport(lambda _: httpx.Response(200, stream=Drip()))
    transport = Transport(connection, retries=0, http=http, monotonic=lambda: now)
    with pytest.raises(Unreachable, match="did not answer"):
        transport.json("GET", "/v1/projects")
    assert now == 121  # four times the timeout of one piece, and the piece that was too late


def test_claim_spans_are_taken_back_from_a_project_that_is_gone() -> None:
    """Phoenix stores queued spans after the project was deleted, and makes it anew for them."""
    stored: list[str] = []
    looks = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal looks
        span_id = request.url.path.rpartition("/")[2]
        if request.method == "DELETE":
            looks += 1
            if looks > 4:  # Phoenix was behind
                stored.append(span_id)
            return httpx.Response(204 if span_id in stored else 404)
        return httpx.Response(404, text="no such project")

    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    with _client(answer) as client:
        writer = SpanWriter(client, PROJECT, clock=lambda: now, sleep=sleep)
        writer.take_back(["a" * 16, "b" * 16])
        assert sorted(stored) == ["a" * 16, "b" * 16]
        stored.clear()
        writer.take_back([])
        assert now < 1
        looks = -10_000  # nothing comes any more: it is looked for as long as a span may take
        writer.take_back(["c" * 16])
    assert 60 <= now <= 66
