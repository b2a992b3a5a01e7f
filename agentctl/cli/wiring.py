"""Builds the concrete parts that all runs of a process share. The only place that does."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agentctl.blueprint.model import Blueprint
from agentctl.cli.providers import local_obstacle, provider_config
from agentctl.clock import SystemClock
from agentctl.executor.local import open_executor
from agentctl.interaction.hub import Hub
from agentctl.journal.sqlite import open_journal
from agentctl.llm.providers import Providers
from agentctl.locations import data_dir
from agentctl.run.house import House
from agentctl.settings.settings import Settings
from agentctl.state.shared_state import SharedState
from agentctl.tools.mcp.pool import open_pool
from agentctl.tools.script.workshop import Workshop


@asynccontextmanager
async def open_house(settings: Settings, blueprint: Blueprint) -> AsyncIterator[House]:
    """Give the shared parts; close all of them at the end, processes first.

    Raises:
        StateConflict: the journal is damaged or of a newer agentctl.
    """
    clock = SystemClock()
    models = provider_config(settings, blueprint, clock)  # first: it may fail, and nothing is open yet
    providers = Providers(models)
    journal = await open_journal(data_dir() / "journal.sqlite", clock=clock)
    temp = _temp_folder()
    environ = dict(os.environ)
    executor = open_executor(environment=environ, passed=settings.config.environment.pass_)
    workshop = Workshop(environ=environ, passed=settings.config.environment.pass_)
    stores: list[SharedState] = []
    try:
        async with open_pool(executor) as servers:
            yield House(
                settings=settings,
                journal=journal,
                providers=providers,
                executor=executor,
                hub=Hub(clock),
                clock=clock,
                temp=temp,
                has_script=models.script is not None,
                local_obstacle=local_obstacle,
                environ=environ,
                servers=servers,
                workshop=workshop,
                stores=stores,
            )
    finally:
        for store in stores:
            await store.aclose()
        await workshop.aclose()
        await executor.aclose()
        await providers.aclose()
        await journal.aclose()
        shutil.rmtree(temp, ignore_errors=True)


def _temp_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="agentctl-")).resolve()
