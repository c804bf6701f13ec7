"""Running a local Phoenix as a subprocess."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import httpx
import pytest

from citespan.evaluators.errors import Unavailable, UsageError
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.doctor import SUPPORTED
from citespan.evaluators.phoenix.server import PhoenixServer

pytestmark = pytest.mark.phoenix


def test_server_answers_with_a_supported_version(server: PhoenixServer, client: PhoenixClient) -> None:
    major, minor, *_ = (int(number) for number in client.version().split("."))
    assert SUPPORTED[0] <= (major, minor) < SUPPORTED[1]
    assert server.process_id is not None


def test_the_page_loads_nothing_from_outside(server: PhoenixServer) -> None:
    loaded = re.findall(r"<(?:script|link)[^>]*(?:src|href)=\"([^\"]*)\"", httpx.get(server.url).text)
    assert loaded
    assert [address for address in loaded if "://" in address] == []


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7007"),
        ("0.0.0.0", "http://127.0.0.1:7007"),
        ("::1", "http://[::1]:7007"),
        ("localhost", "http://localhost:7007"),
    ],
)
def test_the_url_is_one_that_can_be_called(tmp_path: Path, host: str, url: str) -> None:
    assert PhoenixServer(tmp_path, host=host, port=7007).url == url


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 is taken"):
            PhoenixServer(tmp_path, port=port).start()


def test_a_second_server_on_one_folder_is_refused(server: PhoenixServer) -> None:
    with pytest.raises(UsageError, match=r"another Phoenix runs on .*--home"):
        PhoenixServer(server.folder).start()


def test_a_folder_is_free_again_when_its_server_has_failed(tmp_path: Path) -> None:
    for _ in range(2):  # the second would be refused if the first still held the folder
        with pytest.raises(Unavailable):
            PhoenixServer(tmp_path, variables={"PYTHONHOME": "/nowhere"}).start()


def test_a_failed_start_shows_the_end_of_the_log(tmp_path: Path) -> None:
    server = PhoenixServer(tmp_path, variables={"PYTHONHOME": "/nowhere"})
    with pytest.raises(Unavailable) as caught:
        server.start()
    assert "before it answered" in str(caught.value)
    assert "No module named 'encodings'" in str(caught.value)
    assert server.process_id is None
