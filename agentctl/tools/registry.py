"""Which tools there are: found by name or alias, offered as specs, their arguments checked."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeAlias

import jsonschema_rs

from agentctl.protocol.messages import ToolCall, ToolSpec
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import Tool
from agentctl.tools.repair import object_of, repaired

_MOST_VIOLATIONS = 8
_LONGEST_VIOLATION = 300
_LONGEST_ECHO = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidArguments:
    """Arguments that satisfy the tool's schema; these are judged and run."""

    arguments: JsonObject
    mended: bool = False
    """Their shape differs from what the model sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidArguments:
    """Arguments that do not; nothing is judged, asked or run."""

    text: str
    """For the model: every violation, and what the tool takes."""


CheckedArguments: TypeAlias = ValidArguments | InvalidArguments


class ToolRegistry:
    """The tools of one agent. A name of a tool wins over another tool's alias."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Take `tools`; a later one of the same name replaces an earlier one."""
        self._tools: dict[str, Tool] = {tool.spec.name: tool for tool in tools}
        self._aliases = {
            alias: name
            for name, tool in self._tools.items()
            for alias in tool.aliases
            if alias not in self._tools
        }
        self._validators: dict[str, tuple[JsonObject, jsonschema_rs.Validator | str]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every tool's own name, in the order they were given."""
        return tuple(self._tools)

    def canonical(self, name: str) -> str:
        """Return the name of the tool that `name` finds, or `name` itself when there is none."""
        return name if name in self._tools else self._aliases.get(name, name)

    def find(self, name: str) -> Tool | None:
        """Return the tool with that name or alias, or None."""
        return self._tools.get(self.canonical(name))

    def specs(self, offered: Iterable[str]) -> tuple[ToolSpec, ...]:
        """Return the specs of the offered tools, in that order and each once; unknown names are left out."""
        found = dict.fromkeys(self.canonical(name) for name in offered)
        return tuple(self._tools[name].spec for name in found if name in self._tools)

    def check(self, tool: Tool, call: ToolCall) -> CheckedArguments:
        """Return the call's arguments, mended where only one reading is possible, or what is wrong with them.

        May take time linear in the arguments; fetches nothing, whatever the schema refers to.
        """
        spec = tool.spec
        sent = object_of(call)
        if sent is None:
            return InvalidArguments(
                text=f"The arguments of {spec.name} are not a JSON object: {_cut(call.invalid_arguments)}\n"
                f"{_takes(spec)}"
            )
        validator = self._validator(spec)
        if isinstance(validator, str):
            return InvalidArguments(text=validator)
        if validator.is_valid(sent):
            return ValidArguments(arguments=sent, mended=bool(call.invalid_arguments))
        mended = repaired(sent, spec.parameters)
        if validator.is_valid(mended):
            return ValidArguments(arguments=mended, mended=True)
        return InvalidArguments(text=_violations(spec, mended, validator))

    def _validator(self, spec: ToolSpec) -> jsonschema_rs.Validator | str:
        known = self._validators.get(spec.name)
        if known is not None and known[0] is spec.parameters:
            return known[1]
        made = schema_of(spec.parameters)
        if isinstance(made, str):
            made = f"{spec.name} cannot be called: its own schema is invalid ({made})."
        self._validators[spec.name] = (spec.parameters, made)
        return made


def schema_of(schema: JsonObject) -> jsonschema_rs.Validator | str:
    """Return a schema's validator, or why it is none. Pure."""
    try:
        # SAFETY: a schema may come from a tool server; offline, so that a `$ref` in it reaches no host.
        return jsonschema_rs.validator_for(schema, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return _cut(str(error).partition("\n")[0])


def refusal_of_unknown(name: str, offered: Iterable[str]) -> str:
    """Return what the model is told when it calls a tool that this stage does not offer."""
    names = list(dict.fromkeys(offered))
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    listed = ", ".join(names) if names else "none"
    return f"There is no tool {_cut(name)!r} in this stage.{hint} Tools here: {listed}."


def _violations(spec: ToolSpec, arguments: JsonObject, validator: jsonschema_rs.Validator) -> str:
    lines: list[str] = []
    for error in validator.iter_errors(arguments):
        if len(lines) == _MOST_VIOLATIONS:
            lines.append("- and more")
            break
        place = ".".join(str(part) for part in error.instance_path)
        message = _message(error)
        if len(message) > _LONGEST_VIOLATION:
            message = f"{message[:_LONGEST_VIOLATION]}…"
        lines.append(f"- {place}: {message}" if place else f"- {message}")
    return "\n".join([f"Invalid arguments for {spec.name}:", *lines, _takes(spec)])


def _message(error: jsonschema_rs.ValidationError) -> str:
    """Return what is wrong; where one word of several is wanted, all of them: the model has to choose one."""
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Enum):
        wanted = ", ".join(json.dumps(one, ensure_ascii=False) for one in error.kind.options)
        return f"{_cut(json.dumps(error.instance, ensure_ascii=False))} is not one of {wanted}"
    return error.message


def _takes(spec: ToolSpec) -> str:
    properties = spec.parameters.get("properties")
    required = spec.parameters.get("required")
    needed = required if isinstance(required, list) else []
    if not isinstance(properties, dict) or not properties:
        return f"{spec.name} takes no arguments."
    listed = ", ".join(f"{name} (required)" if name in needed else name for name in properties)
    return f"{spec.name} takes: {listed}."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"
