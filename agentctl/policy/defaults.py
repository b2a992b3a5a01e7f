"""The built-in layer, read from the shipped `config/policy.toml`."""

from collections.abc import Mapping

from agentctl.errors import InvalidInput, Problem
from agentctl.policy.rules import RuleSet, ToolNames, parse_permissions
from agentctl.protocol.tool_names import RULE_NAMES, TOOL_ALIASES
from agentctl.records import dataclass
from agentctl.toml.positions import Key
from agentctl.toml.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltInPolicy:
    """What holds where nobody else speaks."""

    rules: RuleSet
    names: ToolNames
    """Every name that a rule may use without a server or script tool that brings it."""
    loosenable: frozenset[str]
    """Tools that a blueprint may allow although the user is silent."""
    follows: Mapping[str, str]
    """Tools whose own entry counts only where somebody wrote it, and the one they follow."""


def built_in_policy(table: Table) -> BuiltInPolicy:
    """Return the built-in layer that `config/policy.toml` describes.

    Raises:
        InvalidInput: the file is not what this version expects.
    """
    permissions, tools = table.table("tool_permissions"), table.table("tools")
    follows = {tool: _text(tools, "follow", tool) for tool in tools.table("follow")}
    loosenable = tools.values.get("loosenable", [])
    named = frozenset(name for name in permissions.values if "*" not in name)
    names = ToolNames(known=RULE_NAMES | named | frozenset(follows), aliases=TOOL_ALIASES)
    return BuiltInPolicy(
        rules=parse_permissions(permissions, names=names),
        names=names,
        loosenable=frozenset(
            _text(tools, "loosenable", index)
            for index in range(len(loosenable) if isinstance(loosenable, list) else 0)
        ),
        follows=follows,
    )


def _text(table: Table, key: str, at: Key) -> str:
    inner = table.values.get(key)
    value = inner.get(at) if isinstance(inner, dict) and isinstance(at, str) else None
    if isinstance(inner, list) and isinstance(at, int):
        value = inner[at]
    if not isinstance(value, str):
        problem = Problem(position=table.position(key, at), key=table.key(key, at), message="expected a tool")
        raise InvalidInput((problem,))
    return value
