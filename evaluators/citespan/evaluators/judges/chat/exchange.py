"""One exchange with the model: a batch of claims out, for each of them a verdict or the problem back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from citespan.evaluators.judges.chat.batches import Batch, reply_tokens
from citespan.evaluators.judges.chat.client import ChatClient
from citespan.evaluators.judges.chat.faults import ChatFault
from citespan.evaluators.judges.chat.options import ChatOptions
from citespan.evaluators.judges.chat.prompt import (
    PROMPT,
    Item,
    looks_like_instruction,
    passage_keys,
    render_document,
)
from citespan.evaluators.judges.chat.quotes import find_quote
from citespan.evaluators.judges.chat.reply import Problem, ReplyVerdict, read_reply
from citespan.evaluators.judges.judge import JudgeRequest
from citespan.evaluators.verdicts import Label, Usage, Verdict

__all__ = ["Outcome", "exchange"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back for one claim."""

    said: Verdict | Problem
    """The verdict, or why there is none."""

    usage: Usage | None
    """Its share of what was spent; `None` if nothing was."""

    def charged(self, usage: Usage | None) -> Outcome:
        """Return the outcome with this much more spent on it."""
        total = self.usage + usage if self.usage is not None and usage is not None else self.usage or usage
        return replace(self, usage=total)

    @property
    def verdict(self) -> Verdict:
        """The verdict with its cost; `unjudged` where there is a problem."""
        said = self.said
        made = Verdict.unjudged(said.rule, said.detail) if isinstance(said, Problem) else said
        return made.model_copy(update={"usage": self.usage})


def exchange(client: ChatClient, batch: Batch, options: ChatOptions) -> dict[int, Outcome]:
    """Return what came back for each claim of the batch, by its place.

    The items fit `context_tokens`. A batch that proves too large for the model, or that its filter stops, is halved until the rest gets its verdicts.
    """
    items = [item for _, item in batch.items]
    messages = (
        {"role": "system", "content": PROMPT.text},
        {"role": "user", "content": render_document(items)},
    )
    try:
        answer = client.ask(messages, reply_tokens=reply_tokens(len(items), options))
    except ChatFault as fault:
        if fault.kind.is_about_size and len(items) > 1:
            first, second = (exchange(client, half, options) for half in batch.halves)
            return _charged(first | second, fault.usage)
        detail = f"{str(fault).rstrip('.')}. {fault.kind.advice}" if fault.kind.advice else str(fault)
        problem = Problem(fault.kind, detail, is_final=True, is_general=not fault.kind.is_about_size)
        return _all(batch, problem, fault.usage)
    keys = passage_keys(items)
    said_of_each = read_reply(answer.text, len(items), _texts(items))
    found = {
        place: Outcome(said if isinstance(said, Problem) else _read(said, item, keys), None)
        for (place, item), said in zip(batch.items, said_of_each, strict=True)
    }
    return _charged(found, answer.usage)


def _texts(items: Sequence[Item]) -> Iterator[str]:
    """Yield every text that the model was shown."""
    yield from passage_keys(items)
    for request in (item.request for item in items):
        yield from (request.claim, request.sentence, request.question or "")


def _read(said: ReplyVerdict, item: Item, keys: dict[str, str]) -> Verdict | Problem:
    """Return the verdict if the passages hold its quote; `unsupported` leans on none."""
    label, sent, own = Label(said.label), item.request, item.original
    sent_at = _find_quote(sent, said, keys)
    if sent_at is None and label is not Label.UNSUPPORTED:
        return Problem("quote_not_found", f"the quote {said.quote!r} is in none of the claim's passages")
    own_at = sent_at if sent_at is not None and _holds(own, *sent_at) else _find_quote(own, said, keys)
    notes = [_sentence(said.reason) or f"The model says {label} and gives no reason."]
    if sent_at is not None and own_at is None:
        notes.append("(The quote leans on redacted text, so it is not shown.)")
    if suspects := _suspects(own):
        notes.append(
            f"({suspects} holds text that reads like an instruction to a model; it was judged as data.)"
        )
    score = said.score
    is_odd = score is not None and (label is Label.SUPPORTED) != (score >= 0.5)
    return Verdict(
        label=label,
        score=score,
        reason=" ".join(notes),
        rule="chat",
        evidence=None if own_at is None else own_at[1],
        evidence_passage_id=None if own_at is None else own_at[0],
        is_low_confidence=is_odd or bool(suspects),
    )


def _find_quote(request: JudgeRequest, said: ReplyVerdict, keys: dict[str, str]) -> tuple[str, str] | None:
    """Return the id of the passage that holds the quote, and the quote as that passage has it."""
    named_first = sorted(request.passages, key=lambda passage: keys.get(passage.text or "") != said.passage)
    for passage in named_first:
        found = find_quote(passage.text or "", said.quote)
        if found is not None:
            return passage.id, found
    return None


def _holds(request: JudgeRequest, passage_id: str, text: str) -> bool:
    return any(passage.id == passage_id and text in (passage.text or "") for passage in request.passages)


def _suspects(request: JudgeRequest) -> str:
    """Return what of the request addresses a model, as the start of a sentence; empty if nothing does."""
    texts = {"the claim": request.claim, "its sentence": request.sentence, "the question": request.question}
    texts |= {f"passage {passage.id}": passage.text for passage in request.passages}
    suspects = ", ".join(name for name, text in texts.items() if looks_like_instruction(text or ""))
    return suspects[:1].upper() + suspects[1:]


def _sentence(reason: str) -> str:
    return " ".join(reason.split())


def _all(batch: Batch, problem: Problem, usage: Usage | None) -> dict[int, Outcome]:
    return _charged({place: Outcome(problem, None) for place, _ in batch.items}, usage)


def _charged(outcomes: dict[int, Outcome], usage: Usage | None) -> dict[int, Outcome]:
    """Return the outcomes with the call's cost shared among them: equal parts, the odd tokens on the first."""
    if usage is None:
        return outcomes
    parts = _shares(usage, len(outcomes))
    return {
        place: outcome.charged(part) for (place, outcome), part in zip(outcomes.items(), parts, strict=True)
    }


def _shares(usage: Usage, count: int) -> Sequence[Usage]:
    sent, sent_left = divmod(usage.prompt_tokens, count)
    received, received_left = divmod(usage.completion_tokens, count)
    return [
        Usage(
            prompt_tokens=sent + (n < sent_left),
            completion_tokens=received + (n < received_left),
            cost_usd=None if usage.cost_usd is None else usage.cost_usd / count,
            is_estimated=usage.is_estimated,
        )
        for n in range(count)
    ]
