"""`state_get` and `state_set`, built for each stage from the state keys that it may read and write.

`state_set` changes nothing by itself: the step's commit carries the command that `state_command` makes of the
successful call, together with its result.
"""

import json
from collections.abc import Callable, Iterable, Mapping

from agentctl.errors import StateConflict, ToolError
from agentctl.protocol.commands import Command, FoldValue, Merge, RemoveValue, SetValue
from agentctl.protocol.messages import ToolCall, ToolSpec
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state.keys import CellReader, KeyDefinition
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.typed import BuiltInTool

STATE_GET = "state_get"
STATE_SET = "state_set"


def state_tools(
    keys: Mapping[str, KeyDefinition],
    *,
    read: Iterable[str],
    write: Iterable[str],
    cells: Callable[[], CellReader],
) -> tuple[Tool, ...]:
    """Return the tools of a stage that may read and write these keys; none where it may do neither.

    A key that can be written can be read. `cells` gives what is committed now.
    """
    writable = {name: keys[name] for name in write}
    readable = {**{name: keys[name] for name in read}, **writable}
    tools: list[Tool] = []
    if readable:
        tools.append(_get_tool(readable, cells))
    if writable:
        tools.append(_set_tool(writable))
    return tuple(tools)


def state_command(call: ToolCall, keys: Mapping[str, KeyDefinition]) -> Command:
    """Return the state change of a successful `state_set` call. Pure."""
    definition = keys[str(call.arguments["key"])]
    action: SetValue | RemoveValue | FoldValue
    if call.arguments.get("remove") is True:
        action = RemoveValue()
    elif definition.merge is Merge.FOLD:
        action = FoldValue(value=call.arguments["value"])
    else:
        action = SetValue(value=call.arguments["value"])
    return Command(
        scope=definition.scope,
        key=definition.name,
        action=action,
        merge=definition.merge,
        writer=call.call_id,
    )


def _get_tool(keys: Mapping[str, KeyDefinition], cells: Callable[[], CellReader]) -> Tool:
    spec = ToolSpec(
        name=STATE_GET,
        description="Read a state key.",
        parameters=_object({"key": _key_choice(keys)}, required=("key",)),
    )

    async def plan(arguments: JsonObject, place: ToolPlace) -> Prepared:
        del place
        definition = keys[str(arguments["key"])]

        async def act(context: ActContext) -> ToolOutput:
            del context
            try:
                value = definition.load(cells())
            except StateConflict as drift:
                raise ToolError(f"{drift.message} It cannot be read; a person must migrate it.") from drift
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            return ToolOutput(text=text, structured={"key": definition.name, "value": value})

        return Prepared(effects=(), act=act, preview=f"read state key {definition.name}", read_only=True)

    return BuiltInTool(spec=spec, plan=plan)


def _set_tool(keys: Mapping[str, KeyDefinition]) -> Tool:
    spec = ToolSpec(
        name=STATE_SET,
        description="Write a state key; the change stands when this step ends.",
        parameters=_object(
            {
                "key": _key_choice(keys),
                "value": {"description": "The value, of the key's form."},
                "remove": {"type": "boolean", "description": "Make the key absent instead."},
            },
            required=("key",),
        ),
    )

    async def plan(arguments: JsonObject, place: ToolPlace) -> Prepared:
        del place
        definition = keys[str(arguments["key"])]
        removes = arguments.get("remove") is True
        if not removes:
            _check_value(definition, arguments)

        async def act(context: ActContext) -> ToolOutput:
            del context
            done = "removed" if removes else "folded in" if definition.merge is Merge.FOLD else "set"
            written: JsonObject = {"key": definition.name, "scope": definition.scope, "done": done}
            if not removes:
                written["value"] = arguments["value"]
            return ToolOutput(text=f"{definition.name}: {done}.", structured=written)

        value = json.dumps(arguments.get("value"), ensure_ascii=False, indent=2)
        preview = f"remove {definition.name}" if removes else f"{definition.name} = {value}"
        # Nothing happens before the step's commit, so running it again does no harm.
        return Prepared(effects=(), act=act, preview=preview, read_only=True)

    return BuiltInTool(spec=spec, plan=plan)


def _check_value(definition: KeyDefinition, arguments: JsonObject) -> None:
    if "value" not in arguments:
        raise ToolError(f"{definition.name}: give a value, or remove=true to make it absent.")
    # What is folded in need not have the form of the whole; the commit checks the outcome.
    if definition.merge is Merge.FOLD:
        return
    problem = definition.problem_with(arguments["value"])
    if problem:
        raise ToolError(f"{definition.name} was not set: {problem}. Its form: {_form(definition)}.")


def _key_choice(keys: Mapping[str, KeyDefinition]) -> JsonObject:
    described = "; ".join(f"{name}: {_described(definition)}" for name, definition in keys.items())
    return {"type": "string", "enum": [*keys], "description": described}


def _described(definition: KeyDefinition) -> str:
    merge = f", {definition.fold}" if definition.merge is Merge.FOLD else ""
    words = definition.description.rstrip(".")
    return f"{words} ({_form(definition)}{merge})" if words else f"{_form(definition)}{merge}"


def _form(definition: KeyDefinition) -> str:
    if definition.type_name:
        return definition.type_name
    return json.dumps(definition.schema, ensure_ascii=False) if definition.schema else "any JSON"


def _object(properties: JsonObject, *, required: tuple[str, ...]) -> JsonObject:
    needed: list[JsonValue] = [*required]
    return {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }
