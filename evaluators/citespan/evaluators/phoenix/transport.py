"""One HTTP request to Phoenix: sent, tried again where that is safe, and failures put in one clear line."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import httpx

from citespan.evaluators.errors import (
    NotFound,
    Refused,
    ServerError,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from citespan.evaluators.phoenix.connection import Connection

__all__ = ["Reply", "Transport"]

Query = Mapping[str, str | int | Sequence[str]]

_RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 8.0
_BROKEN_OFF = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.DecodingError)
_BUSY = frozenset({408, 429})
"""Refusals that are about the load, not about what was sent."""

_SIGNATURE = "x-phoenix-server-version"
"""Header of every answer of Phoenix itself, unless something in between takes it off."""

_TIMES_AS_LONG = 4
"""An answer that has begun may take this many timeouts: a page of a megabyte over a slow line."""

_DETAIL_CHARACTERS = 300
"""How much of a refusal's text a message repeats."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered."""

    data: Mapping[str, object]
    """The JSON object."""

    size_bytes: int
    """Bytes it took, decompressed."""


class Transport:
    """Sends requests to one Phoenix server and turns every failure into an error of `errors.py`."""

    def __init__(
        self,
        connection: Connection,
        *,
        retries: int = 3,
        http: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connection = connection
        self._retries = retries
        self._sleep = sleep
        self._monotonic = monotonic
        self._is_signed = False  # whether answers arrive with the signature
        headers = {**connection.headers, "content-type": "application/json"}
        self._http = httpx.Client(headers=headers, timeout=connection.timeout_seconds, transport=http)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        retry: bool = True,
        accept: frozenset[int] = frozenset(),
    ) -> httpx.Response:
        """Return the server's answer to one request.

        Args:
            method: HTTP method.
            path: Path under the server's root, already percent-encoded.
            query: Query parameters; a list repeats its parameter.
            body: JSON body; `None` sends none.
            retry: Whether asking twice does the same as asking once.
            accept: Statuses that are an answer to the caller though they are no success.

        Raises:
            ServerError: One of its subclasses, whose text names the URL and what to do.
        """
        url = self.connection.base_url + path
        content = None if body is None else json.dumps(body, allow_nan=False)
        request = self._http.build_request(method, url, params=_pairs(query), content=content)
        attempts = self._retries + 1 if retry else 1
        for attempt in range(attempts):
            is_last = attempt == attempts - 1
            try:
                response = self._exchange(request)
            except httpx.RequestError as error:
                if is_last or not _may_pass(error):
                    raise self._unreachable(url, error) from error
                self._sleep(_wait_seconds(attempt))
                continue
            if response.status_code in _RETRY_STATUSES and not is_last:
                self._sleep(_wait_seconds(attempt, response.headers.get("retry-after")))
                continue
            if self._is_foreign(response):
                raise self.not_phoenix(response)
            if response.is_success or response.status_code in accept:
                return response
            raise self.error_of(response)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _is_foreign(self, response: httpx.Response) -> bool:
        """Return whether a gateway answered: with a web page, or that a path does not exist because Phoenix is away."""
        if response.is_success:
            self._is_signed = self._is_signed or _SIGNATURE in response.headers
            return _is_page(response)
        is_missing = response.status_code == 404
        return is_missing and (_is_page(response) or (self._is_signed and _SIGNATURE not in response.headers))

    def _exchange(self, request: httpx.Request) -> httpx.Response:
        """Return one whole answer; httpx bounds the wait for each piece, this the wait for all of them."""
        response = self._http.send(request, stream=True)
        patience_seconds = _TIMES_AS_LONG * self.connection.timeout_seconds
        try:
            if isinstance(response.stream, httpx.SyncByteStream):
                response.stream = _Bounded(
                    response.stream, self._monotonic, self._monotonic() + patience_seconds
                )
            response.read()
        finally:
            response.close()
        return response

    def json(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        retry: bool = True,
    ) -> Reply:
        """Return the JSON object the server answers with; arguments and errors as for `send`.

        Raises:
            Unavailable: The answer is no JSON object, so something else than Phoenix answered.
        """
        response = self.send(method, path, query=query, body=body, retry=retry)
        data = _parse(response)
        if data is None and retry and "json" in response.headers.get("content-type", ""):
            response = self.send(method, path, query=query, body=body)  # the answer broke off
            data = _parse(response)
        if data is None:
            raise self.not_phoenix(response)
        return Reply(data, len(response.content))

    def not_phoenix(self, response: httpx.Response) -> Unavailable:
        """Return the error for an answer that Phoenix's API never gives."""
        url = str(response.request.url)
        content_type = response.headers.get("content-type", "no content type")
        return Unavailable(
            f"{url} answered {content_type} where Phoenix's API answers JSON: check the URL, its root path, "
            "and any proxy or login page in front of it",
            url=url,
            # What a gateway says is not about what was asked.
            status=None if _is_page(response) or response.status_code == 404 else response.status_code,
        )

    def _unreachable(self, url: str, error: httpx.RequestError) -> Unreachable:
        base, detail = self.connection.base_url, str(error) or type(error).__name__
        if isinstance(error, httpx.ProxyError):
            text = (
                f"the proxy refused to connect to Phoenix at {base} ({detail}): mend HTTPS_PROXY or HTTP_PROXY, "
                "or add the host to NO_PROXY"
            )
        elif "CERTIFICATE" in detail.upper():
            text = (
                f"the certificate of Phoenix at {base} is not trusted ({detail}): set SSL_CERT_FILE to the "
                "file with your certificate authority"
            )
        elif "WRONG_VERSION_NUMBER" in detail:
            text = f"{base} does not speak TLS ({detail}): begin its URL with http://"
        elif isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            text = (
                f"Phoenix at {base} did not answer {url} within {self.connection.timeout_seconds:g} s: "
                "it may be overloaded; try again later"
            )
        elif isinstance(error, _BROKEN_OFF):
            text = (
                f"Phoenix at {base} broke off while answering {url} ({detail}): check that this is its HTTP "
                "port (6006 by default; 4317 is gRPC) and look at its log"
            )
        else:
            text = (
                f"cannot reach Phoenix at {base} ({detail}): start it (`citespan serve` starts a local one) "
                "or set PHOENIX_COLLECTOR_ENDPOINT to where it runs"
            )
        return Unreachable(text, url=url)

    def error_of(self, response: httpx.Response) -> ServerError:
        """Return the error that an answer without success stands for."""
        base, status = self.connection.base_url, response.status_code
        url, detail = str(response.request.url.copy_with(query=None)), _detail(response)
        if status == 401:
            key = "refused the API key" if self.connection.has_key else "wants an API key and none is set"
            text = f"Phoenix at {base} {key} (401): set PHOENIX_API_KEY to a key from its page Settings > API keys"
            return Unauthorized(text, url=url, status=status)
        if status == 403:
            text = (
                f"Phoenix at {base} forbids this to the owner of the API key (403: {detail}): "
                "use a key of a member or admin, not of a viewer"
            )
            return Unauthorized(text, url=url, status=status)
        if status == 404:
            return NotFound(f"{url} does not exist (404: {detail})", url=url, status=status)
        if status == 507:
            text = f"Phoenix at {base} has no room left (507: {detail}): free storage on its side"
            return Unavailable(text, url=url, status=status)
        if status in _BUSY:
            text = f"Phoenix at {base} is too busy for {url} ({status}: {detail}): try again later"
            return Unavailable(text, url=url, status=status)
        if status >= 500:
            text = f"Phoenix at {base} failed on {url} ({status}: {detail}): look at its log, then try again"
            return Unavailable(text, url=url, status=status)
        if 300 <= status < 400:
            where = response.headers.get("location", "elsewhere")
            text = f"{url} redirects to {where}: set PHOENIX_COLLECTOR_ENDPOINT to the URL Phoenix itself has"
            return Unavailable(text, url=url, status=status)
        return Refused(f"Phoenix at {base} refused {url} ({status}: {detail})", url=url, status=status)


