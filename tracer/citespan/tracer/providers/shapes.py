"""Tell by its shape which provider a response is of, and read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage
from citespan.tracer.providers import anthropic, bedrock, cohere, gemini, langchain, mistral, openai
from citespan.tracer.providers.answer import ProviderAnswer
from citespan.tracer.providers.payload import Node, plain
from citespan.tracer.providers.streams import join_stream

__all__ = ["citations_from", "read_answer"]

_READERS: tuple[Callable[[Node, Sequence[Passage]], ProviderAnswer | None], ...] = (
    openai.read_responses,
    openai.read_chat,
    openai.read_assistant_message,
    mistral.read_chat,
    mistral.read_conversation,
    anthropic.read_messages,
    cohere.read_chat,
    gemini.read_generate_content,
    bedrock.read_retrieve_and_generate,
    bedrock.read_converse,
    langchain.read_message,
)
"""Each returns an answer, or `None` if the payload is none of its provider's."""


def read_answer(response: object, passages: Sequence[Passage] = ()) -> ProviderAnswer | None:
    """Return what a provider's response says, or `None` if it has no known shape.

    Args:
        response: The SDK's response object, its JSON as a dict, or the list of its stream's events.
        passages: The passages that the app gave the model, in the order of the request.
    """
    payload = plain(response)
    if isinstance(payload, list):
        payload = join_stream(cast("list[object]", payload))
    if not isinstance(payload, Mapping):
        return None
    node = cast("Node", payload)
    return next((answer for read in _READERS if (answer := read(node, passages)) is not None), None)


def citations_from(response: object, passages: Sequence[Passage] = ()) -> tuple[Citation, ...]:
    """Return the citations of a provider's response; none if it has no known shape. As `read_answer`."""
    answer = read_answer(response, passages)
    return () if answer is None else answer.citations
