"""The built-in layer, read from the shipped `config/policy.toml`."""

from dataclasses import dataclass

from agentctl.errors import InvalidInput, Problem
from agentctl.policy.patterns import PATTERN_TOOLS
from agentctl.policy.rules import RuleSet, ToolNames, parse_permissions
from agentctl.protocol.tool_names import BUILT_IN_TOOLS, TOOL_ALIASES
from agentctl.toml.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltInPolicy:
    """What holds where nobody else speaks."""

    rules: RuleSet
    names: ToolNames
    """Every name that a rule may use without a server or script tool that brings it."""
    loosenable: frozenset[str]
    """Tools that a blueprint may allow although the user is silent."""
    follows: frozenset[str]
    """Tools whose own entry counts only where somebody wrote it."""


def built_in_policy(table: Table) -> BuiltInPolicy:
    """Return the built-in layer that `config/policy.toml` describes.

    Raises:
        InvalidInput: the file is not what this version expects.
    """
    permissions, tools = table.table("tool_permissions"), table.table("tools")
    follow = _words(tools, "follow")
    named = frozenset(name for name in permissions.values if "*" not in name)
    names = ToolNames(
        known=frozenset((*BUILT_IN_TOOLS, *PATTERN_TOOLS, *follow)) | named, aliases=TOOL_ALIASES
    )
    return BuiltInPolicy(
        rules=parse_permissions(permissions, names=names),
        names=names,
        loosenable=_words(tools, "loosenable"),
        follows=follow,
    )


def _words(table: Table, key: str) -> frozenset[str]:
    value = table.values.get(key, [])
    words = list(value) if isinstance(value, list | dict) else [value]
    if not all(isinstance(word, str) for word in words):
        problem = Problem(position=table.position(key), key=table.key(key), message="expected tool names")
        raise InvalidInput((problem,))
    return frozenset(str(word) for word in words)
