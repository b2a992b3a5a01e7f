"""What a machine over tool calls is: states, the moves between them, and where an instance stands."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from agentctl.errors import StateConflict
from agentctl.protocol.commands import Command, FoldValue, Merge
from agentctl.protocol.values import JsonValue
from agentctl.records import dataclass
from agentctl.state.cells import CellView
from agentctl.state.machine_keys import Normaliser, normalised
from agentctl.state.templates import fill_text
from agentctl.state.tool_pattern import parse_tool_pattern
from agentctl.state.typed import Drifted, from_json, to_json

Violation: TypeAlias = Literal["deny", "ask", "warn"]
EVENT_PREFIX = "event:"
EVENTS = ("before_model", "after_model")
"""What happens around calls that a machine may be told, as `event:NAME`."""
_CELL_PREFIX = "agentctl/machine/"
_HEARD = "agentctl/machine-events"


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """How a call must have ended for a move."""

    status: Literal["any", "success", "error"] = "success"
    content: str = ""
    """A glob over the whole result text; anything where empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Bounds on a counter, both inclusive."""

    gte: int | None = None
    lte: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit:
    """Words to the model when a machine moves."""

    content: str
    target: Literal["result", "context"] = "result"
    cooldown: int = 0
    """Steps until the same words may be said again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One transition of a machine."""

    on: str
    """Calls, as `tool_pattern` reads it: `shell`, `write_*`, `shell(pytest *)`; or `event:NAME`."""
    origin: frozenset[str]
    """The states it is allowed in."""
    to: str
    when: When = field(default_factory=When)
    counters: Mapping[str, Bound] = field(default_factory=dict)
    capture: Mapping[str, str] = field(default_factory=dict)
    increment: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    emit: Emit | None = None
    on_violation: Violation = "deny"
    reason: str = ""

    @property
    def is_event(self) -> bool:
        """Whether the move is about something that happens around calls."""
        return self.on.startswith(EVENT_PREFIX)

    def concerns(self, tool: str, arguments: Mapping[str, JsonValue], said: Sequence[str] = ()) -> bool:
        """Whether the move is about such a call; `said` as `ToolPattern.matches` takes it."""
        return not self.is_event and parse_tool_pattern(self.on).matches(tool, arguments, said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine over tool calls."""

    name: str
    scope: Literal["run", "thread"] = "run"
    key: str = ""
    """Template over the arguments; one instance in all where empty."""
    key_normaliser: Normaliser = "none"
    initial: str
    strict: bool = False
    """Deny calls that no move is about, and calls of its tools that leave out the key."""
    on_unmatched: str = ""
    terminal: frozenset[str] = frozenset()
    moves: tuple[Move, ...]
    max_continuations: int = 0
    continuation_message: str = ""

    def instance_key(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Return the key of the instance that a call is about; None when it gives no value for it."""
        try:
            return normalised(fill_text(self.key, arguments), self.key_normaliser)
        except KeyError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Where one instance of a machine stands."""

    state: str
    counters: dict[str, int] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    said: dict[str, int] = field(default_factory=dict)
    """Words that were emitted, and the step they were last said in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsHeard:
    """What machines were told around model calls, kept so that a crash does not tell it twice."""

    last: dict[str, int] = field(default_factory=dict)
    """Event → the step it was last told for."""
    words: tuple[str, ...] = ()
    """Words to the model that wait for the next request."""

    @classmethod
    def of(cls, cells: CellView) -> "EventsHeard":
        """Return what a run's machines were told; nothing where it cannot be read."""
        try:
            return from_json(cls, cells.get("run", _HEARD) or {})
        except Drifted:
            return cls()

    def stored(self) -> Command:
        """Return the command that keeps it."""
        return Command(
            scope="run",
            key=_HEARD,
            action=FoldValue(value=to_json(self), fold="last"),
            merge=Merge.FOLD,
            writer="machines",
        )


def instances_of(machine: Machine, cells: CellView) -> dict[str, Instance]:
    """Return all instances of a machine, by key.

    Raises:
        StateConflict: one cannot be read.
    """
    prefix = cell_key(machine, "")
    found = cells.scan(machine.scope, prefix)
    return {cell[len(prefix) :]: _read(machine, cell, value) for cell, value in found.items()}


def instance_of(machine: Machine, key: str, cells: CellView) -> Instance | None:
    """Return one instance, or None when it does not exist yet.

    Raises:
        StateConflict: it cannot be read: a guard that has lost its state must not open.
    """
    cell = cell_key(machine, key)
    value = cells.get(machine.scope, cell)
    return None if value is None else _read(machine, cell, value)


def cell_key(machine: Machine, key: str) -> str:
    """Return the cell of an instance."""
    return f"{_CELL_PREFIX}{machine.name}/{key}"


def stored(machine: Machine, key: str, instance: Instance) -> Command:
    """Return the command that stores an instance."""
    return Command(
        scope=machine.scope,
        key=cell_key(machine, key),
        action=FoldValue(value=to_json(instance), fold="last"),
        merge=Merge.FOLD,
        writer=f"machine:{machine.name}",
    )


def _read(machine: Machine, cell: str, value: JsonValue) -> Instance:
    try:
        return from_json(Instance, value)
    except Drifted as error:
        raise StateConflict(
            f"Machine {machine.name!r}: its stored state {cell!r} does not match its declared shape:"
            f" {error}.",
            hint=f"agentctl state rm RUN {cell} --scope {machine.scope}",
        ) from error
