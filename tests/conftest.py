"""How the suite is spread over processes, and what those processes inherit."""

from __future__ import annotations

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs deaf to Ctrl-C, and their children inherit that: tests that interrupt a
    # command would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that share a Phoenix in one process; the faults have one of their own, in another."""
    for item in items:
        if item.get_closest_marker("phoenix") or item.get_closest_marker("browser"):
            group = "faults" if item.path.parent.name == "faults" else "phoenix"
            item.add_marker(pytest.mark.xdist_group(group))
