"""`agentctl hooks`: which hooks a run would have, and what they would answer to an event."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import anyio
import typer

from agentctl.agent.hook import HookContext, observed
from agentctl.agent.hook_events import (
    InvalidToolCall,
    ModelCall,
    ModelReply,
    ModelSelect,
    TextDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnFinished,
)
from agentctl.agent.hook_record import acted_event
from agentctl.agent.hook_stack import Acted, HookStack, Member
from agentctl.blueprint.catalogue import load
from agentctl.blueprint.model import Blueprint
from agentctl.cli.command_app import command_app
from agentctl.cli.given import given_text
from agentctl.cli.options import AsJson, BlueprintName, Trust
from agentctl.errors import UsageError
from agentctl.executor.api import Roots
from agentctl.executor.local import open_executor
from agentctl.llm.base import ModelRequest
from agentctl.protocol.codec import encode
from agentctl.protocol.hook_names import HOOK_EVENTS
from agentctl.protocol.messages import AssistantMessage, TextPart, user_text
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.run.hook_parts import hook_members
from agentctl.run.trusted_code import trusted_code
from agentctl.settings.load import load_settings

app = command_app("The hooks of a blueprint and of your config.")


@app.command("list")
def list_hooks(blueprint: BlueprintName, *, trust: Trust = "", as_json: AsJson = False) -> int:
    """List the hooks in the order in which they are asked, with the events each gets.

    Example: agentctl hooks list ./coder.toml
    """
    loaded = load(blueprint)
    members = anyio.run(_members, loaded, trust)
    rows = [
        {
            "name": member.label,
            "from": "blueprint" if index < len(loaded.hooks) else "your config",
            "events": [event for event in observed(member.hook) if member.wants(event)],
            "tools": list(member.tools),
            "timeout_s": member.timeout_s,
            "on_error": member.on_error,
        }
        for index, member in enumerate(members)
    ]
    if as_json:
        sys.stdout.write(json.dumps(rows) + "\n")
    for row in () if as_json else rows:
        events = ", ".join(str(event) for event in row["events"]) if isinstance(row["events"], list) else ""
        sys.stdout.write(
            f"{row['name']}  ({row['from']}, on_error {row['on_error']})  {events or 'no events'}\n"
        )
    if not rows:
        sys.stderr.write("no hooks: neither the blueprint nor your config has any\n")
    return 0 if rows else 1


@app.command("test")
def try_event(
    blueprint: BlueprintName,
    *,
    event: Annotated[Path, typer.Option("--event", metavar="FILE", help="The event as JSON; - is stdin.")],
    trust: Trust = "",
    as_json: AsJson = False,
) -> int:
    """Give one event to the hooks and print what each did and what came out.

    FILE holds {"event": "tool_call", "call": {"tool": …, "arguments": {…}}}, {"event": "tool_result",
    "call": …, "outcome": "ok", "raw": …}, or one of the other events with its fields.

    Example: agentctl hooks test ./coder.toml --event call.json
    """
    given = _given(event)
    action, acted = anyio.run(_ask, load(blueprint), trust, given)
    if as_json:
        record: JsonObject = {"action": action, "acted": [encode(acted_event(one)) for one in acted]}
        sys.stdout.write(json.dumps(record) + "\n")
        return 0
    for one in acted:
        recorded = acted_event(one)
        sys.stdout.write(f"{recorded.hook}: {recorded.action} {json.dumps(recorded.detail)}\n")
    sys.stdout.write(f"→ {json.dumps(action)}\n")
    return 0


async def _members(blueprint: Blueprint, trust: str) -> tuple[Member, ...]:
    code = await anyio.to_thread.run_sync(trusted_code, blueprint, trust)
    workdir = await anyio.Path().resolve()
    temp = Path(tempfile.gettempdir())
    executor = open_executor(environment={}, passed=())
    try:
        return hook_members(
            blueprint, load_settings(), code, executor, Roots(workdir=Path(workdir), temp=temp)
        )
    finally:
        await executor.aclose()


async def _ask(blueprint: Blueprint, trust: str, given: JsonObject) -> tuple[JsonValue, list[Acted]]:
    code = await anyio.to_thread.run_sync(trusted_code, blueprint, trust)
    workdir = await anyio.Path().resolve()
    acted: list[Acted] = []
    executor = open_executor(environment={}, passed=())
    try:
        with tempfile.TemporaryDirectory() as temp:
            roots = Roots(workdir=Path(workdir), temp=Path(temp))
            members = hook_members(blueprint, load_settings(), code, executor, roots)
            stack = HookStack(members, report=acted.append)
            context = HookContext(agent=blueprint.name, stage=blueprint.entry.name)
            action = await _answer(stack, context, given)
    finally:
        await executor.aclose()
    return action, acted


async def _answer(stack: HookStack, context: HookContext, given: JsonObject) -> JsonValue:
    call = given.get("call")
    call = call if isinstance(call, dict) else {}
    call_id, tool = str(call.get("id", "c-test")), str(call.get("tool", ""))
    arguments = call.get("arguments")
    fields = arguments if isinstance(arguments, dict) else {}
    reply = AssistantMessage(parts=(TextPart(text=_text(given, "reply")),))
    result: object
    match given.get("event"):
        case "tool_call":
            result = await stack.on_tool_call(
                context, ToolCallEvent(call_id=call_id, tool=tool, arguments=fields)
            )
        case "tool_result":
            raw = _text(given, "raw")
            result = await stack.on_tool_result(
                context,
                ToolResultEvent(
                    call_id=call_id,
                    tool=tool,
                    arguments=fields,
                    outcome="failed" if given.get("outcome") == "failed" else "ok",
                    raw=raw,
                    structured=given.get("structured"),
                    shown=_text(given, "shown") or raw,
                ),
            )
        case "invalid_tool_call":
            offered = given.get("offered")
            names = tuple(str(name) for name in offered) if isinstance(offered, list) else ()
            result = await stack.on_invalid_tool_call(
                context, InvalidToolCall(call_id=call_id, tool=tool, arguments=fields, offered=names)
            )
        case "model_call":
            request = ModelRequest(
                system=_text(given, "system"), messages=(user_text(_text(given, "message")),)
            )
            result = await stack.on_model_call(context, ModelCall(request=request))
        case "model_select":
            result = await stack.on_model_select(context, ModelSelect(candidate=_text(given, "candidate")))
        case "model_reply":
            result = await stack.on_model_reply(context, ModelReply(reply=reply, usage=reply.usage))
        case "turn_finished":
            result = await stack.on_turn_finished(context, TurnFinished(reply=reply))
        case "text_delta":
            result = stack.on_text_delta(context, TextDelta(text=_text(given, "text")))
        case other:
            raise UsageError(f"{other!r} is no event; there are {', '.join(HOOK_EVENTS)}.")
    return None if result is None else encode(result)


def _given(path: Path) -> JsonObject:
    text = given_text(path, what="--event")
    try:
        value: JsonValue = json.loads(text)
    except ValueError as error:
        raise UsageError(f"The event {str(path)!r} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"The event {str(path)!r} is not a JSON object.")
    return value


def _text(given: JsonObject, name: str) -> str:
    value = given.get(name, "")
    return value if isinstance(value, str) else json.dumps(value)
