"""Commits: the journal first, what is known second, the screen last."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentctl.agent.snapshot import RunSnapshot
from agentctl.ids import new_id
from agentctl.journal.store import Journal
from agentctl.protocol.commands import Command, Commit, OutgoingMessage
from agentctl.protocol.events import Event, LiveEvent, Published
from agentctl.protocol.values import JsonValue

Watch = Callable[[Published], None]


@dataclass(slots=True, kw_only=True)
class RunRecorder:
    """The one way in which facts of a run come into being."""

    journal: Journal
    run_id: str
    thread_id: str
    agent: str
    parent_run: str = ""
    watchers: Sequence[Watch] = ()
    snapshot: RunSnapshot = field(default_factory=RunSnapshot)

    async def commit(
        self, *events: Event, commands: tuple[Command, ...] = (), received: tuple[str, ...] = ()
    ) -> None:
        """Make `events` and `commands` durable, then known, then visible; all of them or none.

        Raises:
            StateConflict: the commit is not valid, or another process has the thread.
        """
        if not events and not commands and not received:
            return
        commit = Commit(
            run_id=self.run_id,
            thread_id=self.thread_id,
            events=events,
            commands=commands,
            received=received,
        )
        appended = await self.journal.append(commit)
        for event in events:
            self.snapshot.apply(event)
        for event in events:
            self._publish(event, appended.sequence, appended.at)

    async def send(self, target: str, text: str, *, source: str) -> None:
        """Put a message into another run's inbox; there once, whatever happens after."""
        body: JsonValue = {"text": text, "source": source}
        message = OutgoingMessage(message_id=new_id("m"), target=target, body=body)
        await self.journal.append(
            Commit(run_id=self.run_id, thread_id=self.thread_id, events=(), outgoing=(message,))
        )

    def show(self, event: LiveEvent) -> None:
        """Show something that is not kept."""
        self._publish(event, 0, "")

    def _publish(self, event: Event | LiveEvent, sequence: int, at: str) -> None:
        published = Published(
            run_id=self.run_id,
            agent=self.agent,
            stage=self.snapshot.stage,
            event=event,
            parent_run=self.parent_run,
            sequence=sequence,
            at=at,
        )
        for watch in self.watchers:
            watch(published)
