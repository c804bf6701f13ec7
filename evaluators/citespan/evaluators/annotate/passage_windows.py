"""Show a passage to a reviewer: whole if it is short, else a window round the evidence that says what it leaves out."""

from __future__ import annotations

from citespan.tracer.passages import Passage

__all__ = ["WHOLE_BYTES", "window"]

WHOLE_BYTES = 32_768
"""A passage of at most this many UTF-8 bytes is shown whole."""

_LEAD = 800
"""Characters shown before the evidence: it is in sight without scrolling."""


def window(passage: Passage, evidence: str | None, *, span_id: str | None = None) -> str:
    """Return the passage's text, or a window of about `WHOLE_BYTES` round the evidence with a note at each cut.

    Args:
        passage: The passage; its text is recorded.
        evidence: The quote to keep in sight; the beginning is kept where there is none.
        span_id: The span that has the whole text, for the note.
    """
    text = passage.text or ""
    size = len(text.encode())
    if size <= WHOLE_BYTES:
        return text
    length = max(1, WHOLE_BYTES * len(text) // size)
    found = text.find(evidence) if evidence else 0
    start = max(0, min(found - _LEAD, len(text) - length))
    end = start + length
    where = f"span {span_id} has the whole passage" if span_id else "the trace has the whole passage"
    before = f"[… {start:,} characters left out here; {where}]\n" if start else ""
    left = len(text) - end
    after = f"\n[… {left:,} characters left out here; {where}]" if left else ""
    return f"{before}{text[start:end]}{after}"
