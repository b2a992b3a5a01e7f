"""Time as a thing that is handed in, so that tests never wait for it."""

from datetime import UTC, datetime
from time import monotonic
from typing import Protocol

import anyio


class Clock(Protocol):
    """Wall time, steady time, and waiting."""

    def now(self) -> datetime:
        """Return the time of day, in UTC."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Wait; safe to cancel."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since the machine started or so; never goes back."""
        return monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; safe to cancel."""
        await anyio.sleep(seconds)
