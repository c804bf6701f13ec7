"""JSON values in attributes, whatever a store made of them: flat dotted keys, nested objects or JSON strings.

Everything here accepts any value: what does not fit is `None` or empty, never an error.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard, cast

__all__ = [
    "MAX_DEPTH",
    "as_object",
    "fields",
    "is_hidden",
    "is_list",
    "is_object",
    "items",
    "merged",
    "nest",
    "parse_json",
    "repr_text",
    "text_at",
    "walk",
]

MAX_DEPTH = 24
"""How deep a value is looked into; what instrumentors nest deepest (a LangGraph state in JSON in JSON) has 14."""

_HIDDEN = re.compile(
    r"[\[<({*_#\s]*(?:redacted|hidden|masked|filtered|scrubbed|removed|omitted)[\]>)}*_#\s]*|\*{3,}",
    re.IGNORECASE,
)
_STRING_LITERAL = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    """Return whether the value is a JSON object."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether the value is a JSON list."""
    return isinstance(value, list | tuple)


def merged(value: object) -> object:
    """Return as one object a list of objects with a key each, or `value` itself.

    XML parsers make `[{"answer": ..}, {"citations": ..}]` of an element with two children.
    """
    entries = items(value)
    parts = [(key, inner) for entry in entries if is_object(entry) for key, inner in entry.items()]
    is_element = len(entries) > 1 and len(parts) == len(entries) == len({key for key, _ in parts})
    return dict(parts) if is_element else value


def parse_json(value: object, *, is_json: bool = False) -> object:
    """Return the value that a JSON string holds, or `value` itself.

    Args:
        value: Any value; only a string that looks like an object or a list is parsed.
        is_json: Whether the span says it is JSON, so that `"a quoted string"` is parsed too.
    """
    if not isinstance(value, str):
        return value
    head = value.lstrip()[:1]
    if head not in ("{", "[") and not (is_json and head == '"'):
        return value
    try:
        return cast("object", json.loads(value))
    except (ValueError, RecursionError):
        return value


def nest(attributes: Mapping[str, object]) -> dict[str, object]:
    """Return attributes under dotted keys as nested objects; a value beside nested keys is kept under `""`."""
    return _nest(attributes, 0)


def _nest(attributes: Mapping[str, object], depth: int) -> dict[str, object]:
    tree: dict[str, object] = {}
    for key, value in attributes.items():
        node = tree
        *path, last = str(key).split(".")
        for part in path:
            node = _child(node, part)
        nested = _nest_inside(value, depth)
        existing = node.get(last)
        if isinstance(existing, dict):
            node[last] = {
                **cast("dict[str, object]", existing),
                **(nested if is_object(nested) else {"": nested}),
            }
        else:
            node[last] = nested
    return tree


def _child(node: dict[str, object], part: str) -> dict[str, object]:
    child = node.get(part)
    if isinstance(child, dict):
        return cast("dict[str, object]", child)
    made: dict[str, object] = {} if child is None else {"": child}
    node[part] = made
    return made


def _nest_inside(value: object, depth: int) -> object:
    if depth >= MAX_DEPTH:
        return None
    if is_object(value):
        inner = {str(key): item for key, item in value.items()}
        if any("." in key for key in inner):
            return _nest(inner, depth + 1)
        return {key: _nest_inside(item, depth + 1) for key, item in inner.items()}
    if is_list(value):
        return [_nest_inside(item, depth + 1) for item in value]
    return value


def as_object(value: object) -> Mapping[str, object]:
    """Return `value` if it is an object already; else an empty one."""
    return value if is_object(value) else {}


def fields(value: object) -> Mapping[str, object]:
    """Return `value` as an object, parsed from JSON if need be; empty if it is none."""
    value = parse_json(value)
    return value if is_object(value) else {}


def items(value: object) -> list[object]:
    """Return `value` as a list: a list, a JSON list, or an object whose keys are indices, in index order."""
    value = parse_json(value)
    if is_list(value):
        return list(value)
    if is_object(value):
        numbered = [(int(key), item) for key, item in value.items() if _is_index(key)]
        if numbered and all(key == "" or _is_index(key) for key in value):
            return [item for _, item in sorted(numbered, key=lambda pair: pair[0])]
    return []


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= 9


def text_at(node: object, *path: str) -> str | None:
    """Return the string under the path, or `None`."""
    for part in path:
        node = node.get(part) if is_object(node) else None
    if is_object(node):
        node = node.get("")
    return node if isinstance(node, str) else None


def walk(value: object, depth: int = 0) -> Iterator[Mapping[str, object]]:
    """Yield every object inside `value`, outer before inner, JSON strings parsed, to `MAX_DEPTH`."""
    value = parse_json(value)
    if depth >= MAX_DEPTH:
        return
    if is_object(value):
        yield value
        for item in value.values():
            yield from walk(item, depth + 1)
    elif is_list(value):
        for item in value:
            yield from walk(item, depth + 1)


def is_hidden(text: object) -> bool:
    """Return whether the text is nothing but a mask, such as OpenInference's `__REDACTED__`."""
    return isinstance(text, str) and len(text) <= 64 and _HIDDEN.fullmatch(text.strip()) is not None


def repr_text(text: str, *names: str) -> str | None:
    """Return the string that a Python repr such as `TextChunk(text='..')` has for the first of `names`.

    Some instrumentors write objects with `repr`; the text in them is readable all the same.
    """
    for name in names:
        match = re.search(rf"(?<![\w.]){name}=({_STRING_LITERAL})", text, re.DOTALL)
        if match is not None:
            try:
                value: object = ast.literal_eval(match[1])
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            if isinstance(value, str):
                return value
    return None
