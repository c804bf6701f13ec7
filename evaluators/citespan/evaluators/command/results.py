"""What a command does with evaluations as they come: screen, JSON, label table, measures, gates, exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from citespan.evaluators.analysis.labeltable import LabelRow, TableRun, rows_of
from citespan.evaluators.analysis.report import Report, Setup, Tally, render_report
from citespan.evaluators.analysis.tablefile import TableWriter, count_human_labels, write_table
from citespan.evaluators.command.brief import badness, print_brief, print_legend
from citespan.evaluators.command.gates import Gate, GateResult, check_gates
from citespan.evaluators.command.labels import has_finding, print_run
from citespan.evaluators.command.parameters import Show
from citespan.evaluators.command.terminal import Terminal, uninterrupted
from citespan.evaluators.errors import CitespanError, UsageError
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.judges.notes import notes_of
from citespan.evaluators.measures import Ratio
from citespan.evaluators.options import DEFAULT_OPTIONS, EvaluateOptions
from citespan.evaluators.verdicts import Label

__all__ = ["Results", "Wanted"]

GATE_FAILED, PARTLY_DONE = 1, 4
"""Exit codes: a gate failed; something was set aside."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants to have of the results."""

    as_json: bool = False
    """One JSON object on stdout, and nothing else there."""

    show: Show = Show.ALL
    """Which runs to print."""

    output: Path | None = None
    """Where the label table goes."""

    overwrite: bool = False
    """Whether labels that people put into an earlier table there may be lost."""

    read_from: str | None = None
    """The file that the runs come from, which is never written to."""

    gates: tuple[Gate, ...] = ()
    """Bounds on the pooled figures."""

    def open_table(self) -> TableWriter | None:
        """Return a writer for the label table, or `None` if none is wanted.

        Raises:
            UsageError: The file cannot be written, is the input, or holds labels that people gave.
        """
        path = self.output
        if path is None:
            return None
        if self.read_from is not None and path.exists() and path.resolve() == Path(self.read_from).resolve():
            raise UsageError(f"--output {path} is the file that is read: choose another")
        labelled = 0 if self.overwrite or not path.is_file() else count_human_labels(path)
        if labelled:
            raise UsageError(
                f"{path} holds {labelled} labels that people gave, which a new table would lose: "
                "choose another --output, or pass --overwrite"
            )
        return write_table(path)


