"""Facts about sub-agents, as their parent's journal tells them."""

from dataclasses import field
from typing import Literal, TypeAlias

from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

RunOutcome: TypeAlias = Literal["finished", "failed", "refused", "limited", "waiting", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStarted:
    """A sub-agent belongs to this run from now on: all that a resume needs to find it, or to begin it."""

    child_run: str
    child_thread: str
    agent: str
    call_id: str
    task: str
    scope: str = ""
    """Its scope of shared state, below the view of the stage that started it."""
    name: str = ""
    """Unique among its parent's sub-agents: `researcher-2`."""
    item: int = 0
    """Its place among the workers of one call."""
    inputs: JsonObject = field(default_factory=dict)
    read: tuple[str, ...] = ()
    """Keys of the parent's shared state that it may read."""
    output_schema: JsonObject = field(default_factory=dict)
    stage: str = ""
    """The stage that started it: its denies and its view of shared state come down."""
    max_workers: int = 0
    """How many workers of its call run at the same time; 0 is no limit."""
    spent: dict[str, float] = field(default_factory=dict)
    """The parent's totals with this one counted; empty where a later event of the commit has them."""
    own: dict[str, float] = field(default_factory=dict)
    """What of that the parent itself spent, its sub-agents left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRefused:
    """An ask of a sub-agent, or of one below it, that was refused for lack of a person."""

    call_id: str
    tool: str
    preview: str
    reason: str
    flags: tuple[str, ...] = ()
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnded:
    """A sub-agent's run ended."""

    child_run: str
    outcome: RunOutcome
    answer: str
    reason: str = ""
    output: JsonValue = None
    """Its structured answer."""
    steps: int = 0
    refused: tuple[ChildRefused, ...] = ()
    """Its asks, and those below it, that nobody was there to answer: the whole tree's end tells them."""
