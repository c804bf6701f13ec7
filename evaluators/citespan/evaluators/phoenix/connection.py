"""Where a Phoenix server is and how to get in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from citespan.evaluators.settings import Settings

__all__ = ["Connection"]


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything needed to talk to one Phoenix server.

    Proxies (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`) and certificate authorities (`SSL_CERT_FILE`,
    `SSL_CERT_DIR`) are read from the environment by httpx itself.
    """

    base_url: str
    """Root of the server, with its root path if it has one, without a trailing slash."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent with every request, names in lower case; `authorization` where Phoenix wants a key."""

    timeout_seconds: float = 30.0
    """How long one request may take before it is tried again."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the connection that the settings describe."""
        return cls(settings.endpoint, settings.request_headers, settings.timeout_seconds)

    @property
    def has_key(self) -> bool:
        """Whether an API key is sent."""
        return "authorization" in self.headers
