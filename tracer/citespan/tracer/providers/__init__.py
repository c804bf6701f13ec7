"""Citations out of provider answers: response objects or dicts in, ranges and passages out.

No SDK is imported: a response is told by its shape, whether it is the SDK's object, its JSON, or its stream.
"""

from __future__ import annotations

from citespan.tracer.providers.answer import ProviderAnswer
from citespan.tracer.providers.shapes import citations_from, read_answer

__all__ = ["ProviderAnswer", "citations_from", "read_answer"]
