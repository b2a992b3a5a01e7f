"""A running server, spoken to through the official SDK; every failure of it or of the SDK in our words."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    Implementation,
    Prompt,
    PromptListChangedNotification,
    Resource,
    ResourceListChangedNotification,
    ResourceTemplate,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from agentctl import __version__
from agentctl.errors import AgentctlError, ToolError
from agentctl.executor.api import Executor
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.tools.definition import ActContext, CallStandsStill, ToolOutput
from agentctl.tools.mcp.logins import LoginDoor
from agentctl.tools.mcp.server import (
    Offer,
    Reading,
    RemoteTool,
    Report,
    ServerFailed,
    ServerGone,
    ServerPlan,
    Session,
)
from agentctl.tools.mcp.wire.calls import Calls
from agentctl.tools.mcp.wire.content import call_output, listing, prompt_output, resource_output
from agentctl.tools.mcp.wire.login import oauth
from agentctl.tools.mcp.wire.mending import RESULTS, Mending
from agentctl.tools.mcp.wire.parameters import parameters_of
from agentctl.tools.mcp.wire.stdio import LONGEST_MESSAGE, StdioTransport

Result = TypeVar("Result")
Item = TypeVar("Item")
_MOST_PAGES = 100
_HTTP_ERROR = 400
_LOST = "Session terminated"
"""How the SDK says that a far server has forgotten us: only a new connection helps."""
_BAD_STATUS = "Server returned an error response"
"""How the SDK says that an HTTP answer had a status of an error."""
_CLOSED = "Connection closed"
"""How the SDK says that the connection has ended; servers use the same code for whatever ails them."""
_UNDECLARED_S = 3.0
_LISTEN_AGAIN_S = 5.0

# The SDK tells what it drops and mends on standard error, which is the run's own; what matters is in notes.
for _name in ("mcp", "client"):  # the second is how its client session calls itself
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


@asynccontextmanager
async def open_session(
    plan: ServerPlan, executor: Executor, report: Report, door: LoginDoor | None = None
) -> AsyncIterator[Session]:
    """Start or reach a server and give it while it runs; see `OpenSession`."""
    session = SdkSession(plan=plan, report=report)
    try:
        async with (
            _remote_transport(plan, report, door)
            if plan.url
            else _local(plan, executor, report, session) as transport
        ):
            client = Client(
                Mending(transport),
                client_info=Implementation(name="agentctl", version=__version__),
                elicitation_callback=session.calls.elicit,
                list_roots_callback=session.calls.roots,
                sampling_callback=session.calls.sample if plan.sampling else None,
                logging_callback=session.calls.log,
                message_handler=session.hear,
                cache=None,
            )
            async with client:
                session.client = client
                async with anyio.create_task_group() as group:
                    group.start_soon(session.listen)
                    yield session
                    group.cancel_scope.cancel()
    except Exception as failure:  # whatever a server or the SDK makes of it, the run goes on
        raise ServerFailed(plan.told(_words(failure))) from failure


@asynccontextmanager
async def _local(
    plan: ServerPlan, executor: Executor, report: Report, session: "SdkSession"
) -> AsyncIterator[Transport]:
    yield StdioTransport(plan=plan, executor=executor, report=report, over=session.ended)


@asynccontextmanager
async def _remote_transport(
    plan: ServerPlan, report: Report, door: LoginDoor | None
) -> AsyncIterator[Transport]:
    async def note(response: httpx2.Response) -> None:
        if response.status_code >= _HTTP_ERROR:
            report.http_status = response.status_code

    # A stream of events stays open as long as the run; calls have their own limit.
    timeout = httpx2.Timeout(30.0, read=None)
    auth = oauth(plan, plan.oauth, door) if plan.oauth is not None else None
    async with httpx2.AsyncClient(
        headers=dict(plan.headers), timeout=timeout, auth=auth, event_hooks={"response": [note]}
    ) as http:
        yield streamable_http_client(plan.url, http_client=http, max_sse_event_size=LONGEST_MESSAGE)


@dataclass(slots=True, kw_only=True)
class SdkSession:
    """See `Session`."""

    plan: ServerPlan
    report: Report
    calls: Calls = field(init=False)
    client: Client = field(init=False)
    ended: anyio.Event = field(default_factory=anyio.Event)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self.calls = Calls(plan=self.plan, report=self.report)

    async def offer(self) -> Offer:
        """Return what the server has; see `Session.offer`."""
        try:
            return Offer(tools=await self._tools(), readings=self._readings())
        except (MCPError, ValidationError, OSError, RuntimeError, httpx2.HTTPError) as failure:
            raise ServerFailed(self.plan.told(_words(failure))) from failure

    async def _tools(self) -> tuple[RemoteTool, ...]:
        async def page(cursor: str | None) -> tuple[Sequence[Tool], str | None]:
            found = await self.client.list_tools(cursor=cursor)
            return found.tools, found.next_cursor

        declared = self.client.server_capabilities.tools is not None
        limit = float("inf") if declared else _UNDECLARED_S
        tools: list[Tool] = []
        with anyio.move_on_after(limit):
            try:
                tools = await _all(page)
            except MCPError as error:
                if declared or error.code != METHOD_NOT_FOUND:
                    raise
        return tuple(_remote(tool) for tool in tools)

    def _readings(self) -> tuple[Reading, ...]:
        has = self.client.server_capabilities
        resources: tuple[Reading, ...] = ("list_resources", "read_resource") if has.resources else ()
        prompts: tuple[Reading, ...] = ("list_prompts", "get_prompt") if has.prompts else ()
        return (*resources, *prompts)

    async def call(self, tool: str, arguments: JsonObject, context: ActContext) -> ToolOutput:
        """Call a tool; see `Session.call`."""

        async def show(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            context.emit_output(f"{share}{f': {message}' if message else ''}\n")

        async def act() -> ToolOutput:
            return call_output(await self.client.call_tool(tool, dict(arguments), progress_callback=show))

        return await self._within(context, act)

    async def read(self, what: Reading, arguments: JsonObject, context: ActContext) -> ToolOutput:
        """List or read resources or prompts; see `Session.read`."""

        async def act() -> ToolOutput:
            match what:
                case "list_resources":
                    return await self._resources()
                case "read_resource":
                    return resource_output(await self.client.read_resource(str(arguments.get("uri", ""))))
                case "list_prompts":
                    return await self._prompts()
                case "get_prompt":
                    given = arguments.get("arguments")
                    values = given if isinstance(given, dict) else {}
                    filled = {key: str(value) for key, value in values.items()}
                    return prompt_output(await self.client.get_prompt(str(arguments.get("name", "")), filled))

        return await self._within(context, act)

    async def _resources(self) -> ToolOutput:
        async def page(cursor: str | None) -> tuple[Sequence[Resource], str | None]:
            found = await self.client.list_resources(cursor=cursor)
            return found.resources, found.next_cursor

        async def templates(cursor: str | None) -> tuple[Sequence[ResourceTemplate], str | None]:
            found = await self.client.list_resource_templates(cursor=cursor)
            return found.resource_templates, found.next_cursor

        rows: list[dict[str, JsonValue]] = [
            {"uri": one.uri, "name": one.name, "description": one.description, "media_type": one.mime_type}
            for one in await _all(page)
        ]
        try:
            rows += [
                {"uri_template": one.uri_template, "name": one.name, "description": one.description}
                for one in await _all(templates)
            ]
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
        return listing(rows, "There are no resources.")

    async def _prompts(self) -> ToolOutput:
        async def page(cursor: str | None) -> tuple[Sequence[Prompt], str | None]:
            found = await self.client.list_prompts(cursor=cursor)
            return found.prompts, found.next_cursor

        return listing([_prompt_row(one) for one in await _all(page)], "There are no prompts.")

    async def _within(self, context: ActContext, act: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        """Run one request; what goes wrong becomes words for the model."""
        self.report.http_status = 0
        try:
            return await self.calls.run(context, act)
        except (ToolError, CallStandsStill):
            raise
        except Exception as failure:  # as in `open_session`: a call fails, the run does not
            words = self.plan.told(_words(failure))
            forgot = bool(self.plan.url) and isinstance(failure, MCPError) and failure.message == _LOST
            if forgot or _is_closed(failure) or self.ended.is_set():
                self.ended.set()
                gone = ServerGone(words)
                gone.did_nothing = forgot
                raise gone from failure
            if status := self.report.http_words():
                words = f"{words.removeprefix(_BAD_STATUS)}; {status}".removeprefix("; ")
            raise ToolError(f"The MCP server {self.plan.name!r} could not do this: {words}") from failure

    async def hear(self, message: object) -> None:
        """Take in what the server announces."""
        match message:
            case (
                ToolListChangedNotification()
                | PromptListChangedNotification()
                | ResourceListChangedNotification()
            ):
                self._changed.set()
            case _:
                return

    async def listen(self) -> None:
        """Ask a server of the newer protocol to announce changes, for as long as it does."""
        tools = self.client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        while True:
            try:
                async with self.client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._changed.set()
            except (ListenNotSupportedError, MCPError, TimeoutError):
                return
            except SubscriptionLost:
                pass
            await anyio.sleep(_LISTEN_AGAIN_S)
            self._changed.set()  # nothing that was announced meanwhile is sent again

    async def changed(self) -> None:
        """Return at the next announcement; several at once are one."""
        await self._changed.wait()
        self._changed = anyio.Event()

    async def over(self) -> None:
        """Return when the connection has ended."""
        await self.ended.wait()


async def _all(fetch: Callable[[str | None], Awaitable[tuple[Sequence[Item], str | None]]]) -> list[Item]:
    """Return all pages; a server that names a page twice, or has no last one, is not followed for ever."""
    found: list[Item] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(_MOST_PAGES):
        items, cursor = await fetch(cursor)
        found += items
        if not cursor or cursor in seen:
            break
        seen.add(cursor)
    return found


def _remote(tool: Tool) -> RemoteTool:
    hints: list[str] = []
    notes = tool.annotations
    if notes is not None and notes.destructive_hint:
        hints.append("destructive")
    if notes is not None and notes.open_world_hint:
        hints.append("reaches beyond this machine")
    return RemoteTool(
        name=tool.name,
        title=tool.title or "",
        description=tool.description or "",
        parameters=parameters_of(tool.input_schema),
        results=results if isinstance(results := (tool.meta or {}).get(RESULTS), dict) else None,
        hints=tuple(hints),
    )


def _prompt_row(prompt: Prompt) -> dict[str, JsonValue]:
    arguments: list[JsonValue] = [
        {"name": one.name, "description": one.description or "", "required": bool(one.required)}
        for one in prompt.arguments or ()
    ]
    return {"name": prompt.name, "description": prompt.description, "arguments": arguments}


def _is_closed(failure: BaseException) -> bool:
    return isinstance(failure, MCPError) and failure.code == CONNECTION_CLOSED and failure.message == _CLOSED


def _words(failure: BaseException) -> str:
    """Return one sentence for a failure; empty where the connection just ended, which says nothing."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    match failure:
        case _ if _is_closed(failure):
            return ""
        case ValidationError():
            first = failure.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            return f"what it said does not follow the protocol ({place}: {first['msg']})"
        case httpx2.ConnectError():
            return f"it cannot be reached: {failure}"
        case MCPError() if "validation error" in failure.message:  # an answer that the SDK could not read
            return f"{failure.message.partition(':')[0]}: it is no message of the protocol"
        case AgentctlError() | ToolError() | ServerFailed() | MCPError():
            return str(failure)
        case _:
            return f"{failure}" or type(failure).__name__
