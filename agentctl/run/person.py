"""Who can be asked: a person at the terminal device or a connected client, through the hub."""

from collections.abc import Callable

from agentctl.interaction.hub import Hub
from agentctl.protocol.questions import Answer, Question
from agentctl.records import dataclass
from agentctl.run.active_time import ActiveTime


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPerson:
    """The person at the other end of the hub, if there is one."""

    hub: Hub
    yolo: bool
    active: ActiveTime
    someone_there: Callable[[], bool]
    """Looks at this moment: the terminal device opens and is ours in the foreground, or a client is there."""

    async def ask(self, question: Question) -> Answer:
        """Return the one answer, or what the deadline means. Safe to cancel."""
        with self.active.waiting():
            return await self.hub.ask(question)

    def settle(self, question_id: str, answer: Answer) -> bool:
        """Answer a waiting question on behalf of a grant given meanwhile."""
        return self.hub.answer(question_id, answer)

    def attended(self, *, insists: bool = False) -> bool:
        """Tell whether a person may be asked right now; under `--yolo` only by a question that insists."""
        return (insists or not self.yolo) and self.someone_there()
