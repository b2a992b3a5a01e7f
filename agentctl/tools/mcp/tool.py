"""A server's tools as the agent sees them: judged by their name's rule, shown whole in the prompt."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

from agentctl.errors import ToolError
from agentctl.executor.api import Executor
from agentctl.protocol.messages import ToolSpec
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, Prepared, ToolOutput, ToolPlace
from agentctl.tools.mcp.line import Line
from agentctl.tools.mcp.names import tool_name
from agentctl.tools.mcp.server import Reading, RemoteTool, ServerGone, Session
from agentctl.tools.places import roots_of
from agentctl.tools.registry import schema_of

_LONGEST_DESCRIPTION = 8000
_NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}}
_READINGS: dict[Reading, tuple[str, JsonObject]] = {
    "list_resources": ("List the resources that the server {server} offers for reading.", _NO_ARGUMENTS),
    "read_resource": (
        "Read a resource of the server {server}.",
        {
            "type": "object",
            "properties": {"uri": {"type": "string", "description": "As list_resources gives it."}},
            "required": ["uri"],
            "additionalProperties": False,
        },
    ),
    "list_prompts": ("List the prompt templates that the server {server} offers.", _NO_ARGUMENTS),
    "get_prompt": (
        "Fill in a prompt template of the server {server} and return its text.",
        {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """One tool of one server. Two are equal when their server and what it says of them are the same."""

    spec: ToolSpec
    line: Line
    executor: Executor
    heading: str
    """Stands above the arguments in the approval prompt."""
    run: Callable[[JsonObject, ActContext], Awaitable[ToolOutput]]
    rereads: bool = False
    """It only reads: a resume may do it again. Never taken from what a server says of itself."""

    def __eq__(self, other: object) -> bool:
        """Compare without what runs the tool, which is made anew for each listing."""
        return isinstance(other, ServerTool) and (self.line is other.line, self.spec, self.heading) == (
            True,
            other.spec,
            other.heading,
        )

    def __hash__(self) -> int:
        """Hash the name alone."""
        return hash(self.spec.name)

    @property
    def aliases(self) -> tuple[str, ...]:
        """It has one name."""
        return ()

    @property
    def waits_for_person(self) -> bool:
        """Servers may ask, and then do without an answer."""
        return False

    async def prepare(self, arguments: JsonObject, place: ToolPlace) -> Prepared:
        """Say what the call would do: nothing that can be seen from here, so its name's rule decides."""
        shown = json.dumps(arguments, indent=2, ensure_ascii=False)
        local = bool(self.line.plan.command) and not self.rereads

        async def act(context: ActContext) -> ToolOutput:
            if not local:
                return await self.run(arguments, context)
            return await _measured(self.executor, place, lambda: self.run(arguments, context))

        return Prepared(
            effects=(),
            act=act,
            preview=f"{self.heading}\n{shown}",
            read_only=self.rereads,
            measures_workdir=local,
        )


async def _measured(
    executor: Executor, place: ToolPlace, act: Callable[[], Awaitable[ToolOutput]]
) -> ToolOutput:
    """Count what appeared in the workdir meanwhile against the write budgets."""
    roots = roots_of(place)
    before = await executor.measure(roots)
    try:
        output = await act()
    except ToolError as error:
        output = ToolOutput(text=str(error), failed=True)
    change = await executor.changed_since(before, roots)
    return replace(output, bytes_written=change.counted_bytes, files_written=change.files)


def server_tool(name: str, remote: RemoteTool, line: Line, executor: Executor) -> ServerTool:
    """Return the tool under its offered name."""
    plan = line.plan

    async def run(arguments: JsonObject, context: ActContext) -> ToolOutput:
        output = await _asked(line, lambda session: session.call(remote.name, arguments, context))
        return _as_promised(output, remote.results)

    hints = f" (the server says: {', '.join(remote.hints)})" if remote.hints else ""
    return ServerTool(
        spec=ToolSpec(
            name=name,
            description=_description(remote, plan.name),
            parameters=remote.parameters,
        ),
        line=line,
        executor=executor,
        heading=f"MCP server {plan.name!r} runs {remote.name!r}{hints}",
        run=run,
    )


def _as_promised(output: ToolOutput, schema: JsonObject | None) -> ToolOutput:
    """Leave out structured content that is not what the server says it gives: hooks and effects trust it."""
    if schema is None or output.structured is None or output.failed:
        return output
    checked = schema_of(schema)
    if isinstance(checked, str) or checked.is_valid(output.structured):
        return output
    note = "[the structured part is left out: it does not satisfy the output schema of the server]"
    return replace(output, text=f"{output.text}\n{note}", structured=None)


def reading_tool(what: Reading, line: Line, executor: Executor) -> ServerTool:
    """Return the tool that lists or reads a server's resources or prompts."""
    text, parameters = _READINGS[what]
    server = line.plan.name

    async def run(arguments: JsonObject, context: ActContext) -> ToolOutput:
        return await _asked(line, lambda session: session.read(what, arguments, context))

    return ServerTool(
        spec=ToolSpec(
            name=tool_name(server, what), description=text.format(server=server), parameters=parameters
        ),
        line=line,
        executor=executor,
        heading=f"MCP server {server!r}: {what.replace('_', ' ')}",
        run=run,
        rereads=True,
    )


async def _asked(line: Line, act: Callable[[Session], Awaitable[ToolOutput]]) -> ToolOutput:
    if line.session is not None:
        try:
            return await act(line.session)
        except ServerGone as gone:  # why it ended is known once it has been cleared away
            if gone.did_nothing:
                await line.gone()  # the next step reaches for it again
                why = "has forgotten the session and refused this call: it did not happen. Make it again."
                raise ToolError(f"{line.label} {why}") from gone
    raise ToolError(f"{line.label} has ended: {await line.gone()}. Whether this call happened is not known.")


def _description(remote: RemoteTool, server: str) -> str:
    text = "".join(letter for letter in remote.description if letter.isprintable() or letter in "\n\t")
    if len(text) > _LONGEST_DESCRIPTION:
        text = f"{text[:_LONGEST_DESCRIPTION]}…"
    return text.strip() or remote.title or f"{remote.name} of the server {server}"
