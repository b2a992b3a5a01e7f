"""Small commits for tests."""

from agentctl.protocol.commands import Command, Commit, OutgoingMessage, SetValue
from agentctl.protocol.events import Event, LaunchFlags, MessageAdded, Noted, RunStarted
from agentctl.protocol.messages import AssistantMessage, TextPart, user_text


def started(run: str, thread: str, *, parent: str = "", task: str = "do it") -> RunStarted:
    return RunStarted(
        run_id=run,
        thread_id=thread,
        agent="coder",
        task=task,
        inputs={},
        context={},
        workdir="/w",
        blueprint_path="b.toml",
        blueprint_source="",
        blueprint_sha256="",
        found_by="path",
        policy_sha256="",
        model="scripted:x",
        launch=LaunchFlags(),
        parent_run=parent,
    )


def commit(
    run: str, *events: Event, thread: str = "t-1", commands: tuple[Command, ...] = (), state: str = ""
) -> Commit:
    return Commit(run_id=run, thread_id=thread, events=events, commands=commands, state_thread=state)


def note(text: str) -> Noted:
    return Noted(level="info", text=text)


def said(text: str) -> MessageAdded:
    return MessageAdded(message=user_text(text))


def replied(text: str) -> MessageAdded:
    return MessageAdded(message=AssistantMessage(parts=(TextPart(text=text),)))


def set_cell(key: str, value: object) -> Command:
    return Command(scope="thread", key=key, action=SetValue(value=value))  # type: ignore[arg-type]


def letter(message_id: str, target: str, body: object) -> OutgoingMessage:
    return OutgoingMessage(message_id=message_id, target=target, body=body)  # type: ignore[arg-type]
