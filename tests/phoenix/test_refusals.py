"""A server that cannot be reached or refuses: one clear line that names the URL and the fix, and nothing lost."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest

from citespan.evaluators.errors import NotFound, ServerError, Unauthorized, Unavailable, Unreachable
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.doctor import Outcome, check_phoenix
from citespan.evaluators.phoenix.purge import purge
from citespan.evaluators.phoenix.server import PhoenixServer
from citespan.tracer import Passage

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.phoenix.conftest import Workbench

pytestmark = pytest.mark.phoenix

SECRET = "a-secret-of-more-than-32-characters-1"
ADMIN_SECRET = "an-admin-secret-of-more-than-32-characters-1"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A Phoenix with authentication, and the connection of its administrator."""
    variables = {
        "PHOENIX_ENABLE_AUTH": "true",
        "PHOENIX_SECRET": SECRET,
        "PHOENIX_ADMIN_SECRET": ADMIN_SECRET,
    }
    with PhoenixServer(tmp_path_factory.mktemp("guarded"), variables=variables) as server:
        yield Connection(server.url, {"authorization": f"Bearer {ADMIN_SECRET}"})


@pytest.fixture
def dead_url() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def _one_line(error: ServerError) -> str:
    text = str(error)
    assert "\n" not in text
    return text


def test_phoenix_down_names_url_and_fix(dead_url: str) -> None:
    with PhoenixClient(Connection(dead_url), retries=0) as client, pytest.raises(Unreachable) as caught:
        client.project("default")
    line = _one_line(caught.value)
    assert dead_url in line
    assert "citespan serve" in line
    assert "PHOENIX_COLLECTOR_ENDPOINT" in line


def test_wrong_project_names_those_that_exist(bench: Workbench) -> None:
    bench.recorder.ask("How long?", "At once [1].", [Passage(id="a", text="At once.")])
    assert bench.project.name == bench.name
    with pytest.raises(NotFound) as caught:
        bench.client.project("no-such-project")
    line = _one_line(caught.value)
    assert bench.client.connection.base_url in line
    assert "'no-such-project'" in line
    assert re.search(r"there are \S", line)


def test_a_missing_or_wrong_key_is_told_apart(guarded: Connection) -> None:
    without = PhoenixClient(replace(guarded, headers={}))
    wrong = PhoenixClient(replace(guarded, headers={"authorization": "Bearer wrong"}))
    for client, complaint in ((without, "none is set"), (wrong, "refused the API key")):
        with client, pytest.raises(Unauthorized, match=complaint) as caught:
            client.project("default")
        line = _one_line(caught.value)
        assert guarded.base_url in line
        assert "PHOENIX_API_KEY" in line


def test_the_right_key_opens_everything(guarded: Connection) -> None:
    with PhoenixClient(guarded) as client:
        assert client.project("default").name == "default"
        assert [check.outcome for check in check_phoenix(client, "default")] == [Outcome.OK] * 5


