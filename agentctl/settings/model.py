"""The user's config as loaded. Field names are the TOML keys; types and marks say what is taken."""

from dataclasses import field
from typing import Annotated, Literal

from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tables.declared import (
    HookTable,
    LimitsTable,
    McpServerTable,
    ModelTable,
    PolicyTestTable,
    ReadPathsTable,
    Rules,
    SafeRequestsTable,
    SandboxTable,
    ScriptPermissions,
    SharedStateTable,
    WriteBudgetTable,
)
from agentctl.toml.shapes import Name, Positive, Seconds, Shorthand, Text, Texts, written_as
from agentctl.toml.table import EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfigTable:
    """What the user says about one agent, `[agents.NAME]`."""

    tool_permissions: Rules = EMPTY
    """Rules for this agent, before the general ones. They loosen only for a blueprint found by its name."""
    read_paths: ReadPathsTable = field(default_factory=ReadPathsTable)
    """Directories outside the workdir that this agent may read, where its blueprint declares them."""
    model: Annotated[ModelTable, Shorthand("use")] | None = None
    """The models of this agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedTable:
    """An approval without end, written by the answer *always*."""

    rule: str
    """`TOOL` or `TOOL(PATTERN)`."""
    added: str = ""
    """When it was written, for people."""
    described: str = ""
    """How a tool server described the tool then, as a digest: described otherwise, it is asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityTable:
    """Switches that widen what a blueprint may do."""

    allow_blueprint_permissions: bool = False
    """Whether a blueprint may allow more than the built-in default for tools the user says nothing of."""
    allowed_models: Texts = ()
    """Names or globs, `"anthropic:*"`: the only models that runs may use, whoever asks; all where empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentTable:
    """What child processes get to see of the environment."""

    pass_: Texts = field(default=(), metadata=written_as("pass"))
    """Variables that child processes get although their names look like credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeCommandsTable(SafeRequestsTable):
    """The user's safe list: what is in it needs no prompt."""

    defaults: bool = True
    """Whether the list that ships with agentctl counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSandboxTable(SandboxTable):
    """The user's sandbox: what blueprints can only tighten."""

    auto_allow: bool = False
    """Whether a shell call inside the sandbox needs no prompt of the shell's own."""
    unix_sockets: bool = False
    """Whether processes may make Unix sockets; one that lies on a read-only disk can then be connected to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTable:
    """One model service, `[providers.NAME]`. What is not set comes from the shipped catalogue."""

    protocol: Literal["openai-chat", "openai-responses", "anthropic", "gemini", "ollama", ""] = ""
    """The wire protocol it speaks."""
    base_url: Annotated[str, Text(pattern=r"(https?://\S+)?", what="an http or https address")] = ""
    """Where it is; its key goes to this origin."""
    key_env: Texts = ()
    """Environment variables that may hold the key; the first that is set wins."""
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with every request; `${NAME}` takes an environment variable."""
    query: dict[str, str] = field(default_factory=dict)
    """Added to the address of every request."""
    dialect: JsonObject = field(default_factory=dict)
    """Differences of a service that speaks another's protocol."""
    stream: bool | None = None
    """False asks for whole replies."""
    max_concurrency: Positive | None = None
    """Calls at the same time, over all agents of the process."""
    requests_per_minute: Positive | None = None
    """Calls a minute, over all agents of the process."""
    stall_timeout: Seconds | None = None
    """Seconds without a byte until a call counts as stalled."""
    connect_timeout: Seconds | None = None
    """Seconds to make a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTable:
    """How model services are reached."""

    proxy: str = ""
    """Proxy for all providers; the environment's `HTTPS_PROXY` and `NO_PROXY` where empty."""
    ca_file: str = ""
    """PEM file of further certificate authorities."""
    attempts: Positive | None = None
    """Tries of a failed model call, the first included."""
    max_wait: Seconds | None = None
    """The longest wait between two tries, unless the service asks for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTable:
    """How runs look on the terminal."""

    color: Literal["auto", "always", "never"] = "auto"
    """Colours on a terminal; `NO_COLOR` turns them off."""
    output: Literal["auto", "rich", "plain"] = "auto"
    """`plain` prints lines and no status line; `rich` draws one on a terminal of any kind."""
    editor: str = ""
    """Command that opens a file for editing; `VISUAL` and `EDITOR` where empty."""
    bell: bool = False
    """Whether a waiting question rings the terminal's bell."""
    reasoning: bool = False
    """Whether the model's thinking is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigTable:
    """The whole of `config.toml`. A table that is not written has its defaults."""

    model: Annotated[ModelTable, Shorthand("use")] = field(default_factory=ModelTable)
    """The models of every run that says nothing else."""
    tool_permissions: Rules = EMPTY
    """The user's rules: a ceiling for every blueprint."""
    agents: dict[Name, AgentConfigTable] = field(default_factory=dict)
    """What holds for single agents."""
    read_paths: ReadPathsTable = field(default_factory=ReadPathsTable)
    """Directories outside the workdir that blueprints which declare them may read."""
    tool_script_permissions: ScriptPermissions = field(default_factory=dict)
    """What script tools may call: a ceiling for every blueprint."""
    safe_commands: SafeCommandsTable = field(default_factory=SafeCommandsTable)
    """Commands that need no prompt."""
    remembered: tuple[RememberedTable, ...] = ()
    """Approvals without end."""
    policy_tests: tuple[PolicyTestTable, ...] = ()
    """Calls and the verdicts they must get, for every blueprint."""
    security: SecurityTable = field(default_factory=SecurityTable)
    """Switches that widen what a blueprint may do."""
    limits: LimitsTable = field(default_factory=LimitsTable)
    """Hard stops of every run."""
    write_budget: WriteBudgetTable = field(default_factory=WriteBudgetTable)
    """Ceilings on what a run may write."""
    sandbox: UserSandboxTable = field(default_factory=UserSandboxTable)
    """The sandbox of every run."""
    environment: EnvironmentTable = field(default_factory=EnvironmentTable)
    """What child processes get to see of the environment."""
    providers: dict[
        Annotated[str, Text(pattern=r"[a-z][a-z0-9_-]*", what="a lower-case name")], ProviderTable
    ] = field(default_factory=dict)
    """Model services."""
    models: dict[str, JsonObject] = field(default_factory=dict)
    """`[models."PROVIDER:MODEL"]`: facts that add to or override the model catalogue."""
    network: NetworkTable = field(default_factory=NetworkTable)
    """How model services are reached."""
    mcp_servers: tuple[McpServerTable, ...] = ()
    """MCP servers of every run."""
    hooks: tuple[HookTable, ...] = ()
    """Hooks of every run, called before a blueprint's own."""
    shared_state: SharedStateTable = field(default_factory=SharedStateTable)
    """The store that the agents of a run share, where the blueprint says nothing."""
    terminal: TerminalTable = field(default_factory=TerminalTable)
    """How runs look on the terminal."""
