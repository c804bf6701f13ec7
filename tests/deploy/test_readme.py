"""What deploy/README.md points at exists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from citespan.evaluators.settings import ClaimsMode


def headings(text: str) -> set[str]:
    """Return the anchors of a Markdown file."""
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


def broken_links(text: str, folder: Path) -> list[str]:
    """Return the links to files and headings that lead nowhere."""
    found = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    return [
        link
        for link in found
        if (link.startswith("#") and link[1:] not in headings(text))
        or (not link.startswith("#") and not (folder / link).exists())
    ]


def test_links_lead_somewhere(texts: Mapping[str, str], deploy: Path) -> None:
    assert broken_links(texts["README.md"], deploy) == []
    assert broken_links("[a](nowhere.md) and [b](#nothing)", deploy) == ["nowhere.md", "#nothing"]


def test_files_in_commands_exist(texts: Mapping[str, str], root: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", texts["README.md"], re.MULTILINE | re.DOTALL)
    named = {path for block in blocks for path in re.findall(r"(?<!\S)deploy/\S+", block)}
    assert len(named) >= 5
    made = {"deploy/.env"}
    assert [path for path in sorted(named - made) if not list(root.glob(path))] == []


def test_each_way_to_run_it_takes_three_commands(texts: Mapping[str, str]) -> None:
    sections = re.split(r"^## ", texts["README.md"], flags=re.MULTILINE)
    for title in ("Compose", "systemd", "Kubernetes"):
        section = next(section for section in sections if section.startswith(f"{title}\n"))
        block = re.search(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        assert block is not None, title
        assert len(block[1].splitlines()) == 3, title


def test_every_way_to_show_claims_is_explained(texts: Mapping[str, str]) -> None:
    table = texts["README.md"].partition("| `CITESPAN_CLAIMS` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(get_args(ClaimsMode))
