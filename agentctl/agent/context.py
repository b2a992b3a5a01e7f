"""What one agent's loop is given: interfaces to the run around it, and the plan of the stage it is in."""

from collections.abc import Callable
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from agentctl.agent.showing import Showing, ShowsNothing
from agentctl.agent.snapshot import RunSnapshot
from agentctl.agent.tool_state import ToolState
from agentctl.clock import Clock
from agentctl.errors import ProviderError
from agentctl.llm.base import LanguageModel, ModelRequest
from agentctl.protocol.commands import Command
from agentctl.protocol.events import Event, LiveEvent
from agentctl.protocol.messages import UserMessage
from agentctl.protocol.questions import Answer, Question
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass


class Recorder(Protocol):
    """Makes facts durable, then known, then visible; in this order."""

    @property
    def snapshot(self) -> RunSnapshot:
        """What is known after the last commit. Read it, never change it."""

    async def commit(
        self, *events: Event, commands: tuple[Command, ...] = (), received: tuple[str, ...] = ()
    ) -> None:
        """Return when all of it is on disk, or none of it; then the snapshot has it and watchers see it.

        `received` names the inbox messages that this commit takes in.
        """

    def show(self, event: LiveEvent) -> None:
        """Show something that is not kept. Never blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """Something that was sent to this run meanwhile: words for its thread, or a grant to take back."""

    message_id: str
    message: UserMessage | None = None
    revoke: str = ""
    """The grant's key."""


class Inbox(Protocol):
    """What people and other agents sent to this run meanwhile."""

    async def waiting(self) -> tuple[Arrived, ...]:
        """Return what has arrived, oldest first; a commit that names its id takes it away."""


class AskPerson(Protocol):
    """Puts a question where a person can answer it."""

    async def ask(self, question: Question) -> Answer:
        """Return the one answer, or what the deadline or nobody's presence means. Safe to cancel."""

    def settle(self, question_id: str, answer: Answer) -> bool:
        """Answer a waiting question on behalf of a grant given meanwhile; False when it was answered."""

    def attended(self, *, insists: bool = False) -> bool:
        """Tell whether a person may be asked right now.

        Under `--yolo` only a question that `insists` may, where a terminal or client is there.
        """


class Prices(Protocol):
    """What a stage's model calls cost."""

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose calls have no known cost."""

    def estimate_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the most that a call of this size costs; None where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A transition that the model may take."""

    target: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """The stage an agent is in, as its loop needs it."""

    name: str
    index: int
    prompt: str
    model: LanguageModel
    prices: Prices
    edges: tuple[Edge, ...]
    """Open edges the model may choose; those with a harness condition are not among them."""
    max_steps: int | None
    tool_concurrency: int
    output_schema: JsonObject | None
    request: ModelRequest
    """Parameters of every request of this stage; system, messages and tools are filled in."""
    accepts_messages: bool = True
    compact_at: float = 0.8
    """Share of the model's window at which old tool results are cut, then old steps summarised."""
    keep_recent: int = 6
    """The latest steps, which are never cut or summarised."""


def _unknown(name: str) -> LanguageModel:
    raise ProviderError(f"A hook chose the model {name!r}, and this run can open no other model.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """One agent in one stage. Everything that changes is behind one of these."""

    run_id: str
    root_run: str
    """The run a person started, whose tree this agent is in; its own where it is that run."""
    agent: str
    plan: StagePlan
    recorder: Recorder
    tools: ToolState
    person: AskPerson
    inbox: Inbox
    clock: Clock
    open_model: Callable[[str], LanguageModel] = field(default=_unknown)
    """Opens another model, which a hook chose by its name."""
    showing: Showing = field(default_factory=ShowsNothing)
    """Adds what is known of the state to each request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnd:
    """Why the loop left a stage."""

    reason: Literal["transition", "answer", "error", "max_steps", "stuck", "dead_end", "checkpoint"]
    target: str = ""
    """The chosen stage, for `transition`."""
    answer: str = ""
    output: JsonValue = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """The run must stand still until a person answers, or raises a limit; what was asked is saved."""

    question_id: str
    reason: str
    limit: str = ""
    """The key of the limit that its sub-agents wait for."""
    above: int = 0
    """How many agents up the one is whose limit it is."""


LoopEnd: TypeAlias = StageEnd | Suspend
