"""Text that survives every store between the app and the reviewer."""

from __future__ import annotations

import hashlib
import re

__all__ = ["clean_text", "text_hash"]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD, one for one.

    PostgreSQL refuses NUL and the OTLP encoder refuses lone surrogates: either would lose the whole span.
    The replacement keeps the length, so offsets into the text hold.
    """
    if text.isascii() and "\0" not in text:  # the usual case, and forty times as fast
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def text_hash(text: str) -> str:
    """Return the sha256 of the UTF-8 bytes of `text` as 64 lower-case hex digits."""
    return hashlib.sha256(clean_text(text).encode()).hexdigest()
