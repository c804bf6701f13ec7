"""Evaluate a project and die at the n-th write to Phoenix, as by `kill -9`: run by test_killed.py."""

from __future__ import annotations

import os
import signal
import sys

import httpx

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.worker import run_pass


class DeadlyTransport(httpx.HTTPTransport):
    """Sends requests until the n-th write, then kills this process before or after it was sent."""

    def __init__(self, last_write: int, when: str) -> None:
        super().__init__()
        self._left = last_write
        self._when = when

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        is_last = False
        if request.method != "GET":
            self._left -= 1
            is_last = self._left == 0
        if is_last and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        response = super().handle_request(request)
        if is_last:
            response.read()
            os.kill(os.getpid(), signal.SIGKILL)
        return response


def main(url: str, project: str, last_write: str, when: str) -> None:
    client = PhoenixClient(Connection(url), http=DeadlyTransport(int(last_write), when))
    found = client.project(project)
    run_pass(PhoenixSource(client, found), annotator=Annotator(client, found))


if __name__ == "__main__":
    main(*sys.argv[1:])
