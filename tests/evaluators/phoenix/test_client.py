"""How failures of the server are taken: tried again where that is safe, else one line that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest

from citespan.evaluators.errors import (
    NotFound,
    Refused,
    ServerError,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.doctor import Outcome, check_phoenix
from citespan.evaluators.phoenix.records import Annotation, Project, StoredAnnotation, Target
from citespan.evaluators.phoenix.row_writer import RowWriter
from citespan.evaluators.settings import Settings

if TYPE_CHECKING:
    from tests.evaluators.phoenix.conftest import FakePhoenix

ROW = Annotation("0" * 16, "verdict", "citespan", label="supported")


def _client(answer: Callable[[httpx.Request], httpx.Response], **options: object) -> PhoenixClient:
    transport = httpx.MockTransport(answer)
    return PhoenixClient(
        Connection("http://phoenix.test"),
        http=transport,
        sleep=lambda _: None,
        **options,  # type: ignore[arg-type]
    )


def test_settings_say_how_to_connect() -> None:
    settings = Settings.load(
        environ={
            "PHOENIX_COLLECTOR_ENDPOINT": "https://h.example/base/v1/traces",
            "PHOENIX_API_KEY": "secret",
            "PHOENIX_CLIENT_HEADERS": "X-Team=blue%20sky",
        }
    )
    connection = Connection.from_settings(settings)
    assert connection.base_url == "https://h.example/base"
    assert connection.headers == {"x-team": "blue sky", "authorization": "Bearer secret"}
    assert connection.has_key
    assert "secret" not in repr(connection)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    answers = [httpx.Response(status), httpx.Response(status), httpx.Response(200, text='"20.26.1"')]
    with _client(lambda _: answers.pop(0)) as client:
        assert client.version() == "20.26.1"


def test_a_lasting_failure_is_an_error_after_the_last_attempt() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(503, text="queue full")

    with _client(answer, retries=2) as client, pytest.raises(Unavailable, match=r"503: queue full"):
        client.version()
    assert len(asked) == 3


def test_the_wait_between_attempts_grows_and_follows_the_server() -> None:
    waits: list[float] = []
    answers = [httpx.Response(503), httpx.Response(503), httpx.Response(429, headers={"retry-after": "3"})]
    client = PhoenixClient(
        Connection("http://phoenix.test"),
        http=httpx.MockTransport(lambda _: answers.pop(0) if answers else httpx.Response(200, text="20.26")),
        sleep=waits.append,
    )
    with client:
        client.version()
    first, second, asked_for = waits
    assert 0.125 <= first <= 0.25 <= second <= 0.5
    assert asked_for == 3.0


def test_an_answer_that_broke_off_is_asked_for_again() -> None:
    json_type = {"content-type": "application/json"}
    whole = {"data": [{"id": "P1", "name": "demo"}], "next_cursor": None}
    answers = [httpx.Response(200, text='{"data": [{', headers=json_type), httpx.Response(200, json=whole)]
    with _client(lambda _: answers.pop(0)) as client:
        assert [project.name for project in client.projects()] == ["demo"]


def test_deleting_rows_is_not_tried_again() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(503)

    with _client(answer) as client, pytest.raises(Unavailable):
        client.delete_stored(Target.SPAN, [StoredAnnotation("id", ROW)])
    assert asked == ["/graphql"]


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (httpx.Response(401), Unauthorized, ["none is set", "PHOENIX_API_KEY"]),
        (httpx.Response(403, json={"detail": "Forbidden"}), Unauthorized, ["Forbidden", "viewer"]),
        (httpx.Response(404, text="gone"), NotFound, ["gone"]),
        (httpx.Response(422, json={"detail": [{"msg": "bad"}]}), Refused, ["422", "bad"]),
        (httpx.Response(507, text="full"), Unavailable, ["no room left"]),
        (httpx.Response(302, headers={"location": "https://login.example"}), Unavailable, ["login.example"]),
        (httpx.Response(200, html="<html>Sign in</html>"), Unavailable, ["root path", "login page"]),
        (httpx.Response(200, text='{"data": ['), Unavailable, ["JSON"]),
        (httpx.Response(200, json=[1]), Unavailable, ["JSON"]),
        (httpx.Response(200, json={"rows": []}), Unavailable, ["no list 'data'"]),
    ],
)
def test_an_answer_that_helps_nobody_becomes_one_clear_line(
    answer: httpx.Response, error: type[ServerError], words: list[str]
) -> None:
    with _client(lambda _: answer, retries=0) as client, pytest.raises(error) as caught:
        list(client.projects())
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (httpx.ProxyError("403 Forbidden"), ["proxy", "NO_PROXY"]),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), ["SSL_CERT_FILE"]),
        (httpx.ReadTimeout("timed out"), ["within 30 s"]),
        (httpx.RemoteProtocolError("illegal status line"), ["4317 is gRPC"]),
        (httpx.DecodingError("incorrect header check"), ["broke off while answering"]),
        (httpx.ConnectError("[Errno 111] Connection refused"), ["citespan serve"]),
    ],
)
def test_no_answer_at_all_names_the_cause_and_the_fix(failure: httpx.RequestError, words: list[str]) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise failure

    with _client(fail, retries=0) as client, pytest.raises(Unreachable) as caught:
        client.version()
    for word in ("http://phoenix.test", *words):
        assert word in str(caught.value)


def test_a_certificate_is_not_tried_again() -> None:
    asked: list[httpx.Request] = []

    def fail(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        raise httpx.ConnectError("certificate verify failed: CERTIFICATE_VERIFY_FAILED")

    with _client(fail) as client, pytest.raises(Unreachable):
        client.version()
    assert len(asked) == 1


def test_a_project_whose_name_breaks_a_path_is_found_in_the_list() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/projects"
        return httpx.Response(200, json={"data": [{"id": "P1", "name": "a/b?c"}], "next_cursor": None})

    with _client(answer) as client:
        assert client.project("a/b?c") == Project("P1", "a/b?c")


def test_duplicate_spans_are_dropped_and_the_rest_sent(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    phoenix.add(1, 11)
    spans = [{"context": {"trace_id": f"{1:032x}", "span_id": f"{n:016x}"}} for n in (11, 12)]
    client.add_spans(project, spans)
    assert [span["context"]["span_id"] for span in phoenix.spans] == [f"{11:016x}", f"{12:016x}"]


def test_an_invalid_span_is_refused_with_its_reason(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    phoenix.fail = lambda _: httpx.Response(
        400, text='{"duplicate_spans": [], "invalid_spans": [{"error": "bad time"}]}'
    )
    with pytest.raises(Refused, match="bad time"):
        client.add_spans(project, [{"context": {"trace_id": "1", "span_id": "2"}}])


def test_one_missing_target_does_not_lose_the_others(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    for n in range(1, 8):
        phoenix.add(1, n)
    rows = [Annotation(f"{n:016x}", "verdict", "citespan") for n in range(1, 11)]
    done = RowWriter(client, project, Target.SPAN).write(rows, ())
    assert done.written == 7
    assert done.refused == {f"{n:016x}": "span_gone" for n in (8, 9, 10)}


def test_a_row_that_is_refused_is_told_with_the_reason(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    phoenix.add(1, 1)
    phoenix.fail = lambda request: (
        httpx.Response(422, text="label too odd") if b"odd" in request.content else None
    )
    rows = [Annotation(f"{1:016x}", name, "citespan", label=name) for name in ("plain", "odd", "fine")]
    done = RowWriter(client, project, Target.SPAN).write(rows, ())
    assert done.written == 2
    assert "label too odd" in done.refused[f"{1:016x}"]


def test_a_row_that_breaks_the_server_is_told_apart_from_a_broken_server(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    phoenix.add(1, 1)
    rows = [Annotation(f"{1:016x}", f"name {n}", "citespan", label=f"label {n}.") for n in range(100)]
    phoenix.fail = lambda request: httpx.Response(500) if b"label 7." in request.content else None
    done = RowWriter(client, project, Target.SPAN).write(rows, ())
    assert done.written == 99
    assert list(done.refused) == [f"{1:016x}"]
    phoenix.fail = lambda _: httpx.Response(500)
    with pytest.raises(Unavailable):
        RowWriter(client, project, Target.SPAN).write(rows, ())


def test_a_judge_may_write_any_character(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    phoenix.add(1, 1)
    odd = "NUL \x00 and surrogate \ud800"
    row = Annotation(f"{1:016x}", "verdict", "citespan", explanation=odd, metadata={"reasons": [odd]})
    assert RowWriter(client, project, Target.SPAN).write([row], ()).written == 1
    (stored,) = phoenix.rows.values()
    clean = "NUL \ufffd and surrogate \ufffd"
    assert (stored["result"]["explanation"], stored["metadata"]) == (clean, {"reasons": [clean]})


def test_long_rows_go_in_several_requests(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    phoenix.add(1, 1)
    rows = [
        Annotation(f"{1:016x}", "verdict", f"citespan#{n}", metadata={"text": "x" * 1_500_000})
        for n in range(5)
    ]
    assert RowWriter(client, project, Target.SPAN).write(rows, ()).written == 5
    # 1.5 MB each: two fit into 4 MB.
    assert [len(request.content) // 1_500_000 for request in phoenix.requests] == [2, 2, 1]


@pytest.mark.parametrize(
    ("version", "outcome"),
    [
        ("20.26.1", Outcome.OK),
        ("20.30.0", Outcome.OK),
        ("20.25.9", Outcome.FAILED),
        ("19.40.0", Outcome.FAILED),
        ("21.0.0", Outcome.WARNING),
    ],
)
def test_doctor_knows_the_versions_it_was_tested_with(version: str, outcome: Outcome) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/arize_phoenix_version":
            return httpx.Response(200, text=f'"{version}"')
        return httpx.Response(200, json={"data": {"id": "P1", "name": "demo"}})

    with _client(answer) as client:
        checks = {check.name: check for check in check_phoenix(client, "demo")}
    assert checks["version"].outcome is outcome
    assert version in checks["version"].detail
    if outcome is not Outcome.OK:
        assert "20.26" in str(checks["version"].fix)