class Results:
    """Takes evaluations one at a time; on leaving the context everything taken so far is on disk and printed."""

    def __init__(
        self, wanted: Wanted, *, judge: Judge | None = None, options: EvaluateOptions = DEFAULT_OPTIONS
    ) -> None:
        """Open the label table, if one is wanted, and say where text is sent, if a judge sends any.

        Args:
            wanted: What to do with the results.
            judge: Who judges; `None` where the results were judged before.
            options: How runs are evaluated.

        Raises:
            UsageError: The label table cannot be written.
        """
        self.terminal = Terminal(as_json=wanted.as_json)
        self._wanted = wanted
        self._judge = judge
        card = None if judge is None else judge.card
        self._tally = Tally() if card is None else Tally(setup=Setup.of(card, options), limits=card.limits)
        self._table = wanted.open_table()
        if card is not None and card.sends_text_to is not None:
            self.terminal.say(f"{card.name} sends claims, questions and passage text to {card.sends_text_to}")
        self._taken = 0
        self._aside: list[str] = []
        self._notes: dict[str, object] = {}
        self._gate_results: list[GateResult] = []
        self._worst: tuple[Sequence[LabelRow], Mapping[str, Ratio]] | None = None

    def add(
        self,
        evaluation: Evaluation,
        *,
        url: str | None = None,
        human_labels: Mapping[int, Label] | None = None,
    ) -> None:
        """Take one evaluation: into the table, onto the screen, into the measures."""
        run = evaluation.run_to_dict() if self.terminal.as_json else {}
        rows = rows_of(evaluation, url=url, human_labels=human_labels)
        self._take(rows, evaluation.measures, run if url is None else {**run, "url": url})

    def add_tabled(self, run: TableRun) -> None:
        """Take one run of a stored label table."""
        measures = {name: ratio.to_dict() for name, ratio in run.measures.items()}
        first = run.rows[0]
        claims = [row.model_dump(mode="json", by_alias=True) for row in run.rows]
        data = {"id": first.run_id, "state": first.state, "rows": claims, "measures": measures}
        self._take(run.rows, run.measures, data)

    def _take(
        self, rows: Sequence[LabelRow], measures: Mapping[str, Ratio], run: Mapping[str, object]
    ) -> None:
        with uninterrupted():
            if self._table is not None:
                self._table.write(rows)
            self._tally.add(rows, measures)
            if self.terminal.as_json:
                self.terminal.write_json(",\n" if self._taken else '{"schema": 1, "runs": [\n')
                self.terminal.write_json(self.terminal.dump(run))
            else:
                self._print(rows, measures)
            self._taken += 1

    def set_aside(self, reason: str) -> None:
        """Note something that could not be evaluated; the command then ends with exit code 4."""
        self._aside.append(reason)
        self.terminal.warn(f"set aside: {reason}")

    def note(self, key: str, data: object, line: str) -> None:
        """Add something to the report: a member of the JSON object, or a line on stderr."""
        self._notes[key] = data
        if not self.terminal.as_json:
            self.terminal.say(line)

    @property
    def exit_code(self) -> int:
        """What the command ends with, once the context is left."""
        if any(not result.is_passed for result in self._gate_results):
            return GATE_FAILED
        return PARTLY_DONE if self._aside else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._table is not None:
            self._table.__exit__(kind, error, trace)
        if isinstance(error, SystemExit):
            return
        if error is None or self._taken:
            self._finish(None if error is None else _cut_short(error))

    def _finish(self, cut_short: str | None) -> None:
        report = self._tally.report()
        if self._judge is not None and (notes := notes_of(self._judge)):
            self.note("judge_notes", list(notes), "\n".join(notes))
        self._gate_results = [] if cut_short else check_gates(self._wanted.gates, report)
        if cut_short:
            self.terminal.warn(f"{cut_short}: the figures are about the {report.runs} runs done so far")
        if self.terminal.as_json:
            self._finish_json(report, {"cut_short": cut_short} if cut_short else {})
            for warning in report.warnings:
                self.terminal.warn(warning)
        elif report.runs or self._wanted.gates:
            self._print_worst()
            self.terminal.out.print(render_report(report))
        for result in self._gate_results:
            self.terminal.say_result(str(result), is_good=result.is_passed)

    def _finish_json(self, report: Report, more: Mapping[str, object]) -> None:
        setup = next(iter(report.setups), None)
        tail: dict[str, object] = {
            "pooled": {name: ratio.to_dict() for name, ratio in report.pooled.items()},
            "judge": None if setup is None else {"name": setup.judge, "fingerprint": setup.judge_fingerprint},
            "report": report.to_dict(),
            "gates": [result.to_dict() for result in self._gate_results],
            "set_aside": self._aside,
            **self._notes,
            **more,
        }
        head = "\n], " if self._taken else '{"schema": 1, "runs": [], '
        self.terminal.write_json(f"{head}{self.terminal.dump(tail)[1:]}\n")

    def _print(self, rows: Sequence[LabelRow], measures: Mapping[str, Ratio]) -> None:
        if self._wanted.show is Show.NONE:
            return
        if self._wanted.show is Show.BRIEF:
            self._print_brief(rows, measures)
            return
        if self._wanted.show is Show.FINDINGS:
            rows = [row for row in rows if has_finding(row)]
        if rows:
            print_run(self.terminal.out, rows, measures)

    def _print_brief(self, rows: Sequence[LabelRow], measures: Mapping[str, Ratio]) -> None:
        if not self._taken:
            print_legend(self.terminal.out)
        print_brief(self.terminal.out, rows, measures)
        if badness(rows) > (badness(self._worst[0]) if self._worst is not None else (0, 0)):
            self._worst = rows, measures

    def _print_worst(self) -> None:
        if self._worst is not None:
            self.terminal.out.print("\nThe answer with most to mend:\n")
            print_run(self.terminal.out, *self._worst)


def _cut_short(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return str(error) if isinstance(error, CitespanError) else f"stopped by {type(error).__name__}"
