"""Send many things in few requests, and lose none of them to one that Phoenix does not take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from citespan.evaluators.errors import NotFound, Refused, ServerError, Unavailable

__all__ = ["BatchSender"]

_T = TypeVar("_T")

_ITEMS_PER_REQUEST = 100
_BYTES_PER_REQUEST = 4_000_000
_FAILURES_IN_A_ROW = 8
"""After so many 500s without a success it is the server that fails: a batch of 100 halves 7 times down to one item."""


class BatchSender(Generic[_T]):
    """Sends items in order, in requests that are neither long nor large.

    A request that is refused is sent again in halves, down to the item that is the reason.
    """

    def __init__(self, send: Callable[[Sequence[_T]], None], size_of: Callable[[_T], int]) -> None:
        """Prepare to send.

        Args:
            send: Sends one request; sending an item twice does what sending it once does.
            size_of: About how many bytes an item takes.
        """
        self._send = send
        self._size_of = size_of
        self._failures = 0

    def send(self, items: Sequence[_T]) -> list[tuple[_T, ServerError]]:
        """Send the items and return those that Phoenix does not take, each with its error.

        Raises:
            ServerError: Phoenix cannot be reached, does not let anybody in, or fails whatever it is sent.
        """
        refused: list[tuple[_T, ServerError]] = []
        for batch in self._batches(items):
            self._send_or_split(batch, refused)
        return refused

    def _send_or_split(self, batch: Sequence[_T], refused: list[tuple[_T, ServerError]]) -> None:
        try:
            self._send(batch)
        except (NotFound, Refused, Unavailable) as error:
            self._raise_if_it_is_the_server(error)
            if len(batch) == 1:
                refused.append((batch[0], error))
                return
            middle = len(batch) // 2
            self._send_or_split(batch[:middle], refused)
            self._send_or_split(batch[middle:], refused)
        else:
            self._failures = 0

    def _raise_if_it_is_the_server(self, error: ServerError) -> None:
        if not isinstance(error, Unavailable):
            return
        self._failures += 1
        if error.status != 500 or self._failures >= _FAILURES_IN_A_ROW:
            raise error

    def _batches(self, items: Sequence[_T]) -> Iterator[list[_T]]:
        batch: list[_T] = []
        size = 0
        for item in items:
            item_size = self._size_of(item)
            if batch and (len(batch) == _ITEMS_PER_REQUEST or size + item_size > _BYTES_PER_REQUEST):
                yield batch
                batch, size = [], 0
            batch.append(item)
            size += item_size
        if batch:
            yield batch
