"""How long a service asks to be left alone."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

from agentctl.protocol.values import JsonValue

_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT"
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_ABSURD_S = 7 * 24 * 3600.0


def retry_after_s(header: Callable[[str], str], *, now: datetime | None = None) -> float | None:
    """Return the seconds to wait that the response's headers ask for, or None. Total.

    `retry-after-ms` goes before `retry-after`, which holds seconds or an HTTP date. What is no time, not in
    the future, or more than a week is taken as not said.

    Source: RFC 9110 §10.2.3, https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
    """
    milliseconds = header("retry-after-ms").strip()
    if _NUMBER.fullmatch(milliseconds):
        return _sane(float(milliseconds) / 1000)
    value = header("retry-after").strip()
    if _NUMBER.fullmatch(value):
        return _sane(float(value))
    found = _DATE.fullmatch(value)
    if found is None or found[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(found[group]) for group in (1, 3, 4, 5, 6))
    try:
        moment = datetime(year, _MONTHS.index(found[2]) + 1, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return _sane((moment - (now or datetime.now(UTC))).total_seconds())


def delay_of(details: JsonValue) -> float | None:
    """Return the seconds to wait that Google's error details ask for (`RetryInfo`), or None. Total."""
    for one in details if isinstance(details, list) else []:
        delay = one.get("retryDelay") if isinstance(one, dict) else None
        if isinstance(delay, str) and _NUMBER.fullmatch(delay.removesuffix("s")):
            return _sane(float(delay.removesuffix("s")))
    return None


def _sane(seconds: float) -> float | None:
    return seconds if 0 < seconds <= _ABSURD_S else None
