"""The TOML tables that a blueprint and the user's config may both hold, as they are after loading.

A field's type and marks say what its TOML may look like (`toml/shapes.py`), and the text below it is what
editors show: the JSON Schemas in `config/` are made from these classes.
"""

from dataclasses import field
from typing import Annotated, Literal, TypeAlias

from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.toml import shapes
from agentctl.toml.shapes import (
    Bytes,
    Count,
    ModelName,
    Name,
    OneOrMore,
    Positive,
    Range,
    Seconds,
    Text,
    Texts,
)
from agentctl.toml.table import Table

Word: TypeAlias = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBudgetTable:
    """Ceilings on what one run may write, its sub-agents included. None leaves the next layer's ceiling."""

    per_call: Bytes | None = None
    """Bytes that one tool call may write; 16 MiB where nobody says."""
    per_run: Bytes | None = None
    """Bytes that the run may write; 256 MiB where nobody says."""
    files: Count | None = None
    """Files that the run may make or change; 500 where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsTable:
    """Hard stops for one run, its sub-agents included. The lowest over user, blueprint and stage holds."""

    steps: Positive | None = None
    """Model calls; 100 where nobody says."""
    tokens: Positive | None = None
    """Tokens in and out, as the provider counts them."""
    cost_usd: Annotated[float, Range(minimum=0)] | None = None
    """US dollars. A model without a known price is refused, unless `unknown_price = "allow"`."""
    unknown_price: Literal["refuse", "allow"] | None = None
    """What a money ceiling does with a model whose price is not known."""
    wall_time: Seconds | None = None
    """Seconds from start to end, waiting for a person not counted."""
    subagents: Count | None = None
    """Sub-agents that may be started in all; 16 where nobody says."""
    depth: Count | None = None
    """How deep sub-agents may nest; 3 where nobody says."""
    interaction_timeout: Seconds | None = None
    """Seconds until a question to a person expires; one hour where nobody says, 0 waits for ever."""
    calls: dict[str, Count] = field(default_factory=dict)
    """How many calls that a rule matches may run: `"shell(git push *)" = 1`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxTable:
    """The boundary that the operating system enforces around processes. None leaves the next layer's word."""

    kind: Literal["auto", "bubblewrap", "landlock", "seatbelt", "none"] | None = None
    """Which sandbox; `auto` takes the best one that works here."""
    network: bool | None = None
    """Whether processes may open connections."""
    read: tuple[str, ...] | None = None
    """Directories outside the workdir that processes may read; everything but hidden places where not set."""
    write: tuple[str, ...] | None = None
    """Directories outside the workdir that processes may write."""
    hide: tuple[str, ...] = ()
    """Paths that processes must not see, beyond credential stores, which are always hidden."""
    on_unavailable: Literal["error", "warn"] | None = None
    """What to do where no sandbox works: stop, or go on without and ask for every shell call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOauthTable:
    """How runs authorise themselves at a server that speaks OAuth; an empty table means by a login."""

    grant: Literal["login", "client_credentials", "identity_assertion"] = "login"
    """`login` uses what `agentctl mcp login NAME` left; the others need no person."""
    client_id: str = ""
    """As the service registered it, or the https address of a client document; empty registers anew."""
    client_secret: str = ""
    """What belongs to `client_id`; `${NAME}` takes an environment variable."""
    private_key: str = ""
    """A PEM text that signs in place of the secret; `${NAME}` takes an environment variable."""
    algorithm: Literal["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"] = "RS256"
    """How `private_key` signs."""
    issuer: str = ""
    """The service that the client's secret is for, as it names itself; nobody else gets to see it."""
    scope: str = ""
    """Scopes to ask for, with spaces between; what the service names where empty."""
    id_token: str = ""
    """For `identity_assertion`: who you are to your identity provider; `${NAME}` takes a variable."""
    exchange: str = ""
    """For `identity_assertion`: the provider's address where `id_token` is exchanged for the server's own."""
    exchange_client_id: str = ""
    """Who agentctl is to the identity provider, where it asks."""
    exchange_client_secret: str = ""
    """What belongs to `exchange_client_id`; `${NAME}` takes an environment variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerTable:
    """An MCP server whose tools a run may use, named `server__tool`. Give `command` or `url`."""

    name: Name
    """The server's name in tool names, rules and `available_connectors`."""
    command: tuple[str, ...] = ()
    """Program and arguments of a server that speaks over its standard streams."""
    url: str = ""
    """Address of a server that speaks streamable HTTP."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers for `url`; `${NAME}` takes an environment variable, in the user's config only."""
    oauth: McpOauthTable | None = None
    """OAuth for `url`, in the user's config only."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables for `command`; `${NAME}` takes one of agentctl's own, in the user's config only."""
    cwd: str = ""
    """Where `command` starts, relative to the file that names it; the workdir where empty."""
    required: bool = False
    """Whether a run ends with exit 8 when the server is not there."""
    startup_timeout: Seconds = 30.0
    """Seconds until a server that has not answered counts as missing."""
    call_timeout: Seconds = 120.0
    """Seconds until a tool call without an answer is given up."""
    sandbox: bool = False
    """Whether `command` runs inside the run's sandbox."""
    sampling: bool = False
    """Whether the server may ask for model calls, through the policy and the budgets of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTestCall:
    """A tool call written out, for a policy test."""

    tool: str
    """The tool's name."""
    arguments: JsonObject = field(default_factory=dict)
    """Its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTestTable:
    """A call and the verdict that the effective policy must give it; run by `agentctl check`."""

    call: str | PolicyTestCall
    """`"shell(git push origin x)"` (line, path, host or agent in brackets), or `{ tool, arguments }`."""
    expect: Word
    """The verdict: `allow`, `ask` or `deny`."""
    stage: str = ""
    """The stage whose rules apply; the entry stage where empty."""
    because: str = ""
    """Why it must be so; shown when the test fails."""


Effort: TypeAlias = Literal["none", "low", "medium", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTable:
    """The models of an agent or a stage, in order of preference, and how to call them."""

    use: Annotated[tuple[ModelName, ...], OneOrMore()] = ()
    """`provider:model` names; the next one takes over when one fails for good."""
    temperature: Annotated[float, Range(minimum=0, maximum=2)] | None = None
    """Sampling temperature."""
    max_output_tokens: Positive | None = None
    """Tokens that one reply may have."""
    reasoning_effort: Effort | None = None
    """How long the model thinks first, where it can."""
    stop: Texts = ()
    """Texts that end a reply."""
    parallel_tool_calls: bool | None = None
    """Whether one reply may hold several calls."""
    cache: bool | None = None
    """Whether the stable beginning of the prompt is marked for caching."""
    context_window: Positive | None = None
    """Tokens that prompt and reply may have together; the catalogue's number where not set."""
    base_url: Annotated[str, Text(pattern=r"https?://\S+", what="an http or https address")] = ""
    """Where the model is served. From a blueprint it gets no key, and asks first."""
    extra: JsonObject = field(default_factory=dict)
    """Members put into the request body as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStateTable:
    """The string store that the agents of a run share by reference."""

    backend: str | None = None
    """`memory`, `file`, `sqlite`, `redis` or an installed backend; `sqlite` where nobody says."""
    max_bytes: Bytes | None = None
    """Bytes that keys and values may have together; 10 MiB where nobody says."""
    url: str = ""
    """Where the backend is, such as `redis://localhost/0`; a path for `file` and `sqlite`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTable:
    """A hook. Give one of `use`, `command` and `builtin`."""

    name: Name
    """How the journal and `agentctl hooks` name it."""
    use: str = ""
    """A Python class, `hooks/audit.py:Audit` beside the blueprint or `package.module:Audit`."""
    command: tuple[str, ...] = ()
    """Program and arguments: one JSON object on its stdin, one on its stdout."""
    builtin: Literal["redact", "audit", "notify", "read_before_write", ""] = ""
    """A hook that ships with agentctl."""
    events: Texts = ()
    """The events it gets; every one it has a method for where empty. A command needs at least one."""
    tools: Texts = ()
    """Names or globs of tools whose calls it gets; all where empty."""
    timeout: Seconds = 5.0
    """Seconds until the hook counts as failed."""
    on_error: Literal["deny", "continue", "stop"] = "deny"
    """What a failure means: the call is refused, nothing, or the run ends."""
    params: JsonObject = field(default_factory=dict)
    """Given to the hook as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPathsTable:
    """Directories outside the workdir for reading: a blueprint declares them, the user grants them."""

    allow: Texts = ()
    """Paths or path patterns; `~/` is home, a relative one is relative to the workdir."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeRequestsTable:
    """Commands that need no prompt. A blueprint's own are inert until the user writes them down."""

    shell: Texts = ()
    """Words that begin a harmless command, with any further arguments: `"terraform fmt"`."""
    tools: Texts = ()
    """Tools whose asks need no prompt."""


Rules: TypeAlias = Annotated[Table, shapes.Rules()]
ScriptPermissions: TypeAlias = dict[
    Literal["read_file", "write_file", "shell", "http_get", "http_post", "env"],
    Literal["allow", "deny", "inherit"],
]
"""What script tools may call: `allow` in every stage, `inherit` as far as the stage goes, `deny` never."""
"""A `[tool_permissions]` table as written; `policy.rules` reads it."""
