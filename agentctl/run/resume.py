"""Reads a run back from its journal, so that it goes on where it stood still."""

from agentctl.agent.snapshot import RunSnapshot
from agentctl.journal.store import Journal
from agentctl.protocol.events import MessageAdded
from agentctl.protocol.messages import AssistantMessage, Message
from agentctl.run.snapshots import saved_run


async def read_snapshot(journal: Journal, run_id: str, *, until: int | None = None) -> RunSnapshot:
    """Return everything known of a run, the earlier runs of its thread included.

    `until` stops after the commit of that number.
    """
    saved = await saved_run(journal, run_id, until=until)
    if saved is None:
        info = await journal.run(run_id)
        earlier = await thread_messages(journal, info.thread_id if info else "", before=run_id)
        saved = RunSnapshot(messages=earlier, run_from=len(earlier)), 0
    snapshot, after = saved
    for record in await journal.read(run_id, after=after):
        if until is not None and record.sequence > until:
            break
        for event in record.events:
            snapshot.apply(event)
    return snapshot


async def with_sub_agents(journal: Journal, run_id: str, snapshot: RunSnapshot) -> RunSnapshot:
    """Take what the sub-agents' journals say of this run's totals into `snapshot`; return it.

    A sub-agent's record holds the totals of all agents above it, and may be younger than the run's own.
    """
    level = [(run_id, 0)]
    while level:
        parent, depth = level.pop()
        for info in await journal.runs(parent_run=parent):
            child = RunSnapshot()
            for record in await journal.read(info.run_id):
                for event in record.events:
                    child.apply(event)
            if len(child.spent_above) > depth:
                for name, amount in child.spent_above[depth].items():
                    snapshot.spent[name] = max(snapshot.spent.get(name, 0.0), amount)
            level.append((info.run_id, depth + 1))
    return snapshot


def answered_by(snapshot: RunSnapshot) -> list[str]:
    """Return the ids of the replies that this run got: where a scripted model goes on from."""
    return [
        message.response_id
        for message in snapshot.messages[snapshot.run_from :]
        if isinstance(message, AssistantMessage)
    ]


async def thread_messages(journal: Journal, thread_id: str, *, before: str = "") -> list[Message]:
    """Return the messages of a thread's runs, oldest first, up to the run `before`."""
    messages: list[Message] = []
    for info in await journal.runs(thread_id=thread_id):
        if info.run_id == before:
            break
        for record in await journal.read(info.run_id):
            messages += [event.message for event in record.events if isinstance(event, MessageAdded)]
    return messages
