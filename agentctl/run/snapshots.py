"""A run's snapshot in its journal, so that opening a long run need not read all of it.

It is written only when replaying the journal gives the same, and used only by the version that wrote it; on
opening, its digest alone is checked. Messages before the window that the model is shown are left out.
"""

import dataclasses
from typing import Protocol

from agentctl import __version__
from agentctl.agent.snapshot import RunSnapshot
from agentctl.journal.store import Journal, Snapshot
from agentctl.protocol.codec import Malformed, UnknownType, decode, encode
from agentctl.protocol.messages import Message, UserMessage
from agentctl.protocol.values import JsonObject, JsonValue

NAME = "run"
EVERY = 500
"""Commits after which a snapshot is worth its cost."""
_BESIDES = {"messages", "upto", "left_out"}
"""Fields that are stored in a form of their own, or are about one reading."""
_LEFT_OUT = UserMessage(parts=(), source="harness")
"""Stands for a message before the window, so that positions stay what they are."""


class Replay(Protocol):
    """Reads a run back as it was after a commit."""

    async def __call__(self, journal: Journal, run_id: str, *, until: int | None = None) -> RunSnapshot:
        """Return everything known of the run after commit `until`."""


async def save_run(journal: Journal, run_id: str, snapshot: RunSnapshot, upto: int, replay: Replay) -> bool:
    """Store what is known after commit `upto`, if replay gives the same; tell whether it did."""
    body = _dump(snapshot)
    again = _dump(await replay(journal, run_id, until=upto))
    # Sub-agents' journals may have told of more than the run's own did when it was resumed.
    if {**body, "spent": None} != {**again, "spent": None}:
        return False
    await journal.save_snapshot(Snapshot(owner=run_id, name=NAME, upto=upto, body=body))
    return True


async def saved_run(journal: Journal, run_id: str, *, until: int | None) -> tuple[RunSnapshot, int] | None:
    """Return the latest snapshot at or before commit `until`, and its commit; None when there is none."""
    stored = await journal.snapshot(run_id, NAME)
    if stored is None or (until is not None and stored.upto > until) or not isinstance(stored.body, dict):
        return None
    body = dict(stored.body)
    if body.pop("written_by", None) != _mark():
        return None
    left_out = body.pop("left_out", 0)
    try:
        snapshot: RunSnapshot = decode(RunSnapshot, body)
        snapshot.upto = stored.upto
    except (Malformed, UnknownType):
        return None
    if isinstance(left_out, int):
        head: list[Message] = [_LEFT_OUT] * left_out
        snapshot.messages = head + snapshot.messages
    return snapshot, stored.upto


async def verify_run(journal: Journal, run_id: str, replay: Replay) -> str:
    """Return how the run's snapshot differs from a replay of its whole journal, or empty.

    One that another version wrote is not used, and so not looked at.
    """
    stored = await journal.snapshot(run_id, NAME)
    if stored is None or not isinstance(stored.body, dict) or stored.body.get("written_by") != _mark():
        return ""
    whole = _dump(await replay(journal, run_id, until=stored.upto))
    if {**stored.body, "spent": None} == {**whole, "spent": None}:
        return ""
    return f"the snapshot of run {run_id!r} at {stored.upto} is not what its journal replays to"


def _dump(snapshot: RunSnapshot) -> JsonObject:
    body: JsonObject = {
        field.name: _json(getattr(snapshot, field.name))
        for field in dataclasses.fields(snapshot)
        if field.name not in _BESIDES
    }
    body["messages"] = [encode(message) for message in snapshot.messages[snapshot.window_from :]]
    return {**body, "left_out": snapshot.window_from, "written_by": _mark()}


def _json(value: object) -> JsonValue:
    if isinstance(value, set):
        return list(sorted(str(item) for item in value))  # noqa: C413 - a list of JSON values, not of texts
    return encode(value)


def _mark() -> str:
    names = " ".join(field.name for field in dataclasses.fields(RunSnapshot))
    return f"{__version__} {names}"
