"""Logging in at an MCP server: an address to open, and the browser's way back to this machine."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field
from urllib.parse import urlsplit

import anyio
import typer
from anyio.abc import SocketAttribute, SocketStream

from agentctl.errors import ToolServerMissing, UsageError
from agentctl.executor.local import open_executor
from agentctl.records import dataclass
from agentctl.settings.settings import Settings
from agentctl.tools.mcp.line import Line
from agentctl.tools.mcp.logins import LoginFile
from agentctl.tools.mcp.opening import load_wire
from agentctl.tools.mcp.server import ServerPlan

_MOST_HEAD = 65_536
_DONE = b"You can close this page and go back to the terminal.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserDoor:
    """Shows the address on the terminal and listens for the browser on this machine alone."""

    redirect_uri: str
    queries: list[str] = field(default_factory=list)
    came: anyio.Event = field(default_factory=anyio.Event)

    async def open(self, address: str) -> None:
        """Show the address; nothing is opened in a person's place."""
        typer.echo(f"Open this address and log in; this command waits for it:\n\n  {address}\n", err=True)

    async def came_back(self) -> str:
        """Return the query of the first call to the redirect address."""
        await self.came.wait()
        return self.queries[0]

    async def take(self, stream: SocketStream) -> None:
        """Answer one request of the browser."""
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head and len(head) < _MOST_HEAD:
                try:
                    head += await stream.receive()
                except anyio.EndOfStream:
                    return
            words = head.split(b" ", 2)
            target = urlsplit(words[1].decode("ascii", "replace")) if len(words) > 1 else urlsplit("")
            found = target.path == "/callback"
            status = b"200 OK" if found else b"404 Not Found"
            length = str(len(_DONE)).encode()
            await stream.send(
                b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                b"Content-Length: " + length + b"\r\n\r\n" + _DONE
            )
            if found and not self.came.is_set():
                self.queries.append(target.query)
                self.came.set()


@asynccontextmanager
async def _door() -> AsyncIterator[BrowserDoor]:
    # SAFETY: loopback only; the state in the answer is checked, so another program's guess is refused.
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django
    door = BrowserDoor(redirect_uri=f"http://127.0.0.1:{port}/callback")
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, door.take)
        try:
            yield door
        finally:
            group.cancel_scope.cancel()
            await listener.aclose()


async def log_in(settings: Settings, plan: ServerPlan) -> int:
    """Reach a server with somebody there to log in; return how many tools it offers. The login is kept.

    Raises:
        UsageError: the server takes no login.
        ToolServerMissing: it cannot be reached, or the login was refused.
    """
    if plan.oauth is None or plan.oauth.grant != "login":
        raise UsageError(
            f"{plan.name!r} takes no login.", hint=f"write [mcp_servers.oauth] under it, at {plan.position}"
        )
    LoginFile(url=plan.url).forget()
    executor = open_executor(environment=dict(os.environ), passed=settings.config.environment.pass_)
    tools, why = 0, ""
    try:
        async with _door() as door, anyio.create_task_group() as group:
            line = Line(plan=plan, executor=executor, load=load_wire, door=door)
            group.start_soon(line.serve)
            await line.settled()
            tools, why = len(line.offer.tools), "" if line.session is not None else await line.gone()
            await line.stop()
    finally:
        await executor.aclose()
    if why:
        raise ToolServerMissing(f"No login at {plan.name!r}: {why}")
    return tools
