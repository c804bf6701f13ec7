"""Several runs at once, where the judge spends its time waiting for others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from citespan.evaluators.judges.judge import Judge, concurrency_of

__all__ = ["overlapped"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_AHEAD = 2
"""Items taken ahead for each thread, so that a slow one does not leave the others idle while memory stays flat."""


def overlapped(judge: Judge, work: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Yield what `work` returns for each item, in order, with as many under way as `judge` takes callers.

    One at a time, and in this thread, for a judge that takes one. What `work` raises is raised in its item's turn.

    Args:
        judge: The judge that `work` asks.
        work: Called with each item, from several threads at once.
        items: Read in this thread, no further ahead than twice the number of threads.
    """
    at_once = concurrency_of(judge)
    if at_once == 1:
        yield from map(work, items)
        return
    under_way: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(at_once, thread_name_prefix="citespan-overlap") as threads:
        try:
            for item in items:
                under_way.append(threads.submit(work, item))
                if len(under_way) == at_once * _AHEAD:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()
