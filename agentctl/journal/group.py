"""Many callers, one disk flush: whoever comes first writes, and takes along all who came meanwhile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import anyio.to_thread

from agentctl.errors import AgentctlError

Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class Waiting:
    """One caller's job and what became of it. The writer runs `job`, or fills in `error`."""

    job: Callable[[], None]
    error: AgentctlError | None = None
    leads: bool = False
    woken: anyio.Event = field(default_factory=anyio.Event)


class GroupWriter:
    """Runs whole batches of jobs in a thread: never two batches at once, jobs in the order of the calls."""

    def __init__(self, write: Callable[[Sequence[Waiting]], None]) -> None:
        self._write = write
        self._queue: list[Waiting] = []
        self._busy = False
        # One thread of our own: the default limiter may be full of tools that read files.
        self._limiter = anyio.CapacityLimiter(1)

    async def submit(self, job: Callable[[], Result]) -> Result:
        """Return what `job` returned, after its batch is durable. Not cancelled once begun.

        Raises:
            AgentctlError: what the job raised, or why its batch could not be written.
        """
        results: list[Result] = []
        waiting = Waiting(lambda: results.append(job()))
        self._queue.append(waiting)
        with anyio.CancelScope(shield=True):
            if self._busy:
                await waiting.woken.wait()
            else:
                self._busy = waiting.leads = True
            if waiting.leads:
                await self._lead()
        if waiting.error is not None:
            raise waiting.error
        return results[0]

    async def _lead(self) -> None:
        batch, self._queue = self._queue, []
        try:
            await anyio.to_thread.run_sync(self._write, batch, limiter=self._limiter)
        finally:
            # The lead passes on, so that no caller writes for others for ever.
            self._busy = bool(self._queue)
            if self._queue:
                self._queue[0].leads = True
                self._queue[0].woken.set()
            for waiting in batch:
                waiting.woken.set()
