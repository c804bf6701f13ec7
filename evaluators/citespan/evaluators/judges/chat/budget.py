"""What calls cost, and the most they may."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from importlib.util import find_spec

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.chat.faults import ChatFault, FaultKind

__all__ = ["Budget", "Prices", "Spend"]


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model costs: prices given, else those that the package `genai-prices` knows, else unknown."""

    model: str
    """The model as configured."""

    base_url: str
    """Where it is asked: the same name costs differently elsewhere."""

    input_usd_per_million: float | None = None
    """US dollars for a million tokens sent, if given."""

    output_usd_per_million: float | None = None
    """US dollars for a million tokens received, if given."""

    def cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return what so many tokens cost; `None` where the price is unknown, which is not zero."""
        if self.input_usd_per_million is not None and self.output_usd_per_million is not None:
            dollars = prompt_tokens * self.input_usd_per_million
            return (dollars + completion_tokens * self.output_usd_per_million) / 1_000_000
        return _listed_cost_usd(self.model, self.base_url, prompt_tokens, completion_tokens)


def _has_list() -> bool:
    return find_spec("genai_prices") is not None


def _listed_cost_usd(model: str, base_url: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    usage = Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens)
    try:
        return float(calc_price(usage, model, provider_api_url=base_url).total_price)
    except LookupError:
        return None


@dataclass(frozen=True, slots=True)
class Spend:
    """What was spent so far."""

    calls: int = 0
    """Calls that were answered, or that may have been."""

    prompt_tokens: int = 0
    """Tokens sent."""

    completion_tokens: int = 0
    """Tokens received."""

    cost_usd: float | None = 0.0
    """US dollars; `None` once a call's price was unknown."""


class Budget:
    """Admits calls while they fit what may be spent; safe between threads.

    A call is admitted by its estimate, so that calls under way at once cannot overrun the budget together.

    Args:
        prices: What the calls cost.
        most_tokens: Tokens sent and received that may be spent; `None` is no limit.
        most_usd: US dollars that may be spent; `None` is no limit.

    Raises:
        UsageError: There is a limit in dollars and no price.
    """

    def __init__(
        self, prices: Prices, *, most_tokens: int | None = None, most_usd: float | None = None
    ) -> None:
        if most_usd is not None and prices.cost_usd(1, 1) is None:
            known = "" if _has_list() else ", or pip install 'citespan[prices]', which knows many models"
            raise UsageError(
                f"a budget in US dollars needs a price, and none is known for {prices.model!r} at "
                f"{prices.base_url}: give input_usd_per_million and output_usd_per_million, or budget_tokens{known}"
            )
        self._prices = prices
        self._most_tokens = most_tokens
        self._most_usd = most_usd
        self._spend = Spend()
        self._held = Spend()
        self._lock = threading.Lock()

    @property
    def spend(self) -> Spend:
        """What was spent so far."""
        return self._spend

    def hold(self, prompt_tokens: int, completion_tokens: int) -> Spend:
        """Set aside what a call may cost.

        Raises:
            ChatFault: It does not fit the budget (`budget_exhausted`).
        """
        wanted = self._priced(prompt_tokens, completion_tokens)
        with self._lock:
            total = _add(_add(self._spend, self._held), wanted)
            tokens = total.prompt_tokens + total.completion_tokens
            if self._most_tokens is not None and tokens > self._most_tokens:
                raise ChatFault(
                    FaultKind.BUDGET_EXHAUSTED, f"the next call could pass {self._most_tokens} tokens"
                )
            if self._most_usd is not None and (total.cost_usd or 0.0) > self._most_usd:
                raise ChatFault(FaultKind.BUDGET_EXHAUSTED, f"the next call could pass ${self._most_usd:g}")
            self._held = _add(self._held, wanted)
        return wanted

    def settle(self, held: Spend, prompt_tokens: int, completion_tokens: int) -> Spend:
        """Put what a call did cost in the place of what was set aside for it, and return it."""
        actual = self._priced(prompt_tokens, completion_tokens)
        with self._lock:
            self._release(held)
            self._spend = _add(self._spend, actual)
        return actual

    def drop(self, held: Spend) -> None:
        """Forget what was set aside for a call that cost nothing."""
        with self._lock:
            self._release(held)

    def _release(self, held: Spend) -> None:
        cost = None
        if self._held.cost_usd is not None and held.cost_usd is not None:
            cost = max(self._held.cost_usd - held.cost_usd, 0.0)
        self._held = Spend(
            calls=self._held.calls - held.calls,
            prompt_tokens=self._held.prompt_tokens - held.prompt_tokens,
            completion_tokens=self._held.completion_tokens - held.completion_tokens,
            cost_usd=cost,
        )

    def _priced(self, prompt_tokens: int, completion_tokens: int) -> Spend:
        cost = self._prices.cost_usd(prompt_tokens, completion_tokens)
        return Spend(1, prompt_tokens, completion_tokens, cost)


def _add(first: Spend, second: Spend) -> Spend:
    is_known = first.cost_usd is not None and second.cost_usd is not None
    return replace(
        first,
        calls=first.calls + second.calls,
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        cost_usd=(first.cost_usd or 0.0) + (second.cost_usd or 0.0) if is_known else None,
    )
