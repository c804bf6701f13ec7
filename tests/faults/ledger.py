"""What the fault tests did: one row for each fault, written as the table in docs/faults.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Self

from tests.faults.oracle import Examination

_HEAD = """\
# Faults

Every row is a fault that was let loose on `citespan worker` between it and a real Phoenix.
After each round every trace has to be evaluated exactly once: one `cite_state` that covers the trace as it is read now, one claim span and one `verdict` for each claim, one row for each measure, no claim span of an older reading but those that people wrote on, and every row of a person as it was.
A trace that the worker sets aside with a reason counts as accounted for.
`time` is that of a round, with the fault and until all is well again, where one without the fault is 1.
`make test-faults` writes this file; `make test` runs three rounds of each fault, with the answers in groups of kinds, and one storm of 300 traces.
A round is run again by its seed: `make test-faults ARGS="--seed 17 --rounds 1 -k killed"`.
"""


@dataclass
class Row:
    """One fault."""

    fault: str
    seeds: list[int] = field(default_factory=list)
    injected: dict[str, int] = field(default_factory=dict)
    traces: int = 0
    checked: int = 0
    violations: int = 0
    seconds: float = 0.0
    calm_seconds: float = 0.0
    note: str = ""

    def absorb(self, other: Row) -> None:
        """Add what another process did with the same fault."""
        self.seeds += other.seeds
        for kind, number in other.injected.items():
            self.injected[kind] = self.injected.get(kind, 0) + number
        self.traces += other.traces
        self.checked += other.checked
        self.violations += other.violations
        self.seconds += other.seconds
        self.calm_seconds = self.calm_seconds or other.calm_seconds


@dataclass
class Ledger:
    """All rows, in the order in which the tests ran."""

    rows: dict[str, Row] = field(default_factory=dict)

    def of(self, fault: str) -> Row:
        return self.rows.setdefault(fault, Row(fault))

    def add(self, fault: str, seed: int, result: Examination, *, traces: int) -> None:
        row = self.of(fault)
        row.seeds.append(seed)
        row.traces += traces
        row.checked += result.rows + result.claim_spans
        row.violations += len(result.violations)

    def save(self, path: Path) -> None:
        """Write the rows to a file, so that they outlive a run that is stopped."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(row) for row in self.rows.values()]), encoding="utf-8")

    @classmethod
    def load(cls, paths: Iterable[Path]) -> Self:
        """Return the rows of several files, by fault."""
        ledger = cls()
        rows = [Row(**data) for path in paths for data in json.loads(path.read_text(encoding="utf-8"))]
        for row in sorted(rows, key=lambda row: row.fault):
            if row.fault in ledger.rows:
                ledger.rows[row.fault].absorb(row)
            elif row.seeds:
                ledger.rows[row.fault] = row
        return ledger

    def page(self, note: str = "") -> str:
        """Return the file that is kept under docs/; `note` is what else is to be said of the run."""
        about = (
            f"Last run: {time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, "
            f"Phoenix {version('arize-phoenix')} on SQLite, {os.cpu_count()} cores."
        )
        return "\n".join([_HEAD, about, *filter(None, [note]), "", self.table()])

    def table(self) -> str:
        lines = [
            "| fault | rounds | seeds | injected | traces | rows and claim spans checked | violations | time |",
            "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: |",
        ]
        for row in self.rows.values():
            rounds = len(row.seeds)
            seeds = f"{min(row.seeds)} to {max(row.seeds)}" if rounds > 1 else "".join(map(str, row.seeds))
            ratio = f"{row.seconds / rounds / row.calm_seconds:.1f}" if row.calm_seconds and rounds else "-"
            name = f"{row.fault} ({row.note})" if row.note else row.fault
            lines.append(
                f"| {name} | {rounds} | {seeds} | {_total(row.injected)} | {row.traces} | {row.checked} "
                f"| {row.violations} | {ratio} |"
            )
        return "\n".join(lines) + "\n"


def _total(injected: Mapping[str, int]) -> str:
    """Return `500 x12, reset x3`."""
    return ", ".join(f"{kind} x{number}" for kind, number in sorted(injected.items())) or "-"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Print the page of runs that were stopped, or of several runs."
    )
    parser.add_argument("rows", nargs="+", type=Path, help="files under .citespan/faults")
    parser.add_argument("--note", default="", help="what else is to be said of the run")
    given = parser.parse_args()
    sys.stdout.write(Ledger.load(given.rows).page(given.note))
