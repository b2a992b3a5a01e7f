"""A run of its own out of the beginning of another: same conversation, same state, a new thread."""

from collections.abc import Sequence
from dataclasses import replace

from agentctl.errors import UsageError
from agentctl.ids import new_run_id, new_thread_id
from agentctl.journal.states import cells_at
from agentctl.journal.store import Journal, Record, RunInfo
from agentctl.protocol.children import ChildEnded, ChildStarted
from agentctl.protocol.commands import Command, Commit, FoldValue, Merge, SetValue
from agentctl.protocol.events import (
    Event,
    Noted,
    QuestionAnswered,
    QuestionAsked,
    RunEnded,
    RunResumed,
    RunStarted,
    RunSuspended,
)
from agentctl.records import dataclass
from agentctl.state.cells import Cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """The new run, and what it was made from."""

    run_id: str
    thread_id: str
    sequence: int
    """The last commit of the old run that is in it."""


async def fork_run(journal: Journal, info: RunInfo, at: int) -> Forked:
    """Copy a run up to its commit `at` into a new run on a new thread, with the state as it was then.

    The new run can be resumed. How the old one stood still or ended is left out; its sub-agents that had not
    ended at that point count as cancelled, since they belong to the old run; its open questions are asked
    again.

    Raises:
        UsageError: the run has no commit of that number, or it is a sub-agent's.
        StateConflict: the journal is damaged.
    """
    # No more than what is taken along: what comes after may be the damage that a person leaves behind.
    records = await journal.read(info.run_id, limit=at) if at > 0 else ()
    if not records or records[-1].sequence != at:
        raise UsageError(
            f"The run {info.run_id} has commits 1 to {info.sequence}; there is no commit {at}.",
            hint=f"agentctl log {info.run_id} --json shows them.",
        )
    if info.parent_run:
        raise UsageError(
            f"{info.run_id} is a sub-agent of {info.parent_run}.", hint=f"agentctl fork {info.parent_run}"
        )
    run_id, thread_id = new_run_id(), new_thread_id()
    cells = await cells_at(journal, info.state_thread or info.thread_id, records[-1].position)
    lease = await journal.acquire(thread_id)
    try:
        for number, events in enumerate(_rewritten(records, run_id, thread_id)):
            commands = _commands(cells, info.run_id, run_id) if number == 0 else ()
            if events or commands:
                await journal.append(
                    Commit(run_id=run_id, thread_id=thread_id, events=events, commands=commands)
                )
        await journal.append(
            Commit(
                run_id=run_id,
                thread_id=thread_id,
                events=(
                    *_cancelled(records),
                    Noted(level="info", text=f"forked from {info.run_id} at commit {at}", source="fork"),
                    RunSuspended(reason=f"forked from {info.run_id} at commit {at}", exit_code=4),
                ),
            )
        )
    finally:
        await lease.release()
    return Forked(run_id=run_id, thread_id=thread_id, sequence=at)


def _rewritten(records: Sequence[Record], run_id: str, thread_id: str) -> list[tuple[Event, ...]]:
    """The events of each record for the new run, without how the old one stood still or ended."""
    answered = {
        event.question_id
        for record in records
        for event in record.events
        if isinstance(event, QuestionAnswered)
    }
    batches: list[tuple[Event, ...]] = []
    for record in records:
        events: list[Event] = []
        for event in record.events:
            match event:
                case RunStarted():
                    events.append(replace(event, run_id=run_id, thread_id=thread_id))
                case RunSuspended() | RunResumed() | RunEnded():
                    continue
                case QuestionAsked(question=question) if question.question_id not in answered:
                    continue
                case _:
                    events.append(event)
        batches.append(tuple(events))
    return batches


def _cancelled(records: Sequence[Record]) -> tuple[Event, ...]:
    started = {
        event.child_run: event
        for record in records
        for event in record.events
        if isinstance(event, ChildStarted)
    }
    for record in records:
        for event in record.events:
            if isinstance(event, ChildEnded):
                started.pop(event.child_run, None)
    return tuple(
        ChildEnded(child_run=child, outcome="cancelled", answer="", reason="it belongs to the forked run")
        for child in started
    )


def _commands(cells: Cells, old_run: str, run_id: str) -> tuple[Command, ...]:
    """What makes a fresh thread's cells these, the old run's own now the new run's."""
    commands: list[Command] = []
    for address in cells:
        cell = cells.at(address)
        if cell is None or (address.run_id and address.run_id != old_run):
            continue
        internal = address.key.startswith("agentctl/")
        commands.append(
            Command(
                scope=address.scope,
                key=address.key,
                action=FoldValue(value=cell.value, fold="last") if internal else SetValue(value=cell.value),
                merge=Merge.FOLD if internal else Merge.DISJOINT,
                version=cell.version,
                run_id=run_id if address.scope == "run" else "",
                writer=cell.writer,
            )
        )
    return tuple(commands)
