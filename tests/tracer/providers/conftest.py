"""What the tests of the provider adapters share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from citespan.tracer.providers import ProviderAnswer, read_answer

Covered = list[tuple[str, str | None]]


@pytest.fixture
def covered() -> Callable[[ProviderAnswer | None], Covered]:
    """Return which passage each citation names and the words of the answer it covers."""

    def read(answer: ProviderAnswer | None) -> Covered:
        assert answer is not None
        return [
            (c.passage_id, None if c.start is None or c.end is None else answer.text[c.start : c.end])
            for c in answer.citations
        ]

    return read


@pytest.fixture
def read() -> Callable[..., ProviderAnswer]:
    """Read a response that has a known shape."""

    def read_known(response: object, *passages: object) -> ProviderAnswer:
        from citespan.tracer.adapt import as_passages

        answer = read_answer(response, as_passages(passages))
        assert answer is not None
        return answer

    return read_known
