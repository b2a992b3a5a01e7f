"""`agentctl replay`: run a recorded run through today's code and policy, and show what would differ."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import anyio
import typer

from agentctl.agent.agent_state import LiveState
from agentctl.agent.snapshot import RunSnapshot
from agentctl.blueprint.model import Blueprint
from agentctl.cli.command_app import command_app
from agentctl.cli.options import AsJson, Run, Trust
from agentctl.cli.reading import opened_journal
from agentctl.cli.recording import RecordedModel, Recording, read_recording, recorded_tools
from agentctl.cli.run_state import RunState, read_run_state
from agentctl.cli.wiring import open_house
from agentctl.errors import ExitCode, UsageError
from agentctl.interaction.hub import Hub
from agentctl.journal.states import cells_at
from agentctl.llm.provider_config import ProviderConfig
from agentctl.llm.providers import Providers
from agentctl.llm.script import script_from_table
from agentctl.protocol.decisions import Decision
from agentctl.protocol.events import Event, MessageAdded, RunEnded, RunStarted, ToolCallDecided
from agentctl.protocol.messages import Message, ToolMessage, ToolResult, user_text
from agentctl.protocol.questions import Answer, Question
from agentctl.records import dataclass
from agentctl.run.agent_kind import agent_kind
from agentctl.run.build import RunSeed, build_run
from agentctl.run.house import House
from agentctl.run.resume import thread_messages
from agentctl.run.runner import RunEnd, run_or_fail
from agentctl.settings.load import load_settings
from agentctl.settings.settings import Override
from agentctl.state.cells import Cells
from agentctl.state.changes import changed_lines
from agentctl.state.shared_state import SharedState
from agentctl.state.workspace import document_of
from agentctl.testing.memory_journal import MemoryJournal

app = command_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that would be otherwise today."""

    what: str
    """`decision`, `outcome`, `shown`, `state`, `end`."""
    about: str
    """A call's id and tool, a place of the state document, or the run."""
    recorded: str
    today: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """What was, as far as it is replayed."""

    state: RunState
    recording: Recording
    before: Cells
    """The thread's cells when the run began."""
    after: Cells
    """The thread's cells after the last replayed commit."""
    earlier: list[Message]
    end: RunEnded | None


@app.command()
def replay(
    run: Run = "last",
    *,
    policy: Annotated[
        str, typer.Option("--policy", metavar="FILE", help="A config file that stands for yours.")
    ] = "",
    until: Annotated[
        int, typer.Option("--until", metavar="N", help="Only up to this commit.", show_default=False)
    ] = 0,
    trust: Trust = "",
    as_json: AsJson = False,
) -> int:
    """Feed a run's recorded replies and results through today's code and policy; exit 1 if something differs.

    Nothing is called, started or written: tools answer with what was recorded. Sub-agents' runs are results.

    Examples: agentctl replay last · agentctl replay r-1m8 --policy stricter.toml --until 20
    """
    found = anyio.run(_replay, run, policy, until, trust)
    if as_json:
        rows = [asdict(one) for one in found]
        sys.stdout.write(json.dumps(rows) + "\n")
    for one in () if as_json else found:
        sys.stdout.write(f"{one.what}  {one.about}\n  recorded: {one.recorded}\n  today:    {one.today}\n")
    if not found and not as_json:
        sys.stdout.write("nothing would differ\n")
    return int(ExitCode.FAILED) if found else 0


_POLICY = "--policy takes a file that is written like your config.toml"


async def _replay(run: str, policy: str, until: int, trust: str) -> list[Difference]:
    past = await _past(run, until)
    blueprint = past.state.blueprint()
    if policy and not await anyio.Path(policy).is_file():
        folder = await anyio.Path(policy).is_dir()
        raise UsageError(
            f"The policy {policy!r} is {'a directory' if folder else 'not there'}.", hint=_POLICY
        )
    # No service is called, so no key is wanted: every model is opened as a script that nobody reads.
    scripted = Override(path=("model", "use"), text="scripted:", source="replay")
    settings = load_settings((scripted,), file=Path(policy) if policy else None)
    async with open_house(settings, blueprint) as house:
        house.trust = trust
        journal = MemoryJournal(clock=house.clock)
        hub = Hub(house.clock)
        asked = past.recording.had_a_person
        unread = script_from_table({"replies": [{"text": "unread"}]}, source="replay", lines=[0])
        replaying = replace(
            house,
            journal=journal,
            hub=hub,
            servers=None,
            providers=Providers(ProviderConfig(script=unread, clock=house.clock)),
            someone_there=lambda: asked,
        )
        hub.watch(_Answers(hub, past.recording))
        end, cells, events = await _run(replaying, blueprint, past, journal)
    return _compare(past, end, cells, events, whole=not until)


