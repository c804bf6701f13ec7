"""One request on its way through the model: whole where it fits a call, else window by window."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import reduce
from operator import add

from citespan.evaluators.findings import combine
from citespan.evaluators.judges.chat.batches import item_tokens, passage_tokens
from citespan.evaluators.judges.chat.exchange import Outcome
from citespan.evaluators.judges.chat.faults import FaultKind
from citespan.evaluators.judges.chat.options import ChatOptions
from citespan.evaluators.judges.chat.prompt import Item
from citespan.evaluators.judges.chat.windows import cut_windows
from citespan.evaluators.verdicts import Label, Usage, Verdict

__all__ = ["Reading"]

_LEAST_WINDOW_TOKENS = 200
"""Under it a window says too little to be judged by."""


class Reading:
    """What is still to be read for one request, and what came back so far.

    Passages that do not fit one call are read in windows, in order, until one supports the claim. A window takes half
    of the context, or a quarter, or an eighth ..., so that claims on the same passage share their calls.
    The request's verdict is that of the window which decides, by the rule for several cited passages: supported by
    any, else unjudged if a window could not be judged, else contradicted, partly supported, unsupported.
    A server that reads less than `context_tokens` is given smaller windows.

    Args:
        item: The request.
        options: How long a call may be.
    """

    def __init__(self, item: Item, options: ChatOptions) -> None:
        self._options = options
        self._left: deque[Item] = deque([item])
        self._read: list[Verdict] = []
        self._spent: list[Usage] = []
        self._is_decided = False
        tokens = item_tokens(item, options)
        if tokens > options.context_tokens:
            room = options.context_tokens - (tokens - passage_tokens(item.request.passages))
            self._left = deque(self._windows(item, room))
            if not self._left:
                detail = (
                    f"the claim leaves no room for a passage within context_tokens={options.context_tokens}"
                )
                self._read.append(Verdict.unjudged("too_long", detail))

    @property
    def next(self) -> Item | None:
        """What to ask next; `None` once the verdict is known."""
        return None if self._is_decided or not self._left else self._left[0]

    def take(self, outcome: Outcome) -> None:
        """Keep what came back for `next`."""
        item, said = self._left.popleft(), outcome.said
        if outcome.usage is not None:
            self._spent.append(outcome.usage)
        if isinstance(said, Verdict):
            self._is_decided = said.label is Label.SUPPORTED
        elif said.rule == FaultKind.CONTEXT_LENGTH:
            smaller = self._windows(item, passage_tokens(item.request.passages) // 2)
            if smaller:
                self._left.extendleft(reversed(smaller))
                return
            self._is_decided = True  # not even the smallest window fits
        else:
            self._is_decided = said.is_general
        self._read.append(outcome.verdict)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the request, with the cost of all its calls."""
        chosen = self._read[combine(self._read)]
        count = len(self._read) + len(self._left)
        note = f" (The text is too long for one call: {len(self._read)} of {count} windows were read.)"
        reason = chosen.reason if count == 1 else chosen.reason + note
        usage = reduce(add, self._spent) if self._spent else None
        return chosen.model_copy(update={"reason": reason, "usage": usage})

    def _windows(self, item: Item, room: int) -> list[Item]:
        """Return the windows of an item, each within `room` tokens; none if there is too little room."""
        size = self._options.context_tokens // 2
        while size > room and size >= _LEAST_WINDOW_TOKENS:
            size //= 2
        if size < _LEAST_WINDOW_TOKENS:
            return []
        windows = cut_windows(item.request.passages, size)
        return [replace(item, request=replace(item.request, passages=passages)) for passages in windows]
