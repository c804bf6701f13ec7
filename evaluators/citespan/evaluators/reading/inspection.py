"""How runs were read, as `citespan inspect` shows it."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.evaluators.claims import ResolvedCitation
from citespan.evaluators.decompose import decompose
from citespan.evaluators.markers import find_markers
from citespan.evaluators.resolve import resolve
from citespan.evaluators.runs import Run

__all__ = ["citations_of", "inspection_to_dict", "inspections_to_dict"]


def citations_of(run: Run) -> tuple[ResolvedCitation, ...]:
    """Return the citations of a run, resolved, without judging anything."""
    answer = run.answer or ""
    markers = find_markers(answer, run.passages, run.citations)
    claims = decompose(answer, markers, question=run.question)
    return resolve(answer, markers, claims, run.passages, passages_lost=run.passages_lost)


def inspection_to_dict(run: Run) -> dict[str, object]:
    """Return how a run was read: its parts, and every citation with the passage it names and how sure that is."""
    return {
        "state": run.state,
        "resolution": run.resolution,
        "reasons": list(run.reasons),
        "question": run.question,
        "answer": run.answer,
        "passages": [
            {"id": passage.id, "label": passage.label, "text": passage.text} for passage in run.passages
        ],
        "citations": [
            {
                "marker": citation.marker,
                "start": citation.start,
                "end": citation.end,
                "passage_id": citation.passage_id,
                "certainty": citation.certainty,
            }
            for citation in citations_of(run)
        ],
    }


def inspections_to_dict(runs: Sequence[Run]) -> dict[str, object]:
    """Return how the best-read of several runs was read; with more than one, all are under `runs`.

    A file of spans may hold traces beside the app's own, such as those of an SDK that traces itself.

    Raises:
        ValueError: There is no run.
    """
    if not runs:
        raise ValueError("there is no run to inspect: expected at least one")
    best = inspection_to_dict(min(runs, key=_rank))
    return best if len(runs) == 1 else {**best, "runs": [inspection_to_dict(run) for run in runs]}


def _rank(run: Run) -> tuple[bool, bool, int]:
    stops = run.state is not None and run.state.stops_judging
    return (stops, run.answer is None, -len(run.passages))
