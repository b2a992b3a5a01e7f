"""The tools from outside that somebody trusted: the user's scripts and plugins, the blueprint's scripts."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from agentctl.agent.script_reach import Permission
from agentctl.blueprint.code import CodeLoader
from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.tool_rules import is_named
from agentctl.errors import InvalidInput, Position, Problem, UsageError
from agentctl.protocol.tool_names import RULE_NAMES, SCRIPT_FUNCTIONS, TOOL_ALIASES
from agentctl.records import dataclass
from agentctl.run.house import House
from agentctl.settings.settings import Settings
from agentctl.tables.outside_tools import Plugin, loaded_plugins, plugins, script_tools, user_scripts
from agentctl.tables.script_header import Script, has_header, parse_script
from agentctl.toml.read import read_file
from agentctl.tools.definition import Tool
from agentctl.tools.script.engine import engine_missing
from agentctl.tools.script.tool import ScriptTool

_STRICTNESS: Mapping[Permission, int] = {"allow": 0, "inherit": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundScript:
    """A script tool and who brought it."""

    script: Script
    origin: Literal["user", "blueprint"]


def script_permissions(settings: Settings, blueprint: Blueprint) -> dict[str, Permission]:
    """Return what scripts may call: the stricter of what the user and the blueprint wrote. Pure."""
    written = (settings.config.tool_script_permissions, blueprint.tool_script_permissions)
    found: dict[str, Permission] = {}
    for name in SCRIPT_FUNCTIONS:
        said = [word for table in written for key, word in table.items() if key == name]
        if said:
            found[name] = max(said, key=lambda word: _STRICTNESS[word])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTools:
    """The tools that do not ship, and what the user should know of those that are left out."""

    tools: tuple[Tool, ...]
    notices: tuple[str, ...] = ()


def outside_tools(house: House, blueprint: Blueprint, code: CodeLoader) -> OutsideTools:
    """Return the plugin and script tools that a stage of the blueprint lists. May block; imports plugins.

    Of two tools with one name a plugin counts before the user's script, and that before the blueprint's: the
    user's rules for it must not come to mean something that a blueprint brings.

    Raises:
        InvalidInput: a script's header is wrong, or a plugin is broken.
        UsageError: the engine for scripts is not installed.
    """
    found: dict[str, Tool] = dict(_plugin_tools(blueprint))
    workshop = house.workshop
    scripts = [*_user_scripts(blueprint), *blueprint_scripts(blueprint, code)]
    for one in scripts:
        tool = ScriptTool(
            script=one.script, origin=one.origin, engine=workshop.engine, environment=workshop.environment
        )
        if _listed(blueprint, one.script.name):
            found.setdefault(one.script.name, tool)
    listed = [tool for tool in found.values() if isinstance(tool, ScriptTool)]
    if not listed or not (why := engine_missing()):
        return OutsideTools(tools=tuple(found.values()))
    if not all(tool.script.optional for tool in listed):
        raise UsageError(f"This blueprint can't run here: {why}.", hint="pip install 'agentctl[script]'")
    names = ", ".join(tool.script.name for tool in listed)
    return OutsideTools(
        tools=tuple(tool for tool in found.values() if not isinstance(tool, ScriptTool)),
        notices=(f"The run goes on without {names}: {why}.",),
    )


def blueprint_scripts(blueprint: Blueprint, code: CodeLoader) -> Iterator[FoundScript]:
    """Yield the script tools beside the blueprint, from exactly the bytes that were trusted.

    Raises:
        InvalidInput: one is not what was trusted, its header is wrong, or its name is a built-in tool's.
    """
    folder = blueprint.source.path.parent
    for path in script_tools(folder / "tools"):
        position = Position(file=str(path))
        data = code.read(str(path.relative_to(folder)), position=position)
        if not has_header(data) and not is_named(blueprint, path.stem):
            continue  # a program that lies there for some other reason
        yield FoundScript(script=_parsed(data, path), origin="blueprint")


def _user_scripts(blueprint: Blueprint) -> Iterator[FoundScript]:
    for path in user_scripts():
        if _listed(blueprint, path.stem):
            data = read_file(path, what="script tool")
            yield FoundScript(script=_parsed(data, path), origin="user")


def _parsed(data: bytes, path: Path) -> Script:
    if path.stem in RULE_NAMES or path.stem in TOOL_ALIASES:
        message = f"{path.stem!r} is the name of a built-in tool"
        raise InvalidInput((Problem(position=Position(file=str(path)), message=message),))
    return parse_script(data, file=str(path))


def _listed(blueprint: Blueprint, name: str) -> bool:
    return any(
        fnmatchcase(name, pattern) for stage in blueprint.in_order for pattern in stage.available_tools
    )


def _plugin_tools(blueprint: Blueprint) -> Iterator[tuple[str, Tool]]:
    if not any(_may_be_outside(pattern) for stage in blueprint.in_order for pattern in stage.available_tools):
        return
    for plugin in plugins():
        if _listed(blueprint, plugin.name) and plugin.name not in RULE_NAMES:
            yield plugin.name, _plugin_tool(plugin)


def _may_be_outside(pattern: str) -> bool:
    """Tell whether a stage's word can mean a tool that does not ship; looking for plugins takes time."""
    return "*" in pattern or (pattern not in RULE_NAMES and pattern not in TOOL_ALIASES)


def _plugin_tool(plugin: Plugin) -> Tool:
    where = f"plugin tool {plugin.name!r} of {plugin.package or plugin.reference}"
    position = Position(file=plugin.reference)
    try:
        found = loaded_plugins([plugin.name])[plugin.name]
        makes = isinstance(found, type) or not hasattr(found, "prepare")
        made: object = found() if callable(found) and makes else found
    except Exception as error:
        message = f"the {where} fails: {type(error).__name__}: {error}"
        raise InvalidInput((Problem(position=position, message=message),)) from error
    if not isinstance(made, Tool) or made.spec.name != plugin.name:
        message = f"the {where} is no tool of that name: it needs spec, aliases, waits_for_person and prepare"
        raise InvalidInput((Problem(position=position, message=message),))
    return made
