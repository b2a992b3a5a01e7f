"""Names that rules may use, and every problem of the rules in a file at once."""

from collections.abc import Iterable, Iterator

from agentctl.errors import InvalidInput, Position, Problem
from agentctl.policy.rules import ToolNames, parse_permissions, parse_rule
from agentctl.protocol.tool_names import RULE_NAMES, TOOL_ALIASES
from agentctl.toml.table import Table

BUILT_IN_NAMES = ToolNames(known=RULE_NAMES, aliases=TOOL_ALIASES)
"""What rules may name wherever they stand; script and plugin tools come on top."""


def table_problems(tables: Iterable[Table], names: ToolNames) -> Iterator[Problem]:
    """Yield every problem of `[tool_permissions]` tables. Pure."""
    for table in tables:
        try:
            parse_permissions(table, names=names)
        except InvalidInput as error:
            yield from error.problems


def rule_problems(rules: Iterable[tuple[str, str, Position]], names: ToolNames) -> Iterator[Problem]:
    """Yield every problem of single rules, each given as its text, dotted key and position. Pure."""
    for text, key, position in rules:
        try:
            parse_rule(text, names=names, position=position, key=key)
        except InvalidInput as error:
            yield from error.problems
