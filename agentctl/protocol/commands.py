"""Requested state changes as data, and the commit that makes them durable together with events."""

from enum import StrEnum
from typing import Literal, TypeAlias

from agentctl.protocol.events import Event
from agentctl.protocol.values import JsonValue
from agentctl.records import dataclass

Scope: TypeAlias = Literal["run", "thread", "shared", "profile"]


class Merge(StrEnum):
    """How several writes to one cell in one commit combine."""

    DISJOINT = "disjoint"
    """Last write wins, with a warning that names both writers."""
    COMMUTATIVE = "commutative"
    """Objects merge shallowly; anything else replaces."""
    EXCLUSIVE = "exclusive"
    """A second set refuses the whole commit; a remove is not a set."""
    FOLD = "fold"
    """Values are folded into the cell by the key's own function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValue:
    """Store a value."""

    value: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveValue:
    """Make the cell absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldValue:
    """Fold a value into the cell.

    Replay needs no code of a person's: a built-in fold is applied by its name, and what a function made is
    recorded in `result`.
    """

    value: JsonValue
    fold: str = ""
    """`sum`, `max`, `min`, `append`, `union`, `patch`, or `module:function`; `assemble` fills it in."""
    result: JsonValue = None
    """The cell after the fold, where `resolved`."""
    resolved: bool = False
    """Replay takes `result` as it is: a function made it, or a default that only the key knows."""


Action: TypeAlias = SetValue | RemoveValue | FoldValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A requested state change: inert until a commit carries it."""

    scope: Scope
    key: str
    action: Action
    merge: Merge = Merge.DISJOINT
    version: int = 1
    """Version of the key's definition that the value follows."""
    run_id: str = ""
    """The run a run-scoped command is bound to; `assemble` fills it in."""
    writer: str = ""
    """Who asked: a tool call id, a hook's name, a person; for warnings and history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """A message to another run or thread, delivered exactly once after the commit that carries it."""

    message_id: str
    target: str
    """A run id or a thread id."""
    body: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Events and commands made durable together or not at all."""

    run_id: str
    thread_id: str
    events: tuple[Event, ...]
    commands: tuple[Command, ...] = ()
    outgoing: tuple[OutgoingMessage, ...] = ()
    state_thread: str = ""
    """The thread whose cells the commands change; a sub-agent names its root's. Empty: `thread_id`."""
    received: tuple[str, ...] = ()
    """Ids of the inbox messages that this commit takes in; they leave the inbox with it."""
