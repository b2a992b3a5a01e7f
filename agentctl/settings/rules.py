"""The rules in the user's config and in the shipped policy, and what must hold between the config's keys."""

from collections.abc import Iterable
from dataclasses import replace

from agentctl.errors import InvalidInput, Problem
from agentctl.locations import shipped_dir
from agentctl.policy.rules import Rule, RuleSet, ToolNames, parse_permissions, parse_rule
from agentctl.policy.safe_data import safe_list
from agentctl.policy.written import BUILT_IN_NAMES, rule_problems, table_problems
from agentctl.settings.model import ConfigTable
from agentctl.settings.settings import Settings
from agentctl.tables.outside_tools import user_tool_names
from agentctl.tables.rules import hook_findings, server_findings, store_findings
from agentctl.toml.read import parse
from agentctl.toml.table import EMPTY, Table
from agentctl.toml.validate import Finding


def shipped_table(name: str) -> Table:
    """Return a TOML file of the shipped `config/`: `policy.toml`, `safe_commands.toml`. May block."""
    file = shipped_dir("config") / name
    return parse(file.read_bytes(), file=str(file))


def user_rules(settings: Settings, tools: Iterable[str] = ()) -> RuleSet:
    """Return the user's layer, `[tool_permissions]`. `tools` are names beyond the built-in and user's own.

    Raises:
        InvalidInput: a rule names an unknown tool.
    """
    table = settings.config.tool_permissions
    return parse_permissions(table, names=names_for(table, tools))


def agent_rules(settings: Settings, agent: str, tools: Iterable[str] = ()) -> RuleSet:
    """Return the user's layer for one agent, `[agents.NAME.tool_permissions]`; empty where there is none.

    Raises:
        InvalidInput: a rule names an unknown tool; `tools` are those that the agent's blueprint brings.
    """
    entry = settings.config.agents.get(agent)
    if entry is None:
        return RuleSet()
    return parse_permissions(entry.tool_permissions, names=names_for(entry.tool_permissions, tools))


def remembered_rules(settings: Settings, tools: Iterable[str] = ()) -> tuple[Rule, ...]:
    """Return the approvals without end, `[[remembered]]`, in file order; not those for tools not here."""
    entries = settings.config.remembered
    names = names_for((_tool_of(entry.rule) for entry in entries), tools)
    return tuple(
        replace(
            parse_rule(
                entry.rule, names=names, position=settings.table.value_position("remembered", index, "rule")
            ),
            described=entry.described,
        )
        for index, entry in enumerate(entries)
        if names.accepts(_tool_of(entry.rule))
    )


def names_for(used: Iterable[str], tools: Iterable[str] = ()) -> ToolNames:
    """Return built-in names and `tools`, and where `used` has others the user's own as well."""
    names = BUILT_IN_NAMES.plus(tools)
    return names if all(names.accepts(name) for name in used) else names.plus(user_tool_names())


def findings_of(config: ConfigTable) -> tuple[Finding, ...]:
    """Return what makes the config unusable although each of its tables is well formed. May block."""
    return (
        *hook_findings(config.hooks),
        *server_findings(config.mcp_servers),
        *store_findings(config.shared_state),
    )


def problems_of_rules(config: ConfigTable, file: Table) -> tuple[Problem, ...]:
    """Return every problem of the rules in the user's config, `file` being the whole of it.

    Rules for a single agent may name tools that its blueprint brings: `agent_rules` judges those names when
    the agent runs. A remembered rule may outlive its tool, so only its form is judged.
    """
    table, calls = config.tool_permissions, config.limits.calls
    names = names_for((*table, *map(_tool_of, calls)))
    agents = [entry.tool_permissions for entry in config.agents.values()]
    remembered = [entry.rule for entry in config.remembered]
    safe = file.table("safe_commands")
    any_names = BUILT_IN_NAMES.plus([*(tool for one in agents for tool in one), *map(_tool_of, remembered)])
    return (
        *table_problems([table], names),
        *_safe_problems(safe, names_for(config.safe_commands.tools)),
        *table_problems(agents, any_names),
        *rule_problems(
            (
                (rule, file.key("limits", "calls", rule), file.position("limits", "calls", rule))
                for rule in calls
            ),
            names,
        ),
        *rule_problems(
            (
                (
                    rule,
                    file.key("remembered", index, "rule"),
                    file.value_position("remembered", index, "rule"),
                )
                for index, rule in enumerate(remembered)
            ),
            any_names,
        ),
    )


def _safe_problems(table: Table, names: ToolNames) -> tuple[Problem, ...]:
    try:
        safe_list(EMPTY, table, names=names)
    except InvalidInput as error:
        return error.problems
    return ()


def _tool_of(rule: str) -> str:
    return rule.partition("(")[0].strip()
