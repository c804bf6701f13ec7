"""What is public is listed in `__all__`, and everything listed is documented."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from types import ModuleType

import pytest

import citespan.evaluators
import citespan.tracer

PACKAGES = [citespan.tracer, citespan.evaluators]


def _modules() -> list[str]:
    return [
        module.name
        for package in PACKAGES
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_package_exports_exactly_what_it_lists(package: ModuleType) -> None:
    found = {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and name != "annotations" and not inspect.ismodule(value)
    }
    assert found == {name for name in package.__all__ if not inspect.ismodule(getattr(package, name))}


@pytest.mark.parametrize("name", _modules())
def test_a_module_has_everything_it_lists(name: str) -> None:
    module = import_module(name)
    assert [listed for listed in getattr(module, "__all__", []) if not hasattr(module, listed)] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_documented(package: ModuleType) -> None:
    public = {name: getattr(package, name) for name in package.__all__}
    described = {name for name, value in public.items() if callable(value) or inspect.ismodule(value)}
    assert [name for name in sorted(described) if not (public[name].__doc__ or "").strip()] == []
