"""Read one span from JSON: as Phoenix's REST API gives it, or as a span dump has it.

A span dump keeps `name`, `trace_id`, `span_id`, `parent_id`, `kind`, `start`, `end`, `status`, `scope`,
`attributes` and `events` side by side; times are Unix nanoseconds or ISO 8601.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import cast

from citespan.evaluators.errors import InputError
from citespan.evaluators.sources.source import Span, Trace

__all__ = ["group_traces", "span_from_json"]

SPAN_KIND = "openinference.span.kind"
"""Attribute that holds a span's OpenInference kind."""

_KINDS = frozenset(
    [
        "TOOL",
        "CHAIN",
        "LLM",
        "PROMPT",
        "RETRIEVER",
        "EMBEDDING",
        "AGENT",
        "RERANKER",
        "EVALUATOR",
        "GUARDRAIL",
        "DECISION",
    ]
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]+)")


def span_from_json(data: object, where: str) -> Span:
    """Return the span that a JSON object describes.

    Args:
        data: The object.
        where: Where it stands, for the message of an error.

    Raises:
        InputError: It is no span: an id or a time is missing or unreadable.
    """
    fields = _object(data, where)
    context = _object(fields["context"], f"{where}: context") if "context" in fields else fields
    attributes = dict(_object(fields.get("attributes") or {}, f"{where}: attributes"))
    named_kind = attributes.pop(SPAN_KIND, None) or fields.get("span_kind") or fields.get("kind")
    kind = str(named_kind).upper()
    start_ns = _time_ns(fields, ("start_time", "start"), where)
    return Span(
        trace_id=_id(context, "trace_id", 32, where),
        span_id=_id(context, "span_id", 16, where),
        parent_id=_parent_id(fields, where),
        name=str(fields.get("name") or ""),
        kind=kind if kind in _KINDS else "UNKNOWN",
        start_ns=start_ns,
        end_ns=max(start_ns, _time_ns(fields, ("end_time", "end"), where)),
        attributes=attributes,
        status=_status(fields),
        scope=_scope(fields.get("scope")),
        dropped_attributes=_count(fields.get("dropped_attributes")),
    )


def group_traces(spans: Iterable[Span]) -> list[Trace]:
    """Return the traces that the spans make, in order of first appearance, their spans in start order."""
    by_trace: dict[str, dict[str, Span]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, {}).setdefault(span.span_id, span)
    return [
        Trace(trace_id, tuple(sorted(spans.values(), key=lambda span: (span.start_ns, -span.end_ns))))
        for trace_id, spans in by_trace.items()
    ]


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} is {type(value).__name__}: expected an object")
    return cast("Mapping[str, object]", value)


def _id(fields: Mapping[str, object], key: str, length: int, where: str) -> str:
    match = _HEX.fullmatch(str(fields.get(key)))
    if match is None or len(match[1]) > length:
        raise InputError(f"{where}: {key} is {fields.get(key)!r}: expected {length} hexadecimal digits")
    return match[1].lower().zfill(length)


def _parent_id(fields: Mapping[str, object], where: str) -> str | None:
    if fields.get("parent_id") in (None, ""):
        return None
    parent_id = _id(fields, "parent_id", 16, where)
    return parent_id if parent_id.strip("0") else None


def _time_ns(fields: Mapping[str, object], keys: tuple[str, ...], where: str) -> int:
    value = next((fields[key] for key in keys if key in fields), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise InputError(
            f"{where}: {keys[0]} is {value!r}: expected Unix nanoseconds or an ISO 8601 time"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _status(fields: Mapping[str, object]) -> str:
    value = fields.get("status_code") or fields.get("status")
    if isinstance(value, Mapping):
        value = cast("Mapping[str, object]", value).get("status_code")
    status = str(value).upper().rpartition(".")[2]
    return status if status in ("OK", "ERROR") else "UNSET"


def _scope(value: object) -> str | None:
    if isinstance(value, Mapping):
        value = cast("Mapping[str, object]", value).get("name")
    return value if isinstance(value, str) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
