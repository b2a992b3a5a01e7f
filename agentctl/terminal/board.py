"""What is known of a run while it goes on: who is at work on what, what was spent, how it ended."""

from dataclasses import dataclass, field
from typing import assert_never

from agentctl.protocol.children import ChildEnded, ChildStarted
from agentctl.protocol.events import (
    AskRefused,
    CallCompleted,
    CallStarted,
    ContextCompacted,
    GrantGiven,
    GrantRevoked,
    GrantUsed,
    HookActed,
    LiveEvent,
    MessageAdded,
    ModelCalled,
    ModelRetried,
    ModelSwitched,
    Noted,
    OutputStreamed,
    Progressed,
    Published,
    QuestionAnswered,
    QuestionAsked,
    ReasoningStreamed,
    RunEnded,
    RunResumed,
    RunStarted,
    RunSuspended,
    StageEntered,
    StageLeft,
    StateChanged,
    StepSettled,
    TextStreamed,
    ToolCallDecided,
)
from agentctl.protocol.messages import AssistantMessage, ToolCall, Usage
from agentctl.protocol.questions import ApprovalAnswer, ApprovalQuestion, Question

_TAIL = 400


@dataclass(slots=True)
class AgentRow:
    """One agent's line in the live tree."""

    run_id: str
    agent: str
    parent_run: str
    stage: str = ""
    step: int = 0
    doing: str = ""
    """A few words: `waiting for the model`, `writing`."""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    """Calls that run now, by id."""
    asked: list[str] = field(default_factory=list)
    """Ids of the calls of the step that is not settled yet."""
    tail: str = ""
    """The end of what a running call put out, raw."""


