"""What a run's journal recorded, as parts that a replay runs with: a model, tools, a person."""

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentctl.errors import ToolError
from agentctl.journal.store import Record
from agentctl.llm.base import Emit, FailureDetails, ModelCallFailed, ModelRequest
from agentctl.protocol.effects import Effect
from agentctl.protocol.events import (
    AskRefused,
    CallCompleted,
    ContextCompacted,
    MessageAdded,
    QuestionAnswered,
    QuestionAsked,
    RunStarted,
    ToolCallDecided,
)
from agentctl.protocol.messages import AssistantMessage, TextPart, ToolMessage, ToolResult, ToolSpec
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, PersonAnswer, Question
from agentctl.protocol.values import JsonObject
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace


@dataclass(slots=True, kw_only=True)
class Recording:
    """A run's facts, by what they are about."""

    started: RunStarted
    replies: list[AssistantMessage] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)
    decided: dict[str, ToolCallDecided] = field(default_factory=dict)
    completed: dict[str, CallCompleted] = field(default_factory=dict)
    shown: dict[str, ToolResult] = field(default_factory=dict)
    """Results as the model saw them."""
    questions: dict[str, Question] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    """By call id, or `STAGE/CHECKPOINT`."""
    refused_asks: bool = False
    """An ask was refused for lack of a person, so the run did not wait for one, at least not at its end."""

    @property
    def had_a_person(self) -> bool:
        """Whether somebody was there to answer, at least once."""
        return any(
            answer.by != "unattended"
            and (isinstance(answer, ApprovalAnswer) or answer.no_answer != "unattended")
            for answer in self.answers.values()
        )

    def answer(self, question: Question) -> Answer:
        """Return what was answered to this question, or what nobody's presence means."""
        found = self.answers.get(subject(question))
        if found is not None and isinstance(question, ApprovalQuestion) is isinstance(found, ApprovalAnswer):
            return found
        if isinstance(question, ApprovalQuestion):
            return ApprovalAnswer(choice="no", reason="Nobody was asked when this was recorded.", by="replay")
        return PersonAnswer(no_answer="unattended", by="replay")


def read_recording(records: Sequence[Record]) -> Recording | None:
    """Return the facts of `records`; None when the run's beginning is not among them."""
    events = [event for record in records for event in record.events]
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if started is None:
        return None
    found = Recording(started=started)
    for event in events:
        match event:
            case MessageAdded(message=AssistantMessage() as reply):
                found.replies.append(reply)
            case MessageAdded(message=ToolMessage(result=result)):
                found.shown[result.call_id] = result
            case ContextCompacted(how="summary", summary=summary):
                found.summaries.append(summary)
            case ToolCallDecided():
                found.decided[event.call_id] = event
            case AskRefused():
                found.refused_asks = True
            case CallCompleted():
                found.completed[event.call_id] = event
            case QuestionAsked(question=question):
                found.questions[question.question_id] = question
            case QuestionAnswered() if event.question_id in found.questions:
                found.answers[subject(found.questions[event.question_id])] = event.answer
            case _:
                continue
    return found


def subject(question: Question) -> str:
    """Return what a question is about: its call, or its checkpoint."""
    if isinstance(question, ApprovalQuestion):
        return question.call_id
    return question.call_id or f"{question.asker.stage}/{question.checkpoint}"


