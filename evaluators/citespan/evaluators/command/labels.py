"""The label table of one run on a terminal: each claim, why it has its label, and what would mend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text

from citespan.evaluators.claims import Certainty
from citespan.evaluators.command.terminal import printable
from citespan.evaluators.labeltable import LabelRow, TableCitation
from citespan.evaluators.measures import Ratio
from citespan.evaluators.report import LABEL_STYLES
from citespan.evaluators.verdicts import Label

__all__ = ["has_finding", "print_run"]

SYMBOLS: Mapping[Label, str] = {
    Label.SUPPORTED: "✓",
    Label.PARTLY_SUPPORTED: "◐",
    Label.UNSUPPORTED: "✗",
    Label.CONTRADICTED: "≠",
    Label.UNCITED: "○",
    Label.UNJUDGED: "?",
}
"""A mark per label, for those who see no colours."""

MAX_SHOWN = 240
"""Code points of a passage shown where the verdict quotes none of it; the table and the trace have it whole."""

HEADLINE = ("coverage", "support", "validity")
"""The measures shown under each run."""


def has_finding(row: LabelRow) -> bool:
    """Return whether a person should look at the row: a failure, a conflict, or no judgement."""
    is_unjudged = row.label is Label.UNJUDGED or (row.state is not None and row.state.stops_judging)
    return row.failure is not None or row.conflict or is_unjudged


def print_run(console: Console, rows: Sequence[LabelRow], measures: Mapping[str, Ratio] | None) -> None:
    """Print one run: question, id and URL, a block per claim, and its own measures if given."""
    first = rows[0]
    console.print(Rule(Text(_line(first.run_id), style="dim"), align="left", style="dim"))
    if first.question:
        console.print(Text(_line(first.question), style="bold"))
    if first.url is not None:
        # A wrapped URL cannot be clicked or copied: the terminal may break it, citespan does not.
        console.print(Text(_line(first.url), style=Style(dim=True, link=first.url)), soft_wrap=True)
    if first.state is not None:
        _print_state(console, first)
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, min_width=18)
    table.add_column(ratio=1)
    for row in rows:
        if row.label is not None:
            label = Text(f"{SYMBOLS[row.label]} {row.label}", style=LABEL_STYLES[row.label])
            table.add_row(label, Group(_claim(row), _why(row)))
    console.print(table)
    _print_loose(console, rows)
    if measures is not None and measures["coverage"].value is not None:
        parts = (f"{name} {measures[name]}" for name in HEADLINE)
        console.print(Text(" · ".join(parts), style="dim"))
    console.print()


def _print_state(console: Console, row: LabelRow) -> None:
    state = row.state
    is_judged = state is None or not state.stops_judging
    why = f" ({row.reason})" if row.reason and row.claim is None else ""
    text = f"! {state}{why}" if is_judged else f"? not judged: {state}{why}"
    console.print(Text(printable(text), style=LABEL_STYLES[Label.UNJUDGED]))


def _print_loose(console: Console, rows: Sequence[LabelRow]) -> None:
    loose = [citation for row in rows if row.claim is None for citation in row.citations]
    if loose:
        listed = ", ".join(
            f"{citation.marker} at {citation.start}"
            + ("" if citation.passage_id else " (names no passage of this run)")
            for citation in loose
        )
        console.print(Text(f"attached to no claim: {_line(listed)}", style=LABEL_STYLES[Label.UNCITED]))


def _claim(row: LabelRow) -> Text:
    markers = dict.fromkeys(citation.marker for citation in row.citations if citation.marker)
    claim = Text()
    claim.append(_line(row.claim or ""), style="dim" if row.material is False else "bold")
    for marker in markers:
        claim.append(f" {_line(marker)}", style="cyan")
    if row.material is False:
        claim.append(f" (not material: {row.material_reason})", style="dim")
    return claim


def _why(row: LabelRow) -> RenderableType:
    details = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    details.add_column(style="dim", no_wrap=True, min_width=5)
    details.add_column(ratio=1)
    if row.label not in (Label.SUPPORTED, Label.UNCITED) and row.reason:
        details.add_row("why", _line(row.reason))
    if len(row.citations) > 1:
        details.add_row("cites", Text(" · ").join(_verdict(citation) for citation in row.citations))
    for passage in _passages(row):
        details.add_row("from", passage)
    for citation in row.citations:
        if row.conflict and citation.label is Label.CONTRADICTED:
            details.add_row("but", _line(citation.reason or ""))
            details.add_row("from", _quoted(citation, citation.evidence or citation.text or ""))
    if row.covered_by_paragraph and row.material:
        details.add_row("note", "the paragraph's last marker may be meant for this sentence too")
    if row.fix is not None:
        details.add_row("fix", Text.assemble(_line(row.fix), (f" ({row.failure})", "dim")))
    return details


def _passages(row: LabelRow) -> list[Text]:
    """Return the quote that decided, or the beginning of each cited passage where none is quoted."""
    deciding = next((c for c in row.citations if c.passage_id == row.evidence_passage_id), None)
    if row.evidence is not None:
        return [_quoted(deciding, row.evidence)]
    if row.label is Label.SUPPORTED:
        return []
    cited = {c.passage_id: c for c in row.citations if c.text is not None}
    return [_quoted(citation, citation.text or "") for citation in cited.values()]


def _quoted(citation: TableCitation | None, text: str) -> Text:
    name = "" if citation is None else _line(f"[{citation.target}] {citation.title or ''}") + " "
    line = _line(text)
    cut = f"“{line}”" if len(line) <= MAX_SHOWN else f"“{line[:MAX_SHOWN]}…” ({len(text)} characters)"
    return Text.assemble((name, "cyan"), cut)


def _verdict(citation: TableCitation) -> Text:
    if citation.passage_id is None:
        return Text(
            f"[{_line(citation.target)}] names no passage of this run", style=LABEL_STYLES[Label.UNSUPPORTED]
        )
    label = citation.label
    text = f"[{_line(citation.target)}] {label or 'not judged'}"
    if citation.certainty is not Certainty.CERTAIN:
        text += f" ({citation.certainty}: {_line(citation.passage_id)})"
    return Text(text, style=LABEL_STYLES.get(label, "") if label is not None else "")


def _line(text: str) -> str:
    """Return the text on one line, without anything that drives a terminal."""
    return printable(" ".join(text.split()))
