"""A provider's response as plain dicts and lists, and safe ways to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import cast

__all__ = ["EMPTY", "Node", "find", "number", "objects", "plain", "strings", "text", "values", "whole"]

Node = Mapping[str, object]
"""A JSON object of a response."""

EMPTY: Node = {}
"""An object that holds nothing."""


def plain(value: object) -> object:
    """Return an SDK's response object as dicts and lists; what already is plain comes back as it is.

    Pydantic models (OpenAI, Anthropic, Cohere, Gemini, Mistral, LangChain), dataclasses, and lists of them.
    """
    if value is None or isinstance(value, Mapping | str | bytes | int | float):
        return value  # pyright: ignore[reportUnknownVariableType] # a mapping of whatever
    if isinstance(value, Sequence):
        return [plain(item) for item in cast("Sequence[object]", value)]
    dump: object = getattr(value, "model_dump", None)
    if callable(dump):
        # Without `warnings=False` pydantic complains of fields that an SDK fills without validation.
        return plain(dump(warnings=False))
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return getattr(value, "__dict__", value)


def find(node: Node, *names: str) -> Node:
    """Return the object under the first of `names` that holds one, else an empty one."""
    return next(
        (cast("Node", value) for name in names if isinstance(value := node.get(name), Mapping)), EMPTY
    )


def objects(node: Node, *names: str) -> list[Node]:
    """Return the objects of the list under the first of `names` that holds one."""
    return [cast("Node", item) for item in values(node, *names) if isinstance(item, Mapping)]


def values(node: Node, *names: str) -> Sequence[object]:
    """Return the list under the first of `names` that holds one, else an empty one."""
    candidates = (node.get(name) for name in names)
    return next(
        (cast("Sequence[object]", value) for value in candidates if isinstance(value, list | tuple)), ()
    )


def strings(node: Node, *names: str) -> list[str]:
    """Return the strings of the list under the first of `names` that holds one."""
    return [item for item in values(node, *names) if isinstance(item, str)]


def text(node: Node, *names: str) -> str | None:
    """Return the first string that is not empty under one of `names`."""
    return next((value for name in names if isinstance(value := node.get(name), str) and value), None)


def number(node: Node, *names: str) -> int | None:
    """Return the first whole number under one of `names`; `1.0` is one, `True` is none."""
    return next((found for name in names if (found := whole(node.get(name))) is not None), None)


def whole(value: object) -> int | None:
    """Return `value` as a whole number, or `None` if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value // 1 else None
