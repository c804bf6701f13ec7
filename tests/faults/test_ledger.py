"""The table of a run is made of the rows that its processes kept."""

from __future__ import annotations

from pathlib import Path

from tests.faults.ledger import Ledger, Row
from tests.faults.oracle import Examination


def test_the_rows_of_all_processes_make_one_table(tmp_path: Path) -> None:
    first, second = Ledger(), Ledger()
    row = first.of("kill -9 of the worker")
    row.seconds, row.calm_seconds, row.injected = 30.0, 5.0, {"SIGKILL": 2}
    for seed in (1, 2):
        first.add(row.fault, seed, Examination((), rows=10, claim_spans=4, done=3), traces=3)
    second.add("clock", 7, Examination(("doubled",), rows=5, claim_spans=2, done=1), traces=1)
    second.rows["never run"] = Row("never run")
    second.add(row.fault, 3, Examination((), rows=10, claim_spans=4, done=3), traces=3)
    second.of(row.fault).seconds = 9.0
    for n, ledger in enumerate((first, second)):
        ledger.save(tmp_path / f"{n}.json")
    table = Ledger.load(sorted(tmp_path.iterdir())).table().splitlines()[2:]
    # Three rounds took 39 s together, one without the fault 5 s: 39 / 3 / 5 = 2.6 times as long.
    assert table == [
        "| clock | 1 | 7 | - | 1 | 7 | 1 | - |",
        "| kill -9 of the worker | 3 | 1 to 3 | SIGKILL x2 | 9 | 42 | 0 | 2.6 |",
    ]
