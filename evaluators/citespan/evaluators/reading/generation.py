"""The model call that wrote the answer, and the prompt it was given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from citespan.evaluators.reading.answer_text import answer_in, is_usable, structured_answer_in
from citespan.evaluators.reading.label_forms import cited_names
from citespan.evaluators.reading.messages import Message, read_messages
from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.prompt_blocks import Section
from citespan.evaluators.reading.tree import SpanTree
from citespan.evaluators.reading.values import (
    as_object,
    fields,
    is_hidden,
    is_object,
    items,
    parse_json,
    text_at,
)

__all__ = [
    "Generation",
    "Prompt",
    "contributing_calls",
    "find_generation",
    "generated_text",
    "is_same_answer",
    "last_generation",
    "model_calls",
    "own_sections",
    "prompt_before",
    "read_prompt",
]

_MODEL_KINDS = frozenset(["LLM"])
_PROMPT_KEYS = ("prompt", "args", "inputs", "input", "text", "query")
"""Keys of a model call's input that hold a plain prompt."""

_MIN_CONTAINED = 12
"""Shortest text, in code points, whose being inside another means that it is the same."""

_MIN_QUOTED = 8
"""Longest verdict of a grader, such as `relevant`, whose being inside a prompt means nothing."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The model call that wrote the answer."""

    view: SpanView
    """Its span; the inner one where two spans tell of the same call."""

    text: str
    """What the model wrote."""


def generated_text(view: SpanView) -> str | None:
    """Return what the model wrote in this call, or `None` if that is not recorded.

    The provider's payload comes first: instrumentors lose blocks of it when they make messages of it.
    """
    from_payload = answer_in(view.output) if view.output is not None else None
    assistant = [message for message in view.output_messages if message.role == "assistant"]
    from_messages = _joined(assistant)
    if from_payload is None:
        return from_messages or _structured(assistant)
    if from_messages is not None and from_payload in from_messages:
        return from_messages
    return from_payload


def _joined(messages: Sequence[Message]) -> str | None:
    """Return the text after the last tool call: one message, or one message per block as Bedrock has it."""
    texts: list[str] = []
    for message in messages:
        if message.tool_calls and not message.text:
            texts.clear()
        texts += [message.text] if message.text else []
    text = "".join(texts)
    return text if is_usable(text) else None


def _structured(messages: Sequence[Message]) -> str | None:
    for message in reversed(messages):
        for call in message.tool_calls:
            if (text := structured_answer_in(call.arguments)) is not None:
                return text
    return None


def model_calls(tree: SpanTree) -> list[Generation]:
    """Return every model call of the trace whose text is recorded, in start order."""
    return [
        Generation(view, text)
        for view in tree.views
        if view.kind in _MODEL_KINDS and (text := generated_text(view)) is not None
    ]


def find_generation(tree: SpanTree, calls: Sequence[Generation], answer: str) -> Generation | None:
    """Return the call that wrote `answer`, be it that the app changed its markers; `None` if none did."""
    for is_same in (_is_equal, _begins_with, _is_contained, _is_rewritten):
        same = [call for call in calls if is_same(call.text, answer)]
        if same:
            return _innermost(tree, same)
    return None


def last_generation(
    tree: SpanTree, calls: Sequence[Generation], texts: Sequence[str], after_ns: int
) -> Generation | None:
    """Return the one call that answers where no span outside the model calls says the answer.

    Args:
        tree: The trace.
        calls: Its model calls.
        texts: The retrieved texts: a call that was shown none of them does something else, if another was.
        after_ns: When retrieval ended: calls before it rewrite the question.

    Returns:
        The call; `None` if there is none, or if several are equally good.
    """
    own = _own_calls(tree, calls)
    later = [call for call in own if call.view.span.start_ns >= after_ns] or own
    informed = [call for call in later if _is_shown(call, texts)] or later
    if len({tuple(call.text.split()) for call in informed}) > 1:
        last = max(informed, key=lambda call: call.view.span.end_ns)
        prompt = _prompt_text(last.view)
        if not all(call.text in prompt or _is_equal(call.text, last.text) for call in informed):
            return None
    return _innermost(tree, informed) if informed else None


def _own_calls(tree: SpanTree, calls: Sequence[Generation]) -> list[Generation]:
    """Return each call once, by its innermost span, without those that a tool made for itself."""
    ids = {call.view.id for call in calls}
    inner = [call for call in calls if not any(view.id in ids for view in tree.under(call.view))]
    return [c for c in inner if not any(view.kind == "TOOL" for view in tree.above(c.view))] or inner


