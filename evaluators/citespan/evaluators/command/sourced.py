"""Evaluate the traces of a source and show what was found: what `evaluate` and `demo` share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import islice
from pathlib import Path

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.command.judging import judging
from citespan.evaluators.command.results import Results, Wanted
from citespan.evaluators.command.terminal import count
from citespan.evaluators.errors import InputError
from citespan.evaluators.settings import Settings
from citespan.evaluators.sources.source import Source, Trace
from citespan.evaluators.sources.spanfile import SpanFile
from citespan.evaluators.worker import EvaluatedRun, PassSummary, run_pass

__all__ = ["FileTraces", "evaluate_source"]


class FileTraces:
    """The first traces of a file of spans."""

    def __init__(self, path: Path, limit: int | None) -> None:
        self._path = path
        self._limit = limit

    def traces(self) -> Iterator[Trace]:
        """Yield at most `limit` traces; all of them without a limit.

        Raises:
            InputError: The file cannot be read as spans, or holds none.
        """
        found = False
        for trace in islice(SpanFile(self._path).traces(), self._limit):
            found = True
            yield trace
        if not found:
            raise InputError(
                f"{self._path} holds no spans: expected JSON Lines or a JSON list, one span each"
            )


def evaluate_source(
    source: Source, annotator: Annotator | None, settings: Settings, wanted: Wanted, *, show_unchanged: bool
) -> int:
    """Evaluate the traces of a source and return the exit code.

    Args:
        source: Where the traces come from.
        annotator: Writes back; `None` writes nothing.
        settings: Judge and options.
        wanted: What to do with the results.
        show_unchanged: Whether to show runs that are evaluated already.

    Raises:
        UsageError: The judge is unknown, the reading rules are none, or the label table cannot be written.
        ServerError: Phoenix cannot be reached or refuses; what was done so far is printed and stays.
        InputError: A file of spans cannot be read.
    """
    with judging(settings.judge) as judge:
        results = Results(wanted, judge=judge, options=settings.options)
        with results, results.terminal.progress("judging", None) as advance:

            def take(run: EvaluatedRun) -> None:
                results.add(run.evaluation, url=run.url, human_labels=run.human_labels)
                advance()

            summary = run_pass(
                source,
                judge,
                annotator=annotator,
                options=settings.options,
                rules=settings.rules,
                show_unchanged=show_unchanged,
                on_run=take,
            )
            for trace_id, reason in summary.set_aside.items():
                results.set_aside(f"trace {trace_id}: {reason}")
            results.note("pass", _to_dict(summary), _line(summary, wrote=annotator is not None))
    return results.exit_code


def _to_dict(summary: PassSummary) -> dict[str, object]:
    """Return the JSON form; `asdict` would count the items of a Counter anew."""
    data: dict[str, object] = {field.name: getattr(summary, field.name) for field in fields(summary)}
    return {**data, "states": dict(summary.states)}


def _line(summary: PassSummary, *, wrote: bool) -> str:
    read = f"{count(summary.traces, 'trace')} read, {count(summary.runs_evaluated, 'run')} judged"
    if not wrote:
        return f"{read}; nothing was written to Phoenix"
    kept = f", {count(summary.human_rows_kept, 'row')} of people kept" if summary.human_rows_kept else ""
    unchanged = f"{summary.runs_unchanged} unchanged since they were evaluated (--all shows them)"
    return (
        f"{read}{f', {unchanged}' if summary.runs_unchanged else ''}; written to Phoenix: "
        f"{count(summary.claim_spans_written, 'claim span')}, {count(summary.rows_written, 'annotation')}; "
        f"{summary.deleted} outdated deleted{kept}"
    )
