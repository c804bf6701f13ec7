"""What a worker says of itself over OTLP: it waits in a bounded queue and never holds up the work.

The SDK's batch processor loses a batch once its exporter has given up, and the versions that citespan supports do not
all tell how many items that was. Here items wait through an outage of the receiver, and each is counted once: sent or
dropped.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import httpx

from citespan.evaluators.judges.chat.clock import SYSTEM_CLOCK, Clock
from citespan.evaluators.periodic.logs import Log, no_log
from citespan.evaluators.periodic.metrics import ExportCounts
from citespan.evaluators.periodic.pacing import Backoff

__all__ = ["OtlpMessage", "Outbox"]

_Item = TypeVar("_Item")

MOST_WAITING = 4096
"""Items that wait for a receiver; what comes beyond that is dropped and counted."""

_ITEMS_PER_MESSAGE = 512
_DELAY_SECONDS = 2.0
_TIMEOUT_SECONDS = 5.0
_WORTH_ANOTHER_TRY = frozenset({408, 429, 502, 503, 504})


class OtlpMessage(Protocol):
    """A request of OTLP over HTTP."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - the name is that of protobuf
        """Return the body."""
        ...


class Outbox(Generic[_Item]):
    """Sends items to one OTLP receiver in a background thread.

    A receiver that is down or full is tried again, later each time, while items wait; one that refuses a message
    loses it. Use it in a `with` block: at its end what waits is sent, but not for long.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        pack: Callable[[Sequence[_Item]], OtlpMessage],
        counts: ExportCounts,
        *,
        log: Log = no_log,
        http: httpx.BaseTransport | None = None,
        clock: Clock = SYSTEM_CLOCK,
        most_waiting: int = MOST_WAITING,
        delay_seconds: float = _DELAY_SECONDS,
    ) -> None:
        """Start the thread.

        Args:
            url: Where messages are posted, with its path.
            headers: Sent with every message.
            pack: Makes a message of items.
            counts: Where to count what was sent and what was dropped.
            log: Where to note that the receiver is in trouble.
            http: Another transport instead of the network.
            clock: Tells the time.
            most_waiting: How many items may wait.
            delay_seconds: How long an item waits for others to share a message.
        """
        self._url = url
        self._pack = pack
        self._counts = counts
        self._log = log
        self._clock = clock
        self._most_waiting = most_waiting
        self._delay_seconds = delay_seconds
        self._client = httpx.Client(headers=dict(headers), timeout=_TIMEOUT_SECONDS, transport=http)
        self._queue: deque[_Item] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._close_by: float | None = None
        self._is_in_trouble = False
        self._thread = threading.Thread(target=self._work, name="citespan-outbox", daemon=True)
        self._thread.start()

    def put(self, item: _Item) -> None:
        """Let an item wait to be sent, or drop it where too many wait; returns at once."""
        with self._lock:
            has_room = len(self._queue) < self._most_waiting and self._close_by is None
            if has_room:
                self._queue.append(item)
            is_due = len(self._queue) >= _ITEMS_PER_MESSAGE
        if not has_room:
            self._counts.dropped.inc()
        elif is_due and not self._is_in_trouble:
            self._wake.set()

    def close(self, *, within_seconds: float) -> None:
        """Send what waits, for at most so long, and count the rest as dropped."""
        with self._lock:
            if self._close_by is not None:
                return
            self._close_by = self._clock.monotonic() + within_seconds
        self._wake.set()
        self._thread.join(within_seconds)
        with self._lock:
            self._counts.dropped.inc(len(self._queue))
            self._queue.clear()
        self._client.close()

    def _work(self) -> None:
        backoff = Backoff(first_seconds=self._delay_seconds)
        pause = self._delay_seconds
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            is_last = self._close_by is not None
            pause = self._delay_seconds
            while message := self._next_message():
                if self._send(message):
                    backoff.reset()
                else:
                    pause = backoff.next_seconds()
                    break
            if is_last:
                return

    def _next_message(self) -> list[_Item]:
        """Return the oldest items that fit into one message; they stay in the queue until they are sent."""
        with self._lock:
            if self._close_by is not None and self._clock.monotonic() >= self._close_by:
                return []
            return [self._queue[n] for n in range(min(len(self._queue), _ITEMS_PER_MESSAGE))]

    def _send(self, items: Sequence[_Item]) -> bool:
        """Send items and take them out of the queue; return `False` if they are to be tried again."""
        try:
            body = self._pack(items).SerializeToString()
            answer = self._client.post(
                self._url, content=body, headers={"content-type": "application/x-protobuf"}
            )
        except httpx.TransportError as error:
            self._note_trouble(f"{type(error).__name__}: {error}")
            return False
        except (
            Exception
        ) as error:  # an item that cannot be packed, a client closed meanwhile: never the work's trouble
            self._note_trouble(f"{type(error).__name__}: {error}")
            self._take_out(len(items))
            self._counts.dropped.inc(len(items))
            return True
        if answer.status_code in _WORTH_ANOTHER_TRY:
            self._note_trouble(f"HTTP {answer.status_code}")
            return False
        self._take_out(len(items))
        if answer.is_success:
            self._is_in_trouble = False
            self._counts.sent.inc(len(items))
        else:
            self._note_trouble(f"HTTP {answer.status_code}: {answer.text[:200]}")
            self._counts.dropped.inc(len(items))
        return True

    def _take_out(self, count: int) -> None:
        with self._lock:
            for _ in range(min(count, len(self._queue))):
                self._queue.popleft()

    def _note_trouble(self, detail: str) -> None:
        """Say once that the receiver is in trouble, until it is well again."""
        if not self._is_in_trouble:
            self._log("telemetry_trouble", {"url": self._url, "error": detail}, level="warning")
        self._is_in_trouble = True
