"""Tools that start sub-agents and talk to them. Each acts through a Spawner, which the run provides."""

from collections.abc import Awaitable, Callable
from dataclasses import field, replace
from typing import Annotated, Literal, Protocol

from agentctl.errors import ToolError
from agentctl.protocol.effects import SpawnAgent
from agentctl.protocol.values import JsonObject, JsonValue  # noqa: F401 - JsonObject is read with it
from agentctl.records import dataclass
from agentctl.state.pages import Bounds as PageBounds
from agentctl.state.shared_state import SharedState
from agentctl.tools.child_reports import OPEN, ChildReport, Merging, as_json, merged, told
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.registry import schema_of
from agentctl.tools.schema import Bounds, Says
from agentctl.tools.typed import typed_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequest:
    """A sub-agent to start."""

    agent: str
    """A blueprint's name, or a stage of the caller's own that is marked `allow_as_worker`."""
    task: str
    call_id: str
    item: int = 0
    """Its place among the workers of one call; tells them apart when a resume finds them again."""
    inputs: JsonObject = field(default_factory=dict)
    scope: str = ""
    """Its scope of shared state; empty takes its name."""
    read: tuple[str, ...] = ()
    """Keys of the caller's shared state that it may read."""
    output_schema: JsonObject | None = None


class Spawner(Protocol):
    """Starts and keeps the sub-agents of one run. Raises ToolError for what the model can mend."""

    def agents(self) -> tuple[tuple[str, str], ...]:
        """Return the agents that may be started, with their descriptions."""

    async def start(self, requests: tuple[SpawnRequest, ...], *, max_workers: int) -> tuple[str, ...]:
        """Start all, at most `max_workers` at a time, or none; return their ids in order.

        Starting again what a call started before, as a resume does, finds the same sub-agents.
        """

    def report(self, child: str) -> ChildReport:
        """Return what is known of a sub-agent, by id or name; ToolError names those there are."""

    def reports(self) -> tuple[ChildReport, ...]:
        """Return what is known of all, in the order they were started."""

    async def wait(
        self, children: tuple[str, ...], *, any_of: bool, timeout_s: float
    ) -> tuple[ChildReport, ...]:
        """Wait until all have ended, or one with `any_of`, or the time is up (0 waits on); return reports.

        Leaves the call when one of them waits for a person and the run must stand still for it.
        """

    async def send(self, child: str, text: str) -> None:
        """Put a message into a running sub-agent's inbox."""

    async def kill(self, child: str) -> ChildReport:
        """End a sub-agent and all below it; idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnArguments:
    """Arguments of `spawn_agent`."""

    agent: Annotated[str, Says("Which agent to start.", Bounds(min_length=1))]
    task: Annotated[str, Says("What it has to do; it knows nothing else.", Bounds(min_length=1))]
    wait: Annotated[bool, Says("Wait for its answer; false starts it beside you.")] = True
    inputs: Annotated[JsonObject, Says("Values for its inputs.")] = field(default_factory=dict)
    scope: Annotated[str, Says("Its scope of shared state; its name by default.")] = ""
    read: Annotated[tuple[str, ...], Says("Keys of your shared state that it may read.")] = ()
    output_schema: Annotated[JsonObject, Says("JSON Schema of its answer.")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildArguments:
    """Arguments of `check_agent` and `kill_agent`."""

    agent: Annotated[str, Says("The sub-agent's name or id.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitArguments:
    """Arguments of `wait_agent`."""

    agents: Annotated[tuple[str, ...], Says("Names or ids; empty is all of them.")] = ()
    until: Annotated[Literal["all", "any"], Says("Wait for all or for the first.")] = "all"
    timeout: Annotated[float, Says("Seconds; 0 waits until they end.", Bounds(minimum=0))] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SendArguments:
    """Arguments of `send_agent`."""

    agent: Annotated[str, Says("The sub-agent's name or id.")]
    message: Annotated[str, Says("What to tell it.", Bounds(min_length=1))]


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutArguments:
    """Arguments of `fan_out`."""

    agent: Annotated[str, Says("Which agent works on each item.", Bounds(min_length=1))]
    items: Annotated[tuple[str, ...], Says("One worker an item.")]
    task: Annotated[str, Says("What each has to do; `{item}` stands for its item.")] = "{item}"
    max_workers: Annotated[int, Says("At the same time.", Bounds(minimum=1, maximum=256))] = 8
    on_failure: Annotated[
        Literal["continue", "fail_all"], Says("fail_all ends the others when one fails.")
    ] = "continue"
    scope: Annotated[str, Says("Each one's scope of shared state; `{worker}` is its number.")] = ""
    read: Annotated[tuple[str, ...], Says("Keys of your shared state that each may read.")] = ()
    output_schema: Annotated[JsonObject, Says("JSON Schema of each answer.")] = field(default_factory=dict)


def subagent_tools(
    spawner: Spawner, store_of: Callable[[str], SharedState], bounds: PageBounds
) -> tuple[Tool, ...]:
    """Return the six tools.

    One merged report fits `bounds`; what of it does not goes into shared state, as `store_of` gives the
    view of the calling stage.
    """
    known = ", ".join(f"{name} ({about})" if about else name for name, about in spawner.agents())
    start = f"Start a sub-agent with a thread of its own. Agents: {known or 'none'}."
    many = "Start one sub-agent an item and merge their answers into one report."

    async def spawn(arguments: SpawnArguments, _place: ToolPlace) -> Prepared:
        _check_form(arguments.output_schema)
        return _spawn(spawner, arguments)

    async def fan_out(arguments: FanOutArguments, place: ToolPlace) -> Prepared:
        _check_form(arguments.output_schema)
        handle = store_of(place.stage).by(run=place.run_id, agent=place.agent, stage=place.stage)
        return _fan_out(spawner, arguments, Merging(store=handle, bounds=bounds))

    async def check(arguments: ChildArguments, _place: ToolPlace) -> Prepared:
        async def act(_context: ActContext) -> ToolOutput:
            return told((spawner.report(arguments.agent),))

        return _free(f"check {arguments.agent}", act)

    async def wait(arguments: WaitArguments, _place: ToolPlace) -> Prepared:
        async def act(_context: ActContext) -> ToolOutput:
            children = arguments.agents or tuple(report.child for report in spawner.reports())
            reports = await spawner.wait(
                children, any_of=arguments.until == "any", timeout_s=arguments.timeout
            )
            return told(reports)

        return _free(f"wait for {', '.join(arguments.agents) or 'all'}", act, waits=True)

    async def send(arguments: SendArguments, _place: ToolPlace) -> Prepared:
        async def act(_context: ActContext) -> ToolOutput:
            await spawner.send(arguments.agent, arguments.message)
            return ToolOutput(text=f"Sent to {arguments.agent}.", structured={"sent": True})

        return _free(f"send to {arguments.agent}: {arguments.message}", act, read_only=False)

    async def kill(arguments: ChildArguments, _place: ToolPlace) -> Prepared:
        async def act(_context: ActContext) -> ToolOutput:
            report = told((await spawner.kill(arguments.agent),))
            return replace(report, failed=False)  # it has ended, as was asked; the text says how

        return _free(f"end {arguments.agent}", act, waits=True)

    return (
        typed_tool("spawn_agent", start, SpawnArguments, spawn),
        typed_tool("fan_out", many, FanOutArguments, fan_out),
        typed_tool("check_agent", "See how a sub-agent is doing.", ChildArguments, check),
        typed_tool("wait_agent", "Wait for sub-agents and read their answers.", WaitArguments, wait),
        typed_tool("send_agent", "Send a message to a running sub-agent.", SendArguments, send),
        typed_tool("kill_agent", "End a sub-agent and all that it started.", ChildArguments, kill),
    )


def _check_form(schema: JsonObject) -> None:
    """Refuse a form that no answer can have before anybody works for it."""
    checked = schema_of(schema)
    if isinstance(checked, str):
        raise ToolError(f"output_schema is no JSON Schema: {checked}.")


def _spawn(spawner: Spawner, arguments: SpawnArguments) -> Prepared:
    async def act(context: ActContext) -> ToolOutput:
        request = SpawnRequest(
            agent=arguments.agent,
            task=arguments.task,
            call_id=context.call_id,
            inputs=arguments.inputs,
            scope=arguments.scope,
            read=arguments.read,
            output_schema=arguments.output_schema or None,
        )
        (child,) = await spawner.start((request,), max_workers=1)
        if arguments.wait:
            return told(await spawner.wait((child,), any_of=False, timeout_s=0))
        report = spawner.report(child)
        return ToolOutput(
            text=f"Started {report.name} ({report.child}). wait_agent gives its answer.",
            structured=as_json(report),
        )

    # Acting twice finds the same sub-agent: a resume may simply act again.
    return Prepared(
        effects=(SpawnAgent(agent=arguments.agent),),
        act=act,
        preview=f"start {arguments.agent}: {arguments.task}",
        read_only=True,
        waits_for_agents=True,
    )


def _fan_out(spawner: Spawner, arguments: FanOutArguments, merging: Merging) -> Prepared:
    async def act(context: ActContext) -> ToolOutput:
        requests = tuple(
            SpawnRequest(
                agent=arguments.agent,
                task=arguments.task.replace("{item}", item),
                call_id=context.call_id,
                item=index,
                scope=arguments.scope.replace("{worker}", str(index + 1)),
                read=arguments.read,
                output_schema=arguments.output_schema or None,
            )
            for index, item in enumerate(arguments.items)
        )
        children = await spawner.start(requests, max_workers=arguments.max_workers)
        reports = await _all(spawner, children, fail_all=arguments.on_failure == "fail_all")
        return await merged(arguments.items, reports, merging)

    listed = "\n".join(arguments.items)
    return Prepared(
        effects=(SpawnAgent(agent=arguments.agent),),
        act=act,
        preview=f"start {len(arguments.items)} x {arguments.agent}: {arguments.task}\n{listed}",
        read_only=True,
        waits_for_agents=True,
    )


async def _all(spawner: Spawner, children: tuple[str, ...], *, fail_all: bool) -> tuple[ChildReport, ...]:
    """Wait for all; with `fail_all` end the rest as soon as one has not finished well."""
    left = set(children)
    while fail_all and left:
        some = await spawner.wait(tuple(left), any_of=True, timeout_s=0)
        ended = [report for report in some if report.outcome not in OPEN]
        left -= {report.child for report in ended}
        if any(report.outcome != "finished" for report in ended):
            for child in children:
                if child in left:
                    await spawner.kill(child)
            break
    return await spawner.wait(children, any_of=False, timeout_s=0)


def _free(
    preview: str,
    act: Callable[[ActContext], Awaitable[ToolOutput]],
    *,
    read_only: bool = True,
    waits: bool = False,
) -> Prepared:
    return Prepared(effects=(), act=act, preview=preview, read_only=read_only, waits_for_agents=waits)
