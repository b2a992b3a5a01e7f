"""Everything known of a run after its last commit: a fold over the events of its journal."""

from dataclasses import dataclass, field

from agentctl.policy.grants import used_once
from agentctl.protocol.children import ChildEnded, ChildRefused, ChildStarted
from agentctl.protocol.decisions import Grant
from agentctl.protocol.events import (
    AskRefused,
    CallCompleted,
    CallStarted,
    ContextCompacted,
    Event,
    GrantGiven,
    GrantRevoked,
    GrantUsed,
    HookActed,
    LaunchFlags,
    MessageAdded,
    Noted,
    QuestionAnswered,
    QuestionAsked,
    RunEnded,
    RunResumed,
    RunStarted,
    RunSuspended,
    StageEntered,
    StageLeft,
    StateChanged,
    StepSettled,
    ToolCallDecided,
)
from agentctl.protocol.messages import AssistantMessage, Message, ToolCall, ToolMessage, ToolResult, Usage
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, Question
from agentctl.protocol.values import JsonObject


@dataclass(slots=True)
class RunSnapshot:
    """What a run is and has done. Changed only by `apply`, in the order of the journal."""

    started: RunStarted | None = None
    launch: LaunchFlags = field(default_factory=LaunchFlags)
    messages: list[Message] = field(default_factory=list)
    """The whole thread, earlier runs of it included."""
    run_from: int = 0
    """How many messages the thread had when this run began."""
    window_from: int = 0
    """Index of the first message the current stage's model is shown."""
    summary: str = ""
    """What stands for the messages before `window_from` when they were summarised."""
    cut_results: set[str] = field(default_factory=set)
    """Call ids whose results are shown as cut."""
    stage: str = ""
    stage_index: int = -1
    stage_open: bool = False
    stage_from: int = 0
    """How many messages the thread had when the stage was entered."""
    visits: dict[str, int] = field(default_factory=dict)
    step: int = 0
    """Steps taken by the run."""
    stage_step: int = 0
    """Steps taken in this visit of the stage."""
    nudges: int = 0
    decided: dict[str, ToolCallDecided] = field(default_factory=dict)
    running: dict[str, CallStarted] = field(default_factory=dict)
    completed: dict[str, CallCompleted] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)
    """Asked and not answered."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """By call id, or `STAGE/NAME` of a checkpoint: answers whose call has not been settled yet."""
    approved_for: dict[str, JsonObject] = field(default_factory=dict)
    """By call id: the arguments that the answer was given for; it holds for no others."""
    edited: dict[str, JsonObject] = field(default_factory=dict)
    """By call id: the arguments that a person wrote in place of the model's."""
    grants: list[Grant] = field(default_factory=list)
    refused_asks: list[AskRefused] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    spent: dict[str, float] = field(default_factory=dict)
    """Totals after the last model call, tool call or step; sub-agents' as far as they were known then."""
    own: dict[str, float] = field(default_factory=dict)
    """What of that the agent itself spent, its sub-agents left out."""
    children: dict[str, ChildStarted] = field(default_factory=dict)
    children_ended: dict[str, ChildEnded] = field(default_factory=dict)
    suspended: RunSuspended | None = None
    ended: RunEnded | None = None
    upto: int = field(default=0, compare=False)
    """The last commit that was read into it."""
    left_out: list[str] = field(default_factory=list, compare=False)
    """What reading the journal left out, in sentences for a person: a torn last record, unknown events."""

    def apply(self, event: Event) -> None:  # noqa: C901, PLR0912 - one arm an event, nothing nested
        """Take in one event. Total: an event of any kind has an arm, and none can fail."""
        match event:
            case RunStarted():
                self.started, self.launch = event, event.launch
            case RunResumed():
                # What was not answered is asked again.
                self.launch, self.suspended, self.ended, self.questions = event.launch, None, None, {}
            case StageEntered():
                self._enter(event)
            case StageLeft():
                self.stage_open = False
                self._forget_checkpoints()
            case MessageAdded():
                self._add(event)
            case ToolCallDecided():
                self.decided[event.call_id] = event
            case QuestionAsked(question=question):
                self.questions[question.question_id] = question
            case QuestionAnswered():
                self._answer(event)
            case GrantGiven(grant=grant):
                self.grants.append(grant)
            case GrantRevoked(key=key):
                self.grants = [grant for grant in self.grants if grant.key != key]
            case AskRefused():
                self.refused_asks.append(event)
            case CallStarted():
                self.running[event.call_id] = event
            case CallCompleted():
                self.completed[event.call_id] = event
                self._count(event.spent, event.own)
            case StepSettled():
                self._count(event.spent, event.own)
            case ContextCompacted():
                self._compact(event)
            case ChildStarted():
                self.children[event.child_run] = event
                self._count(event.spent, event.own)
            case ChildEnded():
                self.children_ended[event.child_run] = event
                self.refused_asks += [_as_own(refused) for refused in event.refused]
            case RunSuspended():
                self.suspended = event
            case RunEnded():
                self.ended = event
            case GrantUsed(key=key):
                self.grants = list(used_once(self.grants, key))
            case Noted(source="journal", text=text):
                self.left_out.append(text)
            case HookActed() | Noted() | StateChanged():
                pass

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the last reply that have no result in the thread yet, in call order."""
        answered: set[str] = set()
        for message in reversed(self.messages):
            match message:
                case ToolMessage(result=result):
                    answered.add(result.call_id)
                case AssistantMessage():
                    return tuple(call for call in message.tool_calls if call.call_id not in answered)
                case _:
                    continue
        return ()

    def made_by(self, call_id: str) -> list[tuple[ToolCall, ToolResult]]:
        """Return the calls that a script tool made and that ran, in their order, until its own is settled."""
        ended = ((one, done.result) for one, done in self.completed.items() if one.startswith(f"{call_id}/"))
        return [
            (ToolCall(call_id=one, tool=result.tool, arguments=self.decided[one].arguments), result)
            for one, result in ended
        ]

    def _enter(self, event: StageEntered) -> None:
        if event.index != self.stage_index:
            self.grants = [grant for grant in self.grants if grant.scope != "stage"]
        self.stage, self.stage_index, self.stage_open = event.stage, event.index, True
        self.visits[event.stage] = event.visit
        self.stage_from = len(self.messages)
        self.stage_step = self.nudges = 0
        if event.carry == "clear":
            self.window_from, self.summary = len(self.messages), ""

    def _add(self, event: MessageAdded) -> None:
        message = event.message
        self.messages.append(message)
        self._count(event.spent, event.own)
        match message:
            case AssistantMessage(usage=usage):
                self.step, self.stage_step = self.step + 1, self.stage_step + 1
                self.usage = add_usage(self.usage, usage)
            case ToolMessage(result=result):
                self._forget(result.call_id)
            case _:
                self.nudges += message.source == "nudge"
                if message.source.startswith("checkpoint:"):
                    self._forget_checkpoints()

    def _forget_checkpoints(self) -> None:
        """The stage is left, or goes on by a person's words: what it comes to then is asked about anew."""
        self.answers = {key: answer for key, answer in self.answers.items() if "/" not in key}

    def _forget(self, call_id: str) -> None:
        """A call is settled: nothing is asked about it any more, nor about the calls that it made."""
        facts = (
            self.decided, self.running, self.completed, self.answers, self.approved_for, self.edited,
        )  # fmt: skip
        for one in facts:
            for key in [key for key in one if key == call_id or key.startswith(f"{call_id}/")]:
                del one[key]

    def _count(self, spent: dict[str, float], own: dict[str, float]) -> None:
        if spent:
            self.spent, self.own = dict(spent), dict(own)

    def _answer(self, event: QuestionAnswered) -> None:
        question = self.questions.pop(event.question_id, None)
        match question:
            case None:
                return
            case ApprovalQuestion(call_id=call_id, arguments=arguments):
                self.answers[call_id], self.approved_for[call_id] = event.answer, arguments
                if isinstance(event.answer, ApprovalAnswer) and event.answer.choice == "edit":
                    self.edited[call_id] = event.answer.arguments
            case _:
                self.answers[question.call_id or f"{question.asker.stage}/{question.checkpoint}"] = (
                    event.answer
                )

    def _compact(self, event: ContextCompacted) -> None:
        self.cut_results |= set(event.cut_call_ids)
        if event.how == "summary":
            self.window_from, self.summary = event.kept_from, event.summary


def add_usage(total: Usage, more: Usage) -> Usage:
    """Return the sum of two calls' usage; an unknown price makes the sum's price unknown."""
    known = total.cost_usd is not None or total == Usage()
    cost = None
    if known and more.cost_usd is not None:
        cost = (total.cost_usd or 0.0) + more.cost_usd
    return Usage(
        input_tokens=total.input_tokens + more.input_tokens,
        output_tokens=total.output_tokens + more.output_tokens,
        cache_read_tokens=total.cache_read_tokens + more.cache_read_tokens,
        cache_write_tokens=total.cache_write_tokens + more.cache_write_tokens,
        reasoning_tokens=total.reasoning_tokens + more.reasoning_tokens,
        cost_usd=cost,
    )


def _as_own(refused: ChildRefused) -> AskRefused:
    return AskRefused(
        call_id=refused.call_id,
        tool=refused.tool,
        preview=refused.preview,
        reason=refused.reason,
        flags=refused.flags,
        instead=refused.instead,
    )
