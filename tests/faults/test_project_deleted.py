"""The project is deleted under the worker's hands and made anew: the new one is evaluated, and holds nothing of the old."""

from __future__ import annotations

import random
from pathlib import Path

import httpx
import pytest
from tests.faults.conftest import Outcome, Trials
from tests.faults.proxy import FaultProxy
from tests.faults.rig import Site, trace_spans, working

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.errors import NotFound
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.records import Project
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.worker import run_pass

pytestmark = [pytest.mark.phoenix, pytest.mark.timeout(900)]

TRACES = 30
REQUESTS = 40


def test_a_project_that_is_deleted_and_made_anew_is_evaluated_anew(
    client: PhoenixClient, proxy: FaultProxy, trials: Trials, tmp_path: Path
) -> None:
    def once(seed: int, is_spoiled: bool) -> Outcome:
        site, gone = Site(client), list[int]()
        site.store(trials.size(TRACES))
        site.let_people_write()
        with working(site, proxy.url, tmp_path / f"{seed}{is_spoiled}" / "state") as worker:
            if is_spoiled:
                url = f"{client.connection.base_url}/v1/projects/{site.name}"
                last = random.Random(seed).randint(1, REQUESTS)
                proxy.when(last, lambda: gone.append(httpx.delete(url, timeout=30).status_code))
                worker.wait_until(lambda: gone, "deleted")
                assert gone == [204]
                if seed % 2:  # every second time it is away for a while
                    worker.wait_until(lambda: worker.named("project_not_found"), "noticed")
                site = Site(client, site.name)
                site.store(
                    TRACES
                )  # people, who evaluate otherwise too, would be in the way of a worker at work
            return Outcome(site.wait_until_whole(worker), len(site.trace_ids), {"deleted": 1})

    trials.run("project deleted and made anew", once, full=10)


class DeletingTransport(httpx.HTTPTransport):
    """Deletes the project as soon as claim spans are in Phoenix's queue, behind a crowd of the app's own spans."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site: Site | None = site

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        site = self.site
        if site is None or request.method != "POST" or not request.url.path.endswith("/spans"):
            return super().handle_request(request)
        self.site = None
        busy = Project("fault-busy", "fault-busy")
        for _ in range(3):
            site.client.add_spans(busy, [span for n in range(250) for span in trace_spans(n)])
        response = super().handle_request(request)
        response.read()
        url = f"{site.client.connection.base_url}/v1/projects/{site.name}"
        assert httpx.delete(url, timeout=30).status_code == 204
        return response


def test_claim_spans_that_phoenix_stores_after_the_project_was_deleted_are_deleted(
    client: PhoenixClient,
) -> None:
    site = Site(client)
    site.store(12)
    with PhoenixClient(client.connection, http=DeletingTransport(site)) as worker:
        source = PhoenixSource(worker, site.project)
        with pytest.raises(NotFound):
            run_pass(source, annotator=Annotator(worker, site.project))
    try:
        assert [page.spans for page in client.span_pages(site.project)] == [()]
    except NotFound:
        return  # all that was in the queue was stored before the project was deleted