def _is_shown(call: Generation, texts: Sequence[str]) -> bool:
    prompt = _prompt_text(call.view)
    return any(text and text in prompt for text in texts)


def contributing_calls(
    tree: SpanTree, calls: Sequence[Generation], generation: Generation, answer: str, since_ns: int
) -> list[Generation]:
    """Return the calls whose prompts the answer rests on, in start order, the generation last.

    Refining, summarising by parts and accumulating take several calls: what each wrote stands in the prompt of
    the next, or in the answer.

    Args:
        tree: The trace.
        calls: Its model calls.
        generation: The call that wrote the answer.
        answer: The answer.
        since_ns: When retrieval began: calls before it were shown no passages.
    """
    family = {view.id for view in (*tree.above(generation.view), *tree.under(generation.view))}
    chosen = [generation]
    texts = [answer, _prompt_text(generation.view)]
    for call in sorted(calls, key=lambda call: -call.view.span.end_ns):
        if call.view.id == generation.view.id or call.view.id in family or call.view.span.start_ns < since_ns:
            continue
        if (len(call.text) > _MIN_QUOTED or cited_names(call.text)) and any(
            call.text in text for text in texts
        ):
            chosen.append(call)
            texts.append(_prompt_text(call.view))
    return sorted(chosen, key=lambda call: call.view.span.start_ns)


def _prompt_text(view: SpanView) -> str:
    return "\n".join(section.text for section in own_sections(view))


def is_same_answer(text: str, answer: str) -> bool:
    """Return whether two texts are one answer, but for white space, what surrounds it, or its markers."""
    return _is_equal(text, answer) or _is_contained(text, answer) or _is_rewritten(text, answer)


def _innermost(tree: SpanTree, calls: Sequence[Generation]) -> Generation:
    """Return the latest call, as the deepest span that tells of it and has its prompt."""
    latest = max(calls, key=lambda call: call.view.span.end_ns)
    inside = {latest.view.id} | {view.id for view in tree.under(latest.view)}
    nested = [call for call in calls if call.view.id in inside and any(own_sections(call.view))]
    return max(nested, key=lambda call: tree.depth(call.view), default=latest)


def _is_equal(text: str, answer: str) -> bool:
    return text.split() == answer.split()


def _begins_with(text: str, answer: str) -> bool:
    """Return whether the answer is the first lines of the text: parsers take off a score or a list of sources."""
    answer = answer.strip()
    return bool(answer) and f"{text.strip()}\n".startswith(f"{answer}\n")


def _is_contained(text: str, answer: str) -> bool:
    shorter, longer = sorted((text.strip(), answer.strip()), key=len)
    return len(shorter) >= _MIN_CONTAINED and shorter in longer


def _is_rewritten(text: str, answer: str) -> bool:
    """Return whether the texts are the same but for their markers and links."""
    a, b = _bare_words(text), _bare_words(answer)
    return len(a) >= 3 and a == b


_MARKS = re.compile(
    r"\]\([^()\s]{1,500}\)|[\[【［(（^][^\[\]【】［］()（）^\n]{0,80}[\]】］)）^]|<[^<>\n]{1,200}>|\bturn\d+\w+\d+"
)


def _bare_words(text: str) -> list[str]:
    return re.findall(r"\w+", _MARKS.sub(" ", text).casefold())


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model was given."""

    variables: tuple[Section, ...]
    """The values of its template's variables: they hold the passages and nothing else."""

    messages: tuple[Section, ...]
    """Its messages, without what the assistant said and what an earlier turn of the user held."""


def read_prompt(tree: SpanTree, generation: Generation) -> Prompt:
    """Return the prompt of the generation; what the app built just before it where the call does not say it."""
    view = generation.view
    calls = [view, *(other for other in (*tree.above(view), *tree.under(view)) if other.kind in _MODEL_KINDS)]
    recorded = next((found for call in calls if (found := list(own_sections(call)))), None)
    messages = recorded or list(_built_before(tree, view.span.start_ns))
    variables = tuple(_variable_sections(tree, view, calls, messages))
    return Prompt(variables, tuple(_current_turn(messages)))


