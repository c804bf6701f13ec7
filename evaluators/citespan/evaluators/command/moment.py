"""Points in time as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from citespan.evaluators.errors import UsageError

__all__ = ["age_seconds", "moment"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,6})?")
_AGE = re.compile(r"(\d{1,6})([smhdw])")


def moment(text: str, *, now: datetime) -> datetime:
    """Return the time that `text` means: an age such as `24h` or `7d`, or a date with or without a time.

    Args:
        text: What was typed; a date or time without a zone is in the zone of `now`.
        now: The present, with its zone.

    Raises:
        UsageError: The text is neither.
    """
    if age := _AGE.fullmatch(text.strip().lower()):
        return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{text!r} is no point in time: expected an age such as 30m, 24h or 7d, "
            "or a date such as 2026-01-31 or 2026-01-31T09:00+01:00"
        ) from None
    return found.replace(tzinfo=now.tzinfo) if found.tzinfo is None else found


def age_seconds(text: str, option: str) -> float:
    """Return the seconds that a length of time such as `90s`, `15m`, `48h` or plain `90` means.

    Args:
        text: What was typed.
        option: For which option, for the message.

    Raises:
        UsageError: It is none.
    """
    given = text.strip().lower()
    if age := _AGE.fullmatch(given):
        return timedelta(**{_UNITS[age[2]]: int(age[1])}).total_seconds()
    if _SECONDS.fullmatch(given):
        return float(given)
    raise UsageError(f"{option} {text!r} is no length of time: expected one such as 90s, 15m, 48h or 7d")
