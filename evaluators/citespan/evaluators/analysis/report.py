"""The report on many runs: pooled measures, what is counted apart, and what the numbers do not prove."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from citespan.evaluators.analysis.labeltable import LabelRow
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.measures import Mean, Pattern, Ratio, pattern, pool
from citespan.evaluators.options import EvaluateOptions
from citespan.evaluators.verdicts import Label

__all__ = ["LABEL_STYLES", "Report", "Setup", "Tally", "render_report", "report_to_text"]

MAX_UNJUDGED_SHARE = 0.05
"""Above this share of unjudged among the cited claims, every report warns and every gate fails."""

DOES_NOT_PROVE = (
    "Support says that the cited passages carry the claims. It is neither correctness (a passage can be wrong, "
    "old or off the question) nor faithfulness (uncited claims are not in it)."
)
"""Printed with every report."""

LABEL_STYLES: Mapping[Label, str] = {
    Label.SUPPORTED: "green",
    Label.PARTLY_SUPPORTED: "yellow",
    Label.UNSUPPORTED: "red",
    Label.CONTRADICTED: "bold red",
    Label.UNCITED: "magenta",
    Label.UNJUDGED: "cyan",
}
"""The colour of each label on a terminal."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How runs were evaluated; figures of different setups do not compare."""

    judge: str
    """Name of the judge."""

    judge_fingerprint: str
    """Everything that can change the judge's verdicts."""

    citation_scope: str
    """What a paragraph-final marker covered."""

    splitting: str
    """How finely answers were split."""

    label_policy: str
    """How the cited passages of a claim made its label."""

    @classmethod
    def of(cls, card: JudgeCard, options: EvaluateOptions) -> Setup:
        """Return the setup that a judge and options make."""
        return cls(
            card.name, card.fingerprint, options.citation_scope, options.splitting, options.label_policy
        )

    @classmethod
    def of_row(cls, row: LabelRow) -> Setup:
        """Return the setup that made a row of a label table."""
        return cls(row.judge, row.judge_fingerprint, row.citation_scope, row.splitting, row.label_policy)

    def to_dict(self) -> dict[str, str]:
        """Return the JSON form."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the setup as one line."""
        return (
            f"judge {self.judge} ({self.judge_fingerprint}) · citation scope {self.citation_scope} · "
            f"splitting {self.splitting} · label policy {self.label_policy}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of many runs."""

    runs: int
    """Runs read, whatever became of them."""

    evaluated: int
    """Runs judged: those that the pooled figures are about."""

    states: Mapping[str, int]
    """Runs by state, for those that have one."""

    labels: Mapping[Label, int]
    """Claims by label; every label is there."""

    unjudged_reasons: Mapping[str, int]
    """Unjudged claims by machine-readable reason."""

    failures: Mapping[str, int]
    """Claims by where they failed."""

    conflicts: int
    """Supported claims that another cited passage contradicts."""

    pooled: Mapping[str, Ratio]
    """Every measure: counts added over the evaluated runs, divided once."""

    means: Mapping[str, Mean]
    """The mean of the per-answer ratios, by measure."""

    setups: tuple[Setup, ...]
    """How the runs were evaluated; more than one where a table mixes evaluations."""

    limits: str
    """What the judge is known to get wrong."""

    @property
    def pattern(self) -> Pattern | None:
        """What the pair coverage/support says."""
        return pattern(self.pooled)

    @property
    def unjudged(self) -> Ratio:
        """Unjudged claims / cited claims; an uncited claim is never unjudged."""
        cited = sum(self.labels.values()) - self.labels[Label.UNCITED]
        return Ratio(self.labels[Label.UNJUDGED], cited, "cited claims")

    @property
    def has_too_many_unjudged(self) -> bool:
        """Whether so many claims are unjudged that the figures say little."""
        return (self.unjudged.value or 0.0) > MAX_UNJUDGED_SHARE

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before the figures, one sentence each."""
        return tuple(_warnings(self))

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form of everything beside the pooled ratios."""
        return {
            "runs": self.runs,
            "evaluated": self.evaluated,
            "states": dict(self.states),
            "labels": {label.value: count for label, count in self.labels.items()},
            "unjudged_reasons": dict(self.unjudged_reasons),
            "failures": dict(self.failures),
            "conflicts": self.conflicts,
            "mean_of_per_answer_ratios": {
                name: {"value": mean.value, "answers": mean.answers} for name, mean in self.means.items()
            },
            "pattern": None if self.pattern is None else {"name": self.pattern.name, "gap": self.pattern.gap},
            "setups": [setup.to_dict() for setup in self.setups],
            "warnings": list(self.warnings),
            "does_not_prove": DOES_NOT_PROVE,
        }


class Tally:
    """Adds up runs one at a time; memory does not grow with their number."""

    def __init__(self, *, setup: Setup | None = None, limits: str = "") -> None:
        self._setups: dict[Setup, None] = {} if setup is None else {setup: None}
        self._limits = limits
        self._runs = 0
        self._evaluated = 0
        self._conflicts = 0
        self._states: Counter[str] = Counter()
        self._labels: Counter[Label] = Counter()
        self._reasons: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._pooled: Mapping[str, Ratio] | None = None
        self._totals: defaultdict[str, float] = defaultdict(float)
        self._answers: Counter[str] = Counter()

    def add(self, rows: Sequence[LabelRow], measures: Mapping[str, Ratio]) -> None:
        """Add one run by its label-table rows and measures."""
        state = rows[0].state
        self._runs += 1
        self._setups.setdefault(Setup.of_row(rows[0]))
        if state is not None:
            self._states[state] += 1
            if state.stops_judging:
                return
        self._evaluated += 1
        self._add_claims(rows)
        self._pooled = pool([measures] if self._pooled is None else [self._pooled, measures])
        for name, ratio in measures.items():
            if (value := ratio.value) is not None:
                self._totals[name] += value
                self._answers[name] += 1

    def _add_claims(self, rows: Sequence[LabelRow]) -> None:
        for row in rows:
            if row.label is None:
                continue
            self._labels[row.label] += 1
            self._conflicts += row.conflict
            if row.failure is not None:
                self._failures[row.failure] += 1
            if row.label is Label.UNJUDGED:
                self._reasons[(row.reason or "unknown").partition(":")[0]] += 1

    def report(self) -> Report:
        """Return the figures so far."""
        pooled = pool([]) if self._pooled is None else self._pooled
        return Report(
            runs=self._runs,
            evaluated=self._evaluated,
            states=dict(self._states.most_common()),
            labels={label: self._labels[label] for label in Label},
            unjudged_reasons=dict(self._reasons.most_common()),
            failures=dict(self._failures.most_common()),
            conflicts=self._conflicts,
            pooled=pooled,
            means={name: self._mean(name) for name in pooled},
            setups=tuple(self._setups),
            limits=self._limits,
        )

    def _mean(self, name: str) -> Mean:
        answers = self._answers[name]
        return Mean(self._totals[name] / answers if answers else None, answers)


def _warnings(report: Report) -> Iterator[str]:
    if report.runs and not report.evaluated:
        yield "No run could be judged: the states below say why."
    if report.has_too_many_unjudged:
        reasons = ", ".join(f"{reason} {count}" for reason, count in report.unjudged_reasons.items())
        yield (
            f"{report.unjudged} are unjudged, more than {MAX_UNJUDGED_SHARE:.0%}: "
            f"the figures that need a judge stand on the rest ({reasons})."
        )
    if len(report.setups) > 1:
        yield "The runs were evaluated in different ways, so the pooled figures mix what does not compare."


def report_to_text(report: Report, *, width: int = 80) -> str:
    """Return the report as plain text, without colour."""
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False)
    console.print(render_report(report))
    text = console.file
    assert isinstance(text, io.StringIO)  # noqa: S101  # the console writes to the file it was given
    return text.getvalue()


