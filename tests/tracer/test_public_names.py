"""What is public is listed, and what is listed is there."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

from citespan import tracer

MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(tracer.__path__, "citespan.tracer.")
]


@pytest.mark.parametrize("module", [tracer, *MODULES], ids=lambda module: module.__name__)
def test_every_listed_name_exists_and_is_listed_once(module: ModuleType) -> None:
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name)


def test_the_package_s_names_are_these() -> None:
    """A name that appears or goes is a change for users: it belongs in the change log."""
    public = {
        name
        for name, value in vars(tracer).items()
        if not name.startswith("_") and name != "annotations" and not isinstance(value, ModuleType)
    }
    assert public == set(tracer.__all__)
