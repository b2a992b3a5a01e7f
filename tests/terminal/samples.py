"""One of every event, and a short run, for the tests of all views."""

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from agentctl.errors import Position
from agentctl.protocol.decisions import Decision, Judgement, Verdict
from agentctl.protocol.effects import RunProgram
from agentctl.protocol.events import (
    CallCompleted,
    CallStarted,
    Event,
    LaunchFlags,
    LiveEvent,
    MessageAdded,
    ModelCalled,
    Published,
    RunEnded,
    RunStarted,
    StageEntered,
    StepSettled,
    TextStreamed,
    ToolCallDecided,
)
from agentctl.protocol.messages import AssistantMessage, TextPart, ToolCall, ToolResult, Usage
from agentctl.protocol.questions import ApprovalQuestion, Asker, PersonQuestion
from agentctl.protocol.values import JsonValue

RUN = "r-root"


def decision(verdict: Verdict = Verdict.ASK, *, rule: str = "shell", line: int = 7) -> Decision:
    position = Position(file="coder.toml", line=line, column=1)
    judgement = Judgement(
        entry="shell",
        effect=RunProgram(argv=("pytest", "-q")),
        verdict=verdict,
        rule=rule,
        layer="blueprint",
        position=position,
        says=(),
    )
    return Decision(
        verdict=verdict,
        reason="shell asks by default",
        rule=rule,
        layer="blueprint",
        position=position,
        judgements=(judgement,),
    )


def approval(
    question_id: str = "q-1",
    *,
    command: str = "pytest -q",
    remember: tuple[str, ...] = ("shell(pytest *)",),
    agent: str = "coder",
    run: str = RUN,
) -> ApprovalQuestion:
    return ApprovalQuestion(
        question_id=question_id,
        asker=Asker(run_id=run, agent=agent, stage="implement"),
        call_id=f"c-{question_id}",
        tool="shell",
        arguments={"command": command},
        preview=command,
        decision=decision(),
        would_remember=remember,
    )


def person(kind: Literal["text", "choice", "confirm", "review", "edit"], **more: Any) -> PersonQuestion:
    return PersonQuestion(
        question_id="q-p",
        asker=Asker(run_id=RUN, agent="coder", stage="plan"),
        kind=kind,
        prompt="Which one?",
        **more,
    )


def published(
    event: Event | LiveEvent, *, run: str = RUN, agent: str = "coder", parent: str = ""
) -> Published:
    return Published(
        run_id=run, agent=agent, stage="implement", event=event, parent_run=parent, at="2026-01-02T03:04:05Z"
    )


def started() -> RunStarted:
    return RunStarted(
        run_id=RUN, thread_id="t-1", agent="coder", task="fix it", inputs={}, context={}, workdir="/w",
        blueprint_path="coder.toml", blueprint_source="", blueprint_sha256="", found_by="path",
        policy_sha256="", model="scripted:demo", launch=LaunchFlags(),
    )  # fmt: skip


def short_run(answer: str = "All done.\nTwo files.") -> tuple[Published, ...]:
    call = ToolCall(call_id="c-1", tool="shell", arguments={"command": "pytest -q"})
    result = ToolResult(call_id="c-1", tool="shell", outcome="ok", text="3 passed")
    reply = AssistantMessage(
        parts=(TextPart(text=answer),), usage=Usage(input_tokens=1000, output_tokens=200, cost_usd=0.01)
    )
    events: tuple[Event | LiveEvent, ...] = (
        started(),
        StageEntered(stage="implement", index=0, visit=1, model="scripted:demo"),
        ModelCalled(step=1, model="scripted:demo"),
        MessageAdded(message=AssistantMessage(parts=(call,)), step=1),
        ToolCallDecided(
            call_id="c-1", tool="shell", arguments=call.arguments, decision=decision(Verdict.ALLOW)
        ),
        CallStarted(call_id="c-1", tool="shell", read_only=False),
        CallCompleted(call_id="c-1", result=result, elapsed_s=1.25),
        StepSettled(step=1, usage=Usage(cost_usd=0.01), spent={"steps": 1, "tokens": 1200, "cost_usd": 0.01}),
        ModelCalled(step=2, model="scripted:demo"),
        *(TextStreamed(text=piece) for piece in (answer[:5], answer[5:])),
        MessageAdded(message=reply, step=2),
        RunEnded(outcome="finished", exit_code=0, answer=answer),
    )
    return tuple(published(event) for event in events)


def one_of(kind: type) -> Any:
    """Return an instance of a protocol dataclass with every field filled."""
    hints = get_type_hints(kind, localns={"JsonValue": JsonValue})
    return kind(**{field.name: _value(hints[field.name]) for field in dataclasses.fields(kind)})


def _value(kind: Any) -> Any:
    origin, members = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        return one_of(kind)
    if origin is Literal:
        return members[0]
    if origin in (Union, types.UnionType):
        return _value(next((one for one in members if dataclasses.is_dataclass(one)), members[0]))
    if origin is tuple:
        return (_value(members[0]),)
    if origin is dict:
        return {}
    simple = {str: "x\x1b[31m\u202e y", int: 1, float: 1.5, bool: True}
    if kind in simple:
        return simple[kind]
    if isinstance(kind, type) and issubclass(kind, Verdict):
        return Verdict.ASK
    return None
