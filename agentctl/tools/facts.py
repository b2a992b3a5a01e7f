"""`current_time` and `run_info`: what a model cannot know by itself and no file says."""

from datetime import UTC, datetime, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agentctl.clock import Clock
from agentctl.errors import ToolError
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.schema import Says
from agentctl.tools.typed import typed_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentTimeArguments:
    """Arguments of `current_time`."""

    timezone: Annotated[str, Says("IANA name such as Europe/Vienna; default UTC.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfoArguments:
    """`run_info` takes none."""


def current_time_tool(clock: Clock) -> Tool:
    """Return `current_time`, reading `clock`."""

    async def plan(arguments: CurrentTimeArguments, place: ToolPlace) -> Prepared:
        del place
        zone = _zone(arguments.timezone)

        async def act(context: ActContext) -> ToolOutput:
            del context
            return _told(clock.now().astimezone(zone), arguments.timezone or "UTC")

        return Prepared(effects=(), act=act, preview="tell the time", read_only=True)

    return typed_tool("current_time", "The date and time now.", CurrentTimeArguments, plan)


def run_info_tool() -> Tool:
    """Return `run_info`: the run, agent and stage of the call, its workdir and the facts of its place."""

    async def plan(arguments: RunInfoArguments, place: ToolPlace) -> Prepared:
        del arguments
        facts: dict[str, str] = {
            "run": place.run_id,
            "agent": place.agent,
            "stage": place.stage,
            "workdir": str(place.workdir),
            "temp": str(place.temp),
            **(place.facts or {}),
        }
        if place.read_paths:
            facts["read_paths"] = ", ".join(map(str, place.read_paths))

        async def act(context: ActContext) -> ToolOutput:
            del context
            structured: JsonObject = {**facts}
            text = "\n".join(f"{name}: {value}" for name, value in facts.items())
            return ToolOutput(text=text, structured=structured)

        return Prepared(effects=(), act=act, preview="tell about this run", read_only=True)

    return typed_tool("run_info", "This run: its id, stage, workdir and limits.", RunInfoArguments, plan)


def _zone(name: str) -> tzinfo:
    if name in {"", "UTC"}:
        return UTC  # known without the platform's time zone data
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ToolError(
            f"There is no time zone {name!r}. Use an IANA name such as Europe/Vienna, or none for UTC."
        ) from error


def _told(now: datetime, zone: str) -> ToolOutput:
    stamp = now.isoformat(timespec="seconds")
    weekday = f"{now:%A}"
    return ToolOutput(
        text=f"{stamp} ({weekday}, {zone})",
        structured={"time": stamp, "weekday": weekday, "timezone": zone},
    )
