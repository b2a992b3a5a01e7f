"""Reads a run back from its journal, so that it goes on where it stood still."""

from agentctl.agent.in_doubt import left_open
from agentctl.agent.snapshot import RunSnapshot
from agentctl.errors import UsageError
from agentctl.journal.store import Journal
from agentctl.policy.budgets import WALL_TIME
from agentctl.protocol.events import MessageAdded
from agentctl.protocol.messages import AssistantMessage, Message, ToolMessage
from agentctl.run.snapshots import saved_run


async def read_snapshot(journal: Journal, run_id: str, *, until: int | None = None) -> RunSnapshot:
    """Return everything known of a run, the earlier runs of its thread included.

    `until` stops after the commit of that number.
    """
    saved = await saved_run(journal, run_id, until=until)
    return await _replayed(journal, run_id, saved, until)


async def replay_whole(journal: Journal, run_id: str, *, until: int | None = None) -> RunSnapshot:
    """Return the same as `read_snapshot`, from the records alone."""
    return await _replayed(journal, run_id, None, until)


async def _replayed(
    journal: Journal, run_id: str, saved: tuple[RunSnapshot, int] | None, until: int | None
) -> RunSnapshot:
    if saved is None:
        info = await journal.run(run_id)
        earlier = await thread_messages(journal, info.thread_id if info else "", before=run_id)
        saved = RunSnapshot(messages=earlier, run_from=len(earlier)), 0
    snapshot, after = saved
    for record in await journal.read(run_id, after=after, events_only=True):
        if until is not None and record.sequence > until:
            break
        for event in record.events:
            snapshot.apply(event)
        snapshot.upto = record.sequence
    return snapshot


async def brought_up_to_date(journal: Journal, run_id: str, snapshot: RunSnapshot) -> RunSnapshot:
    """Return what is known of a run whose thread is held: another process may have gone on with it meanwhile.

    Raises:
        UsageError: it ended meanwhile.
    """
    info = await journal.run(run_id)
    if info is not None and info.sequence != snapshot.upto:
        snapshot = await read_snapshot(journal, run_id)
    check_goes_on(snapshot)
    return snapshot


def check_goes_on(snapshot: RunSnapshot) -> None:
    """Do nothing where the run has not ended.

    Raises:
        UsageError: it has.
    """
    if snapshot.ended is not None and snapshot.started is not None:
        raise UsageError(
            f"The run {snapshot.started.run_id} has ended ({snapshot.ended.outcome}).",
            hint=f"agentctl run … --thread {snapshot.started.thread_id}  continues its conversation",
        )


async def with_sub_agents(journal: Journal, run_id: str, snapshot: RunSnapshot) -> RunSnapshot:
    """Make the totals in `snapshot` the sum of what it and each agent below it spent; return it.

    Each agent's own journal says what that agent spent, up to its last commit: totals that one agent recorded
    of others may know of acts that were not committed, or not know of some that were.
    """
    totals = dict(snapshot.own)
    level, seen = [run_id], {run_id}
    while level:
        for info in await journal.runs(parent_run=level.pop()):
            if info.run_id in seen:  # links in a circle, which no journal that is whole has
                continue
            seen.add(info.run_id)
            for name, amount in (await read_snapshot(journal, info.run_id)).own.items():
                totals[name] = totals.get(name, 0.0) + amount
            level.append(info.run_id)
    if WALL_TIME in snapshot.own:  # agents work side by side: time is each one's own
        totals[WALL_TIME] = snapshot.own[WALL_TIME]
    snapshot.spent = totals
    return snapshot


def answered_by(snapshot: RunSnapshot) -> list[str]:
    """Return the ids of the replies that this run got: where a scripted model goes on from."""
    return [
        message.response_id
        for message in snapshot.messages[snapshot.run_from :]
        if isinstance(message, AssistantMessage)
    ]


async def left_open_by_the_last(
    journal: Journal, thread_id: str, messages: list[Message]
) -> tuple[ToolMessage, ...]:
    """Return results for the calls that the last run of a thread left open: a killed one, or one that waits.

    `messages` are the thread's. Services refuse a conversation in which a call has no result.
    """
    if not RunSnapshot(messages=messages).open_calls():
        return ()
    (last,) = await journal.runs(thread_id=thread_id, limit=1)
    return left_open(await read_snapshot(journal, last.run_id))


async def check_is_last(journal: Journal, run_id: str, thread_id: str) -> None:
    """Do nothing where no later run went on with the thread.

    Raises:
        UsageError: one did, so this run's conversation is not the thread's any more.
    """
    (latest,) = await journal.runs(thread_id=thread_id, limit=1)
    last = latest.run_id
    if last != run_id:
        raise UsageError(
            f"The run {run_id} cannot go on: its conversation went on in the run {last}.",
            hint=f"agentctl resume {last}, or agentctl run … --thread {thread_id}",
        )


async def thread_messages(journal: Journal, thread_id: str, *, before: str = "") -> list[Message]:
    """Return the messages of a thread's runs, oldest first, up to the run `before`."""
    messages: list[Message] = []
    for info in await journal.runs(thread_id=thread_id):
        if info.run_id == before:
            break
        for record in await journal.read(info.run_id, events_only=True):
            messages += [event.message for event in record.events if isinstance(event, MessageAdded)]
    return messages