class RecordedModel:
    """Gives the replies of a recording, one after the other, whatever it is asked."""

    def __init__(self, name: str, recording: Recording) -> None:
        self.name = name
        self._replies = deque(recording.replies)
        self._summaries = deque(recording.summaries)

    @property
    def context_window(self) -> int | None:
        """Not known: what was cut then is cut now only by what it was cut by."""
        return None

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Return the next recorded reply; a call without tools may be for a summary.

        Raises:
            ModelCallFailed: there is none left.
        """
        del emit
        if not request.tools and self._summaries and not self._replies:
            return AssistantMessage(parts=(TextPart(text=self._summaries.popleft()),))
        if not self._replies:
            details = FailureDetails(kind="invalid", retryable=False)
            raise ModelCallFailed("the recording has no further reply", details=details)
        return self._replies.popleft()

    async def aclose(self) -> None:
        """Nothing to let go of."""


class RecordedTool:
    """A tool that does nothing: its calls have the effects and results that were recorded."""

    def __init__(self, spec: ToolSpec, waits: bool, aliases: tuple[str, ...], calls: "RecordedCalls") -> None:  # noqa: FBT001 - one caller
        self.spec = spec
        self.waits_for_person = waits
        self.aliases = aliases
        self._calls = calls

    async def prepare(self, arguments: JsonObject, place: ToolPlace) -> Prepared:
        """Say what the recorded call would have done.

        Raises:
            ToolError: what the recorded call was answered with, where it was not even judged.
        """
        del place
        call_id = self._calls.take(self.spec.name, arguments)
        effects, output, refusal = self._calls.outcome(call_id)
        if refusal:
            raise ToolError(refusal)

        async def act(context: ActContext) -> ToolOutput:
            del context
            return output

        return Prepared(effects=effects, act=act, preview=f"{self.spec.name} (replayed)", read_only=True)


class RecordedCalls:
    """Finds the recorded call that a call of the replay stands for: same tool, same arguments, in order."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._waiting: dict[str, deque[str]] = defaultdict(deque)
        for reply in recording.replies:
            for call in reply.tool_calls:
                decided = recording.decided.get(call.call_id)
                tool = decided.tool if decided else call.tool
                arguments = decided.arguments if decided else call.arguments
                self._waiting[_mark(tool, arguments)].append(call.call_id)

    def take(self, tool: str, arguments: JsonObject) -> str:
        """Return the id of the recorded call, or empty when none was made like this."""
        waiting = self._waiting.get(_mark(tool, arguments))
        if not waiting:
            return ""
        # The last one stays: a call that is judged twice is still that call.
        return waiting.popleft() if len(waiting) > 1 else waiting[0]

    def outcome(self, call_id: str) -> tuple[tuple[Effect, ...], ToolOutput, str]:
        """Return a recorded call's effects, its raw output, and why it was not even judged."""
        recording = self._recording
        decided, done = recording.decided.get(call_id), recording.completed.get(call_id)
        shown = recording.shown.get(call_id)
        if decided is None and done is None:
            return (), ToolOutput(text=""), shown.text if shown else "No such call was recorded."
        judged = decided.decision.judgements if decided else ()
        effects = tuple(one.effect for one in judged if one.effect is not None)
        if done is None:
            text = "This call did not run when it was recorded; what it would have given is not known."
            return effects, ToolOutput(text=text, failed=True), ""
        result = done.result
        output = ToolOutput(
            text=result.text,
            structured=result.structured,
            failed=result.outcome != "ok",
            images=result.images,
            bytes_written=done.bytes_written,
            files_written=done.files_written,
        )
        return effects, output, ""


def recorded_tools(recording: Recording, known: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return a recorded tool for every tool there is and every tool that was called."""
    calls = RecordedCalls(recording)
    tools = {
        tool.spec.name: RecordedTool(tool.spec, tool.waits_for_person, tool.aliases, calls) for tool in known
    }
    called = {call.tool for reply in recording.replies for call in reply.tool_calls}
    called |= {decided.tool for decided in recording.decided.values()}
    aliases = {alias for tool in known for alias in tool.aliases}
    for name in sorted(called - set(tools) - aliases):
        spec = ToolSpec(name=name, description="", parameters={"type": "object"})
        tools[name] = RecordedTool(spec, waits=False, aliases=(), calls=calls)
    return tuple(tools.values())


def _mark(tool: str, arguments: JsonObject) -> str:
    return f"{tool} {json.dumps(arguments, sort_keys=True)}"
