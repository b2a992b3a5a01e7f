"""Messages that people and other agents sent to a run; each joins its thread exactly once."""

import math
from dataclasses import dataclass

from agentctl.agent.context import Arrived
from agentctl.clock import Clock
from agentctl.journal.store import Appended, InboxMessage, Journal
from agentctl.protocol.messages import user_text
from agentctl.protocol.values import JsonValue

_FRESH_S = 0.5
"""So long counts what a commit saw: a message that came since is read a step later."""


@dataclass(slots=True, kw_only=True)
class JournalInbox:
    """A run's inbox in the journal: what is drained is named in the commit that adds it to the thread."""

    journal: Journal
    run_id: str
    clock: Clock
    _empty_at: float = -math.inf

    def saw(self, appended: Appended) -> None:
        """Take note of what the run's last commit saw, which saves looking again right after it."""
        self._empty_at = -math.inf if appended.mail_waits else self.clock.monotonic()

    async def waiting(self) -> tuple[Arrived, ...]:
        """Return what waits, oldest first, each with the id that the commit must name as received."""
        if self.clock.monotonic() - self._empty_at < _FRESH_S:
            return ()
        return tuple(_arrived(one) for one in await self.journal.inbox(self.run_id))


def _arrived(one: InboxMessage) -> Arrived:
    revoke = one.body.get("revoke") if isinstance(one.body, dict) else None
    if isinstance(revoke, str) and revoke:
        return Arrived(message_id=one.message_id, revoke=revoke)
    words = user_text(_words(one.body), source=_source(one.body))
    return Arrived(message_id=one.message_id, message=words)


def _words(body: JsonValue) -> str:
    if isinstance(body, dict):
        return str(body.get("text", ""))
    return str(body)


def _source(body: JsonValue) -> str:
    return str(body.get("source", "person")) if isinstance(body, dict) else "person"
