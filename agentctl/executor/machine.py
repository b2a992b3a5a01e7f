"""What all runs of one process share: the launcher of commands, the sandboxes, facts about the disks."""

from pathlib import Path

from agentctl.executor.api import WorkdirState
from agentctl.executor.launcher import Launcher
from agentctl.executor.measure import DiskFacts
from agentctl.executor.sandbox import Sandboxes
from agentctl.locations import config_dir, data_dir


class Machine:
    """Made once for a process and handed to each run's executor; closed after the last of them."""

    def __init__(self) -> None:
        self.launcher = Launcher()
        self.sandboxes = Sandboxes(self.launcher, (config_dir(), data_dir()))
        self.disks = DiskFacts()
        self.states: dict[tuple[Path, ...], WorkdirState] = {}
        """The last state of each workdir that was measured."""

    async def aclose(self) -> None:
        """End the launcher. Idempotent."""
        await self.launcher.aclose()
