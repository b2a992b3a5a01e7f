"""What of the state a model is shown in a request: workspace, views, run context, keys of shared state."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from agentctl.agent.agent_state import AgentState
from agentctl.agent.snapshot import RunSnapshot
from agentctl.llm.base import ModelRequest
from agentctl.protocol.messages import UserMessage
from agentctl.state.shared_backend import SharedStateError
from agentctl.state.views import Invocation, ViewRequest, is_human, place
from agentctl.state.workspace import document_of


class Showing(Protocol):
    """Adds what is known to the copy of a request that goes to the model."""

    async def added_to(
        self, request: ModelRequest, snapshot: RunSnapshot
    ) -> tuple[ModelRequest, tuple[str, ...]]:
        """Return the request with what is shown, and warnings about what was left out."""


class ShowsNothing:
    """Nothing is shown."""

    async def added_to(
        self, request: ModelRequest, snapshot: RunSnapshot
    ) -> tuple[ModelRequest, tuple[str, ...]]:
        """Return the request as it is."""
        del snapshot
        return request, ()


@dataclass(slots=True, kw_only=True)
class StateShowing:
    """Implements `Showing` over one agent's state.

    An invocation is what follows a human message in one visit of a stage. Bases and the summary of shared
    state are taken at its first model call and stay, so that the prompt's beginning stays the same.
    """

    state: AgentState
    context: Mapping[str, str] = field(default_factory=dict)
    """The run context, by name."""
    _mark: tuple[str, int, int] | None = None
    _invocation: Invocation = field(default_factory=Invocation)
    _summary: str = ""

    async def added_to(
        self, request: ModelRequest, snapshot: RunSnapshot
    ) -> tuple[ModelRequest, tuple[str, ...]]:
        """Return the request with what is shown, and warnings about what was left out."""
        warnings: list[str] = []
        mark = (snapshot.stage, snapshot.visits.get(snapshot.stage, 0), _human_messages(snapshot))
        offered = {tool.name for tool in request.tools}
        if mark != self._mark:
            stage = self.state.stage(snapshot.stage)
            self._mark = mark
            self._invocation = Invocation(workspace=stage.workspace, views=stage.views)
            self._summary = await self._shared(snapshot.stage, warnings) if "shared_state" in offered else ""
        blocks, left_out = await self._invocation.render(
            ViewRequest(
                agent=self.state.agent,
                thread_id=self.state.thread_id,
                run_id=self.state.run_id,
                first_call=False,
                context=for_tools(self.context, offered),
                state=document_of(self.state.live.cells),
            )
        )
        shown = replace(
            request,
            system=f"{request.system}\n\n{self._summary}" if self._summary else request.system,
            messages=place(request.messages, blocks),
        )
        return shown, (*warnings, *left_out)

    async def _shared(self, stage: str, warnings: list[str]) -> str:
        try:
            summary = await self.state.store_of(stage).prompt_summary()
        except SharedStateError as error:
            warnings.append(f"shared state is left out of the prompt: {error}")
            return ""
        return f"Shared state, read with the tool `shared_state`: {summary}"


def _human_messages(snapshot: RunSnapshot) -> int:
    return sum(
        isinstance(message, UserMessage) and is_human(message)
        for message in snapshot.messages[snapshot.run_from :]
    )


def for_tools(context: Mapping[str, str], offered: set[str]) -> dict[str, str]:
    """The context items for this agent: one named `tool:NAME` is only for agents that have that tool."""
    return {
        name: text
        for name, text in context.items()
        if not name.startswith("tool:") or name.removeprefix("tool:") in offered
    }
