"""Numbers as people write them: plain, `"64KiB"`, `"1h30m"`."""

import math
import re

from agentctl.toml.shapes import Duration, Size

_SIZE = re.compile(r"(\d+(?:_\d+)*(?:\.\d+)?) ?([KMGT]?)(i?)B?", re.IGNORECASE)
_DURATION = re.compile(
    r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?", re.IGNORECASE
)
_SECONDS = (86400.0, 3600.0, 60.0, 1.0, 0.001)


def read_units(hint: object, marks: tuple[object, ...], value: object) -> tuple[float | int | None, str]:
    """Return `value` as the number that a field of type int or float takes, or None and what was expected."""
    if any(isinstance(mark, Size) for mark in marks):
        return size_bytes(value), 'a number of bytes, such as 65536 or "64KiB"'
    if any(isinstance(mark, Duration) for mark in marks):
        return duration_s(value), 'seconds, or a duration such as "90s", "5m" or "1h30m"'
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, "a whole number" if hint is int else "a number"
    if hint is int:
        return (value if isinstance(value, int) else None), "a whole number"
    return (float(value) if math.isfinite(value) else None), "a finite number"


def size_bytes(value: object) -> int | None:
    """Return bytes from an integer or a text such as `64KiB`, `10 MB`, `1.5M`; None for anything else.

    `K`, `M`, `G`, `T` with `i` are powers of 1024, without it of 1000.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[3] and not match[2]):
        return None
    step = 1024 if match[3] else 1000
    return int(float(match[1].replace("_", "")) * step ** " KMGT".index(match[2].upper() or " "))


def duration_s(value: object) -> float | None:
    """Return seconds from a number or a text such as `90s`, `1h30m`, `250ms`; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    if not isinstance(value, str) or not value.strip():
        return None
    match = _DURATION.fullmatch(value.strip().replace(" ", ""))
    if match is None:
        return None
    return sum(float(part) * unit for part, unit in zip(match.groups(), _SECONDS, strict=True) if part)
