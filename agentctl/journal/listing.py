"""What `runs list` shows of a run, as a fold over its events."""

from dataclasses import replace

from agentctl.journal.store import RunInfo, RunStatus
from agentctl.protocol.events import (
    Event,
    MessageAdded,
    QuestionAnswered,
    QuestionAsked,
    RunEnded,
    RunResumed,
    RunStarted,
    RunSuspended,
    StageEntered,
)
from agentctl.protocol.messages import AssistantMessage


def info_after(info: RunInfo, events: tuple[Event, ...]) -> RunInfo:
    """Return `info` after `events`; the same object when they change nothing in it. Pure, total."""
    for event in events:
        info = _after(info, event)
    return info


def _after(info: RunInfo, event: Event) -> RunInfo:
    match event:
        case RunStarted():
            return replace(
                info,
                status="running",
                agent=event.agent,
                task=event.task,
                model=event.model,
                workdir=event.workdir,
                blueprint_path=event.blueprint_path,
                blueprint_sha256=event.blueprint_sha256,
                parent_run=event.parent_run,
                parent_call=event.parent_call,
            )
        case RunResumed():
            # What was not answered is asked again, as a question of its own.
            return replace(info, status="running", outcome="", exit_code=None, reason="", open_questions=0)
        case RunSuspended():
            status: RunStatus = "waiting" if info.open_questions else "suspended"
            return replace(info, status=status, reason=event.reason, exit_code=event.exit_code)
        case RunEnded():
            return replace(
                info, status="ended", outcome=event.outcome, exit_code=event.exit_code, reason=event.reason
            )
        case StageEntered():
            return replace(info, stage=event.stage, model=event.model or info.model)
        case MessageAdded(message=AssistantMessage()):
            return replace(info, steps=info.steps + 1)
        case QuestionAsked():
            return replace(info, open_questions=info.open_questions + 1)
        case QuestionAnswered():
            left = max(0, info.open_questions - 1)
            stands = "suspended" if info.status == "waiting" and not left else info.status
            return replace(info, open_questions=left, status=stands)
        case _:
            return info
