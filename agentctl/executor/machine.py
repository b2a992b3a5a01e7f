"""What all runs of one process share: the launcher of commands, the sandboxes, what was written."""

from agentctl.executor.launcher import Launcher
from agentctl.executor.sandbox import Sandboxes
from agentctl.executor.written import WriteLedger
from agentctl.locations import config_dir, data_dir


class Machine:
    """Made once for a process and handed to each run's executor; closed after the last of them."""

    def __init__(self) -> None:
        self.launcher = Launcher()
        self.sandboxes = Sandboxes(self.launcher, (config_dir(), data_dir()))
        self.ledger = WriteLedger()

    async def aclose(self) -> None:
        """End the launcher. Idempotent."""
        await self.launcher.aclose()
