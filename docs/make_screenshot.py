"""Take the pictures in `docs/images`: the demo on a real Phoenix, looked at with headless Chromium.

::

    make screenshot
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import FloatRect, Locator, Page, sync_playwright

from citespan.evaluators.annotate import Annotator
from citespan.evaluators.demo import run_example
from citespan.evaluators.phoenix.client import PhoenixClient
from citespan.evaluators.phoenix.connection import Connection
from citespan.evaluators.phoenix.server import PhoenixServer
from citespan.evaluators.sources.phoenix import PhoenixSource
from citespan.evaluators.worker import EvaluatedRun, run_pass

IMAGES = Path(__file__).parent / "images"
"""Where the pictures go."""

PROJECT = "citespan-demo"
"""Project that the demo is traced into."""

SYNC = "How does the sync client handle failures?"
REFUNDS = "When are refunds issued, and is premium support included?"
"""The two runs whose traces are shown: the worked examples of README.md."""

COLUMNS = (
    "input_value",
    "annotations-score-citations",
    "trace-annotations-score-cite_cov",
    "trace-annotations-score-cite_sup",
    "trace-annotations-score-cite_valid",
)
"""Columns of the table of traces that are shown, by the names that Phoenix's page gives them."""

FADE_IN_MS = 1000
"""How long the page takes to show a box in full."""

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""Options of a browser that needs no display and asks nobody for anything."""


def main() -> None:
    """Run the demo, evaluate it, and take every picture."""
    with tempfile.TemporaryDirectory() as folder, PhoenixServer(Path(folder)) as server:
        run_example(server.url, PROJECT)
        urls = evaluate(server.url)
        with open_page() as page:
            take_claim(page, urls[REFUNDS], "claim 2", "contradicted.png")
            take_claim(page, urls[SYNC], "claim 3", "claim-span.png")
            take_explanation(page, "verdict.png")
            take_traces(page, urls[SYNC].rpartition("/")[0], "traces.png")
    for image in sorted(IMAGES.glob("*.png")):
        print(f"{image} {image.stat().st_size // 1000} kB")


def evaluate(url: str) -> dict[str, str]:
    """Evaluate the demo's traces and return the URL of each by its question."""
    urls: dict[str, str] = {}

    def keep(evaluated: EvaluatedRun) -> None:
        urls[evaluated.evaluation.run.question or ""] = evaluated.url or ""

    with PhoenixClient(Connection(url)) as client:
        project = client.project(PROJECT)
        run_pass(PhoenixSource(client, project), annotator=Annotator(client, project), on_run=keep)
    return urls


@contextmanager
def open_page() -> Iterator[Page]:
    """Open a page in light colours, at twice the resolution."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("no Chromium is installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        page = browser.new_page(device_scale_factor=1.25)
        page.add_init_script("localStorage.setItem('arize-phoenix-theme', 'light')")
        yield page
        browser.close()


def take_claim(page: Page, url: str, claim: str, name: str) -> None:
    """Take a claim span beside the tree of its trace."""
    page.set_viewport_size({"width": 1440, "height": 700})
    page.goto(url)
    page.get_by_text(claim, exact=True).click()
    page.get_by_test_id("span-details").locator("pre").get_by_text("CLAIM").wait_for()
    page.wait_for_load_state("networkidle")
    page.get_by_test_id("dialog").screenshot(path=IMAGES / name)


def take_explanation(page: Page, name: str) -> None:
    """Take the explanation of the verdict of the claim span that is open."""
    page.get_by_test_id("span-details").get_by_role("button", name="View annotation details").click()
    verdict = page.get_by_role("dialog", name="verdict annotation details")
    verdict.wait_for()
    page.wait_for_timeout(FADE_IN_MS)
    verdict.screenshot(path=IMAGES / name)


def take_traces(page: Page, url: str, name: str) -> None:
    """Take the table of traces with the columns that citespan fills."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="Collapse side navigation").click()
    page.get_by_role("button", name="Columns").click()
    menu = page.get_by_role("dialog", name="Columns")
    menu.wait_for()
    for column in menu.locator("li").evaluate_all("rows => rows.map(row => row.dataset.columnId)"):
        row = menu.locator(f'li[data-column-id="{column}"]')
        box = row.get_by_role("checkbox")
        if box.is_enabled() and box.is_checked() != (column in COLUMNS):
            row.locator("label").click()
    page.keyboard.press("Escape")
    menu.wait_for(state="detached")
    table = page.get_by_role("table")
    widen(page, table.get_by_role("columnheader", name="input"), by=140)
    widen(page, table.get_by_role("columnheader", name="citations"), by=180)
    page.mouse.move(0, 0)
    page.wait_for_load_state("networkidle")
    bar = page.get_by_role("button", name="Columns").bounding_box()
    assert bar is not None
    top = bar["y"] - 6
    clip = FloatRect(x=60, y=top, width=1380, height=900 - top)
    page.screenshot(path=IMAGES / name, clip=clip)


def widen(page: Page, header: Locator, *, by: int) -> None:
    """Drag the right edge of a column's header."""
    box = header.bounding_box()
    assert box is not None
    edge, middle = box["x"] + box["width"] - 2, box["y"] + box["height"] / 2
    page.mouse.move(edge, middle)
    page.mouse.down()
    page.mouse.move(edge + by, middle, steps=5)
    page.mouse.up()


if __name__ == "__main__":
    main()
