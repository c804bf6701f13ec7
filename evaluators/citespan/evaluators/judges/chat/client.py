"""One call to a chat-completions endpoint: sent, retried, counted, and its faults told apart."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx

from citespan.evaluators.judges.chat.budget import Budget, Spend
from citespan.evaluators.judges.chat.clock import Clock
from citespan.evaluators.judges.chat.completion import Completion
from citespan.evaluators.judges.chat.dialect import Dialect
from citespan.evaluators.judges.chat.faults import ChatFault, FaultKind, read_fault
from citespan.evaluators.judges.chat.options import ChatOptions
from citespan.evaluators.judges.chat.prompt import estimate_tokens
from citespan.evaluators.judges.chat.reply import REPLY_SCHEMA
from citespan.evaluators.judges.chat.throttle import Throttle
from citespan.evaluators.verdicts import Usage

__all__ = ["Answer", "ChatClient"]

Messages = Sequence[Mapping[str, str]]
"""Chat messages, each with a `role` and a `content`."""

_log = logging.getLogger(__name__)

_MOST_REPLY_BYTES = 16 * 1024 * 1024
"""A reply longer than this is no reply of a chat model."""

_FIRST_WAIT_SECONDS = 0.5
"""The wait before the second try; each further one is twice as long, drawn between half and the whole."""

_CALLS_LOST = 3
"""After so many calls in a row that an outage ended, each is tried once until one is answered."""

_LONGEST_WAIT_SECONDS = 30.0
"""Where the doubling ends."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model answered and what that cost."""

    text: str
    """The message."""

    usage: Usage
    """The call's tokens and cost."""


