"""How traces are read from Phoenix: whole, each once, whatever arrives meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from citespan.evaluators.errors import NotFound
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.sources.phoenix import CLAIM, PhoenixSource
from citespan.evaluators.sources.source import Trace

if TYPE_CHECKING:
    from tests.evaluators.phoenix.conftest import FakePhoenix


def _ids(traces: list[Trace]) -> list[tuple[int, list[int]]]:
    """Return traces and their spans as the small numbers that they were made from."""
    return [(int(trace.trace_id, 16), [int(span.span_id, 16) for span in trace.spans]) for trace in traces]


def test_traces_come_whole_and_in_order_of_arrival(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    # Children end, so arrive, before their root; two traces are mixed.
    phoenix.add(1, 12, parent=11, seconds=1)
    phoenix.add(2, 22, parent=21, seconds=3)
    phoenix.add(1, 11, seconds=0)
    phoenix.add(2, 21, seconds=2)
    traces = list(PhoenixSource(client, project).traces())
    assert _ids(traces) == [(1, [11, 12]), (2, [21, 22])]
    assert traces[0].url == f"http://phoenix.test/base/projects/{project.id}/traces/{1:032x}"


def test_many_traces_come_once_each(phoenix: FakePhoenix, client: PhoenixClient, project: Project) -> None:
    for trace in range(1, 301):
        phoenix.add(trace, 10 * trace + 2, parent=10 * trace + 1, seconds=trace)
    for trace in range(1, 301):  # every root arrives long after its child
        phoenix.add(trace, 10 * trace + 1, seconds=trace - 0.5)
    traces = list(PhoenixSource(client, project).traces())
    assert _ids(traces) == [(n, [10 * n + 1, 10 * n + 2]) for n in range(1, 301)]


def test_what_arrives_while_reading_waits_for_the_next_pass(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    for trace in range(1, 101):
        phoenix.add(trace, trace)
    source = PhoenixSource(client, project)

    def keep_adding() -> None:
        phoenix.add(1_000 + len(phoenix.spans), 1_000 + len(phoenix.spans))

    phoenix.on_read = keep_adding
    assert len(list(source.traces())) == 100


def test_own_claim_spans_are_left_out(phoenix: FakePhoenix, client: PhoenixClient, project: Project) -> None:
    phoenix.add(1, 11)
    phoenix.add(1, 12, parent=11, kind="EVALUATOR", **{CLAIM: "{}"})
    phoenix.add(2, 22, parent=21, kind="EVALUATOR", **{CLAIM: "{}"})  # its app span is gone
    assert _ids(list(PhoenixSource(client, project).traces())) == [(1, [11])]


def test_traces_that_an_evaluator_made_are_skipped(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    phoenix.add(1, 11, kind="EVALUATOR")
    phoenix.add(1, 12, parent=11, kind="LLM")
    phoenix.add(2, 21)
    phoenix.add(2, 22, parent=21, kind="EVALUATOR", seconds=1)  # a guard inside an app
    phoenix.add(2, 23, parent=22, kind="LLM", seconds=2)
    source = PhoenixSource(client, project)
    assert _ids(list(source.traces())) == [(2, [21, 22, 23])]
    assert source.skipped == {"evaluator_trace": 1}


def test_a_trace_without_its_root_is_still_read(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    phoenix.add(1, 12, parent=11)
    assert _ids(list(PhoenixSource(client, project).traces())) == [(1, [12])]


def test_named_traces_alone_are_read_and_missing_ones_named(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    for trace in range(1, 4):
        phoenix.add(trace, trace)
    wanted = PhoenixSource(client, project, trace_ids=[f"{3:032x}", f"{1:032X}"])
    assert sorted(trace for trace, _ in _ids(list(wanted.traces()))) == [1, 3]
    with pytest.raises(NotFound, match=f"has no trace {7:032x} in project 'demo'"):
        list(PhoenixSource(client, project, trace_ids=[f"{7:032x}"]).traces())


def test_pages_shrink_where_spans_are_long(
    phoenix: FakePhoenix, client: PhoenixClient, project: Project
) -> None:
    for trace in range(1, 61):
        phoenix.add(trace, trace, output__value="x" * 1_000_000)
    assert len(list(PhoenixSource(client, project).traces())) == 60
    limits = [int(request.url.params["limit"]) for request in phoenix.requests[1:]]
    # The first page of 20 shows a megabyte a span; from then on a page has at most 1 MB.
    assert limits[0] == 20
    assert max(limits[1:]) == 1


def test_an_empty_project_has_no_traces(client: PhoenixClient, project: Project) -> None:
    assert list(PhoenixSource(client, project).traces()) == []
