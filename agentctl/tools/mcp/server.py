"""Words for tool servers: what to start, what it offers, and how a running one is spoken to."""

from dataclasses import field
from pathlib import Path
from typing import Literal, Protocol

from agentctl.errors import ToolError
from agentctl.executor.file_types import Roots
from agentctl.executor.sandbox_policy import SandboxPolicy
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, ToolOutput

Reading = Literal["list_resources", "read_resource", "list_prompts", "get_prompt"]
"""What can be asked of a server besides calling its tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OauthPlan:
    """How runs authorise themselves at a server that speaks OAuth."""

    grant: Literal["login", "client_credentials", "identity_assertion"] = "login"
    client_id: str = ""
    """As the service registered it, or the https address of a document about the client; empty registers."""
    client_secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    """PEM text; signs an assertion in place of the secret."""
    algorithm: str = "RS256"
    issuer: str = ""
    """The only service that gets to see the client's secret or assertion."""
    scope: str = ""
    id_token: str = field(default="", repr=False)
    exchange: str = ""
    """Where the identity provider exchanges `id_token` for an assertion to the server's own service."""
    exchange_client_id: str = ""
    exchange_client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """One server, ready to be started: `command` or `url`. Equal plans can share one running server."""

    name: str
    position: str
    """Where it is written down, for messages."""
    command: tuple[str, ...] = ()
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    oauth: OauthPlan | None = None
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """On top of the environment that every command gets."""
    cwd: Path | None = None
    """Absolute; the workdir where None."""
    pinned: tuple[tuple[Path, str], ...] = ()
    """Trusted files of the command, and the SHA-256 that each must have whenever it is started."""
    roots: Roots
    required: bool = False
    startup_timeout_s: float = 30.0
    call_timeout_s: float = 120.0
    sandbox: SandboxPolicy
    sampling: bool = False
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Values that came from the environment, each with the `${NAME}` to show in its place."""
    fault: str = ""
    """Why it cannot be started at all, such as a variable that is not set."""

    def told(self, text: str) -> str:
        """Return `text` with every secret replaced by its name. Pure."""
        for value, shown in self.secrets:
            text = text.replace(value, shown)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTool:
    """A tool as its server describes it."""

    name: str
    """The server's own name for it; any text."""
    title: str = ""
    description: str = ""
    parameters: JsonObject
    results: JsonObject | None = None
    """JSON Schema of its structured results, where the server gives one."""
    hints: tuple[str, ...] = ()
    """What the server says of it (`destructive`, `read-only`); believed only where it makes us careful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a server has."""

    tools: tuple[RemoteTool, ...] = ()
    readings: tuple[Reading, ...] = ()
    """Which of its resources and prompts can be read."""


@dataclass(slots=True, kw_only=True)
class Report:
    """What is known of a server besides what it answers; filled in while it is spoken to."""

    stderr: str = ""
    """The last of what it wrote on standard error."""
    exit_code: int | None = None
    stray_lines: int = 0
    """Lines on its standard output that are not of the protocol."""
    first_stray: str = ""
    last_stray: str = ""
    fault: str = ""
    """Why the connection was given up, where that was our decision."""
    http_status: int = 0
    """The last one that was an error; 0 for none."""

    def last_words(self) -> str:
        """Return what explains an end: exit code and complaint; empty when nothing is known."""
        parts = [self.fault] if self.fault else []
        if self.exit_code is not None:
            parts.append(f"it ended with exit code {self.exit_code}")
        if self.http_status:
            parts.append(self.http_words())
        if self.stderr.strip():
            parts.append(f"its last words: {self.stderr.strip()[-2000:]}")
        return "; ".join(parts)

    def http_words(self) -> str:
        """Return what the last HTTP error says; empty when there was none."""
        if not self.http_status:
            return ""
        wants = "; it wants headers or [mcp_servers.oauth]" if self.http_status in {401, 403} else ""
        return f"it answered with HTTP status {self.http_status}{wants}"


class ServerFailed(Exception):
    """A server did not start, broke the protocol, or is gone; the text says what is known."""


class ServerGone(ToolError):
    """The server ended while it was asked."""

    did_nothing: bool = False
    """The server refused the request itself: nothing of it happened."""


class Session(Protocol):
    """A running server."""

    async def offer(self) -> Offer:
        """Return what it has now.

        Raises:
            ServerFailed: it refused, or what it said is not of the protocol.
        """

    async def call(self, tool: str, arguments: JsonObject, context: ActContext) -> ToolOutput:
        """Call a tool and return its answer. Cancelling tells the server; others go on.

        Raises:
            ToolError: it failed, or timed out; names the server.
            ServerGone: the server ended meanwhile, and why is not known yet.
        """

    async def read(self, what: Reading, arguments: JsonObject, context: ActContext) -> ToolOutput:
        """List or read resources or prompts.

        Raises:
            ToolError: as `call`.
        """

    async def changed(self) -> None:
        """Return when the server says that what it offers has changed since the last time."""

    async def over(self) -> None:
        """Return when the server is gone, or the connection was given up."""
