"""A judge for the length of one command."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.judges.registry import load_judge

__all__ = ["judging"]

MOST_CALLS_AT_ONCE = 32
"""Threads there may be for a judge's calls; its own option `concurrency` says how many it uses."""


@runtime_checkable
class _Closable(Protocol):
    def close(self) -> None: ...


@contextmanager
def judging(name: str) -> Generator[Judge]:
    """Provide the judge called `name`, and give back what it holds at the end.

    Raises:
        UsageError: No judge has that name, or its argument or an option is wrong.
    """
    with ThreadPoolExecutor(MOST_CALLS_AT_ONCE) as executor:
        judge = load_judge(name, executor=executor)
        try:
            yield judge
        finally:
            if isinstance(judge, _Closable):
                judge.close()
            executor.shutdown(cancel_futures=True)
