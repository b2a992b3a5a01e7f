"""Blueprints of small families, and what to ask of the journal they leave."""

from collections.abc import Sequence
from typing import Any

from agentctl.agent.snapshot import RunSnapshot
from agentctl.journal.store import RunInfo
from agentctl.protocol.messages import ToolMessage, ToolResult
from agentctl.run.resume import read_snapshot
from agentctl.testing.play import Stage

TOOLS = '"spawn_agent", "fan_out", "wait_agent", "check_agent", "kill_agent", "send_agent"'
ALLOW = ("spawn_agent", "fan_out", "write_file", "shell")


def family(*, agent: str = "", lead: str = "", digger: str = "", more: str = "") -> str:
    """A lead that may start diggers, and a digger that may start diggers too."""
    return f"""
[agent]
name = "family"
{agent}
[model]
use = ["scripted:"]
[stages.lead]
prompt = "Lead."
available_tools = [{TOOLS}, "shared_state", "shell", "write_file", "read_file"]
{lead}
[stages.digger]
prompt = "Dig."
description = "digs"
allow_as_worker = true
available_tools = [{TOOLS}, "shared_state", "shell", "write_file", "read_file"]
{digger}
{more}
"""


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def spawn(task: str = "dig", **more: Any) -> dict[str, Any]:
    return call("spawn_agent", agent="digger", task=task, **more)


def says(agent: str, *turns: Any, when: str = "", times: int = 1) -> list[dict[str, Any]]:
    """Replies of an agent: a text ends it, a call or a list of calls goes on."""
    made = []
    for turn in turns:
        reply: dict[str, Any] = {"agent": agent, "when": when, "times": times}
        if isinstance(turn, str):
            reply["text"] = turn
        else:
            reply["tool_calls"] = turn if isinstance(turn, list) else [turn]
        made.append(reply)
    return made


async def runs_of(stage: Stage, agent: str) -> list[RunInfo]:
    return [info for info in await stage.journal.runs() if info.agent == agent]


async def snapshot_of(stage: Stage, agent: str) -> RunSnapshot:
    (info,) = await runs_of(stage, agent)
    return await read_snapshot(stage.journal, info.run_id)


async def results_of(stage: Stage, agent: str) -> Sequence[ToolResult]:
    messages = (await snapshot_of(stage, agent)).messages
    return [message.result for message in messages if isinstance(message, ToolMessage)]
