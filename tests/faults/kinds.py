"""What can happen to a request between the worker and Phoenix."""

from __future__ import annotations

from enum import StrEnum

WRITES = frozenset({"POST", "PUT", "DELETE"})
"""Methods of requests that change something."""


class Fault(StrEnum):
    """What can happen to a request. The name says whether Phoenix got it: `lost_` ones it did, their answer is gone."""

    ERROR_500 = "500"
    ERROR_502 = "502"
    ERROR_503 = "503"
    ERROR_503_LATER = "503_retry_after"
    ERROR_429 = "429"
    ERROR_404 = "404"
    """An ingress that knows no way to Phoenix just now."""
    SILENCE = "no_answer"
    RESET = "reset"
    PAGE_200 = "html_200"
    PAGE_404 = "html_404"
    LOST_ERROR_500 = "lost_500"
    LOST_SILENCE = "lost_no_answer"
    LOST_RESET = "lost_reset"
    LOST_PAGE = "lost_html_200"
    SLOW = "slow"
    """The answer comes whole, in pieces, within the client's patience."""
    DRIP = "drip"
    """The answer comes byte by byte and never ends."""
    CUT_JSON = "cut_json"
    """Half the answer, with a Content-Length that fits."""
    CUT_BODY = "cut_body"
    """Half the answer, with the Content-Length of the whole."""


STATUSES = {
    Fault.ERROR_500: 500,
    Fault.ERROR_502: 502,
    Fault.ERROR_503: 503,
    Fault.ERROR_503_LATER: 503,
    Fault.ERROR_429: 429,
    Fault.ERROR_404: 404,
    Fault.LOST_ERROR_500: 500,
}
NOT_FORWARDED = frozenset(
    {Fault.SILENCE, Fault.RESET, Fault.PAGE_200, Fault.PAGE_404, *STATUSES} - {Fault.LOST_ERROR_500}
)
OF_THE_BODY = frozenset({Fault.SLOW, Fault.DRIP, Fault.CUT_JSON, Fault.CUT_BODY})