@dataclass(slots=True)
class Board:
    """The fold of everything published so far. Changed only by `take`."""

    root: str = ""
    """The run that was asked for; the others are its sub-agents'."""
    thread: str = ""
    agent: str = ""
    model: str = ""
    agents: dict[str, AgentRow] = field(default_factory=dict)
    """Agents at work, by run id, in the order they began."""
    names: dict[str, str] = field(default_factory=dict)
    """Agents by run id, those that have ended too: `digger-2/reader` for one below another sub-agent."""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    decided: dict[str, ToolCallDecided] = field(default_factory=dict)
    completed: set[str] = field(default_factory=set)
    approvals: dict[str, ApprovalAnswer] = field(default_factory=dict)
    """A person's answers, by call id."""
    waiting: dict[str, Question] = field(default_factory=dict)
    steps: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    """None once a model of unknown price was used."""
    ended: RunEnded | None = None
    suspended: RunSuspended | None = None
    children: int = 0

    def take(self, published: Published) -> None:  # noqa: C901, PLR0912 - one arm an event
        """Take in one event of any agent of the run. Total."""
        row = self._row(published)
        match published.event:
            case RunStarted() | RunResumed() as began:
                self._begin(published, began)
            case StageEntered(stage=stage, model=model):
                row.stage, row.doing = stage, ""
                self.model = model if published.run_id == self.root and model else self.model
            case MessageAdded(message=AssistantMessage() as message):
                self._replied(row, message)
            case ToolCallDecided() as decided:
                self.decided[decided.call_id] = decided
                self.calls[decided.call_id] = ToolCall(
                    call_id=decided.call_id, tool=decided.tool, arguments=decided.arguments
                )
                if decided.call_id.rpartition("/")[0] in row.calls:  # made by a script tool at work
                    row.asked.append(decided.call_id)
            case QuestionAsked(question=question):
                self.waiting[question.question_id] = question
            case QuestionAnswered() as answered:
                self._answered(answered)
            case CallStarted(call_id=call_id, tool=tool):
                row.calls[call_id] = self.calls.get(call_id) or ToolCall(call_id=call_id, tool=tool)
                row.tail = ""
            case CallCompleted(call_id=call_id):
                row.calls.pop(call_id, None)
                self.completed.add(call_id)
            case StepSettled() as settled:
                self._settled(row, settled)
            case ChildStarted(child_run=child, name=name, agent=agent):
                self.children += 1
                self.names.setdefault(child, self._below(published.run_id, name or agent))
            case RunEnded() as ended:
                self._leave(published.run_id, ended=ended)
            case RunSuspended() as suspended:
                self._leave(published.run_id, suspended=suspended)
            case ModelRetried(usage=usage) as live:
                _see(row, live)
                if usage is not None:
                    self._paid(usage)
            case ModelCalled() | TextStreamed() | ReasoningStreamed() as live:
                _see(row, live)
            case ModelSwitched() | OutputStreamed() | Progressed() as live:
                _see(row, live)
            case MessageAdded() | StageLeft() | AskRefused() | GrantGiven() | GrantUsed() | GrantRevoked():
                pass
            case StateChanged() | HookActed() | ContextCompacted() | ChildEnded() | Noted():
                pass
            case _ as unknown:
                assert_never(unknown)

    def _row(self, published: Published) -> AgentRow:
        if not self.root and not published.parent_run:
            self.root = published.run_id
        row = self.agents.get(published.run_id)
        if row is None:
            row = AgentRow(published.run_id, published.agent, published.parent_run, published.stage)
            self.agents[published.run_id] = row
            self.names.setdefault(published.run_id, self._below(published.parent_run, published.agent))
        return row

    def _begin(self, published: Published, began: RunStarted | RunResumed) -> None:
        if published.run_id == self.root:
            self.thread, self.model, self.agent = began.thread_id, began.model, published.agent
            if isinstance(began, RunResumed):
                self._total(began.spent)

    def _answered(self, answered: QuestionAnswered) -> None:
        question = self.waiting.pop(answered.question_id, None)
        if isinstance(question, ApprovalQuestion) and isinstance(answered.answer, ApprovalAnswer):
            self.approvals[question.call_id] = answered.answer

    def _below(self, parent: str, agent: str) -> str:
        above = self.names.get(parent, "") if parent != self.root else ""
        return f"{above}/{agent}" if above else agent

    def _replied(self, row: AgentRow, message: AssistantMessage) -> None:
        """Count a reply at once: its step is settled much later, or never when it is the last one."""
        row.doing = ""
        for call in message.tool_calls:
            self.calls[call.call_id] = call
            row.asked.append(call.call_id)
        self.steps += 1
        self._paid(message.usage)

    def _paid(self, usage: Usage) -> None:
        self.tokens += usage.input_tokens + usage.output_tokens
        known = self.cost_usd is not None and usage.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (usage.cost_usd or 0.0) if known else None

    def _settled(self, row: AgentRow, settled: StepSettled) -> None:
        """Forget the step's calls, and take the run's own totals.

        They hold what all its agents spent, and what was spent before a resume.
        """
        row.step = settled.step
        for call_id in row.asked:
            for facts in (self.calls, self.decided, self.approvals):
                facts.pop(call_id, None)
            self.completed.discard(call_id)
        row.asked.clear()
        if row.run_id == self.root:
            self._total(settled.spent)

    def _total(self, spent: dict[str, float]) -> None:
        if "steps" in spent:
            self.steps, self.tokens = int(spent["steps"]), int(spent.get("tokens", 0))
            self.cost_usd = None if spent.get("unpriced_steps") else spent.get("cost_usd", 0.0)

    def _leave(
        self, run_id: str, *, ended: RunEnded | None = None, suspended: RunSuspended | None = None
    ) -> None:
        self.agents.pop(run_id, None)
        if run_id == self.root:
            self.ended, self.suspended = ended, suspended


def _see(row: AgentRow, live: LiveEvent) -> None:
    match live:
        case ModelCalled(step=step):
            row.step, row.doing = step, "waiting for the model"
        case TextStreamed():
            row.doing = "writing"
        case ReasoningStreamed():
            row.doing = "thinking"
        case ModelRetried() | ModelSwitched():
            row.doing = "trying the model again"
        case OutputStreamed(text=text):
            row.tail = (row.tail + text)[-_TAIL:]
        case Progressed(text=text):
            row.doing = text
