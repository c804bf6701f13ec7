"""Files of runs: one JSON object, a list of them, or JSONL."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

from citespan.evaluators.errors import InputError
from citespan.evaluators.runs import Run

__all__ = ["read_runs_from"]

STDIN = "-"
"""The file name that means standard input."""


def read_runs_from(file: str, *, set_aside: Callable[[str], None] | None = None) -> list[Run]:
    """Return the runs of a file in order; nothing is judged before all of it has been read.

    Args:
        file: A path, or `-` for standard input.
        set_aside: Told of each record that cannot be read, which is then left out; without it the first one
            is an error.

    Raises:
        InputError: The file cannot be read, is empty, or holds something that is no run.
    """
    name = "standard input" if file == STDIN else file
    text = _text(file, name)
    if not text.strip():
        raise InputError(
            f"{name} is empty: expected a JSON object, a list of objects, or JSONL, one run each"
        )
    runs: list[Run] = []
    records = 0
    for n, (where, read) in enumerate(_records(text, name, is_jsonl=_is_jsonl(file, text)), start=1):
        records += 1
        try:
            runs.append(_run(read(), where, n))
        except InputError as error:
            if set_aside is None:
                raise
            set_aside(str(error))
    if not records:
        raise InputError(f"{name} holds no runs: expected at least one object with an answer and passages")
    return runs


def _text(file: str, name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"cannot read {name}: {why}: name a file of runs, or - for standard input"
        ) from error
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not valid {encoding.removesuffix('-sig').upper()} (byte {error.start}): save it as UTF-8"
        ) from error


def _is_jsonl(file: str, text: str) -> bool:
    """Return whether each line is a record: the name says so, or the first line is an object of its own."""
    if file.lower().endswith((".jsonl", ".ndjson")):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return False
    try:
        return isinstance(json.loads(lines[0]), dict)
    except (ValueError, RecursionError):
        return False


def _records(text: str, name: str, *, is_jsonl: bool) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield where each record stands and a function that parses it, so that one bad line harms no other."""
    if is_jsonl:
        # Only the line feed ends a line of JSONL; splitlines would break a string at U+2028.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                where = f"{name}, line {number}"
                yield where, _parser(line, where)
        return
    value = _parse(text, name)
    if isinstance(value, list):
        for n, item in enumerate(cast("list[object]", value), start=1):
            yield f"{name}, item {n}", _constant(item)
    else:
        yield name, _constant(value)


def _parser(line: str, where: str) -> Callable[[], object]:
    return lambda: _parse(line, where)


def _constant(value: object) -> Callable[[], object]:
    return lambda: value


def _parse(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text.strip() else ""
        raise InputError(f"{where}: not valid JSON: {error.msg} ({line}column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: cannot be read as JSON: {error}") from error


def _run(data: object, where: str, n: int) -> Run:
    if not isinstance(data, Mapping):
        raise InputError(f"{where}: {_kind(data)}: expected an object with an answer and passages")
    try:
        return Run.from_dict(cast("Mapping[str, object]", data), default_id=f"run-{n}")
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _kind(value: object) -> str:
    names = {"NoneType": "null", "bool": "a boolean", "int": "a number", "float": "a number"}
    return names.get(
        type(value).__name__, {"str": "a string", "list": "a list"}.get(type(value).__name__, "?")
    )