def prompt_before(tree: SpanTree, end_ns: int) -> Prompt:
    """Return what prompt builders and tools gave before `end_ns`, for an answer whose model call is not recorded."""
    return Prompt((), tuple(_current_turn(list(_built_before(tree, end_ns)))))


def own_sections(view: SpanView) -> Iterator[Section]:
    """Yield the parts of the prompt that the call's own span records, with who said them."""
    messages = (
        view.input_messages or read_messages(fields(view.input).get("messages")) or read_messages(view.input)
    )
    if messages:
        yield from (Section(text, message.role) for message in messages for text in _message_texts(message))
        return
    for text in _plain_prompts(view):
        if text.strip() and not is_hidden(text):
            yield from _transcript(text)


_TURN = re.compile(r"(?:^|\n)(system|user|assistant|tool): ")


def _transcript(text: str) -> Iterator[Section]:
    """Yield the messages of a chat written as one text, `system: ..` and `user: ..`; else the whole text."""
    turns = list(_TURN.finditer(text))
    if len(turns) < 2 or turns[0].start() > 0:
        yield Section(text)
        return
    for n, turn in enumerate(turns):
        end = turns[n + 1].start() if n + 1 < len(turns) else len(text)
        if text[turn.end() : end].strip():
            yield Section(text[turn.end() : end], turn[1])


def _message_texts(message: Message) -> Iterator[str]:
    texts = [text for text in message.texts if text.strip() and not is_hidden(text)]
    if texts:
        yield "\n".join(texts)


def _plain_prompts(view: SpanView) -> Iterator[str]:
    for entry in items(view.at("llm.prompts")):
        text = entry if isinstance(entry, str) else text_at(fields(entry), "prompt", "text")
        if isinstance(text, str):
            yield text
            return
    value = view.input
    if isinstance(value, str):
        yield value
    entry = as_object(value)
    for key in _PROMPT_KEYS:
        found = entry.get(key)
        if isinstance(found, str) and found.strip():
            yield found
            return
        texts = [text for text in items(found) if isinstance(text, str)]
        if texts:
            yield "\n".join(texts)
            return


def _current_turn(sections: Sequence[Section]) -> list[Section]:
    """Return the sections that can hold passages: not what the assistant said, nor what an earlier turn was shown."""
    last_user = max((n for n, section in enumerate(sections) if section.role == "user"), default=-1)
    return [
        section
        for n, section in enumerate(sections)
        if section.role != "assistant" and (section.role != "user" or n == last_user)
    ]


def _built_before(tree: SpanTree, end_ns: int) -> Iterator[Section]:
    """Yield what the last prompt builder and the tools gave before `end_ns`."""
    before = [
        other
        for other in tree.views
        if other.kind in ("PROMPT", "TOOL") and other.span.end_ns <= end_ns and other.output is not None
    ]
    prompts = [other for other in before if other.kind == "PROMPT"][-1:]
    for other in (*prompts, *(tool for tool in before if tool.kind == "TOOL")):
        messages = read_messages(fields(other.output).get("messages")) if is_object(other.output) else ()
        role = "tool" if other.kind == "TOOL" else "user"
        if messages:
            yield from (Section(text, m.role) for m in messages for text in _message_texts(m))
        elif isinstance(other.output, str) and not is_hidden(other.output):
            yield Section(other.output, role)


def _variable_sections(
    tree: SpanTree, view: SpanView, calls: Sequence[SpanView], messages: Sequence[Section]
) -> Iterator[Section]:
    prompt = "\n".join(section.text for section in messages)
    templates = [
        other
        for other in tree.views
        if other.kind == "PROMPT"
        and other.span.end_ns <= view.span.start_ns
        and _shares_parent(tree, other, view)
    ][-1:]
    seen: set[str] = set()
    for other in (*calls, *templates):
        for text in _variables(other):
            if len(text) >= _MIN_CONTAINED and text not in seen and (not prompt or text in prompt):
                seen.add(text)
                yield Section(text, "variable")


def _shares_parent(tree: SpanTree, one: SpanView, other: SpanView) -> bool:
    parent = tree.parents.get(one.id)
    return parent is None or parent.id in {view.id for view in tree.above(other)}


def _variables(view: SpanView) -> Iterator[str]:
    for path in ("llm.prompt_template.variables", "gen_ai.prompt.variable"):
        for value in fields(view.at(path)).values():
            text = parse_json(value) if not isinstance(value, str) else value
            if isinstance(text, str) and not is_hidden(text):
                yield text