class _Bounded(httpx.SyncByteStream):
    """The pieces of an answer, up to a deadline."""

    def __init__(self, pieces: httpx.SyncByteStream, monotonic: Callable[[], float], deadline: float) -> None:
        self._pieces = pieces
        self._monotonic = monotonic
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if self._monotonic() > self._deadline:
                raise httpx.ReadTimeout("the answer did not end")
            yield piece

    def close(self) -> None:
        self._pieces.close()


def _is_page(response: httpx.Response) -> bool:
    """Return whether this is a web page: Phoenix's API never answers one, so a gateway did."""
    return "text/html" in response.headers.get("content-type", "").lower()


def _parse(response: httpx.Response) -> Mapping[str, object] | None:
    """Return the JSON object of an answer, or `None` if it holds none."""
    try:
        data: object = json.loads(response.content)
    except ValueError:
        return None
    return cast("Mapping[str, object]", data) if isinstance(data, dict) else None


def _pairs(query: Query | None) -> list[tuple[str, str | int | float | bool | None]]:
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in (query or {}).items():
        values = [value] if isinstance(value, str | int) else value
        pairs.extend((name, item) for item in values)
    return pairs


def _may_pass(error: httpx.RequestError) -> bool:
    """Return whether trying again could help: not with a wrong certificate, scheme or proxy."""
    is_permanent = isinstance(error, httpx.ProxyError | httpx.UnsupportedProtocol)
    return not is_permanent and "CERTIFICATE" not in str(error).upper()


def _wait_seconds(attempt: int, retry_after: str | None = None) -> float:
    """Return how long to wait: what the server asks, else a random share of a doubling wait."""
    if retry_after is not None and retry_after.isdigit():
        return min(float(retry_after), _LONGEST_WAIT_SECONDS)
    longest = min(_FIRST_WAIT_SECONDS * 2**attempt, _LONGEST_WAIT_SECONDS)
    return random.uniform(longest / 2, longest)  # noqa: S311 - jitter, not a secret


def _detail(response: httpx.Response) -> str:
    """Return what the server says of its refusal, on one line."""
    text = response.text
    try:
        data: object = json.loads(text)
    except ValueError:
        data = None
    if isinstance(data, dict):
        text = str(cast("dict[str, object]", data).get("detail") or text)
    elif text.lstrip().startswith("<"):
        text = "a web page"
    line = " ".join(text.split())
    return line if len(line) <= _DETAIL_CHARACTERS else line[:_DETAIL_CHARACTERS] + " …"
