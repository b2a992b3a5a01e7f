"""`state_get` and `state_set`: the typed state keys that a stage lets its model use."""

from collections.abc import Sequence
from typing import Protocol

from agentctl.errors import StateConflict, ToolError
from agentctl.protocol.commands import Command, FoldValue, Merge, RemoveValue, SetValue
from agentctl.protocol.messages import ToolSpec
from agentctl.protocol.values import JsonObject, JsonValue, compact_json
from agentctl.state.keys import KeyDefinition
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.typed import BuiltInTool

STATE_SET = "state_set"


class StateAccess(Protocol):
    """The cells of a run, as the stages of its blueprint may use them."""

    def readable(self, stage: str) -> tuple[KeyDefinition, ...]:
        """Return the keys that a stage's model may read."""

    def writable(self, stage: str) -> tuple[KeyDefinition, ...]:
        """Return the keys that a stage's model may write."""

    def load(self, key: KeyDefinition) -> JsonValue:
        """Return a key's value, or its default.

        Raises:
            StateConflict: the stored value is not what the key says.
        """

    def problem_with(self, commands: Sequence[Command]) -> str:
        """Return why a commit would refuse these commands, or empty."""


def state_tools(access: StateAccess) -> tuple[Tool, ...]:
    """Return `state_get` and `state_set`."""
    return _get_tool(access), _set_tool(access)


def command_of(key: KeyDefinition, arguments: JsonObject, writer: str) -> Command:
    """Return the command that a `state_set` call asks for."""
    action: SetValue | RemoveValue | FoldValue
    if arguments.get("remove"):
        action = RemoveValue()
    elif key.merge is Merge.FOLD:
        action = FoldValue(value=arguments.get("value"), fold=key.fold)
    else:
        action = SetValue(value=arguments.get("value"))
    return Command(
        scope=key.scope, key=key.name, action=action, merge=key.merge, version=key.version, writer=writer
    )


def _get_tool(access: StateAccess) -> Tool:
    spec = ToolSpec(
        name="state_get",
        description="Read the typed state of this run: one key, or all that can be read here.",
        parameters={
            "type": "object",
            "properties": {"key": {"type": "string", "description": "The key; all keys without it."}},
            "additionalProperties": False,
        },
    )

    async def plan(arguments: JsonObject, place: ToolPlace) -> Prepared:
        wanted = str(arguments.get("key") or "")
        keys = (
            _named(wanted, access.readable(place.stage), "read") if wanted else access.readable(place.stage)
        )

        async def act(context: ActContext) -> ToolOutput:
            del context
            try:
                values: JsonObject = {key.name: access.load(key) for key in keys}
            except StateConflict as error:
                raise ToolError(f"{error.message} A person must run: {error.hint}") from error
            if wanted:
                return ToolOutput(
                    text=compact_json(values[wanted]), structured={"key": wanted, "value": values[wanted]}
                )
            lines = [f"{_described(key)}: {compact_json(values[key.name])}" for key in keys]
            return ToolOutput(
                text="\n".join(lines) or "No state can be read in this stage.", structured={"values": values}
            )

        return Prepared(effects=(), act=act, preview=f"read state {wanted}".rstrip(), read_only=True)

    return BuiltInTool(spec=spec, plan=plan)


def _set_tool(access: StateAccess) -> Tool:
    spec = ToolSpec(
        name=STATE_SET,
        description="Write one key of the typed state of this run. A key that folds takes an update.",
        parameters={
            "type": "object",
            "properties": {
                "key": {"type": "string"},
                "value": {"description": "The new value, or the update."},
                "remove": {"type": "boolean", "description": "Make the key absent instead."},
            },
            "required": ["key"],
            "additionalProperties": False,
        },
    )

    async def plan(arguments: JsonObject, place: ToolPlace) -> Prepared:
        (key,) = _named(str(arguments["key"]), access.writable(place.stage), "written")
        if "value" not in arguments and not arguments.get("remove"):
            raise ToolError("Give `value`, or `remove = true`.")
        problem = access.problem_with([command_of(key, arguments, "this call")])
        if problem:
            raise ToolError(problem)

        async def act(context: ActContext) -> ToolOutput:
            del context
            done = "removed" if arguments.get("remove") else "written"
            return ToolOutput(text=f"{key.name} {done}.", structured={**arguments})

        preview = f"write state {key.name} = {compact_json(arguments.get('value'))}"
        # The commit that carries the result carries the write: running it again does no harm.
        return Prepared(effects=(), act=act, preview=preview, read_only=True)

    return BuiltInTool(spec=spec, plan=plan)


def _named(name: str, keys: tuple[KeyDefinition, ...], done: str) -> tuple[KeyDefinition, ...]:
    found = tuple(key for key in keys if key.name == name)
    if not found:
        known = ", ".join(key.name for key in keys) or "none"
        raise ToolError(f"The key {name!r} cannot be {done} in this stage. Keys here: {known}.")
    return found[:1]


def _described(key: KeyDefinition) -> str:
    return f"{key.name} ({key.description})" if key.description else key.name
