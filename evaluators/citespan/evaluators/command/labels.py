"""The label table of one run on a terminal: each claim, why it has its label, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.rule import Rule
from rich.style import Style
from rich.text import Text

from citespan.evaluators.analysis.labeltable import LabelRow, TableCitation
from citespan.evaluators.analysis.report import LABEL_STYLES
from citespan.evaluators.claims import Certainty
from citespan.evaluators.command.terminal import printable
from citespan.evaluators.measures import Ratio
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

CLAIM_INDENT, DETAIL_INDENT, MIN_WIDTH = 20, 27, 20
"""Columns before a claim and before what stands under it, and the least that is left for text."""

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
    for row in rows:
        if row.label is not None:
            label = Text(f"{SYMBOLS[row.label]} {row.label}", style=LABEL_STYLES[row.label])
            _print_hanging(console, label, _claim(row), indent=CLAIM_INDENT)
            for name, detail in _details(row):
                _print_hanging(
                    console, Text(" " * CLAIM_INDENT + name, style="dim"), detail, indent=DETAIL_INDENT
                )
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


def _print_hanging(console: Console, left: Text, body: Text, *, indent: int) -> None:
    """Print `body` wrapped to the right of `left`.

    Nested tables would look the same and took three times as long: 6 ms a run, more than the judging.
    """
    lines = body.wrap(console, max(console.width - indent, MIN_WIDTH))
    for line in lines:
        left.append(" " * (indent - left.cell_len))
        line.rstrip()
        console.print(left.append_text(line), soft_wrap=True)
        left = Text()


def _details(row: LabelRow) -> Iterator[tuple[str, Text]]:
    """Yield what stands under a claim, each with its name."""
    if row.label not in (Label.SUPPORTED, Label.UNCITED) and row.reason:
        yield "why", Text(_line(row.reason))
    if len(row.citations) > 1:
        yield "cites", Text(" · ").join(_verdict(citation) for citation in row.citations)
    for passage in _passages(row):
        yield "from", passage
    for citation in row.citations:
        if row.conflict and citation.label is Label.CONTRADICTED:
            yield "but", Text(_line(citation.reason or ""))
            yield "from", _quoted(citation, citation.evidence or citation.text or "")
    if row.covered_by_paragraph and row.material:
        yield "note", Text("the paragraph's last marker may be meant for this sentence too")
    if row.fix is not None:
        yield "fix", Text.assemble(_line(row.fix), (f" ({row.failure})", "dim"))


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
