"""The blueprint's tables about state: keys, effects, the document, and machines over tool calls."""

from dataclasses import field
from typing import Annotated, Literal

from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.toml.shapes import (
    Bytes,
    CodeName,
    Count,
    JsonSchema,
    Name,
    OneOrMore,
    Pointer,
    Positive,
    Shorthand,
    Text,
    Texts,
    written_as,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateKeyTable:
    """A typed cell of state."""

    name: Annotated[
        str,
        Text(
            pattern=r"[A-Za-z][A-Za-z0-9_./-]{0,127}",
            what="a letter, then letters, digits or any of `_ . / -`",
        ),
    ]
    """The key; a part of the stored format, so a new name needs `agentctl state migrate`."""
    scope: Literal["run", "thread", "shared", "profile"] = "run"
    """How long it lives; `shared` and `profile` are address spaces within the thread."""
    merge: Literal["disjoint", "commutative", "exclusive", "fold"] = "disjoint"
    """How several writes in one commit combine."""
    fold: str = ""
    """For `merge = "fold"`: `sum`, `max`, `min`, `append`, `union`, or `module:function`."""
    schema: Annotated[JsonObject, JsonSchema()] = field(default_factory=dict)
    """JSON Schema of the value; anything where empty."""
    default: JsonValue = None
    """The value of an absent cell."""
    version: Positive = 1
    """Raise it when the schema changes."""
    description: str = ""
    """For people, and for the model that may use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOperationTable:
    """One JSON Patch operation in which `{name}` takes a member of the result."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    """The operation, as in RFC 6902."""
    path: str
    """Where it acts."""
    from_: str = field(default="", metadata=written_as("from"))
    """Where `move` and `copy` take the value from."""
    value: JsonValue = None
    """The value for `add`, `replace` and `test`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEffectTable:
    """What a tool's successful call writes into the state document. Give one of `path`, `mapper`, `ops`."""

    tool: str
    """The tool's name, or a glob over names."""
    path: Pointer = ""
    """Where the whole result goes; missing parents are made."""
    mapper: CodeName = ""
    """A function from StateEffectCall to JSON Patch operations."""
    each: Pointer = ""
    """For `ops`: a list in the result, for each item of which the operations run."""
    ops: tuple[PatchOperationTable, ...] = ()
    """JSON Patch operations with `{name}` in them."""
    on_error: Literal["warn", "fail"] = "warn"
    """Whether an effect that can't be applied ends the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceTable:
    """The JSON document of a thread that effects patch and views show."""

    initial: JsonObject = field(default_factory=dict)
    """The document of a fresh thread."""
    owner: Annotated[tuple[Pointer, ...], OneOrMore()] = ()
    """The only places where effects may write; everywhere where empty."""
    max_bytes: Bytes = 262144
    """Bytes that the document may have as compact JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhenTable:
    """How a call must have ended for a machine to move."""

    status: Literal["any", "success", "error"] = "success"
    """The call's outcome."""
    content: str = ""
    """A glob that the result's text must match; anything where empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTable:
    """Bounds on a machine's counter, both inclusive."""

    gte: Count | None = None
    """At least."""
    lte: Count | None = None
    """At most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTable:
    """What a machine remembers when it moves."""

    capture: dict[str, str] = field(default_factory=dict)
    """Name → template over the call's arguments."""
    increment: Texts = ()
    """Counters to raise by one."""
    reset: Texts = ()
    """Counters to set to zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitTable:
    """Words to the model when a machine moves."""

    content: str
    """The text; `{name}` takes an argument or a captured value."""
    target: Literal["result", "context"] = "result"
    """At the end of the call's result, or as a message of its own."""
    cooldown: Count = 0
    """Steps until the same words may be said again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTransitionTable:
    """One move of a machine."""

    on: str
    """Calls: a tool's name or a glob over names, `shell(pytest *)` or `edit_file(path ~ "src/*")`; or
    `event:before_model`, `event:after_model`."""
    from_: Texts = field(metadata=written_as("from"))
    """The states it is allowed in."""
    to: str
    """The state after it."""
    when: Annotated[WhenTable, Shorthand("status")] = field(default_factory=WhenTable)
    """How the call must have ended; a word is enough."""
    counters: dict[str, BoundTable] = field(default_factory=dict)
    """Bounds that counters must keep for the move."""
    update: UpdateTable = field(default_factory=UpdateTable)
    """What is remembered."""
    emit: EmitTable | None = None
    """What the model is told."""
    on_violation: Literal["deny", "ask", "warn"] = "deny"
    """What a call in a state outside `from` gets."""
    reason: str = ""
    """Why, for the model and the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationTable:
    """Sends the model back while an instance of the machine is not in a terminal state."""

    max: Count = 0
    """How often; 0 never."""
    message: str = ""
    """What it is told; `{summary}` lists the open instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTable:
    """A state machine over tool calls. It can only narrow what the policy allows."""

    name: Name
    """Unique among the blueprint's machines."""
    scope: Literal["run", "thread"] = "run"
    """How long its instances live."""
    key: str = ""
    """Template over the call's arguments: one instance for each value; one in all where empty."""
    key_normaliser: Literal["none", "trim", "lowercase", "path", "url"] = "none"
    """How values of the key are made comparable."""
    initial: str
    """The state of a new instance."""
    strict: bool = False
    """Whether a call that matches a tool of the machine but no move is denied."""
    on_unmatched: str = ""
    """The state to go to when a call's end fits no `when`; stays where it is where empty."""
    terminal: Texts = ()
    """States in which an instance is done."""
    transitions: tuple[MachineTransitionTable, ...]
    """Moves, in order."""
    continuation: ContinuationTable = field(default_factory=ContinuationTable)
    """Whether the model is sent back to unfinished instances."""
