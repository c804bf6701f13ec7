"""What a reviewer sees in Phoenix's page, looked at through a real browser."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from tests.phoenix.conftest import Workbench

    from citespan.evaluators.runs import Run

pytestmark = [pytest.mark.phoenix, pytest.mark.browser]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

QUIET = [
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""Options of a browser that needs no display and asks nobody for anything."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        assert "CI" not in os.environ, "CI installs Chromium: .ci/run"
        pytest.skip("no Chromium is installed: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(90_000)
    yield page
    page.close()


@pytest.fixture
def refunds_url(bench: Workbench, worked_examples: Mapping[str, Run]) -> str:
    """Where the refunds example can be seen, evaluated."""
    trace_id = bench.recorder.replay(worked_examples["refunds"])
    bench.evaluate()
    return bench.client.trace_url(bench.project, trace_id)


def test_a_reviewer_sees_claim_passage_and_verdict_together(page: Page, refunds_url: str) -> None:
    page.goto(refunds_url)
    page.get_by_text("claim 2", exact=True).click()
    details = page.get_by_test_id("span-details")
    shown = details.locator("pre").filter(has_text="Premium support is included at no charge.")
    shown.wait_for()
    assert "Pricing. Premium support is available as a paid add-on for all plans." in shown.inner_text()
    verdict = details.get_by_role("button", name="View annotation details")
    assert "contradicted" in verdict.inner_text()
    verdict.click()
    explanation = page.get_by_role("dialog", name="verdict annotation details")
    explanation.get_by_text("Correct the claim to what the cited passage says.").wait_for()


def test_the_tree_of_a_trace_shows_the_verdict_beside_each_claim(page: Page, refunds_url: str) -> None:
    page.goto(refunds_url)
    tree = page.get_by_test_id("dialog")
    for claim, label in (
        ("claim 1", "partly_supported"),
        ("claim 2", "contradicted"),
        ("claim 3", "uncited"),
    ):
        tree.get_by_role("button", name=re.compile(f"{claim} .* verdict {label}")).wait_for()
