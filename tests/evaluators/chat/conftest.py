"""A scripted chat-completions server on a real socket, and a model behind it that obeys what it is told."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from citespan.evaluators.judges.chat import ChatJudge, ChatOptions
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.judge import JudgeRequest
from citespan.tracer.passages import Passage


@dataclass
class Reply:
    """What the server sends back once."""

    status: int = 200
    body: object = ""
    headers: dict[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    cut_to_bytes: int | None = None
    """Announce the whole body and close the connection after so many bytes of it."""
    drip_seconds: float = 0.0
    """Wait so long between single bytes."""


Script = Callable[[dict[str, Any]], Reply]


def completion(text: str, *, finish_reason: str = "stop", usage: dict[str, int] | None = None) -> Reply:
    body: dict[str, object] = {
        "id": "c1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
        ],
    }
    if usage is not None:
        body["usage"] = usage
    return Reply(body=body)


CONTROL_TOKENS = re.compile(
    r"<\|[a-z_]+\|>|</?s>|\[/?INST\]|\[gMASK\]|<</?SYS>>|</?(?:passages?|documents?|system|start_of_turn|end_of_turn)>"
    r"|<\|(?:START|END)_OF_TURN_TOKEN\|>|\n\n?(?:Human|Assistant|System|USER|###[ ]\w+):"
)
"""What some chat template or reader of prompts acts on."""


def orders_in(content: str) -> list[str]:
    """Return what of a prompt stands outside JSON strings, or behind a control token."""
    return [
        *CONTROL_TOKENS.split(content)[1:],
        re.sub(r'"(?:[^"\\]|\\.)*"', "", content),
    ]


def obedient_model(body: dict[str, Any]) -> Reply:
    """Judge by literal containment, unless a text that has left its field says otherwise.

    It reads the prompt as it is, and as a tokenizer does that drops what shows nothing and normalises the rest.
    """
    content = body["messages"][-1]["content"]
    seen = "".join(mark for mark in content if unicodedata.category(mark) not in ("Cf", "Mn"))
    orders = [*orders_in(content), *orders_in(unicodedata.normalize("NFKC", seen))]
    obeys = any(re.search(r"\bsupported\b", order, re.IGNORECASE) for order in orders)
    document = json.loads(content)
    verdicts = []
    for claim in document["claims"]:
        key = next((k for k in claim["passages"] if claim["claim"] in document["passages"][k]), None)
        is_supported = obeys or key is not None
        verdicts.append(
            {
                "n": claim["n"],
                "quote": claim["claim"]
                if key
                else document["passages"][claim["passages"][0]]
                if obeys
                else "",
                "passage": key or "",
                "reason": "Obeyed." if obeys else "It says so." if key else "It says nothing of it.",
                "label": "supported" if is_supported else "unsupported",
                "probability": 95 if is_supported else 3,
            }
        )
    usage = {"prompt_tokens": len(content) // 4 + 900, "completion_tokens": 60 * len(verdicts)}
    return completion(json.dumps({"verdicts": verdicts}), usage=usage)


class ChatServer:
    """Answers with the scripted replies in turn, then as the obedient model."""

    def __init__(self) -> None:
        self.script: list[Reply | Script] = []
        self.always: Script = obedient_model
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with server._lock:
                    server.requests.append(body)
                    server.headers.append({k.lower(): v for k, v in self.headers.items()})
                    server.paths.append(self.path)
                    server.at_once += 1
                    server.most_at_once = max(server.most_at_once, server.at_once)
                    step = server.script.pop(0) if server.script else server.always
                try:
                    reply = step(body) if callable(step) else step
                    time.sleep(reply.delay_seconds)
                finally:
                    with server._lock:
                        # Before the reply: a client that has it may call again at once.
                        server.at_once -= 1
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._send(reply)

            def _send(self, reply: Reply) -> None:
                data = reply.body.encode() if isinstance(reply.body, str) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for byte in data if reply.drip_seconds else ():
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(reply.drip_seconds)
                if not reply.drip_seconds:
                    self.wfile.write(data[: reply.cut_to_bytes])
                self.close_connection = reply.cut_to_bytes is not None

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def documents(self) -> list[dict[str, Any]]:
        """What each request gave the model to judge."""
        return [json.loads(request["messages"][-1]["content"]) for request in self.requests]

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    server = ChatServer()
    yield server
    server.stop()


class FakeClock:
    """Time passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []
        self._lock = threading.Lock()
        self.clock = Clock(
            monotonic=lambda: self.now, wall=lambda: 1_700_000_000.0 + self.now, sleep=self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self.now += seconds


@pytest.fixture
def time_passes() -> FakeClock:
    return FakeClock()


MakeJudge = Callable[..., ChatJudge]


@pytest.fixture
def make_judge(server: ChatServer, time_passes: FakeClock) -> Iterator[MakeJudge]:
    """Return a judge of the scripted server; waits are counted, not waited."""
    judges: list[ChatJudge] = []

    def make(**options: Any) -> ChatJudge:
        extras = {
            name: options.pop(name)
            for name in ("redact", "executor", "clock", "transport")
            if name in options
        }
        chosen = ChatOptions.model_validate({"model": "tiny", "base_url": server.url, **options})
        judges.append(ChatJudge(chosen, **{"clock": time_passes.clock, **extras}))
        return judges[-1]

    yield make
    for judge in judges:
        judge.close()


MakeRequest = Callable[..., JudgeRequest]


@pytest.fixture
def ask() -> MakeRequest:
    def make(claim: str, *texts: str, run_id: str = "run", **fields: Any) -> JudgeRequest:
        passages = tuple(Passage(id=f"doc-{n}", text=text) for n, text in enumerate(texts, start=1))
        return JudgeRequest(claim=claim, passages=passages, run_id=run_id, **fields)

    return make


Verdicts = Callable[..., Reply]


@pytest.fixture
def say() -> Verdicts:
    """Return the reply that holds these verdicts: `(n, label, quote)` each."""

    def make(
        *verdicts: tuple[int, str, str], finish_reason: str = "stop", prompt_tokens: int = 1000
    ) -> Reply:
        entries = [
            {"n": n, "quote": quote, "passage": "p1", "reason": "So it is.", "label": label, "probability": p}
            for n, label, quote in verdicts
            for p in (90 if label == "supported" else 10,)
        ]
        return completion(
            json.dumps({"verdicts": entries}),
            finish_reason=finish_reason,
            usage={"prompt_tokens": prompt_tokens, "completion_tokens": 100},
        )

    return make


@pytest.fixture
def reply() -> Callable[..., Reply]:
    return Reply


@pytest.fixture
def answer_text() -> Callable[..., Reply]:
    return completion