class ChatClient:
    """Asks a model, within rate and budget; safe between threads.

    Args:
        options: Where and how to ask.
        budget: What may be spent.
        throttle: How fast to ask.
        clock: Tells the time and waits between tries.
        http: Sends; closed by whoever made it.
    """

    def __init__(
        self, options: ChatOptions, *, budget: Budget, throttle: Throttle, clock: Clock, http: httpx.Client
    ) -> None:
        self._options = options
        self._budget = budget
        self._throttle = throttle
        self._clock = clock
        self._http = http
        self._dialect = Dialect(reply_format=options.first_format, is_format_fixed=options.is_format_fixed)
        self._jitter = random.Random()  # noqa: S311  # spreads waits, keeps no secret
        self._lock = threading.Lock()
        self._sent = 0
        self._lost = 0

    @property
    def dialect(self) -> Dialect:
        """What the server is known to take."""
        return self._dialect

    @property
    def sent(self) -> int:
        """Requests sent so far, whatever came back."""
        return self._sent

    def ask(self, messages: Messages, *, reply_tokens: int) -> Answer:
        """Return the model's answer.

        Raises:
            ChatFault: There is none; retries and lesser dialects have been tried.
        """
        known = dialect = self._dialect
        while True:
            try:
                answer = self._retry(messages, dialect, reply_tokens)
            except ChatFault as fault:
                lesser = dialect.after(fault)
                if lesser is None:
                    raise
                _log.info("%s does not take the request (%s): trying a lesser one", self._options.host, fault)
                dialect = lesser
            else:
                if dialect is not known:  # another thread may know more by now
                    self._dialect = dialect
                return answer

    def _retry(self, messages: Messages, dialect: Dialect, reply_tokens: int) -> Answer:
        deadline = self._clock.monotonic() + self._options.most_wait_seconds
        tries = 0
        while True:
            try:
                answer = self._try(messages, dialect, reply_tokens)
            except ChatFault as fault:
                wait = self._wait_seconds(fault, tries)
                if fault.wait_seconds is not None:
                    self._throttle.hold_back(min(wait, self._options.most_wait_seconds))
                if not fault.kind.is_passing or tries >= self._retries():
                    self._count_lost(is_lost=fault.kind.is_outage)
                    raise
                if self._clock.monotonic() + wait > deadline:
                    self._count_lost(is_lost=fault.kind.is_outage)
                    raise fault.after_asking(wait) from None
                self._clock.sleep(wait)
            else:
                self._count_lost(is_lost=False)
                return answer
            tries += 1

    def _retries(self) -> int:
        return self._options.retries if self._lost < _CALLS_LOST else 0

    def _count_lost(self, *, is_lost: bool) -> None:
        with self._lock:
            self._lost = self._lost + 1 if is_lost else 0

    def _wait_seconds(self, fault: ChatFault, tries: int) -> float:
        if fault.wait_seconds is not None:
            return fault.wait_seconds
        longest = min(_FIRST_WAIT_SECONDS * float(2**tries), _LONGEST_WAIT_SECONDS)
        return self._jitter.uniform(longest / 2, longest)

    def _try(self, messages: Messages, dialect: Dialect, reply_tokens: int) -> Answer:
        sent = sum(estimate_tokens(message["content"]) for message in messages)
        held = self._budget.hold(sent, reply_tokens)
        body = dialect.body(
            messages,
            REPLY_SCHEMA,
            model=self._options.model,
            reply_tokens=reply_tokens,
            sampling=self._options.sampling,
        )
        try:
            with self._throttle.turn(sent + reply_tokens):
                content = self._post(body)
        except ChatFault as fault:
            if fault.kind is FaultKind.TIMEOUT:  # the answer never came, but the prompt may have been read
                self._budget.settle(held, sent, 0)
            else:
                self._budget.drop(held)
            raise
        except BaseException:
            self._budget.drop(held)
            raise
        return self._read(content, messages, held)

    def _post(self, body: Mapping[str, object]) -> bytes:
        """Return the body of a 200."""
        options = self._options
        with self._lock:
            self._sent += 1
        ends = self._clock.monotonic() + options.timeout_seconds
        content = bytearray()
        try:
            with self._http.stream("POST", options.url, json=body, headers=options.headers) as reply:
                for piece in reply.iter_bytes():
                    content += piece
                    if self._clock.monotonic() > ends:
                        raise ChatFault(
                            FaultKind.TIMEOUT, f"no whole answer in {options.timeout_seconds:g} s"
                        )
                    if len(content) > _MOST_REPLY_BYTES:
                        raise ChatFault(FaultKind.BAD_REPLY, f"an answer of over {_MOST_REPLY_BYTES} bytes")
        except httpx.ConnectTimeout as error:
            raise ChatFault(FaultKind.UNREACHABLE, f"no connection to {options.host}") from error
        except httpx.TimeoutException as error:
            detail = f"no answer from {options.host} in {options.timeout_seconds:g} s"
            raise ChatFault(FaultKind.TIMEOUT, detail) from error
        except httpx.DecodingError as error:
            raise ChatFault(FaultKind.BAD_REPLY, f"{options.host}: {error}") from error
        except httpx.HTTPError as error:
            raise ChatFault(
                FaultKind.UNREACHABLE, f"{options.host}: {error or type(error).__name__}"
            ) from error
        if not reply.is_success:
            fault = read_fault(
                reply.status_code,
                bytes(content),
                url=options.shown_url,
                wait_seconds=self._asked_wait(reply.headers),
            )
            raise fault.without(options.secrets)
        return bytes(content)

    def _asked_wait(self, headers: httpx.Headers) -> float | None:
        """Return the seconds of `retry-after-ms` or `Retry-After` (a number or a date), if the server sent one."""
        value = headers.get("retry-after", "")
        try:
            if "retry-after-ms" in headers:
                return max(float(headers["retry-after-ms"]) / 1000, 0.0)
            if value.strip().replace(".", "", 1).isdigit():
                return float(value)
            return max(parsedate_to_datetime(value).timestamp() - self._clock.wall(), 0.0) if value else None
        except ValueError:
            return None

    def _read(self, content: bytes, messages: Messages, held: Spend) -> Answer:
        """Return the answer in the body of a 200, its cost settled; where the server counts nothing it is estimated."""
        try:
            completion = Completion.from_json(content)
        except ChatFault as fault:
            self._budget.settle(held, held.prompt_tokens, 0)
            raise fault.without(self._options.secrets) from None
        sent, received = completion.prompt_tokens, completion.completion_tokens
        spent = self._budget.settle(
            held,
            held.prompt_tokens if sent is None else sent,
            estimate_tokens(completion.text) if received is None else received,
        )
        usage = Usage(
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            cost_usd=spent.cost_usd,
            is_estimated=sent is None or received is None,
        )
        wrong = completion.fault(messages)
        if wrong is not None:
            raise wrong.with_usage(usage)
        return Answer(completion.text, usage)
