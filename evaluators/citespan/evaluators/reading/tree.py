"""The spans of one trace as a tree, evaluators left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from citespan.evaluators.reading.normalise import SpanView, view_span
from citespan.evaluators.sources.source import Trace

__all__ = ["SpanTree"]


@dataclass(frozen=True, slots=True)
class SpanTree:
    """The spans of one trace and who is under whom."""

    views: tuple[SpanView, ...]
    """Every span but evaluators and what is under them, in start order."""

    parents: dict[str, SpanView]
    """The parent by span id, where the trace has it."""

    children: dict[str, tuple[SpanView, ...]]
    """The children by span id, in start order."""

    @classmethod
    def of(cls, trace: Trace) -> SpanTree:
        """Return the tree of `trace`; a span that is its own ancestor is taken for a root."""
        by_id = {span.span_id: span for span in trace.spans}
        parent_ids = {span_id: span.parent_id for span_id, span in by_id.items()}
        _cut_cycles(parent_ids)
        views = {span_id: view_span(span) for span_id, span in by_id.items()}
        judging = _with_descendants(
            {span_id for span_id, view in views.items() if view.kind == "EVALUATOR"}, parent_ids
        )
        kept = {span_id: view for span_id, view in views.items() if span_id not in judging}
        parents = {
            span_id: kept[parent_id]
            for span_id in kept
            if (parent_id := parent_ids[span_id]) is not None and parent_id in kept
        }
        children: dict[str, list[SpanView]] = {}
        for span_id, parent in parents.items():
            children.setdefault(parent.id, []).append(kept[span_id])
        return cls(tuple(kept.values()), parents, {key: tuple(found) for key, found in children.items()})

    @property
    def roots(self) -> tuple[SpanView, ...]:
        """The spans without a parent in the trace."""
        return tuple(view for view in self.views if view.id not in self.parents)

    def above(self, view: SpanView) -> Iterator[SpanView]:
        """Yield the ancestors of `view`, nearest first."""
        while (parent := self.parents.get(view.id)) is not None:
            yield parent
            view = parent

    def under(self, view: SpanView) -> Iterator[SpanView]:
        """Yield the descendants of `view`."""
        waiting = list(self.children.get(view.id, ()))
        while waiting:
            current = waiting.pop()
            yield current
            waiting += self.children.get(current.id, ())

    def top_of(self, view: SpanView) -> SpanView:
        """Return the topmost span above `view`, or itself."""
        return next(reversed([view, *self.above(view)]))

    def depth(self, view: SpanView) -> int:
        """Return how many ancestors `view` has."""
        return sum(1 for _ in self.above(view))


def _cut_cycles(parent_ids: dict[str, str | None]) -> None:
    """Make a root of every span that is reached again on the way up from itself."""
    settled: set[str] = set()
    for start in parent_ids:
        path: dict[str, None] = {}
        current: str | None = start
        while current in parent_ids and current not in settled and current not in path:
            path[current] = None
            current = parent_ids[current]
        if current in path:
            parent_ids[current] = None
        settled.update(path)


def _with_descendants(tops: set[str], parent_ids: dict[str, str | None]) -> set[str]:
    children: dict[str, list[str]] = {}
    for span_id, parent_id in parent_ids.items():
        if parent_id is not None:
            children.setdefault(parent_id, []).append(span_id)
    found, waiting = set(tops), list(tops)
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found.update(new)
        waiting += new
    return found
