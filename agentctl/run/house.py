"""What all runs of one process share: journal, model services, the machine, the hub for questions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentctl.clock import Clock
from agentctl.executor.api import Executor
from agentctl.interaction.hub import Hub
from agentctl.journal.store import Journal
from agentctl.llm.providers import Providers
from agentctl.protocol.events import Published
from agentctl.settings.settings import Settings
from agentctl.state.shared_state import SharedState
from agentctl.tools.mcp.pool import ServerPool
from agentctl.tools.script.workshop import Workshop


@dataclass(slots=True, kw_only=True)
class House:
    """The shared parts. Made once, closed once."""

    settings: Settings
    journal: Journal
    providers: Providers
    executor: Executor
    hub: Hub
    clock: Clock
    temp: Path
    """The process's own temp folder; each run gets a folder in it."""
    catalogue_sha256: dict[str, str] = field(default_factory=dict)
    """What stood at each blueprint path when the root run began; nothing else may be started in it."""
    trust: str = ""
    """The `--trust` of the command line."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """What `${NAME}` in the user's `[[mcp_servers]]` stands for."""
    servers: ServerPool | None = None
    """Runs MCP servers; without it runs have none."""
    workshop: Workshop = field(default_factory=Workshop)
    """Runs script tools."""
    stores: list[SharedState] = field(default_factory=list)
    """Shared state that was opened; closed with the house."""
    has_script: bool = False
    """The blueprint brings a script that can answer in a model's place."""
    local_obstacle: Callable[[str], str] = field(default=lambda _name: "")
    """Why an embedded model cannot be had on this machine, or empty."""
    someone_there: Callable[[], bool] = field(default=lambda: False)
    watch: Callable[[Published], None] = field(default=lambda _published: None)

    def temp_of(self, run_id: str) -> Path:
        """Return the run's own temp folder, made when it is not there. May block, briefly."""
        folder = self.temp / run_id
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder
