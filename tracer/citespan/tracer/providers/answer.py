"""What a provider's response says of its answer, and how the pieces of it are collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage
from citespan.tracer.providers.ranges import Range

__all__ = ["Findings", "ProviderAnswer"]


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """An answer as a provider returned it."""

    provider: str
    """Who made it: `openai`, `azure`, `perplexity`, `anthropic`, `cohere`, `gemini`, `bedrock`, `mistral` ..."""

    text: str
    """The answer's text, to which the ranges of the citations refer."""

    citations: tuple[Citation, ...]
    """Its citations in order; one that names no passage of the request or the response dangles."""

    passages: tuple[Passage, ...]
    """The passages that the response itself carries; those of the request are the app's to record."""


class Findings:
    """Collects passages, each once, and citations while a response is read."""

    __slots__ = ("_citations", "_passages", "_request", "provider")

    def __init__(self, provider: str, request: Sequence[Passage]) -> None:
        """Start empty.

        Args:
            provider: Who answered.
            request: The passages that the app gave the model, in order: indices in the response point at them.
        """
        self.provider = provider
        """Who answered; some responses tell late."""
        self._request = request
        self._passages: dict[str, Passage] = {}
        self._citations: list[Citation] = []

    @property
    def has_request(self) -> bool:
        """Whether the app said what it gave the model."""
        return bool(self._request)

    def carry(self, passage: Passage) -> str:
        """Keep a passage that the response carries, and return its id.

        Another text under the same id is another passage; one that only quotes gives way to the whole.
        """
        known = self._passages.get(passage.id)
        if (
            known is None
            or known.text is None
            or (known.is_cut and passage.text is not None and not passage.is_cut)
        ):
            label = None if known is None else known.label
            self._passages[passage.id] = replace(passage, label=passage.label or label)
        elif known.is_cut and passage.text is not None and passage.text not in (known.text or ""):
            self._passages[passage.id] = replace(known, text=f"{known.text}\n{passage.text}")
        elif (
            not known.is_cut
            and passage.text is not None
            and not passage.is_cut
            and passage.text != known.text
        ):
            passage = replace(passage, id=f"{passage.id}#{len(self._passages) + 1}")
            self._passages[passage.id] = passage
        return passage.id

    def cite(self, passage_id: str, covered: Range | None, quote: str | None = None) -> None:
        """Add a citation; the same one twice counts once."""
        start, end = covered if covered is not None else (None, None)
        citation = Citation(passage_id, start, end, self.provider, quote)
        if citation not in self._citations:
            self._citations.append(citation)

    def carry_piece(self, passage: Passage) -> str:
        """Keep a piece of a passage that citations name as a whole, and return the whole's id."""
        known = self._passages.get(passage.id)
        if known is not None and known.text and passage.text:
            passage = replace(known, text=f"{known.text}\n\n{passage.text}")
        self._passages[passage.id] = passage
        return passage.id

    def given(
        self, index: int | None, name: str, *, quote: str | None = None, title: str | None = None
    ) -> str:
        """Return the id of the passage that the app gave under `index`, counted from 0.

        Beside a request that has no such passage the citation dangles under `<name>:<index>`; negative indices
        never count from the end. Without a request, what the provider quotes is the passage, known to be cut.
        Providers count documents and search results apart: where the quote stands in another passage only, that
        one is meant.
        """
        passage_id = f"{name}:{index}"
        if index is not None and 0 <= index < len(self._request):
            return self._holder_of(quote, self._request[index]).id
        if not self._request and index is not None and index >= 0:
            self.carry(Passage(passage_id, quote, title=title, is_cut=True))
        return passage_id

    def named(self, name: str) -> str | None:
        """Return the id of the passage that the app gave under this id, label or address, if any."""
        return next((p.id for p in self._request if name in (p.id, p.label, p.url)), None)

    def _holder_of(self, quote: str | None, expected: Passage) -> Passage:
        if quote is None or expected.text is None or quote in expected.text:
            return expected
        holders = [passage for passage in self._request if passage.text is not None and quote in passage.text]
        return holders[0] if len(holders) == 1 else expected

    def answer(self, text: str) -> ProviderAnswer:
        """Return what was found."""
        return ProviderAnswer(self.provider, text, tuple(self._citations), tuple(self._passages.values()))
