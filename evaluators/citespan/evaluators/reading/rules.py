"""Reading rules: a settings file that names the spans and attributes of an app nobody foresaw.

A file in TOML, or the same in JSON::

    [answer]
    span = "reply*"             # span name, * and ? as in file names
    attribute = "app.reply"     # default output.value
    path = "data.text"          # inside a JSON value

    [question]
    span = "request"
    attribute = "app.request"

    [[passages]]
    kind = "TOOL"
    attribute = "app.hits"
    path = "hits"
    id = "_id"
    text = "_source.body"
    label = "rank"              # the label shown to the model, if the app records it

What a rule does not name is inferred as usual; a rule that finds nothing in a trace is a reason, not an error.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citespan.evaluators.errors import UsageError
from citespan.evaluators.reading.document_values import find_documents
from citespan.evaluators.reading.documents import Document
from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.passage_set import RULE_LABEL
from citespan.evaluators.reading.tree import SpanTree
from citespan.evaluators.reading.values import fields, is_hidden, items, parse_json

__all__ = ["NamedText", "PassagesRule", "ReadingRules", "TextRule", "load_rules"]


class _Rule(BaseModel):
    """Which spans a rule is about, and where in them to look."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    span: str | None = None
    """Name of the span, with `*` and `?`; any name if not given."""

    kind: str | None = None
    """OpenInference kind of the span; any kind if not given."""

    attribute: str = "output.value"
    """Attribute that holds the value."""

    path: str = ""
    """Dotted path inside the value where it is JSON, numbers for places in a list; empty for the value itself."""

    def views(self, tree: SpanTree) -> list[SpanView]:
        """Return the spans that the rule names and that have the attribute, in start order."""
        return [
            view
            for view in tree.views
            if (self.span is None or fnmatchcase(view.span.name, self.span))
            and (self.kind is None or view.kind == self.kind.upper())
            and self.value(view) is not None
        ]

    def value(self, view: SpanView) -> object:
        """Return what the attribute holds under the path, or `None`."""
        raw = view.span.attributes.get(self.attribute)
        value = parse_json(raw if raw is not None else view.at(self.attribute))
        return _at_path(value, self.path)


class TextRule(_Rule):
    """Where a text is."""


class PassagesRule(_Rule):
    """Where the passages are, and what their parts are called."""

    id: str = "id"
    """Path of a passage's id."""

    text: str | None = None
    """Path of its text; `None` looks under the usual keys."""

    label: str | None = None
    """Path of the label shown to the model."""

    title: str | None = None
    """Path of its title."""

    url: str | None = None
    """Path of its address."""


@dataclass(frozen=True, slots=True)
class NamedText:
    """A text that a rule found."""

    text: str
    """The text."""

    view: SpanView
    """The span that holds it."""


class ReadingRules(BaseModel):
    """What a settings file says of where things are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answer: TextRule | None = None
    """Where the answer is; the last such span of a trace counts."""

    question: TextRule | None = None
    """Where the question is; the first such span of a trace counts."""

    passages: tuple[PassagesRule, ...] = Field(default=())
    """Where passages are; those of all such spans count, in start order."""

    def find_answer(self, tree: SpanTree) -> NamedText | None:
        """Return the answer that the rules name, or `None`."""
        return next(reversed(_texts(self.answer, tree)), None)

    def find_question(self, tree: SpanTree) -> NamedText | None:
        """Return the question that the rules name, or `None`."""
        return next(iter(_texts(self.question, tree)), None)

    def find_passages(self, tree: SpanTree) -> tuple[Document, ...]:
        """Return the passages that the rules name; one with a label has it as `RULE_LABEL` in its metadata."""
        found = [(view.span.start_ns, rule, view) for rule in self.passages for view in rule.views(tree)]
        ordered = sorted(found, key=lambda place: place[0])
        return tuple(document for _, rule, view in ordered for document in _documents(rule, view))


def load_rules(path: Path) -> ReadingRules:
    """Return the rules in a TOML or JSON file.

    Raises:
        UsageError: The file cannot be read, or holds something that is no rule; the message says what.
    """
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        return ReadingRules.model_validate(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UsageError(f"{path}: {where}: {first['msg']}") from None
    except ValueError as error:
        raise UsageError(f"{path} is no {'JSON' if path.suffix == '.json' else 'TOML'}: {error}") from error


def _at_path(value: object, path: str) -> object:
    for part in path.split(".") if path else ():
        value = parse_json(value)
        entries = items(value)
        if entries and part.isdigit():
            value = entries[int(part)] if int(part) < len(entries) else None
        else:
            value = fields(value).get(part)
    return value


def _texts(rule: TextRule | None, tree: SpanTree) -> Sequence[NamedText]:
    views = [] if rule is None else rule.views(tree)
    return [
        NamedText(text, view)
        for view in views
        if rule is not None
        and isinstance(text := rule.value(view), str)
        and text.strip()
        and not is_hidden(text)
    ]


def _documents(rule: PassagesRule, view: SpanView) -> list[Document]:
    value = rule.value(view)
    if rule.text is None:
        return list(find_documents(value, span_id=view.id))
    found: list[Document] = []
    for entry in items(value) or [value]:
        text = _at_path(entry, rule.text)
        if isinstance(text, str):
            named = {RULE_LABEL: rule.label, "title": rule.title, "url": rule.url}
            extra = {
                name: str(v)
                for name, path in named.items()
                if path and (v := _at_path(entry, path)) is not None
            }
            document_id = _at_path(entry, rule.id)
            found.append(
                Document(None if document_id is None else str(document_id), text, view.id, metadata=extra)
            )
    return found
