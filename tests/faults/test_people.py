"""A person who writes while a batch is being written is not overwritten."""

from __future__ import annotations

import httpx
import pytest
from tests.faults.rig import Site

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.worker import run_pass

pytestmark = pytest.mark.phoenix


class BusyPerson(httpx.HTTPTransport):
    """Takes over measures and mark of every trace as soon as the verdicts of the batch are on their way."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site = site

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if (
            request.method == "POST"
            and request.url.path.endswith("/span_annotations")
            and not self.site.human
        ):
            self.site.let_people_take_over(["cite_sup", "cite_cov", "cite_state"])
        return super().handle_request(request)


def test_a_row_that_a_person_writes_meanwhile_stays(client: PhoenixClient) -> None:
    site = Site(client)
    site.store(6)
    with PhoenixClient(client.connection, http=BusyPerson(site)) as worker:
        run_pass(PhoenixSource(worker, site.project), annotator=Annotator(worker, site.project))
    assert len(site.human) == 18
    assert site.examine().violations == ()
