"""Loads the SDK when the first server is started: it costs most of a second, and few runs need it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anyio.to_thread

from agentctl.executor.api import Executor
from agentctl.tools.mcp.logins import LoginDoor
from agentctl.tools.mcp.server import Report, ServerFailed, ServerPlan, Session

OpenSession = Callable[[ServerPlan, Executor, Report, LoginDoor | None], AbstractAsyncContextManager[Session]]
"""Starts a server and gives it while it runs. Raises ServerFailed; safe to cancel at any moment."""


async def load_wire() -> OpenSession:
    """Return what opens sessions, imported beside the event loop.

    Raises:
        ServerFailed: the SDK is not installed.
    """
    return await anyio.to_thread.run_sync(_load)


def _load() -> OpenSession:
    try:
        from agentctl.tools.mcp.wire.session import open_session  # noqa: PLC0415 - see the first line
    except ModuleNotFoundError as error:
        raise ServerFailed(
            f"MCP servers need the package {error.name!r}; install it with: pip install 'agentctl[mcp]'"
        ) from error
    return open_session
