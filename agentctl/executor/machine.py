"""What all runs of one process share: the launcher of commands, the sandboxes, what was written."""

import resource
from contextlib import suppress

import anyio

from agentctl.executor.launcher import Launcher
from agentctl.executor.sandbox import Sandboxes
from agentctl.executor.written import WriteLedger
from agentctl.locations import config_dir, data_dir

_KEPT_FREE = 256
_EACH_TAKES = 6
"""Descriptors of a command while it starts; two while it runs."""
_FEWEST_AT_ONCE = 8
_MOST_AT_ONCE = 4096


class Machine:
    """Made once for a process and handed to each run's executor; closed after the last of them."""

    def __init__(self) -> None:
        self.descriptors = _as_many_descriptors_as_allowed()
        """What a command may have open: the limit this process began with."""
        self.turns = anyio.CapacityLimiter(_commands_at_once())
        """Commands that are waited for at a time; more would run out of descriptors, so they wait."""
        self.launcher = Launcher()
        self.sandboxes = Sandboxes(self.launcher, (config_dir(), data_dir()))
        self.ledger = WriteLedger()

    async def aclose(self) -> None:
        """End the launcher. Idempotent."""
        await self.launcher.aclose()


def _as_many_descriptors_as_allowed() -> int:
    """Lift this process's limit as far as it may be lifted; return what it was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a limit that they then refuse.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def _commands_at_once() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_AT_ONCE
    return max(_FEWEST_AT_ONCE, min(_MOST_AT_ONCE, (soft - _KEPT_FREE) // _EACH_TAKES))