def test_a_root_path_is_part_of_every_url(bench: Workbench) -> None:
    class Gateway(httpx.HTTPTransport):
        """What stands before a Phoenix with PHOENIX_HOST_ROOT_PATH: it takes the root path off."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            path = request.url.raw_path.decode()
            assert path.startswith("/tools/phoenix/")
            request.url = request.url.copy_with(raw_path=path.removeprefix("/tools/phoenix").encode())
            return super().handle_request(request)

    trace_id = bench.recorder.ask("How long?", "At once [1].", [Passage(id="a", text="At once.", label="1")])
    project = bench.project
    rooted = Connection(f"{bench.client.connection.base_url}/tools/phoenix")
    direct = bench.client
    with PhoenixClient(rooted, http=Gateway()) as bench.client:
        assert bench.evaluate().runs_evaluated == 1
        url = bench.client.trace_url(project, trace_id)
    bench.client = direct
    assert url == f"{rooted.base_url}/projects/{project.id}/traces/{trace_id}"
    assert bench.snapshot().labels("cite_state") == {(trace_id, "citespan"): "evaluated"}


def _key_of(guarded: Connection, role: str) -> Connection:
    """Return the connection of a new user with an API key of their own."""
    base = guarded.base_url
    user = {"email": f"{role}@example.org", "username": role, "password": "a-Long-passw0rd!"}
    body = {"user": {**user, "role": role, "auth_method": "LOCAL"}, "send_welcome_email": False}
    assert httpx.post(f"{base}/v1/users", json=body, headers=dict(guarded.headers)).is_success
    with httpx.Client() as session:
        login = {"email": user["email"], "password": user["password"]}
        assert session.post(f"{base}/auth/login", json=login).is_success
        made = session.post(f"{base}/v1/user/api_keys", json={"data": {"name": "test"}})
    return Connection(base, {"authorization": f"Bearer {made.json()['data']['key']}"})


def test_a_viewer_is_told_which_key_to_use(guarded: Connection) -> None:
    with PhoenixClient(_key_of(guarded, "VIEWER")) as client:
        checks = check_phoenix(client, "default")
    assert [check.outcome for check in checks[:4]] == [Outcome.OK] * 4
    assert checks[4].outcome is Outcome.FAILED
    assert "not of a viewer" in str(checks[4].fix)


def test_a_member_can_record_evaluate_and_purge(
    guarded: Connection, make_bench: Callable[[PhoenixClient], AbstractContextManager[Workbench]]
) -> None:
    with PhoenixClient(_key_of(guarded, "MEMBER")) as client, make_bench(client) as bench:
        bench.recorder.ask("How long?", "At once [1].", [Passage(id="a", text="At once.", label="1")])
        before = bench.spans()
        assert bench.evaluate().runs_evaluated == 1
        assert bench.evaluate(claims_mode="annotations").set_aside == {}
        assert purge(client, bench.project).rows > 0
        assert bench.snapshot().rows == {}
        assert bench.spans() == before


def test_doctor_stops_at_the_first_failure_and_says_what_to_do(dead_url: str) -> None:
    with PhoenixClient(Connection(dead_url), retries=0) as client:
        first, *others = check_phoenix(client, "default")
    assert first.outcome is Outcome.FAILED
    assert dead_url in first.detail
    assert "citespan serve" in str(first.fix)
    assert {check.outcome for check in others} == {Outcome.SKIPPED}


def test_doctor_names_a_project_that_is_missing(bench: Workbench) -> None:
    checks = {check.name: check for check in check_phoenix(bench.client, "no-such-project")}
    assert checks["connection"].outcome is Outcome.OK
    assert checks["project"].outcome is Outcome.FAILED
    assert "send a first trace" in str(checks["project"].fix)


def test_the_page_in_place_of_the_api_is_told_from_phoenix(bench: Workbench) -> None:
    # Phoenix answers any unknown path with its page: a wrong root path looks like this.
    wrong = Connection(f"{bench.client.connection.base_url}/no/such/root")
    with PhoenixClient(wrong, retries=0) as client, pytest.raises((Unavailable, NotFound)) as caught:
        client.version()
    assert "root path" in _one_line(caught.value)


def test_https_against_a_plain_server_says_so(bench: Workbench) -> None:
    https = bench.client.connection.base_url.replace("http://", "https://")
    with PhoenixClient(Connection(https), retries=0) as client, pytest.raises(Unreachable) as caught:
        client.version()
    assert "http://" in _one_line(caught.value)


def test_losing_phoenix_in_the_middle_loses_nothing(bench: Workbench) -> None:
    class Cut(httpx.HTTPTransport):
        """Lets the verdicts through and cuts the line at the first row on a trace."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/trace_annotations") and request.method == "POST":
                raise httpx.ConnectError("Connection refused", request=request)
            return super().handle_request(request)

    passages = [Passage(id="a", text="Support answers within one hour.", label="1")]
    trace_id = bench.recorder.ask("How long?", "Support answers within one hour [1].", passages)
    whole = bench.client
    cut = PhoenixClient(whole.connection, http=Cut(), retries=0)
    with cut as bench.client, pytest.raises(Unreachable):
        bench.evaluate()
    bench.client = whole
    assert bench.snapshot().labels("cite_state") == {}
    assert bench.evaluate().runs_evaluated == 1
    assert bench.snapshot().labels("cite_state") == {(trace_id, "citespan"): "evaluated"}
