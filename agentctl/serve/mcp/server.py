"""The MCP server over standard streams, through the official SDK, in both of its protocol's generations.

The older one asks the client while a call is open. The newer one has no way back to the client: a call that
needs a person is answered with the question, and the client calls again with the answer while the run stands.
"""

import secrets
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agentctl import __version__
from agentctl.errors import AgentctlError
from agentctl.protocol.events import LaunchFlags, Published, RunEnded, StageEntered, ToolCallDecided
from agentctl.protocol.questions import Question
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.serve.mcp.forms import answer_of, form_of
from agentctl.serve.mcp.offering import Offered
from agentctl.serve.mcp.served_run import OpenHouse, RunReport, ServedRun
from agentctl.settings.settings import Settings

_INSTRUCTIONS = (
    "Each tool runs an agent to its end and returns its answer. What the agent's policy does not allow is "
    "asked through elicitation, or refused where the client has none."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What is served, and how runs are started."""

    tools: Mapping[str, Offered]
    settings: Settings
    open_house: OpenHouse
    workdir: Path
    flags: LaunchFlags = field(default_factory=LaunchFlags)


async def serve_stdio(serving: Serving) -> None:
    """Serve one client on standard input and output until it leaves; its runs are stopped then, resumable."""
    async with anyio.create_task_group() as group:
        calls = _Calls(serving=serving, group=group)
        server: Server[dict[str, object]] = Server(
            "agentctl",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=calls.list_tools,
            on_call_tool=calls.call_tool,
        )
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        await calls.stop()
        group.cancel_scope.cancel()


@dataclass(slots=True, kw_only=True)
class _Calls:
    serving: Serving
    group: TaskGroup
    standing: dict[str, ServedRun] = field(default_factory=dict)
    """Runs that wait for the client to call again, by the token it was given."""

    async def list_tools(
        self, context: ServerRequestContext[dict[str, object]], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Return the blueprints as tools."""
        del context, params
        tools = [
            Tool(name=one.name, description=one.description, input_schema=one.schema)
            for one in self.serving.tools.values()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(
        self, context: ServerRequestContext[dict[str, object]], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Run a blueprint, or go on with a run that stood for an answer."""
        if params.request_state:
            run = self.standing.pop(params.request_state, None)
            if run is None:
                return _failed("That run does not wait here any more.")
            for question in await run.next_questions():
                reply = (params.input_responses or {}).get(question.question_id)
                if isinstance(reply, ElicitResult):
                    _give(run, question, reply)
        else:
            offered = self.serving.tools.get(params.name)
            if offered is None:
                return _failed(f"There is no agent {params.name!r}.")
            try:
                run = self._start(context, params, offered)
            except AgentctlError as error:
                return _failed(f"{error.message} {error.hint}".strip())
        try:
            return await self._follow(context, run)
        except anyio.get_cancelled_exc_class():
            await run.stop()
            raise

    def _start(
        self,
        context: ServerRequestContext[dict[str, object]],
        params: CallToolRequestParams,
        offered: Offered,
    ) -> ServedRun:
        arguments: JsonObject = dict(params.arguments or {})
        able = context.session.client_capabilities
        run = ServedRun(
            open_house=self.serving.open_house,
            settings=self.serving.settings,
            blueprint=offered.blueprint,
            order=offered.order(arguments, self.serving.workdir, self.serving.flags),
            can_ask=able is not None and able.elicitation is not None,
        )
        self.group.start_soon(run.serve)
        return run

    async def _follow(
        self, context: ServerRequestContext[dict[str, object]], run: ServedRun
    ) -> CallToolResult | InputRequiredResult:
        """Go along with a run until it ends, or a person must be asked by way of another call."""
        async with anyio.create_task_group() as showing:
            showing.start_soon(_show_progress, context, run)
            while questions := await run.next_questions():
                if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    showing.cancel_scope.cancel()
                    return self._stand(run, questions)
                form = form_of(questions[0])
                try:
                    reply = await context.session.elicit_form(
                        form.message, dict(form.schema), related_request_id=context.request_id
                    )
                except MCPError:  # it can't ask after all: nobody is there
                    run.can_ask = False
                    reply = ElicitResult(action="decline")
                _give(run, questions[0], reply)
            showing.cancel_scope.cancel()
        return _result(run.report)

    def _stand(self, run: ServedRun, questions: tuple[Question, ...]) -> InputRequiredResult:
        token = secrets.token_urlsafe(24)
        self.standing[token] = run
        forms = {question.question_id: form_of(question) for question in questions}
        return InputRequiredResult(
            input_requests={
                question_id: ElicitRequest(
                    params=ElicitRequestFormParams(message=form.message, requested_schema=dict(form.schema))
                )
                for question_id, form in forms.items()
            },
            request_state=token,
        )

    async def stop(self) -> None:
        """Stop the runs that wait for a client that is gone."""
        for run in self.standing.values():
            await run.stop()


async def _show_progress(context: ServerRequestContext[dict[str, object]], run: ServedRun) -> None:
    """Tell the client, if it wants to know, which stage began and which tool was called."""
    send, receive = anyio.create_memory_object_stream[str](256)

    def watch(published: Published) -> None:
        match published.event:
            case StageEntered(stage=stage):
                text = f"stage {stage}"
            case ToolCallDecided(tool=tool):
                text = f"{published.agent}: {tool}"
            case _:
                return
        try:
            send.send_nowait(text)
        except anyio.WouldBlock:
            return  # progress is for a person to look at: what is too much is left out

    run.watch = watch
    done = 0
    with send, receive:
        async for text in receive:
            done += 1
            await context.session.report_progress(done, message=text)


def _give(run: ServedRun, question: Question, reply: ElicitResult) -> None:
    given = (reply.content or {}).items()
    content: JsonObject = {name: value for name, value in given if isinstance(value, str)}
    run.answer(question.question_id, answer_of(question, reply.action, content))


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _result(report: RunReport | None) -> CallToolResult:
    if report is None:
        return _failed("The run was stopped.")
    end = report.end
    ended = end if isinstance(end, RunEnded) else None
    outcome = ended.outcome if ended is not None else "waiting"
    answer = ended.answer if ended is not None else ""
    structured: JsonObject = {
        "run": report.run_id,
        "thread": report.thread_id,
        "outcome": outcome,
        "exit_code": end.exit_code,
        "answer": answer,
        "output": ended.output if ended is not None else None,
        "reason": end.reason,
    }
    text = answer or end.reason or outcome
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=structured,
        is_error=outcome != "finished",
    )
