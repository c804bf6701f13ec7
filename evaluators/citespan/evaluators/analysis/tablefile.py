"""Files of label tables: JSONL, CSV and Parquet, each with writer and reader side by side.

Both ends stream: memory does not grow with the length of the table.
Rows written before an interrupt stay readable; before a kill too, except in Parquet, whose index comes last.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Protocol, Self, TextIO, cast

from pydantic import ValidationError

from citespan.evaluators.analysis.labeltable import LabelRow
from citespan.evaluators.errors import InputError, UsageError

__all__ = ["TableWriter", "count_human_labels", "read_table", "write_table"]

COLUMNS = tuple(field.alias or name for name, field in LabelRow.model_fields.items())
"""Names of the columns, in order."""

SUFFIXES = ".jsonl, .csv or .parquet"
"""The endings that name a format."""


class TableWriter(AbstractContextManager["TableWriter"], Protocol):
    """Writes rows to one file, which is complete once the context is left."""

    def write(self, rows: Iterable[LabelRow]) -> None:
        """Append the rows of one run.

        Raises:
            OSError: The file cannot be written.
        """
        ...


def write_table(path: Path) -> TableWriter:
    """Open a label table for writing; the ending of its name chooses the format.

    Raises:
        UsageError: The ending names no format, the file cannot be written, or `pyarrow` is missing.
    """
    writers: Mapping[str, Callable[[Path], TableWriter]] = {
        ".jsonl": JsonLinesWriter,
        ".csv": CsvWriter,
        ".parquet": ParquetWriter,
    }
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise UsageError(f"{path}: no table format ends in {path.suffix!r}: name a file ending in {SUFFIXES}")
    try:
        return writer(path)
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}: choose a file in a folder that exists and is writable"
        ) from error


def read_table(path: Path) -> Iterator[LabelRow]:
    """Yield the rows of a label table in order.

    Raises:
        InputError: The file cannot be read as a label table; the message names the row and the field.
    """
    readers: Mapping[str, Callable[[Path], Iterator[tuple[str, object]]]] = {
        ".jsonl": _read_json_lines,
        ".csv": _read_csv,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: no table format ends in {path.suffix!r}: name a file ending in {SUFFIXES}")
    try:
        for where, data in reader(path):
            yield _row(data, where)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def count_human_labels(path: Path) -> int:
    """Return how many rows of a table carry a label that a person gave; 0 if there is no readable table."""
    try:
        return sum(row.human_label is not None for row in read_table(path))
    except InputError:
        return 0


def _row(data: object, where: str) -> LabelRow:
    try:
        return LabelRow.model_validate(data)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in detail["loc"]) or "the row"
        raise InputError(f"{where}: {field}: {detail['msg']} (found {_short(detail['input'])})") from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


class JsonLinesWriter:
    """Writes one JSON object per line; every run is on disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8", newline="\n")

    def write(self, rows: Iterable[LabelRow]) -> None:
        """Append the rows of one run."""
        self._file.writelines(row.model_dump_json(by_alias=True) + "\n" for row in rows)
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _read_json_lines(path: Path) -> Iterator[tuple[str, object]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                yield where, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}: not valid JSON: {error}") from error


class CsvWriter:
    """Writes one line per row for spreadsheets; the citations are one cell of JSON."""

    def __init__(self, path: Path) -> None:
        # Excel takes a file without the mark for its own code page and garbles every accent.
        self._file: TextIO = path.open("w", encoding="utf-8-sig", newline="")
        self._csv = csv.DictWriter(self._file, COLUMNS)
        self._csv.writeheader()

    def write(self, rows: Iterable[LabelRow]) -> None:
        """Append the rows of one run."""
        self._csv.writerows(
            {name: _cell(value) for name, value in row.model_dump(mode="json", by_alias=True).items()}
            for row in rows
        )
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _read_csv(path: Path) -> Iterator[tuple[str, object]]:
    # A cell may hold a passage of many megabytes.
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = file.readline()
        file.seek(0)
        # Spreadsheets save with semicolons where the comma is the decimal sign.
        reader = csv.DictReader(file, delimiter=";" if header.count(";") > header.count(",") else ",")
        for number, cells in enumerate(reader, start=1):
            where = f"{path}, row {number} (line {reader.line_num})"
            data: dict[str, object] = {
                name: _plain(value)
                for name, value in cells.items()
                if name in COLUMNS and isinstance(value, str) and value
            }
            citations = data.pop("citations", None)
            if isinstance(citations, str):
                try:
                    data["citations"] = json.loads(citations)
                except (ValueError, RecursionError) as error:
                    raise InputError(f"{where}: citations: not valid JSON: {error}") from error
            yield where, data


_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_ESCAPED_FORMULA = re.compile(r"'+[=+\-@\t\r]")


def _cell(value: object) -> object:
    """Return what a spreadsheet takes for text: an answer that begins like a formula must not be run as one."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _plain(cell: str) -> str:
    return cell[1:] if _ESCAPED_FORMULA.match(cell) else cell


ROW_GROUP = 1000
"""Rows gathered before a Parquet row group is written."""


class ParquetWriter:
    """Writes compressed columns; the citations are a list of structs."""

    def __init__(self, path: Path) -> None:
        self._pyarrow = _pyarrow("pyarrow")
        self._schema = _parquet_schema(self._pyarrow)
        # Opened here, since pyarrow's own message for a missing folder names neither cause nor cure.
        self._file = path.open("wb")
        self._parquet = _pyarrow("pyarrow.parquet").ParquetWriter(
            self._file, self._schema, compression="zstd"
        )
        self._rows: list[dict[str, object]] = []

    def write(self, rows: Iterable[LabelRow]) -> None:
        """Append the rows of one run."""
        self._rows.extend(row.model_dump(mode="json", by_alias=True) for row in rows)
        if len(self._rows) >= ROW_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        self._parquet.write_table(self._pyarrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._rows:
                self._write_group()
            self._parquet.close()
        finally:
            self._file.close()


def _read_parquet(path: Path) -> Iterator[tuple[str, object]]:
    pyarrow = _pyarrow("pyarrow")
    number = 0
    with path.open("rb") as opened:
        try:
            for batch in _pyarrow("pyarrow.parquet").ParquetFile(opened).iter_batches(batch_size=ROW_GROUP):
                for data in cast("list[dict[str, object]]", batch.to_pylist()):
                    number += 1
                    where = f"{path}, row {number}"
                    yield where, {name: value for name, value in data.items() if value is not None}
        except pyarrow.ArrowException as error:
            raise InputError(f"{path} is no whole Parquet file (after row {number}): {error}") from error


def _pyarrow(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            "Parquet tables need pyarrow: pip install 'citespan[parquet]', or name a .jsonl or .csv file"
        ) from error


_INTEGERS = {"schema", "claim_index", "start", "end", "n"}
_BOOLEANS = {"material", "conflict", "covered_by_paragraph", "citation_sets"}
_FLOATS = {"score"}


def _parquet_schema(pyarrow: ModuleType) -> object:
    """Return the columns' types, fixed so that a table without any human label still has the column."""
    from citespan.evaluators.analysis.labeltable import TableCitation

    def typed(name: str) -> object:
        if name in _INTEGERS:
            return pyarrow.int64()
        if name in _BOOLEANS:
            return pyarrow.bool_()
        return pyarrow.float64() if name in _FLOATS else pyarrow.string()

    citation = pyarrow.struct([(name, typed(name)) for name in TableCitation.model_fields])
    return pyarrow.schema(
        [(name, pyarrow.list_(citation) if name == "citations" else typed(name)) for name in COLUMNS]
    )
