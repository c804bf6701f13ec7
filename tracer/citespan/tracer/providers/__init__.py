"""Citations out of provider answers."""

from __future__ import annotations

__all__: list[str] = []
