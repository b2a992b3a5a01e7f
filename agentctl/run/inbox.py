"""Messages that people and other agents sent to a run; each joins its thread exactly once."""

from dataclasses import dataclass

from agentctl.journal.store import Journal
from agentctl.protocol.messages import UserMessage, user_text
from agentctl.protocol.values import JsonValue


@dataclass(slots=True, kw_only=True)
class JournalInbox:
    """A run's inbox in the journal: what is drained is named in the commit that adds it to the thread."""

    journal: Journal
    run_id: str

    async def waiting(self) -> tuple[tuple[str, UserMessage], ...]:
        """Return what waits, oldest first, each with the id that the commit must name as received."""
        waiting = await self.journal.inbox(self.run_id)
        return tuple(
            (one.message_id, user_text(_words(one.body), source=_source(one.body))) for one in waiting
        )


def _words(body: JsonValue) -> str:
    if isinstance(body, dict):
        return str(body.get("text", ""))
    return str(body)


def _source(body: JsonValue) -> str:
    return str(body.get("source", "person")) if isinstance(body, dict) else "person"
