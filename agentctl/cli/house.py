"""What all runs of one process share: journal, model services, the machine, the hub for questions."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentctl.blueprint.model import Blueprint
from agentctl.cli.providers import provider_config
from agentctl.clock import Clock, SystemClock
from agentctl.executor.api import Executor
from agentctl.executor.local import open_executor
from agentctl.interaction.hub import Hub
from agentctl.journal.sqlite import open_journal
from agentctl.journal.store import Journal
from agentctl.llm.providers import Providers
from agentctl.locations import data_dir
from agentctl.protocol.events import Published
from agentctl.settings.settings import Settings


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
    someone_there: Callable[[], bool] = field(default=lambda: False)
    watch: Callable[[Published], None] = field(default=lambda _published: None)

    def temp_of(self, run_id: str) -> Path:
        """Return the run's own temp folder, made when it is not there. May block, briefly."""
        folder = self.temp / run_id
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder


@asynccontextmanager
async def open_house(settings: Settings, blueprint: Blueprint) -> AsyncIterator[House]:
    """Give the shared parts; close all of them at the end, processes first.

    Raises:
        StateConflict: the journal is damaged or of a newer agentctl.
    """
    clock = SystemClock()
    journal = await open_journal(data_dir() / "journal.sqlite", clock=clock)
    temp = _temp_folder()
    executor = open_executor(environment=dict(os.environ), passed=settings.config.environment.pass_)
    providers = Providers(provider_config(settings, blueprint, clock))
    try:
        yield House(
            settings=settings,
            journal=journal,
            providers=providers,
            executor=executor,
            hub=Hub(clock),
            clock=clock,
            temp=temp,
        )
    finally:
        await executor.aclose()
        await providers.aclose()
        await journal.aclose()
        shutil.rmtree(temp, ignore_errors=True)


def _temp_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="agentctl-")).resolve()
