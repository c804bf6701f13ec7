"""One span in one vocabulary, whoever wrote it: OpenInference, OTel GenAI or Traceloop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from citespan.evaluators.reading.messages import Message, read_message, read_messages
from citespan.evaluators.reading.values import as_object, fields, is_object, items, nest, parse_json, text_at
from citespan.evaluators.sources.source import Span

__all__ = ["SpanView", "view_span"]

_OPERATIONS = {
    "chat": "LLM",
    "text_completion": "LLM",
    "completion": "LLM",
    "generate_content": "LLM",
    "response": "LLM",
    "embeddings": "EMBEDDING",
    "embedding": "EMBEDDING",
    "retrieval": "RETRIEVER",
    "vector_db_retrieve": "RETRIEVER",
    "rerank": "RERANKER",
    "execute_tool": "TOOL",
    "invoke_agent": "AGENT",
    "create_agent": "AGENT",
    "invoke_workflow": "CHAIN",
    "execute_task": "CHAIN",
    "evaluate": "EVALUATOR",
}
"""OpenInference kinds by `gen_ai.operation.name`, with Traceloop's additions."""

_TRACELOOP_KINDS = {"workflow": "CHAIN", "task": "CHAIN", "agent": "AGENT", "tool": "TOOL"}
_REQUEST_TYPES = {"chat": "LLM", "completion": "LLM", "embedding": "EMBEDDING", "rerank": "RERANKER"}

_INPUT_KEYS = (
    "input.value",
    "gen_ai.task.input",
    "traceloop.entity.input",
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "mlflow.spanInputs",
    "langfuse.observation.input",
)
"""Attributes that hold a span's input, the first present wins."""

_OUTPUT_KEYS = (
    "output.value",
    "gen_ai.task.output",
    "traceloop.entity.output",
    "gen_ai.tool.call.result",
    "tool_response",
    "final_result",
    "mlflow.spanOutputs",
    "langfuse.observation.output",
)
"""Attributes that hold a span's output, the first present wins."""

_INPUT_MESSAGES = ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt")
_OUTPUT_MESSAGES = ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion")
"""Attributes that hold messages: Phoenix makes the second of the first and leaves out what it has no key for."""


@dataclass(frozen=True, slots=True)
class SpanView:
    """A span as this package reads it."""

    span: Span
    """The span."""

    kind: str
    """OpenInference kind in upper case, or `UNKNOWN`."""

    tree: Mapping[str, object]
    """Its attributes as nested objects."""

    input: object
    """Its input, parsed from JSON; `None` if none is recorded."""

    output: object
    """Its output, parsed from JSON; `None` if none is recorded."""

    input_messages: tuple[Message, ...]
    """The messages it sent to a model."""

    output_messages: tuple[Message, ...]
    """The messages a model gave back."""

    @property
    def id(self) -> str:
        """The span's id."""
        return self.span.span_id

    def at(self, path: str) -> object:
        """Return the attribute or nested attributes under a dotted path, or `None`."""
        return _at(self.tree, path)


def view_span(span: Span) -> SpanView:
    """Return the span in one vocabulary."""
    tree = nest(span.attributes)
    sent = _value(tree, _INPUT_KEYS)
    if sent in (None, "", {"input": ""}):
        sent = _late_input(tree)
    return SpanView(
        span=span,
        kind=_kind(span, tree),
        tree=tree,
        input=sent,
        output=_value(tree, _OUTPUT_KEYS),
        input_messages=_system_instructions(tree) + _filled(_messages(tree, _INPUT_MESSAGES), sent),
        output_messages=tuple(_said(message) for message in _messages(tree, _OUTPUT_MESSAGES)),
    )


def _at(tree: Mapping[str, object], path: str) -> object:
    node: object = tree
    for part in path.split("."):
        node = fields(node).get(part)
    return node


def _kind(span: Span, tree: Mapping[str, object]) -> str:
    named = span.kind if span.kind != "UNKNOWN" else text_at(tree, "openinference", "span", "kind")
    if named:
        return "PROMPT" if named.upper() == "LLM" and _is_prompt_builder(tree) else named.upper()
    for path, kinds in (
        ("gen_ai.operation.name", _OPERATIONS),
        ("llm.request.type", _REQUEST_TYPES),
        ("traceloop.span.kind", _TRACELOOP_KINDS),
    ):
        name = _at(tree, path)
        if isinstance(name, str) and name.lower() in kinds:
            return kinds[name.lower()]
    return _kind_by_shape(tree)


def _is_prompt_builder(tree: Mapping[str, object]) -> bool:
    """Return whether a span fills a template and calls no model: Haystack's prompt builders are marked LLM."""
    model = (
        "llm.model_name",
        "llm.output_messages",
        "llm.token_count",
        "llm.provider",
        "gen_ai.request.model",
    )
    return _at(tree, "llm.prompt_template") is not None and all(_at(tree, path) is None for path in model)


def _kind_by_shape(tree: Mapping[str, object]) -> str:
    """Return the kind of a span that lost it: the SDK's attribute limit drops the oldest, often the kind."""
    shapes = (
        ("retrieval.documents", "RETRIEVER"),
        ("gen_ai.retrieval.documents", "RETRIEVER"),
        ("reranker.output_documents", "RERANKER"),
        ("llm.output_messages", "LLM"),
        ("llm.input_messages", "LLM"),
        ("gen_ai.output.messages", "LLM"),
        ("gen_ai.completion", "LLM"),
        ("llm.model_name", "LLM"),
        ("tool.name", "TOOL"),
        ("gen_ai.tool.name", "TOOL"),
    )
    return next((kind for path, kind in shapes if _at(tree, path) is not None), "UNKNOWN")


def _value(tree: Mapping[str, object], paths: Sequence[str]) -> object:
    for path in paths:
        node = _at(tree, path)
        if is_object(node) and isinstance(text_at(node), str):
            node = text_at(node)
        if node is None:
            continue
        mime_type = _at(tree, path.rpartition(".")[0] + ".mime_type")
        return _unwrapped(parse_json(node, is_json=mime_type == "application/json"))
    return None


def _late_input(tree: Mapping[str, object]) -> object:
    """Return the input that Traceloop knows only when a stream has ended, and writes beside the output."""
    for path in _OUTPUT_KEYS:
        late = fields(fields(parse_json(_at(tree, path))).get("kwargs")).get("inputs")
        if late is not None:
            return late
    return None


def _said(message: Message) -> Message:
    """Return a message that a model gave back as the assistant's, whatever its role is called."""
    return message if message.role in ("user", "system", "tool") else replace(message, role="assistant")


def _unwrapped(value: object) -> object:
    """Return what Traceloop wraps in `{"inputs": .., "tags": .., "kwargs": ..}`."""
    entry = as_object(value)
    if "kwargs" in entry:
        for key in ("inputs", "outputs"):
            if key in entry and not set(entry) - {key, "tags", "metadata", "kwargs"}:
                return parse_json(entry[key])
    return value


def _messages(tree: Mapping[str, object], paths: Sequence[str]) -> tuple[Message, ...]:
    for path in paths:
        found = read_messages([_flat_message(entry) for entry in items(_at(tree, path))])
        if found:
            return found
    return ()


def _filled(messages: tuple[Message, ...], sent: object) -> tuple[Message, ...]:
    """Return the messages, those recorded by their role alone as the span's input has them."""
    if all(message.texts or message.tool_calls or message.blocks for message in messages):
        return messages
    whole = read_messages(fields(sent).get("messages"))
    if len(whole) != len(messages):
        return messages
    return tuple(
        other if not message.texts and message.role == other.role else message
        for message, other in zip(messages, whole, strict=True)
    )


def _flat_message(entry: object) -> object:
    """Return the message inside OpenInference's `message.` prefix."""
    inner = fields(entry).get("message")
    return inner if is_object(inner) else entry


def _system_instructions(tree: Mapping[str, object]) -> tuple[Message, ...]:
    parts = _at(tree, "gen_ai.system_instructions")
    message = read_message({"role": "system", "parts": items(parts)}) if parts is not None else None
    return (message,) if message is not None and message.texts else ()
