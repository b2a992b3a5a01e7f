"""A loaded blueprint. Field names are the TOML keys; types and marks say what the TOML may look like.

Nothing here is checked against the machine: `load` makes these from a file, `check` lints them.
"""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from agentctl.blueprint.state_tables import (
    MachineTable,
    StateEffectTable,
    StateKeyTable,
    WorkspaceTable,
)
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
from agentctl.toml.shapes import (
    SET_BY_LOADER,
    Bytes,
    CodeName,
    Count,
    JsonSchema,
    Name,
    OneOrMore,
    Pointer,
    Positive,
    Range,
    Shorthand,
    Texts,
)
from agentctl.toml.table import EMPTY, Table

FoundBy: TypeAlias = Literal["path", "shipped", "user"]
"""A blueprint was named by its path, or found by name among the shipped ones or the user's own."""

Condition: TypeAlias = Literal["error", "max_steps", "stuck", "dead_end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTable:
    """Who the agent is, and what holds in all of its stages."""

    name: Name
    """The agent's name; `[agents.NAME]` in the user's config is for it."""
    description: str = ""
    """One line for `agentctl blueprints list` and for agents that may start this one."""
    version: str = ""
    """The blueprint's own version, for people."""
    entry_stage: str = ""
    """Where a run begins; the first stage of the file where empty."""
    prompt: str = ""
    """Stands in front of every stage's prompt."""
    tool_concurrency: Positive = 4
    """How many calls of one step run at the same time, unless the stage says otherwise."""
    workspace: Annotated[tuple[Pointer, ...], OneOrMore()] = ()
    """Parts of the state document that every stage's model sees."""
    views: tuple[CodeName, ...] = ()
    """Functions that render working views for every stage."""
    dynamic_tools: bool = False
    """Whether script tools that are written while it runs are offered from the next step on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTable:
    """A value that the caller gives with `-i NAME=VALUE`; `{inputs.NAME}` in a prompt stands for it."""

    description: str = ""
    """What to give; shown when it is missing."""
    required: bool = True
    """Whether a run without it is refused; an input with a default is never missing."""
    default: str | None = None
    """The value where none is given."""
    choices: Texts = ()
    """The only values that are taken, where not empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTable:
    """How the conversation is kept inside the model's window."""

    compact_at: Annotated[float, Range(minimum=0.1, maximum=0.95)] = 0.8
    """The share of the window at which old tool results are cut, then old steps summarised."""
    keep_recent: Positive = 6
    """Steps at the end that are never cut or summarised."""
    tool_output_max_lines: Positive = 400
    """Lines of a tool result that the model sees; the rest is stashed."""
    tool_output_max_bytes: Bytes = 32768
    """Bytes of a tool result that the model sees; the rest is stashed."""
    stash: bool = True
    """Whether what was cut can be read back through shared state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionTable:
    """An edge to another stage. Without a condition the model takes it."""

    to: str = field(default="", metadata=SET_BY_LOADER)
    """The stage it leads to: the last part of its table's name."""
    hint: str = ""
    """What the model reads: when to take it."""
    condition: Condition | None = None
    """What the harness sees that takes it; the model is not offered an edge with a condition."""
    carry: Literal["all", "clear", "summary"] = "all"
    """What of the conversation goes along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionPointTable:
    """A question to a person when the stage ends, before the next one begins."""

    name: Name
    """How the journal and `agentctl approvals` name it."""
    prompt: str
    """The question."""
    options: tuple[str, ...] = ("Approve", "Abort")
    """The answers to choose from; one that is in none of the lists below means: go on."""
    abort_options: Texts = ()
    """Answers that end the run."""
    edit_options: Texts = ()
    """Answers that open the document in the editor."""
    directives: dict[str, str] = field(default_factory=dict)
    """Answer → words to the model, with which the stage goes on; at most 4 rounds."""
    document: str = ""
    """What the person reviews and can edit: a pointer into the state document, or a file of the workdir."""
    unattended: Literal["auto_approve", "ask"] = "ask"
    """What happens where nobody is there: go on, or follow `--on-ask`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStateTable:
    """The state keys that the stage's model may use through `state_get` and `state_set`."""

    read: Texts = ()
    """Names of `[[state_keys]]`."""
    write: Texts = ()
    """Names of `[[state_keys]]`; those can be read, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSharedStateTable:
    """What the stage sees of the run's shared state."""

    scope: str = ""
    """The only part of the store that it sees; the agent's whole view where empty."""
    read: Texts = ()
    """Keys outside the scope that it may read; a last `*` is any further characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutTable:
    """Many workers over many items, for a stage with `mode = "fan_out"`."""

    worker: str
    """A blueprint, or a stage of this one marked `allow_as_worker`."""
    max_workers: Positive = 8
    """Workers at the same time."""
    max_items: Positive | None = None
    """The most items that are taken."""
    on_failure: Literal["continue", "fail_all"] = "continue"
    """Whether one failed worker ends the others."""
    scope: str = ""
    """The scope of shared state for each worker; `{worker}` stands for its number."""
    read: Texts = ()
    """Keys of the stage's shared state that each worker may read; a last `*` is any further characters."""
    output_schema: Annotated[JsonObject, JsonSchema()] | None = None
    """JSON Schema of each worker's answer, which it gives with `submit_output`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTable:
    """One node of the blueprint's graph."""

    name: str = field(default="", metadata=SET_BY_LOADER)
    """The last part of its table's name."""
    index: int = field(default=0, metadata=SET_BY_LOADER)
    """Its place in the file, from 0."""
    prompt: str = ""
    """What the model is told to do here."""
    description: str = ""
    """One line for people."""
    mode: Literal["agent", "fan_out"] = "agent"
    """`fan_out` is a stage that splits its job among workers, described by `fan_out`."""
    model: Annotated[ModelTable, Shorthand("use")] | None = None
    """The stage's own models; the blueprint's where not set. A name or a list of names is enough."""
    available_tools: Texts = ()
    """The tools that the model is offered; names or globs. Other keys bring their own, such as `state`."""
    available_connectors: Texts = ()
    """MCP servers whose tools are offered as well."""
    required_tools: Texts = ()
    """Tools that wait for a person and stay offered when nobody is there."""
    tool_permissions: Rules = EMPTY
    """Rules of this stage: for the tools they name they stand in place of the blueprint's."""
    max_steps: Positive | None = None
    """Model calls until the stage ends as `max_steps`."""
    max_revisits: Count | None = None
    """How often the stage may be entered again."""
    tool_concurrency: Positive | None = None
    """How many calls of one step run at the same time."""
    transitions: dict[Name, TransitionTable] = field(default_factory=dict)
    """Edges, by the stage they lead to, in file order. Without any the run ends here."""
    output: Annotated[JsonObject, JsonSchema()] | None = None
    """JSON Schema of the stage's answer, given with `submit_output`."""
    interaction_points: tuple[InteractionPointTable, ...] = ()
    """Questions to a person when the stage ends, in this order."""
    state: StageStateTable = field(default_factory=StageStateTable)
    """State keys that the model may read and write."""
    shared_state: StageSharedStateTable = field(default_factory=StageSharedStateTable)
    """What it sees of shared state."""
    workspace: Annotated[tuple[Pointer, ...], OneOrMore()] | None = None
    """Parts of the state document that the model sees; the agent's where not set."""
    views: tuple[CodeName, ...] | None = None
    """Functions that render working views; the agent's where not set."""
    allow_as_worker: bool = False
    """Whether `spawn_agent` and `fan_out` may run this stage as a sub-agent."""
    requires_children: bool = False
    """Whether the stage ends only when all its sub-agents have ended."""
    fan_out: FanOutTable | None = None
    """The workers of a `fan_out` stage."""
    accepts_messages: bool = True
    """Whether `agentctl msg` reaches the model here; held back until the next stage where not."""
    limits: LimitsTable = field(default_factory=LimitsTable)
    """Limits while in this stage."""
    sandbox: SandboxTable | None = None
    """The stage's sandbox; can only tighten."""

    @property
    def offers(self) -> tuple[str, ...]:
        """Names and globs of the tools that the model is offered, those that other keys bring too. Pure."""
        read = ("state_get",) if self.state.read or self.state.write else ()
        write = ("state_set",) if self.state.write else ()
        return (*self.available_tools, *read, *write)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTable:
    """A scripted model, so that the blueprint runs offline as `scripted:`."""

    file: str = ""
    """A TOML file beside the blueprint that holds the replies; `NAME.script.toml` is found without this."""
    replies: tuple[Table, ...] = ()
    """The replies themselves, as written; `llm.scripted` reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The file that a blueprint came from."""

    path: Path
    """Absolute and resolved."""
    text: str
    """The whole TOML."""
    sha256: str
    """Hex digest of the file's bytes."""
    found_by: FoundBy
    table: Table
    """The whole file as plain values with positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """A whole blueprint, valid by itself."""

    source: Source = field(metadata=SET_BY_LOADER)
    """The file it came from, and where everything stands in it."""
    agent: AgentTable
    """Who the agent is."""
    inputs: dict[Name, InputTable] = field(default_factory=dict)
    """Values that the caller gives."""
    model: Annotated[ModelTable, Shorthand("use")] = field(default_factory=ModelTable)
    """The models of all stages that name none."""
    tool_permissions: Rules = EMPTY
    """Rules for all stages."""
    tool_script_permissions: ScriptPermissions = field(default_factory=dict)
    """What script tools may call; the rules judge each of their calls besides."""
    safe_commands: SafeRequestsTable = field(default_factory=SafeRequestsTable)
    """A request: inert until the user writes the same into their config."""
    read_paths: ReadPathsTable = field(default_factory=ReadPathsTable)
    """Directories outside the workdir that the agent wants to read; the user must grant them."""
    write_budget: WriteBudgetTable = field(default_factory=WriteBudgetTable)
    """Ceilings on what a run may write."""
    limits: LimitsTable = field(default_factory=LimitsTable)
    """Hard stops of a run."""
    context: ContextTable = field(default_factory=ContextTable)
    """How the conversation is kept inside the model's window."""
    sandbox: SandboxTable | None = None
    """The sandbox of all stages; can only tighten what the user set."""
    stages: dict[Name, StageTable]
    """The graph, in file order."""
    policy_tests: tuple[PolicyTestTable, ...] = ()
    """Calls and the verdicts they must get."""
    state_keys: tuple[StateKeyTable, ...] = ()
    """Typed cells of state."""
    state_effects: tuple[StateEffectTable, ...] = ()
    """What successful tool calls write into the state document."""
    workspace: WorkspaceTable = field(default_factory=WorkspaceTable)
    """The state document."""
    shared_state: SharedStateTable = field(default_factory=SharedStateTable)
    """The string store that the run's agents share."""
    hooks: tuple[HookTable, ...] = ()
    """Hooks, in the order in which they are called."""
    machines: tuple[MachineTable, ...] = ()
    """State machines over tool calls."""
    mcp_servers: tuple[McpServerTable, ...] = ()
    """MCP servers that the agent brings; they start only when the user trusts them."""
    script: ScriptTable | None = None
    """A scripted model for offline use."""

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent.name

    @property
    def entry(self) -> StageTable:
        """The stage in which a run begins."""
        return self.stages[self.agent.entry_stage] if self.agent.entry_stage else self.in_order[0]

    @property
    def in_order(self) -> tuple[StageTable, ...]:
        """The stages in file order; a stage's `index` is its place here."""
        return tuple(self.stages.values())
