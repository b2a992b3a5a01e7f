"""How long a run has been at work, waiting for people not counted, and the stop when its time is up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

from agentctl.clock import Clock


class ActiveTime:
    """The time of one run in this process. Not thread-safe; any number of questions may wait at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._before = 0.0
        self._waiting = 0
        self._scope: anyio.CancelScope | None = None
        self._left: Callable[[], float | None] = lambda: None

    def seconds(self) -> float:
        """Return the seconds at work so far."""
        running = 0.0 if self._waiting else self._clock.monotonic() - self._since
        return self._before + running

    @contextmanager
    def limited(self, left: Callable[[], float | None]) -> Iterator[anyio.CancelScope]:
        """Give a scope that is cancelled when `left`, the seconds left, is used up; None is never."""
        with anyio.CancelScope() as scope:
            self._scope, self._left = scope, left
            self._set_deadline()
            try:
                yield scope
            finally:
                self._scope = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop the clock while a person is waited for."""
        self._before = self.seconds()
        self._waiting += 1
        self._set_deadline()
        try:
            yield
        finally:
            self._waiting -= 1
            self._since = self._clock.monotonic()
            self._set_deadline()

    def _set_deadline(self) -> None:
        if self._scope is None:
            return
        left = None if self._waiting else self._left()
        self._scope.deadline = float("inf") if left is None else anyio.current_time() + left
