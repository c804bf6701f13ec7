"""Put the claims of one answer into as few calls as limits allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from citespan.evaluators.judges.chat.options import ChatOptions
from citespan.evaluators.judges.chat.prompt import PROMPT, Item, estimate_tokens, text_tokens
from citespan.tracer.passages import Passage

__all__ = ["Batch", "group_by_run", "item_tokens", "make_batches", "passage_tokens", "reply_tokens"]

_CLAIM_TOKENS = 40
"""What the JSON around one claim takes at most."""

_REPLY_START_TOKENS = 200
"""What a reply takes beside its verdicts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What goes into one call: items by their place among the requests."""

    items: tuple[tuple[int, Item], ...]
    """Place and item, in order."""

    @property
    def halves(self) -> tuple[Batch, Batch]:
        """The two batches that a call too large becomes."""
        middle = len(self.items) // 2
        return Batch(self.items[:middle]), Batch(self.items[middle:])


def group_by_run(items: Sequence[tuple[int, Item]]) -> list[list[tuple[int, Item]]]:
    """Return the items of each run (and question), in order of first appearance; without a run id each stands alone."""
    groups: dict[object, list[tuple[int, Item]]] = {}
    for place, item in items:
        groups.setdefault((item.request.run_id or place, item.request.question), []).append((place, item))
    return list(groups.values())


def reply_tokens(count: int, options: ChatOptions) -> int:
    """Return the tokens reserved for the reply on `count` claims."""
    return _REPLY_START_TOKENS + count * options.reply_tokens


def item_tokens(item: Item, options: ChatOptions) -> int:
    """Return the tokens of a call with this item alone, reply included, by an estimate that errs upwards."""
    passages = passage_tokens(item.request.passages)
    return _fixed_tokens(item) + passages + _own_tokens(item) + reply_tokens(1, options)


def passage_tokens(passages: Sequence[Passage]) -> int:
    """Return the tokens of the passages' texts, by the same estimate."""
    return sum(text_tokens(passage.text or "") for passage in passages)


def make_batches(items: Sequence[tuple[int, Item]], options: ChatOptions) -> Iterator[Batch]:
    """Yield batches of one run's items, in order, each within `claims_per_call` and `context_tokens`.

    A passage counts once in a batch however many claims it is shown to.
    An item that is too long by itself is a batch of its own: whoever sends it decides.
    """
    batch: list[tuple[int, Item]] = []
    texts: set[str] = set()
    tokens = 0
    for place, item in items:
        new = {passage.text or "" for passage in item.request.passages} - texts
        added = sum(text_tokens(text) for text in new) + _own_tokens(item) + options.reply_tokens
        is_full = len(batch) == options.claims_per_call or tokens + added > options.context_tokens
        if batch and is_full:
            yield Batch(tuple(batch))
            batch, texts = [], set()
        if not batch:
            tokens = item_tokens(item, options)
            texts = {passage.text or "" for passage in item.request.passages}
        else:
            tokens += added
            texts |= new
        batch.append((place, item))
    if batch:
        yield Batch(tuple(batch))


def _fixed_tokens(item: Item) -> int:
    return estimate_tokens(PROMPT.text) + text_tokens(item.request.question or "")


def _own_tokens(item: Item) -> int:
    request = item.request
    return text_tokens(request.claim + request.sentence + item.problem) + _CLAIM_TOKENS
