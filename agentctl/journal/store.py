"""What a journal is to the rest. `sqlite.py` is the one on disk; `agentctl.testing` has one in memory."""

from typing import Literal, Protocol, TypeAlias

from agentctl.protocol.children import RunOutcome
from agentctl.protocol.commands import Command, Commit, OutgoingMessage
from agentctl.protocol.events import Event
from agentctl.protocol.values import JsonValue
from agentctl.records import dataclass

RunStatus: TypeAlias = Literal[
    "running",  # a process holds the lease of its thread
    "interrupted",  # it did not end, and no process is at work on it: `agentctl resume` goes on
    "suspended",  # it stands still on purpose
    "waiting",  # it stands still and a question is open
    "ended",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Where and when a commit became durable."""

    sequence: int
    """The commit's number in its run, from 1, without gaps."""
    at: str
    """RFC 3339 time, UTC."""
    position: int
    """The commit's number in the whole journal; rises, with gaps."""
    mail_waits: bool = True
    """False when no message waited for the run once this was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A commit as read back."""

    run_id: str
    thread_id: str
    sequence: int
    at: str
    position: int
    events: tuple[Event, ...]
    """An event of a type that this version does not know stands here as a `Noted` warning."""
    commands: tuple[Command, ...] = ()
    outgoing: tuple[OutgoingMessage, ...] = ()
    received: tuple[str, ...] = ()
    state_thread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One line of `agentctl runs list`, kept up to date by every commit."""

    run_id: str
    thread_id: str
    agent: str = ""
    status: RunStatus = "interrupted"
    outcome: RunOutcome | Literal[""] = ""
    exit_code: int | None = None
    reason: str = ""
    """Why it ended or stands still."""
    started: str = ""
    updated: str = ""
    sequence: int = 0
    """Commits so far."""
    task: str = ""
    model: str = ""
    stage: str = ""
    steps: int = 0
    workdir: str = ""
    blueprint_path: str = ""
    blueprint_sha256: str = ""
    parent_run: str = ""
    parent_call: str = ""
    state_thread: str = ""
    open_questions: int = 0


def commit_to(info: RunInfo, *events: Event) -> Commit:
    """Return the commit that adds `events` to a run which stands still; its thread's lease is held."""
    return Commit(run_id=info.run_id, thread_id=info.thread_id, state_thread=info.state_thread, events=events)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadInfo:
    """A thread and what has run on it."""

    thread_id: str
    runs: tuple[str, ...]
    """Run ids, oldest first."""
    agent: str
    updated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxMessage:
    """A message that waits for a run or thread to take it in."""

    message_id: str
    target: str
    body: JsonValue
    sender: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A fold of a run or thread up to a point, so that opening need not read what came before."""

    owner: str
    """A run id or a thread id."""
    name: str
    """What was folded: `run`, `cells`."""
    upto: int
    """Sequence (of a run) or position (of a thread) of the last commit in it."""
    body: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something wrong that `verify` found in a run."""

    run_id: str
    sequence: int
    text: str


class Lease(Protocol):
    """The right to write to a thread, held by one process at a time.

    A lease ends with `release` or with its process, however that dies; nothing has to expire.
    """

    @property
    def thread_id(self) -> str:
        """The thread it is for."""

    @property
    def token(self) -> int:
        """The fencing token: greater than that of every earlier lease of the thread."""

    async def release(self) -> None:
        """Let another process write to the thread. Idempotent."""


class Journal(Protocol):
    """Commits, in order, and what is derived from them. Used from one event loop."""

    async def append(self, commit: Commit) -> Appended:
        """Make `commit` durable. Atomic: whole or not at all. Not cancelled once begun.

        Many callers at once share one disk flush; their commits keep the order of the calls. Its outgoing
        messages are in their targets' inboxes when it returns.

        Raises:
            StateConflict: this journal does not hold the lease of `commit.thread_id`, or a message id was
                used before for other content.
        """

    async def read(
        self, run_id: str, *, after: int = 0, limit: int | None = None, events_only: bool = False
    ) -> tuple[Record, ...]:
        """Return the run's records with a sequence above `after`, in order.

        With `events_only` their commands need not be read: a replay of the run alone does without them.

        A damaged record at the end is left out, with a `Noted` warning in its place.

        Raises:
            StateConflict: a record before the end is damaged; the text names it.
        """

    async def read_state(
        self, thread_id: str, *, after: int = 0, upto: int | None = None
    ) -> tuple[Record, ...]:
        """Return the records that changed cells of the thread, whatever run they belong to, by position.

        Those at positions above `after`, and none above `upto`: damage beyond it is not looked at.
        Without their events and messages: those are read with their run.
        """

    async def run(self, run_id: str) -> RunInfo | None:
        """Return what is known of a run."""

    async def runs(
        self, *, thread_id: str = "", parent_run: str = "", limit: int | None = None
    ) -> tuple[RunInfo, ...]:
        """Return runs, oldest first; with `limit`, the latest so many."""

    async def find_run(self, name: str) -> RunInfo:
        """Return the run that `name` means: its id, a unique prefix of it, or `last`.

        `last` is the latest run that is not a sub-agent's.

        Raises:
            UsageError: none or several fit.
        """

    async def threads(self) -> tuple[ThreadInfo, ...]:
        """Return all threads, the one that changed last at the end."""

    async def acquire(self, thread_id: str) -> Lease:
        """Return the lease of a thread, taking it over from a process that has died.

        Raises:
            StateConflict: another journal holds it and is alive; the text names its process.
        """

    async def post(self, message: OutgoingMessage, *, sender: str) -> bool:
        """Put a message into the inbox of a run or thread; needs no lease. True when it is new.

        The same id and content again changes nothing, also after the message was taken in.

        Raises:
            StateConflict: the id was used before for other content.
        """

    async def inbox(self, target: str) -> tuple[InboxMessage, ...]:
        """Return the messages that wait for a run or thread, oldest first.

        A commit that names them in `received` takes them out.
        """

    async def withdraw(self, message_id: str) -> bool:
        """Take back a message that nobody has taken in yet; True if there was one."""

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot over the earlier one of its owner and name."""

    async def snapshot(self, owner: str, name: str) -> Snapshot | None:
        """Return the latest snapshot, or None when there is none or its digest does not hold."""

    async def remove_run(self, run_id: str) -> bool:
        """Delete a run with its sub-agents' runs; True if it was there.

        What it did to its thread's cells stays while other runs of that thread do.

        Raises:
            StateConflict: a process is at work on it.
        """

    async def verify(self, run_id: str) -> tuple[Fault, ...]:
        """Return what is wrong with the run's chain of hashes; empty when every record is as written."""

    async def aclose(self) -> None:
        """Release leases and close. Idempotent."""
