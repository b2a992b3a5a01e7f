"""The calls that a server is busy with, and what it may ask meanwhile: a person, the model, the roots."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TypeVar

import anyio
from mcp.client.session import ClientRequestContext
from mcp_types import (
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ImageContent,
    ListRootsResult,
    LoggingMessageNotificationParams,
    Root,
    SamplingMessage,
    TextContent,
)
from pydantic import FileUrl

from agentctl.errors import ToolError
from agentctl.protocol.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    TextPart,
    UserMessage,
    UserPart,
)
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.tools.definition import ActContext, CallStandsStill, SampleRequest
from agentctl.tools.mcp.server import Report, ServerPlan
from agentctl.tools.mcp.wire.asking import elicit

Result = TypeVar("Result")
_STOPS = {"length": "maxTokens", "stop_sequence": "stopSequence"}


@dataclass(slots=True, kw_only=True)
class Call:
    """One call that runs. Its time stands still while a person or the model is asked."""

    context: ActContext
    scope: anyio.CancelScope
    standstill: CallStandsStill | None = None
    """Ends the call: nobody is there for a question, and the run waits."""
    _asked: int = 0
    _asking: int = 0
    _left: float = 0.0

    async def ask(self, question: PersonQuestion) -> PersonAnswer:
        """Put a question to a person. Each of a call is journaled by itself."""
        self._asked += 1
        call_id = self.context.call_id
        name = call_id if self._asked == 1 else f"{call_id}/{self._asked}"
        try:
            async with self.waiting():
                return await self.context.ask_person(replace(question, call_id=name))
        except CallStandsStill as standstill:
            self.standstill = standstill
            self.scope.cancel()
            return PersonAnswer(no_answer="unattended")

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Stop the clock of the call's timeout."""
        if not self._asking:
            self._left, self.scope.deadline = self.scope.deadline - anyio.current_time(), float("inf")
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self.scope.deadline = anyio.current_time() + self._left


_CURRENT: ContextVar[Call | None] = ContextVar("mcp_call", default=None)


@dataclass(slots=True, kw_only=True)
class Calls:
    """All calls of one server that run, and the answers to what it asks of us."""

    plan: ServerPlan
    report: Report
    running: list[Call] = field(default_factory=list)

    async def run(self, context: ActContext, act: Callable[[], Awaitable[Result]]) -> Result:
        """Run one call within its time.

        Raises:
            ToolError: its time was up.
            CallStandsStill: a person is needed and not there.
        """
        limit, strays = self.plan.call_timeout_s, self.report.stray_lines
        with anyio.CancelScope(deadline=anyio.current_time() + limit if limit else float("inf")) as scope:
            call = Call(context=context, scope=scope)
            self.running.append(call)
            token = _CURRENT.set(call)
            try:
                return await act()
            finally:
                _CURRENT.reset(token)
                self.running.remove(call)
        if call.standstill is not None:
            raise call.standstill
        said = self.report.last_stray if self.report.stray_lines > strays else ""
        printed = f" It printed what is no message: {self.plan.told(said)!r}." if said else ""
        raise ToolError(
            f"The MCP server {self.plan.name!r} did not answer within {limit:g} s (call_timeout). The call "
            f"was cancelled; it may have happened, wholly or partly.{printed}"
        )

    def _asking(self) -> Call | None:
        """The call that a server asks for: known in the newer protocol, else the latest that runs."""
        return _CURRENT.get() or (self.running[-1] if self.running else None)

    async def elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        """Answer a server's question to a person; outside of a call there is nobody to ask."""
        del context
        call = self._asking()
        if call is None:
            return ElicitResult(action="cancel")
        return await elicit(self.plan.name, params, call.ask)

    async def roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:
        """Answer where a server may work: in the run's workdir."""
        del context
        workdir = self.plan.roots.workdir
        return ListRootsResult(roots=[Root(uri=FileUrl(workdir.as_uri()), name=workdir.name)])

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """Answer a server's wish for a model call, if the run's policy and budgets allow it."""
        del context
        call = self._asking()
        if call is None:
            return ErrorData(code=INVALID_REQUEST, message="Model calls are for a running tool call only.")
        wish = SampleRequest(
            server=self.plan.name,
            system=params.system_prompt or "",
            messages=tuple(_message(message) for message in params.messages),
            max_output_tokens=params.max_tokens,
            temperature=params.temperature,
            stop=tuple(params.stop_sequences or ()),
        )
        try:
            async with call.waiting():
                reply = await call.context.sample(wish)
        except ToolError as refused:
            return ErrorData(code=INVALID_REQUEST, message=str(refused))
        except CallStandsStill as standstill:
            call.standstill = standstill
            call.scope.cancel()
            return ErrorData(code=INVALID_REQUEST, message="A person is needed and not there.")
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=reply.text),
            model=reply.model,
            stop_reason=_STOPS.get(reply.stop, "endTurn"),
        )

    async def log(self, params: LoggingMessageNotificationParams) -> None:
        """Show what a server logs as output of the call it is busy with."""
        call = self._asking()
        if call is not None:
            text = params.data if isinstance(params.data, str) else repr(params.data)
            call.context.emit_output(f"{params.level}: {self.plan.told(text)}\n")


def _message(message: SamplingMessage) -> Message:
    blocks = message.content if isinstance(message.content, list) else [message.content]
    parts: list[UserPart] = []
    for block in blocks:
        match block:
            case TextContent(text=text):
                parts.append(TextPart(text=text))
            case ImageContent(mime_type=media_type, data=data):
                parts.append(ImagePart(media_type=media_type, data=data))
            case _:
                parts.append(TextPart(text=f"[{block.type}]"))
    if message.role == "user":
        return UserMessage(parts=tuple(parts), source="agent:server")
    return AssistantMessage(parts=tuple(part for part in parts if isinstance(part, TextPart)))
