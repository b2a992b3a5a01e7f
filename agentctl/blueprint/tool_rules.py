"""The tools that a blueprint may name, and every name or rule in it that is none."""

from collections.abc import Iterator
from pathlib import Path as FilePath

from agentctl.blueprint.model import Blueprint
from agentctl.errors import InvalidInput, Position, Problem, UsageError
from agentctl.policy.rules import ToolNames
from agentctl.policy.written import BUILT_IN_NAMES, rule_problems, table_problems
from agentctl.protocol.tool_names import SCRIPT_ONLY_TOOLS
from agentctl.tables.declared import PolicyTestCall
from agentctl.tables.outside_tools import script_tools, user_tool_names
from agentctl.tables.script_header import has_header, parse_script
from agentctl.toml.positions import Path
from agentctl.toml.read import read_file


def tool_names(blueprint: Blueprint) -> ToolNames:
    """Return the names that the blueprint may use: built-in tools, scripts beside it, and the user's own.

    With `dynamic_tools` also what a stage lists before it is there. The user's own and plugins are looked for
    only where another name is used. May block.
    """
    folder = blueprint.source.path.parent / "tools"
    names = BUILT_IN_NAMES.plus(path.stem for path in script_tools(folder))
    if blueprint.agent.dynamic_tools:
        written = (tool for stage in blueprint.in_order for tool in stage.available_tools if "*" not in tool)
        names = names.plus([tool for tool in written if not names.accepts(tool)])
    return names if all(map(names.accepts, _used(blueprint))) else names.plus(user_tool_names())


def problems_of_rules(blueprint: Blueprint) -> tuple[Problem, ...]:
    """Return every unknown tool and every rule that can't be meant. May block.

    With `dynamic_tools` a stage may offer a tool that does not exist yet.
    """
    names = tool_names(blueprint)
    folder = blueprint.source.path.parent / "tools"
    scripts = [problem for path in script_tools(folder) for problem in _script_problems(blueprint, path)]
    tables = [blueprint.tool_permissions, *(stage.tool_permissions for stage in blueprint.in_order)]
    return (
        *scripts,
        *table_problems(tables, names),
        *rule_problems(_single_rules(blueprint), names),
        *([] if blueprint.agent.dynamic_tools else _unknown_tools(blueprint, names)),
        *_unknown_in_tests(blueprint, names),
        *_unknown_in_hooks(blueprint, names),
    )


def is_named(blueprint: Blueprint, tool: str) -> bool:
    """Tell whether a stage lists a tool by its name, not by a glob. Pure."""
    return any(tool in stage.available_tools for stage in blueprint.in_order)


def _script_problems(blueprint: Blueprint, path: FilePath) -> tuple[Problem, ...]:
    """What is wrong with a file that means to be a script tool, or is listed as one."""
    try:
        data = read_file(path, what="script tool")
        if has_header(data) or is_named(blueprint, path.stem):
            parse_script(data, file=str(path))
    except InvalidInput as error:
        return error.problems
    except UsageError as error:
        return (Problem(position=Position(file=str(path)), message=error.message),)
    return ()


def _used(blueprint: Blueprint) -> Iterator[str]:
    yield from blueprint.tool_permissions
    for stage in blueprint.in_order:
        yield from stage.available_tools
        yield from stage.tool_permissions
    for text, _, _ in _single_rules(blueprint):
        yield text.partition("(")[0].strip()
    for test in blueprint.policy_tests:
        yield _tool_of(test.call)
    for hook in blueprint.hooks:
        yield from hook.tools
    yield from (tool for tool, _ in followed_tools(blueprint))


def followed_tools(blueprint: Blueprint) -> Iterator[tuple[str, Path]]:
    """Yield each tool that an effect or a machine waits for, globs aside, and where it is named. Pure."""
    for index, effect in enumerate(blueprint.state_effects):
        if "*" not in effect.tool:
            yield effect.tool, ("state_effects", index, "tool")
    for index, machine in enumerate(blueprint.machines):
        for place, move in enumerate(machine.transitions):
            tool = move.on.partition("(")[0].strip()
            if "*" not in tool and not tool.startswith("event:"):
                yield tool, ("machines", index, "transitions", place, "on")


def _unknown_in_hooks(blueprint: Blueprint, names: ToolNames) -> Iterator[Problem]:
    """A guard of a tool that there is not would be no guard."""
    file = blueprint.source.table
    for index, hook in enumerate(blueprint.hooks):
        for place, tool in enumerate(hook.tools):
            if "*" not in tool and not names.accepts(tool):
                path = ("hooks", index, "tools", place)
                yield Problem(
                    position=file.value_position(*path),
                    key=file.key(*path),
                    message=f"there is no tool {tool!r}",
                    suggestion=names.nearest(tool),
                )


def _tool_of(call: str | PolicyTestCall) -> str:
    return call.partition("(")[0].strip() if isinstance(call, str) else call.tool


def _unknown_in_tests(blueprint: Blueprint, names: ToolNames) -> Iterator[Problem]:
    """A test of a tool that there is not would pass with the word for all that nobody knows."""
    file = blueprint.source.table
    for index, test in enumerate(blueprint.policy_tests):
        tool = _tool_of(test.call)
        if not names.accepts(tool):
            own = ("policy_tests", index, "call")
            path = own if isinstance(test.call, str) else (*own, "tool")
            yield Problem(
                position=file.value_position(*path),
                key=file.key(*path),
                message=f"there is no tool {tool!r}",
                suggestion=names.nearest(tool),
            )


def _unknown_tools(blueprint: Blueprint, names: ToolNames) -> Iterator[Problem]:
    file = blueprint.source.table
    for stage in blueprint.in_order:
        for index, tool in enumerate(stage.available_tools):
            scripts_only = tool in SCRIPT_ONLY_TOOLS
            if scripts_only or not names.accepts(tool):
                path = ("stages", stage.name, "available_tools", index)
                yield Problem(
                    position=file.value_position(*path),
                    key=file.key(*path),
                    message=f"only script tools can call {tool!r}"
                    if scripts_only
                    else f"there is no tool {tool!r}",
                    suggestion="" if scripts_only else names.nearest(tool),
                )


def _single_rules(blueprint: Blueprint) -> Iterator[tuple[str, str, Position]]:
    file = blueprint.source.table
    for rule in blueprint.limits.calls:
        path: tuple[str, ...] = ("limits", "calls", rule)
        yield rule, file.key(*path), file.position(*path)
    for stage in blueprint.in_order:
        for rule in stage.limits.calls:
            path = ("stages", stage.name, "limits", "calls", rule)
            yield rule, file.key(*path), file.position(*path)
