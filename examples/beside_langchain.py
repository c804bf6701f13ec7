"""citespan beside OpenInference's LangChain instrumentor: one line says what nobody else records.

::

    pip install citespan langchain-core openinference-instrumentation-langchain
    python examples/beside_langchain.py

The instrumentor records chain, retriever and model, but neither the documents' ids nor the labels that the prompt
shows them under. `tracer.shown` adds those to the run; the documents' texts stay where they are, once.
"""

from __future__ import annotations

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from openinference.instrumentation.langchain import LangChainInstrumentor

from citespan import tracer

DOCUMENTS = [
    Document("Green tea is steeped at 80 degrees Celsius.", id="tea-1", metadata={"source": "tea.md"}),
    Document("Black tea is steeped at 95 degrees Celsius.", id="tea-2", metadata={"source": "tea.md"}),
    Document("Coffee is brewed at 93 degrees Celsius.", id="coffee-1", metadata={"source": "coffee.md"}),
]
ANSWER = "Green tea wants 80 degrees [1], black tea wants 95 degrees [2]."


class KeywordRetriever(BaseRetriever):
    """Finds the documents that share a word with the query."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        words = {word for word in query.lower().split() if len(word) > 2}
        return [d for d in DOCUMENTS if words & set(d.page_content.lower().split())]


def number_documents(documents: list[Document]) -> str:
    """Return the context of the prompt, and tell citespan which document has which number there."""
    tracer.shown(documents, labels="{n}")
    return "\n".join(f"[{n}] {document.page_content}" for n, document in enumerate(documents, start=1))


def build_chain() -> Runnable[str, str]:
    """Return a chain as apps build it; the model is a fake that always says the same."""
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer with [n] citations from:\n{context}"), ("human", "{question}")]
    )
    context = {"context": KeywordRetriever() | number_documents, "question": RunnablePassthrough()}
    return context | prompt | FakeListChatModel(responses=[ANSWER]) | StrOutputParser()


@tracer.run
def ask(question: str) -> str:
    """Return the answer; the decorator makes the run, its question and its answer."""
    return build_chain().invoke(question)


def main() -> None:
    """Instrument, and ask once."""
    tracing = tracer.configure(project="beside-langchain")
    LangChainInstrumentor().instrument(tracer_provider=tracing.provider)
    print(ask("At how many degrees is tea steeped?"))
    tracer.shutdown()


if __name__ == "__main__":
    main()
