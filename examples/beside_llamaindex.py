"""citespan beside OpenInference's LlamaIndex instrumentor: what the model really saw, under which numbers.

::

    pip install citespan llama-index-core openinference-instrumentation-llama-index
    python examples/beside_llamaindex.py

`CitationQueryEngine` splits what was retrieved once more and numbers the pieces, "Source 1:" and so on. The
instrumentor's retriever span holds the nodes before that. `shown` records the pieces and their numbers; the text
of a node that was not split is there already, and is not recorded twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.embeddings.mock_embed_model import MockEmbedding
from llama_index.core.indices import VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from citespan import tracer
from citespan.tracer import Passage

NODES = [
    TextNode(
        id_="tea-1", text="Green tea is steeped at 80 degrees Celsius.", metadata={"file_name": "tea.md"}
    ),
    TextNode(
        id_="tea-2", text="Black tea is steeped at 95 degrees Celsius.", metadata={"file_name": "tea.md"}
    ),
]
ANSWER = "Green tea wants 80 degrees [1], black tea wants 95 degrees [2]."


class ScriptedLLM(CustomLLM):
    """A model that always says the same."""

    @property
    def metadata(self) -> LLMMetadata:
        """Return the model's name."""
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Return the answer."""
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Yield the answer in one piece."""
        yield CompletionResponse(text=ANSWER, delta=ANSWER)


def build_engine() -> BaseQueryEngine:
    """Return a query engine as apps build it; its embeddings are all alike, so every node is found."""
    index = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=8))
    return CitationQueryEngine.from_args(index, llm=ScriptedLLM(), similarity_top_k=2)


def read_sources(nodes: Sequence[NodeWithScore]) -> list[Passage]:
    """Return the pieces as the model was shown them: "Source 1:" is the label and no part of the text."""
    return [
        Passage(
            id=node.node_id,
            text=node.get_content().removeprefix(f"Source {n}:\n").strip(),
            label=str(n),
            title=node.metadata.get("file_name"),
            score=node.score,
        )
        for n, node in enumerate(nodes, start=1)
    ]


def ask(engine: BaseQueryEngine, question: str) -> str:
    """Return the answer, recorded as a run."""
    with tracer.run(question) as run:
        response = engine.query(question)
        run.shown(read_sources(response.source_nodes))
        run.answer(str(response))
    return str(response)


def main() -> None:
    """Instrument, and ask once."""
    tracing = tracer.configure(project="beside-llamaindex")
    LlamaIndexInstrumentor().instrument(tracer_provider=tracing.provider)
    print(ask(build_engine(), "At how many degrees is tea steeped?"))
    tracer.shutdown()


if __name__ == "__main__":
    main()
