"""Sizes and durations as people write them."""

import pytest

from agentctl.toml.units import duration_s, size_bytes


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (65536, 65536),
        (0, 0),
        ("65536", 65536),
        ("64_000", 64000),
        ("64KiB", 65536),
        ("64 KiB", 65536),
        ("10MB", 10_000_000),
        ("1.5M", 1_500_000),
        ("2gib", 2 * 2**30),
        ("7B", 7),
        ("many", None),
        ("", None),
        ("1iB", None),
        ("-1", None),
        ("1e3", None),
        (True, None),
        (1.5, None),
        (["1"], None),
    ],
)
def test_a_size_is_bytes_or_nothing(written: object, size: int | None) -> None:
    assert size_bytes(written) == size


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (2, 2.0),
        (0.5, 0.5),
        ("90s", 90.0),
        ("5m", 300.0),
        ("5min", 300.0),
        ("1h30m", 5400.0),
        ("1 h 30 m", 5400.0),
        ("250ms", 0.25),
        ("1d", 86400.0),
        ("", None),
        ("90", None),
        ("m5", None),
        ("ten minutes", None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_a_duration_is_seconds_or_nothing(written: object, seconds: float | None) -> None:
    assert duration_s(written) == seconds
