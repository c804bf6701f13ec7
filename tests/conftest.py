"""How the suite is spread over processes."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that need Phoenix in one process: one server serves them all."""
    for item in items:
        if item.get_closest_marker("phoenix") or item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("phoenix"))
