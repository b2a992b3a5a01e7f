"""Builds an agent's hold on state: cells from the journal, shared state, what its blueprint says of both."""

from agentctl.agent.agent_state import AgentState, LiveState
from agentctl.blueprint.model import Blueprint
from agentctl.journal.states import load_cells
from agentctl.journal.store import Journal
from agentctl.locations import data_dir
from agentctl.run.house import House
from agentctl.settings.settings import Settings
from agentctl.state.backends.opening import StorePlace, open_backend
from agentctl.state.pages import Bounds
from agentctl.state.shared_state import DEFAULT_MAX_BYTES, SharedState
from agentctl.tools.definition import Tool
from agentctl.tools.shared_state import shared_state_tool
from agentctl.tools.state_keys import state_tools


async def open_live_state(journal: Journal, thread_id: str) -> LiveState:
    """Return the committed cells of a thread, for a process that holds its lease."""
    loaded = await load_cells(journal, thread_id)
    return LiveState(thread_id=thread_id, cells=loaded.cells)


def open_store(house: House, blueprint: Blueprint, thread_id: str) -> SharedState:
    """Return the shared state of a thread's runs, closed with the house; touches nothing yet."""
    store = store_of(house.settings, blueprint, thread_id)
    house.stores.append(store)
    return store


def store_of(settings: Settings, blueprint: Blueprint | None, thread_id: str) -> SharedState:
    """Return the shared state of a thread's runs; touches nothing yet.

    The user's config wins over the blueprint for where it is kept; the lower size holds.

    Raises:
        UsageError: the backend is unknown or not installed.
    """
    user = settings.config.shared_state
    tables = [user, blueprint.shared_state] if blueprint else [user]
    chosen = next((table for table in tables if table.backend or table.url), None)
    sizes = [table.max_bytes for table in tables if table.max_bytes is not None]
    place = StorePlace(space=thread_id, folder=data_dir(), url=chosen.url if chosen else "")
    backend = open_backend((chosen.backend if chosen else None) or "sqlite", place)
    return SharedState(min(sizes, default=DEFAULT_MAX_BYTES), backend=backend)


def tools_of(state: AgentState, bounds: Bounds) -> tuple[Tool, ...]:
    """Return the tools that work on state; stages offer those they list."""
    keys = state_tools(state) if state.plan.keys.definitions else ()
    return (shared_state_tool(state.store_of, bounds), *keys)