async def _past(run: str, until: int) -> _Past:
    async with opened_journal() as journal:
        state = await read_run_state(journal, run)
        info = state.info
        records = [
            record for record in await journal.read(info.run_id) if not until or record.sequence <= until
        ]
        recording = read_recording(records)
        if recording is None:
            raise UsageError(f"The run {info.run_id} has no beginning before commit {until}.")
        ended = [event for record in records for event in record.events if isinstance(event, RunEnded)]
        return _Past(
            state=state,
            recording=recording,
            before=await cells_at(journal, state.state_thread, records[0].position - 1),
            after=await cells_at(journal, state.state_thread, records[-1].position),
            earlier=await thread_messages(journal, info.thread_id, before=info.run_id),
            end=ended[-1] if ended else None,
        )


async def _run(
    house: House, blueprint: Blueprint, past: _Past, journal: MemoryJournal
) -> tuple[RunEnd, Cells, list[Event]]:
    started = past.recording.started
    launch = replace(started.launch, on_ask="deny") if past.recording.refused_asks else started.launch
    kind = agent_kind(house, blueprint, Path(started.workdir), launch)
    # One model for all stages: the replies come in the order in which they came.
    model = RecordedModel("recorded", past.recording)
    recorded = {name: replace(stage, model=model) for name, stage in kind.models.items()}
    kind = replace(kind, models=recorded, tools=recorded_tools(past.recording, kind.tools), servers=())
    live = LiveState(thread_id=started.thread_id, cells=past.before)
    seed = RunSeed(
        run_id=started.run_id,
        thread_id=started.thread_id,
        workdir=Path(started.workdir),
        launch=launch,
        live=live,
        store=SharedState(),
        context=started.context,
    )
    lease = await journal.acquire(started.thread_id)
    snapshot = RunSnapshot(messages=list(past.earlier), run_from=len(past.earlier))
    parts = build_run(house, kind, seed, snapshot)
    task = started.task or blueprint.agent.description
    await parts.recorder.commit(_anew(started), MessageAdded(message=user_text(task, source="task")))
    end = await run_or_fail(parts)
    await lease.release()
    events = [event for record in await journal.read(started.run_id) for event in record.events]
    return end, live.cells, events


def _anew(started: RunStarted) -> RunStarted:
    return replace(started, parent_run="", parent_call="")


def _compare(
    past: _Past, end: RunEnd, cells: Cells, events: Sequence[Event], *, whole: bool
) -> list[Difference]:
    found: list[Difference] = []
    decided = {event.call_id: event for event in events if isinstance(event, ToolCallDecided)}
    shown = {
        event.message.result.call_id: event.message.result
        for event in events
        if isinstance(event, MessageAdded) and isinstance(event.message, ToolMessage)
    }
    for call_id, result in past.recording.shown.items():
        about = f"{call_id} {result.tool}"
        before, now = past.recording.decided.get(call_id), decided.get(call_id)
        if before is not None and (now is None or _said(before.decision) != _said(now.decision)):
            today = _said(now.decision) if now else "not judged"
            found.append(
                Difference(what="decision", about=about, recorded=_said(before.decision), today=today)
            )
        if call_id in shown:
            found += _results(about, result, shown[call_id])
    for line in changed_lines(document_of(past.after), document_of(cells)):
        found.append(Difference(what="state", about="document", recorded="", today=line))
    if whole and past.end is not None:
        found += _ends(past.end, end)
    return found


def _results(about: str, before: ToolResult, now: ToolResult) -> list[Difference]:
    if before.outcome == "in_doubt":
        return []  # whether it happened was not known, and is not known now
    if before.outcome != now.outcome:
        return [Difference(what="outcome", about=about, recorded=before.outcome, today=now.outcome)]
    if before.text != now.text:
        return [Difference(what="shown", about=about, recorded=_short(before.text), today=_short(now.text))]
    return []


def _ends(before: RunEnded, now: RunEnd) -> list[Difference]:
    today = f"{now.outcome}: {now.answer}" if isinstance(now, RunEnded) else f"stands still: {now.reason}"
    recorded = f"{before.outcome}: {before.answer}"
    if recorded == today:
        return []
    return [Difference(what="end", about="run", recorded=_short(recorded), today=_short(today))]


def _said(decision: Decision) -> str:
    lifted = f", lifted by {decision.lift}" if decision.lift else ""
    return f"{decision.verdict.word} by {decision.rule or 'no rule'} ({decision.layer}{lifted})"


def _short(text: str) -> str:
    line = text.replace("\n", "\\n")
    return line if len(line) <= 200 else f"{line[:200]}…"  # noqa: PLR2004 - what a person reads at a glance


class _Answers:
    """Answers as it was answered then."""

    def __init__(self, hub: Hub, recording: Recording) -> None:
        self._hub = hub
        self._recording = recording

    def on_asked(self, question: Question) -> None:
        """Answer at once."""
        self._hub.answer(question.question_id, self._recording.answer(question))

    def on_settled(self, question: Question, answer: Answer | None) -> None:
        """Nothing to do."""
