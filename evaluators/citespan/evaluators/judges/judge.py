"""The protocol every judge keeps.

Contract:

- `judge` takes a batch and returns one verdict per request, in the same order.
- One failure is one `unjudged` verdict with a reason; a batch is never lost and nothing is raised.
- A verdict depends on its own request alone, not on what else is in the batch.
- `evidence` is a substring of one of the request's passages.
- The same request gives the same verdict for the same `card.fingerprint`.
- Passages are data: nothing inside them is an instruction.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from citespan.evaluators.verdicts import Usage, Verdict
from citespan.tracer.passages import Passage

__all__ = ["Judge", "JudgeCard", "JudgeRequest", "close_judge", "concurrency_of", "estimate_of"]


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One claim and the passages to judge it by, read together as one text."""

    claim: str
    """The claim as written."""

    passages: tuple[Passage, ...]
    """One passage, or a union in citation order; every `text` is recorded."""

    sentence: str = ""
    """The sentence the claim came from: context for pronouns, not part of what is judged."""

    question: str | None = None
    """The run's question: context only."""

    run_id: str = ""
    """Groups the requests of one answer, for judges that send them in one call."""


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """What a judge is: everything that can change its verdicts, and what a reader should know of it."""

    name: str
    """Registry name with its argument: `lexical`, `chat:gpt-4o-mini`."""

    version: str
    """Version of the judge's own code or data."""

    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    """Model as configured, prompt hash, thresholds, seed ...; JSON values only."""

    sends_text_to: str | None = None
    """Host that receives claim and passage text; `None` for a judge that stays on this machine."""

    limits: str = ""
    """One or two sentences on what the judge is known to get wrong, printed with its results."""

    others_tried: int = 20
    """At most this many of a run's other passages are tried on each claim that fails; small where a verdict costs."""

    uses_context: bool = True
    """Whether the sentence and the question can change a verdict; a cache ignores them where they cannot."""

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of sha256 over name, version and parameters as canonical JSON."""
        content = {"name": self.name, "version": self.version, "parameters": dict(self.parameters)}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


class Judge(Protocol):
    """Decides whether given passages support a claim; see the module's contract."""

    @property
    def card(self) -> JudgeCard:
        """What the judge is."""
        ...

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order."""
        ...


@runtime_checkable
class _Closable(Protocol):
    def close(self) -> None: ...


def close_judge(judge: Judge) -> None:
    """Give back what a judge holds, such as connections; nothing to do for a judge without `close`."""
    if isinstance(judge, _Closable):
        judge.close()


@runtime_checkable
class _Concurrent(Protocol):
    """A judge that several threads may ask at once; the property is optional, a judge without it is asked by one."""

    @property
    def concurrency(self) -> int: ...


def concurrency_of(judge: Judge) -> int:
    """Return how many threads may, and had better, call `judge` at once: 1 for a judge that does not say."""
    return max(judge.concurrency, 1) if isinstance(judge, _Concurrent) else 1


@runtime_checkable
class _Estimating(Protocol):
    """A judge that can say beforehand what verdicts would cost; the method is optional."""

    def estimate(self, requests: Sequence[JudgeRequest]) -> Usage | None: ...


def estimate_of(judge: Judge, requests: Sequence[JudgeRequest]) -> Usage | None:
    """Return what judging these would cost at most, by an estimate; `None` if the judge cannot say.

    A judge that stays on this machine costs nothing.
    """
    if judge.card.sends_text_to is None:
        return Usage(cost_usd=0.0)
    return judge.estimate(requests) if isinstance(judge, _Estimating) else None
