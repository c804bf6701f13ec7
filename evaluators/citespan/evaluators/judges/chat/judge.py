"""The chat judge: a language model behind any OpenAI-compatible endpoint, named explicitly or never asked."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import httpx

from citespan.evaluators.judges.chat.batches import Batch, group_by_run, make_batches, reply_tokens
from citespan.evaluators.judges.chat.budget import Budget, Prices, Spend
from citespan.evaluators.judges.chat.client import ChatClient
from citespan.evaluators.judges.chat.clock import SYSTEM_CLOCK, Clock
from citespan.evaluators.judges.chat.exchange import Outcome, exchange
from citespan.evaluators.judges.chat.faults import ChatFault, FaultKind
from citespan.evaluators.judges.chat.options import ChatOptions
from citespan.evaluators.judges.chat.prompt import PROMPT, Item, estimate_tokens, render_document
from citespan.evaluators.judges.chat.reading import Reading
from citespan.evaluators.judges.chat.reply import Problem
from citespan.evaluators.judges.chat.throttle import Throttle
from citespan.evaluators.judges.judge import JudgeCard, JudgeRequest
from citespan.evaluators.verdicts import Usage, Verdict

__all__ = ["ChatJudge", "Redactor"]

Redactor = Callable[[str], str]
"""Returns a text as it may leave this machine; it sees every claim, sentence, question and passage before a call."""

_log = logging.getLogger(__name__)


class ChatJudge:
    """Asks a chat model about all claims of an answer in one call.

    Args:
        options: Where and how to ask.
        redact: Applied to every text before it is sent, by each thread that asks.
        executor: Runs the calls of one batch side by side; without it they run one after the other.
        clock: Tells the time and waits between tries.
        transport: Carries the calls; `None` is the network.

    Raises:
        UsageError: There is a budget in US dollars and the model has no known price.
    """

    def __init__(
        self,
        options: ChatOptions,
        *,
        redact: Redactor | None = None,
        executor: Executor | None = None,
        clock: Clock = SYSTEM_CLOCK,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._options = options
        self._redact = redact
        self._executor = executor
        prices = Prices(
            options.model, options.base_url, options.input_usd_per_million, options.output_usd_per_million
        )
        self._prices = prices
        self._budget = Budget(prices, most_tokens=options.budget_tokens, most_usd=options.budget_usd)
        self._closed = threading.Event()
        if clock is SYSTEM_CLOCK:
            clock = replace(clock, sleep=self._pause)
        http = httpx.Client(
            timeout=options.timeout_seconds,
            follow_redirects=False,
            limits=httpx.Limits(
                max_connections=options.concurrency, max_keepalive_connections=options.concurrency
            ),
            transport=transport,
        )
        self._close_http = weakref.finalize(self, http.close)
        self._client = ChatClient(
            options,
            budget=self._budget,
            throttle=Throttle(
                clock,
                requests_per_minute=options.requests_per_minute,
                tokens_per_minute=options.tokens_per_minute,
                most_at_once=options.concurrency,
            ),
            clock=clock,
            http=http,
        )

    @property
    def card(self) -> JudgeCard:
        """What the judge is."""
        options = self._options
        return JudgeCard(
            name=f"chat:{options.model}",
            version="2",
            parameters={
                "endpoint": options.endpoint,
                "model": options.model,
                "prompt": PROMPT.sha256,
                "temperature": options.temperature,
                "seed": options.seed,
                "reply_format": options.reply_format,
                "claims_per_call": options.claims_per_call,
                "context_tokens": options.context_tokens,
                "redact": None if self._redact is None else _name(self._redact),
            },
            sends_text_to=options.host,
            limits=(
                "A language model's opinion: it may differ between two calls even at temperature 0, and claims of one "
                "answer are judged in one call, so they may sway each other (claims_per_call=1 keeps them apart)."
            ),
            others_tried=3,
        )

    @property
    def concurrency(self) -> int:
        """How many threads had better ask at once: as many as there may be calls under way."""
        return self._options.concurrency

    def estimate(self, requests: Sequence[JudgeRequest]) -> Usage:
        """Return what judging these would cost, by an estimate that errs upwards; nothing is sent.

        Every window of a long passage is counted, as if none supported its claim.
        """
        sent = received = 0
        readings = {n: Reading(Item(request, request), self._options) for n, request in enumerate(requests)}
        while open_items := _open_items(readings):
            for batch in self._batches(open_items):
                items = [item for _, item in batch.items]
                sent += estimate_tokens(PROMPT.text) + estimate_tokens(render_document(items))
                received += reply_tokens(len(items), self._options)
                for place, _ in batch.items:
                    readings[place].take(_NOTHING_SAID)
        return Usage(
            prompt_tokens=sent,
            completion_tokens=received,
            cost_usd=self._prices.cost_usd(sent, received),
            is_estimated=True,
        )

    @property
    def spend(self) -> Spend:
        """What was spent so far."""
        return self._budget.spend

    @property
    def notes(self) -> tuple[str, ...]:
        """What was sent where, and what it cost."""
        name, host, spend, sent = self.card.name, self._options.host, self.spend, self._client.sent
        if not sent:
            return (f"{name} sent nothing to {host}",)
        if not spend.calls:
            return (f"{name} asked {host} {sent:,} times and got no answer",)
        cost = "at an unknown price" if spend.cost_usd is None else f"for ${spend.cost_usd:.4f}"
        tokens = f"{spend.prompt_tokens:,} tokens out and {spend.completion_tokens:,} back"
        failed = f"; {sent - spend.calls:,} of the calls failed" if sent > spend.calls else ""
        asked = f"{name} asked {host} {sent:,} times: {tokens}, {cost}{failed}"
        return (asked, *(f"{name} {note}" for note in self._client.dialect.notes))

    def _pause(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise ChatFault(FaultKind.CLOSED, "the judge was closed while a call waited")

    def close(self) -> None:
        """Close the connections; a call that waits or follows ends as `unjudged: closed`."""
        self._closed.set()
        self._close_http()

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        verdicts: dict[int, Verdict] = {}
        readings: dict[int, Reading] = {}
        for place, request in enumerate(requests):
            try:
                item = Item(self._redacted(request), request)
            except Exception as error:
                _log.warning("the redaction hook failed on a text, which is therefore not sent: %r", error)
                verdicts[place] = Verdict.unjudged("redaction_failed", type(error).__name__)
            else:
                readings[place] = Reading(item, self._options)
        while items := _open_items(readings):
            for found in self._ask(items):
                for place, outcome in found.items():
                    readings[place].take(outcome)
        verdicts |= {place: reading.verdict for place, reading in readings.items()}
        return [verdicts[place] for place in range(len(requests))]

    def _ask(self, items: Sequence[tuple[int, Item]]) -> Iterable[dict[int, Outcome]]:
        batches = self._batches(items)
        if self._executor is None or len(batches) == 1:
            return map(self._judge_batch, batches)
        return self._executor.map(self._judge_batch, batches)

    def _batches(self, items: Sequence[tuple[int, Item]]) -> list[Batch]:
        return [batch for group in group_by_run(items) for batch in make_batches(group, self._options)]

    def _redacted(self, request: JudgeRequest) -> JudgeRequest:
        redact = self._redact
        if redact is None:
            return request
        return replace(
            request,
            claim=redact(request.claim),
            sentence=redact(request.sentence),
            question=None if request.question is None else redact(request.question),
            passages=tuple(replace(passage, text=redact(passage.text or "")) for passage in request.passages),
        )

    def _judge_batch(self, batch: Batch) -> dict[int, Outcome]:
        """Return what came back for a batch by place; whatever fails here fails these claims alone."""
        try:
            return self._exchange_and_repair(batch)
        except Exception as error:
            rule = "closed" if self._closed.is_set() else "judge_error"
            _log.warning("the chat judge failed on %d claims", len(batch.items), exc_info=error)
            problem = Problem(rule, f"{type(error).__name__}: {error}", is_final=True, is_general=True)
            return {place: Outcome(problem, None) for place, _ in batch.items}

    def _exchange_and_repair(self, batch: Batch) -> dict[int, Outcome]:
        """Return what came back, after one more request for the claims whose answers could not be used."""
        outcomes = exchange(self._client, batch, self._options)
        again = tuple(
            (place, replace(item, problem=said.detail))
            for place, item in batch.items
            if isinstance(said := outcomes[place].said, Problem) and not said.is_final
        )
        if not again:
            return outcomes
        repaired = exchange(self._client, Batch(again), self._options)
        for place, outcome in repaired.items():
            outcomes[place] = outcome.charged(outcomes[place].usage)
        return outcomes


_NOTHING_SAID = Outcome(Problem("missing_verdict", "nothing was asked"), None)
"""What is taken for an answer where nothing is sent: it ends no reading."""


def _open_items(readings: Mapping[int, Reading]) -> list[tuple[int, Item]]:
    """Return what is to be asked next, by place, of every reading that is not done."""
    return [(place, item) for place, reading in readings.items() if (item := reading.next) is not None]


def _name(redact: Redactor) -> str:
    module, name = (
        getattr(redact, "__module__", ""),
        getattr(redact, "__qualname__", type(redact).__qualname__),
    )
    return f"{module}:{name}"