def render_report(report: Report) -> RenderableType:
    """Return the report for a terminal: measures, the pair, what is counted apart, setup and limits."""
    noun = "run" if report.runs == 1 else "runs"
    heading = Text(f"Measures over {report.evaluated} of {report.runs} {noun}", style="bold")
    warnings = [Text(f"! {warning}", style="bold yellow") for warning in report.warnings]
    return Group(heading, *warnings, _measures_table(report), Text(), _facts(report))


def _measures_table(report: Report) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=False)
    table.add_column("measure", style="bold", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("pooled over all answers")
    table.add_column("mean of per-answer ratios")
    for name, ratio in report.pooled.items():
        mean = report.means[name]
        beside = "" if mean.value is None else f"{mean.value:.2f} ({_count(mean.answers, 'answer')})"
        value = "" if ratio.value is None else f"{ratio.value:.2f}"
        table.add_row(name, value, str(ratio), beside, style="dim" if ratio.value is None else "")
    return table


def _facts(report: Report) -> Table:
    facts = Table.grid(padding=(0, 2), pad_edge=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    facts.add_row("pair", _pair(report))
    facts.add_row("labels", _labels(report.labels))
    facts.add_row("strict", _strict(report.labels))
    if report.failures:
        facts.add_row("to mend", _listed(report.failures))
    if report.conflicts:
        facts.add_row("conflicts", f"{report.conflicts} supported, while another cited passage contradicts")
    facts.add_row("unjudged", _unjudged(report))
    if report.states:
        facts.add_row("states", f"{_listed(report.states)} (never counted as 0)")
    for setup in report.setups:
        facts.add_row("setup", str(setup))
    if report.limits:
        facts.add_row("limits", report.limits)
    facts.add_row("not proved", DOES_NOT_PROVE)
    return facts


def _pair(report: Report) -> str:
    coverage, support = (report.pooled[name] for name in ("coverage", "support"))
    found = report.pattern
    pair = f"coverage {_value(coverage)}, support {_value(support)}"
    return pair if found is None else f"{pair} · gap {found.gap:+.2f} · {found.name}"


def _value(ratio: Ratio) -> str:
    return "over nothing" if ratio.value is None else f"{ratio.value:.2f}"


def _labels(labels: Mapping[Label, int]) -> Text:
    parts = [
        Text(f"{count} {label}", style=LABEL_STYLES[label] if count else "dim")
        for label, count in labels.items()
    ]
    return Text(" · ").join(parts)


def _strict(labels: Mapping[Label, int]) -> str:
    strict: Counter[str] = Counter()
    for label, count in labels.items():
        if label.strict is not None:
            strict[label.strict] += count
    return " · ".join(f"{count} {label}" for label, count in strict.items())


def _unjudged(report: Report) -> str:
    if not report.labels[Label.UNJUDGED]:
        return f"{report.unjudged}"
    return f"{report.unjudged}: {_listed(report.unjudged_reasons)}"


def _listed(counts: Mapping[str, int]) -> str:
    return " · ".join(f"{count} {name}" for name, count in counts.items())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
