"""A clock that a test moves by hand: waiting is instant, and remembered."""

from datetime import UTC, datetime, timedelta

import anyio


class HandClock:
    """Time that passes only when something waits, or when the test says so."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime(2030, 1, 1, tzinfo=UTC)
        self._passed = 0.0
        self.waits: list[float] = []
        """What was waited for, in order, in seconds."""

    def now(self) -> datetime:
        """Return the time of day."""
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        return self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds

    async def sleep(self, seconds: float) -> None:
        """Let time pass at once; gives other tasks a turn."""
        self.waits.append(seconds)
        self._passed += seconds
        await anyio.lowlevel.checkpoint()
