"""Commits: the journal first, what is known second, the screen last."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agentctl.agent.agent_state import LiveState
from agentctl.agent.snapshot import RunSnapshot
from agentctl.ids import new_id
from agentctl.journal.states import save_cells
from agentctl.journal.store import Appended, Journal
from agentctl.protocol.commands import Command, Commit, OutgoingMessage
from agentctl.protocol.events import Event, LiveEvent, Noted, Published
from agentctl.protocol.values import JsonValue
from agentctl.run.resume import read_snapshot
from agentctl.run.snapshots import EVERY, save_run
from agentctl.state.commit import Origin, assemble
from agentctl.state.keys import NO_KEYS, KeyTable

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
    live: LiveState | None = None
    """The cells that commands change; without it a commit may carry none."""
    saw: Callable[[Appended], None] = field(default=lambda _: None)
    """Told of every commit that became durable."""
    keys: KeyTable = NO_KEYS

    async def commit(
        self, *events: Event, commands: tuple[Command, ...] = (), received: tuple[str, ...] = ()
    ) -> None:
        """Make `events` and `commands` durable, then known, then visible; all of them or none.

        Raises:
            StateConflict: the commit is not valid, or another process has the thread.
        """
        if not events and not commands and not received:
            return
        origin = Origin(run_id=self.run_id, thread_id=self.thread_id, state_thread=self._state_thread)
        if self.live is None or not commands:
            commit = replace(assemble(origin, events, commands).commit, received=received)
            appended = await self.journal.append(commit)
        else:
            async with self.live.committing:
                assembled = assemble(origin, events, commands, keys=self.keys, cells=self.live.cells)
                commit = replace(assembled.commit, received=received)
                appended = await self.journal.append(commit)
                self.live.cells = assembled.cells
        self.saw(appended)
        for event in commit.events:
            self.snapshot.apply(event)
        for event in commit.events:
            self._publish(event, appended.sequence, appended.at)
        if appended.sequence % EVERY == 0:
            await self._save_snapshots(appended.sequence)

    async def _save_snapshots(self, sequence: int) -> None:
        """Store what is known, so that a resume need not read it all; told about where replay differs."""
        held = await save_run(self.journal, self.run_id, self.snapshot, sequence, read_snapshot)
        if self.live is not None:
            async with self.live.committing:
                held = await save_cells(self.journal, self.live.thread_id, self.live.cells) and held
        if not held:
            text = "no snapshot was written: replaying the journal gives something else"
            await self.commit(Noted(level="warning", text=text, source="snapshot"))

    async def send(self, target: str, text: str, *, source: str) -> None:
        """Put a message into another run's inbox; there once, whatever happens after."""
        body: JsonValue = {"text": text, "source": source}
        message = OutgoingMessage(message_id=new_id("m"), target=target, body=body)
        await self.journal.append(
            Commit(
                run_id=self.run_id,
                thread_id=self.thread_id,
                state_thread=self._state_thread,
                events=(),
                outgoing=(message,),
            )
        )

    @property
    def _state_thread(self) -> str:
        own = self.live is None or self.live.thread_id == self.thread_id
        return "" if own or self.live is None else self.live.thread_id

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
