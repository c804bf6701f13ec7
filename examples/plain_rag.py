"""A small RAG app over the documents in `data/documents`, traced with citespan.

::

    python examples/plain_rag.py                  ask every scripted question
    python examples/plain_rag.py "Your question"  ask one

Traces go to Phoenix at PHOENIX_COLLECTOR_ENDPOINT (http://localhost:6006 if it is not set).

With OPENAI_API_KEY or OPENAI_BASE_URL set, the model behind that API writes the answers; OPENAI_MODEL names it.
Otherwise they come from `data/scripted_answers.toml`: written by hand, to show good and bad habits of models.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import bm25s
import snowballstemmer

from citespan import tracer
from citespan.tracer import Passage

DATA = Path(__file__).parent / "data"
"""Documents and scripted answers."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the user asks, and how the app goes about it."""

    question: str
    """The question in the user's words."""

    search: str | None = None
    """The question made self-contained, for a follow-up in a conversation."""

    top_k: int = 3
    """How many passages the model is shown at most."""

    labels: str = "{n}"
    """How the passages are labelled in the prompt."""

    session: str | None = None
    """The conversation that it is a turn of."""

    answer: str | None = None
    """What the scripted generator answers."""

    shows: str = ""
    """What is worth seeing in the scripted answer."""


Generator: TypeAlias = Callable[[Question, Sequence[Passage]], str]
"""Writes the answer to a question from the passages it is shown."""


def main(arguments: Sequence[str]) -> None:
    """Ask the question given on the command line, or every scripted one."""
    scripted = read_questions(DATA / "scripted_answers.toml")
    library = Library(DATA / "documents")
    generate = generate_by_model if has_model() else generate_by_script(scripted)
    tracer.configure(redaction=tracer.Redaction(passages=hide_confidential))
    if arguments:
        print(ask(Question(" ".join(arguments)), library, generate))
    else:
        for question in scripted:
            ask(question, library, generate)
        writer = (
            "a model" if has_model() else "a script, as neither OPENAI_API_KEY nor OPENAI_BASE_URL is set"
        )
        print(f"{len(scripted)} questions asked; the answers were written by {writer}")
    tracer.shutdown()


def ask(question: Question, library: Library, generate: Generator) -> str:
    """Return the answer to one question, and record how it came about: `run` is all that citespan adds."""
    with tracer.run(question.question, session_id=question.session) as run:
        passages = library.search(question)
        run.retrieved(passages)
        answer = generate(question, passages)
        run.answer(answer)
    return answer


def hide_confidential(text: str) -> str | None:
    """Return what may be recorded of a passage: all of it, or nothing."""
    return None if text.startswith("Confidential.") else text


class Library:
    """Finds passages by BM25: a passage is a paragraph, indexed together with the title of its document."""

    def __init__(self, folder: Path) -> None:
        self._passages = [passage for path in sorted(folder.glob("*.md")) for passage in read_passages(path)]
        self._index = bm25s.BM25()
        texts = [f"{passage.title}\n{passage.text}" for passage in self._passages]
        self._index.index(tokenize(texts), show_progress=False)

    def search(self, question: Question) -> list[Passage]:
        """Return the best passages, best first; none if the question shares no word with any of them."""
        query = tokenize([question.search or question.question])
        positions, scores = self._index.retrieve(query, k=question.top_k, show_progress=False)
        hits = [(self._passages[p], float(s)) for p, s in zip(positions[0], scores[0], strict=True) if s > 0]
        return [
            replace(passage, label=question.labels.format(n=rank), score=score)
            for rank, (passage, score) in enumerate(hits, start=1)
        ]


def tokenize(texts: list[str]) -> bm25s.tokenization.Tokenized:
    """Return the stemmed words of each text, without English stop words."""
    stem = snowballstemmer.stemmer("english").stemWords
    return bm25s.tokenize(texts, stopwords="en", stemmer=stem, show_progress=False)


def read_passages(path: Path) -> list[Passage]:
    """Return the paragraphs of a document as passages."""
    heading, *paragraphs = path.read_text(encoding="utf-8").strip().split("\n\n")
    title = heading.removeprefix("# ")
    return [
        Passage(
            id=f"{path.stem}#{number}", text=text, title=title, url=f"https://docs.example.com/{path.stem}"
        )
        for number, text in enumerate(paragraphs, start=1)
    ]


def read_questions(path: Path) -> list[Question]:
    """Return the scripted questions in order."""
    with path.open("rb") as file:
        return [Question(**entry) for entry in tomllib.load(file)["run"]]


def has_model() -> bool:
    """Return whether the environment names an API that can write answers."""
    return bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))


INSTRUCTIONS = """\
Answer the question from the passages alone, in the language of the question.
After each sentence, cite the passages it leans on by their labels in square brackets, as in [1] or [1][3].
If the passages do not answer the question, say so in one sentence without a citation."""
"""What the model is told."""


def generate_by_model(question: Question, passages: Sequence[Passage]) -> str:
    """Return the answer of the model behind OPENAI_BASE_URL."""
    from openai import OpenAI

    # A local server asks for no key, but the client wants one.
    client = OpenAI(api_key=os.environ.get("OPENAI_API_KEY") or "none")
    shown = "\n\n".join(f"[{passage.label}] {passage.title}\n{passage.text}" for passage in passages)
    reply = client.chat.completions.create(
        model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
        messages=[
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": f"{shown}\n\nQuestion: {question.search or question.question}"},
        ],
        temperature=0,
    )
    return reply.choices[0].message.content or ""


def generate_by_script(scripted: Sequence[Question]) -> Generator:
    """Return a generator that knows the scripted answers, and quotes the best passage for any other question."""
    answers = {question.question: question.answer for question in scripted}

    def generate(question: Question, passages: Sequence[Passage]) -> str:
        answer = answers.get(question.question)
        if answer is not None:
            return answer
        return f"{passages[0].text} [{passages[0].label}]" if passages else "The documents do not say."

    return generate


if __name__ == "__main__":
    main(sys.argv[1:])
