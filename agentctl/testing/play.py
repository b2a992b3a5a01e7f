"""Plays a blueprint in memory: a scripted model, real tools, answers from a function; and what came of it."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import anyio

from agentctl.agent.snapshot import RunSnapshot, add_usage
from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.clock import Clock, SystemClock
from agentctl.executor.api import Executor
from agentctl.executor.local import open_executor
from agentctl.interaction.hub import Hub
from agentctl.journal.store import Journal
from agentctl.llm.provider_config import ProviderConfig
from agentctl.llm.providers import Providers
from agentctl.llm.script import Script, script_from_table
from agentctl.protocol.events import (
    CallCompleted,
    Event,
    LaunchFlags,
    LiveEvent,
    MessageAdded,
    Published,
    QuestionAsked,
    RunEnded,
    StateChanged,
)
from agentctl.protocol.messages import AssistantMessage, ToolMessage, ToolResult, Usage
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, PersonAnswer, Question
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.run.house import House
from agentctl.run.resume import read_snapshot
from agentctl.run.runner import RunEnd, run_or_fail
from agentctl.run.start import Order, begun, resumed
from agentctl.settings.load import load_settings
from agentctl.state.document import apply_patch
from agentctl.testing.memory_journal import MemoryJournal
from agentctl.tools.mcp.pool import ServerPool

Answering: TypeAlias = Callable[[Question], Answer]


def approve(question: Question) -> Answer:
    """Answer every approval with yes, this once, and give no answer to anything else.

    To a checkpoint that is as if nobody were there: declining one would let the run stand still.
    """
    if isinstance(question, ApprovalQuestion):
        return ApprovalAnswer(choice="once")
    return PersonAnswer(no_answer="unattended" if question.checkpoint else "declined")


def open_machine() -> Executor:
    """Return the machine's own executor."""
    return open_executor(environment=dict(os.environ), passed=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a person says, and what the model answers with, reply by reply."""

    text: str
    replies: Sequence[JsonObject] = ()
    """As `[[script.replies]]` in TOML; the blueprint's own script where empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of the turns."""

    thread_id: str
    runs: tuple[str, ...]
    end: RunEnd
    """How the last run ended."""
    published: tuple[Published, ...]
    """Everything that watchers saw, of sub-agents too."""

    @property
    def events(self) -> tuple[Event | LiveEvent, ...]:
        """What happened, in order."""
        return tuple(one.event for one in self.published)

    @property
    def answer(self) -> str:
        """The last run's answer; empty when it did not end."""
        return self.end.answer if isinstance(self.end, RunEnded) else ""

    @property
    def calls(self) -> tuple[CallCompleted, ...]:
        """The tool calls that ran, in the order they ended."""
        return tuple(event for event in self.events if isinstance(event, CallCompleted))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results as the model saw them, in order."""
        added = (event.message for event in self.events if isinstance(event, MessageAdded))
        return tuple(message.result for message in added if isinstance(message, ToolMessage))

    @property
    def questions(self) -> tuple[Question, ...]:
        """What a person was asked."""
        return tuple(event.question for event in self.events if isinstance(event, QuestionAsked))

    @property
    def usage(self) -> Usage:
        """Tokens and money of all model calls."""
        total = Usage()
        for event in self.events:
            if isinstance(event, MessageAdded) and isinstance(event.message, AssistantMessage):
                total = add_usage(total, event.message.usage)
        return total

    def state(self) -> JsonValue:
        """Return the state document: every delta that was sent, applied in order to the snapshot."""
        document: JsonValue = {}
        for event in self.events:
            if isinstance(event, StateChanged):
                document = apply_patch(document, list(event.patch))
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where blueprints are played: what all runs of one test share."""

    blueprint: Blueprint
    workdir: Path
    temp: Path
    journal: Journal = field(default_factory=MemoryJournal)
    executor: Executor = field(default_factory=open_machine)
    answers: Answering | None = None
    """Answers what a person is asked; None is nobody there."""
    flags: LaunchFlags = field(default_factory=LaunchFlags)
    clock: Clock = field(default_factory=SystemClock)
    published: list[Published] = field(default_factory=list)
    servers: ServerPool | None = None
    """Runs the blueprint's MCP servers; without it runs have none."""

    def house(self, script: Script | None) -> House:
        """Return the shared parts of one process; a script stands in for every `scripted:` model."""
        hub = Hub(self.clock)
        if self.answers is not None:
            hub.watch(_Answers(hub, self.answers))
        config = ProviderConfig(script=script, script_dir=self.blueprint.source.path.parent, clock=self.clock)
        return House(
            settings=load_settings(environment={}),
            journal=self.journal,
            providers=Providers(config),
            executor=self.executor,
            hub=hub,
            clock=self.clock,
            temp=self.temp,
            has_script=script is not None,
            someone_there=lambda: self.answers is not None,
            watch=self.published.append,
            servers=self.servers,
        )

    async def begin(self, turn: Turn, thread_id: str = "") -> tuple[str, RunEnd]:
        """Run one turn to its end; return the run's id and how it ended.

        Raises:
            ProviderError: the run finished, and replies are left that nobody asked for.
        """
        house = self.house(self._script(turn.replies))
        order = Order(task=turn.text, workdir=self.workdir, flags=self.flags, thread_id=thread_id)
        try:
            async with begun(house, self.blueprint, order) as parts:
                run_id, end = parts.recorder.run_id, await run_or_fail(parts)
            if isinstance(end, RunEnded) and end.outcome == "finished":
                house.providers.check_all_read()
            return run_id, end
        finally:
            await _close(house)

    async def resume(self, run_id: str, replies: Sequence[JsonObject] = ()) -> RunEnd:
        """Go on with a run from its journal, as a new process would."""
        snapshot: RunSnapshot = await read_snapshot(self.journal, run_id)
        house = self.house(self._script(replies))
        try:
            async with resumed(house, self.blueprint, snapshot, self.flags) as parts:
                return await run_or_fail(parts)
        finally:
            await _close(house)

    def after_restart(self, journal: Journal) -> "Stage":
        """Return the stage as a new process has it: the same folders, an executor and a journal anew."""
        return replace(self, journal=journal, executor=open_machine(), published=[])

    def _script(self, replies: Sequence[JsonObject]) -> Script | None:
        source = self.blueprint.source
        values = list(replies) or source.table.table("script").values.get("replies", [])
        if not isinstance(values, list) or not values:
            return None
        listed: list[JsonValue] = [reply for reply in values]  # noqa: C416 - a list of any JSON, for the reader
        named = "replies" if replies else str(source.path)
        return script_from_table({"replies": listed}, source=named, lines=list(range(1, len(listed) + 1)))


@asynccontextmanager
async def open_stage(
    blueprint: Path | Blueprint,
    *,
    workdir: Path,
    answers: Answering | None = None,
    allow: Sequence[str] = (),
    journal: Journal | None = None,
) -> AsyncIterator[Stage]:
    """Give a stage with a journal in memory; its processes are ended at the end.

    `allow` are the `--allow` rules of the runs.
    """
    loaded = blueprint if isinstance(blueprint, Blueprint) else load_blueprint(blueprint)
    folder = await anyio.Path(workdir).resolve()
    with TemporaryDirectory(prefix="agentctl-play-") as temp:
        stage = Stage(
            blueprint=loaded,
            workdir=Path(folder),
            temp=Path(await anyio.Path(temp).resolve()),
            journal=journal or MemoryJournal(),
            answers=answers,
            flags=LaunchFlags(allow=tuple(allow)),
        )
        try:
            yield stage
        finally:
            await stage.executor.aclose()


async def play(
    blueprint: Path | Blueprint,
    turns: Sequence[Turn],
    *,
    workdir: Path,
    answers: Answering | None = None,
    allow: Sequence[str] = (),
) -> Played:
    """Play the turns of one conversation, each a run on the same thread, and return what came of them."""
    async with open_stage(blueprint, workdir=workdir, answers=answers, allow=allow) as stage:
        thread_id = ""
        runs: list[str] = []
        end: RunEnd | None = None
        for turn in turns:
            run_id, end = await stage.begin(turn, thread_id)
            runs.append(run_id)
            info = await stage.journal.run(run_id)
            thread_id = info.thread_id if info else ""
        if end is None:
            raise ValueError("play at least one turn")
        return Played(thread_id=thread_id, runs=tuple(runs), end=end, published=tuple(stage.published))


class _Answers:
    """Answers questions as they are asked."""

    def __init__(self, hub: Hub, answers: Answering) -> None:
        self._hub = hub
        self._answers = answers

    def on_asked(self, question: Question) -> None:
        """Answer at once."""
        self._hub.answer(question.question_id, self._answers(question))

    def on_settled(self, question: Question, answer: Answer | None) -> None:
        """Nothing to do."""


async def _close(house: House) -> None:
    for store in house.stores:
        await store.aclose()
    await house.workshop.aclose()
    await house.providers.aclose()
