"""Lints: what is allowed in a blueprint and most likely a mistake. Nothing is run, imported or asked."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from agentctl.blueprint.graph import circles, reachable, without_end
from agentctl.blueprint.machines import machine_of
from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.blueprint.tool_rules import followed_tools, tool_names
from agentctl.errors import Problem
from agentctl.protocol.tool_names import READING_TOOLS, WAITING_TOOLS, canonical_tool
from agentctl.records import dataclass
from agentctl.state.machine_check import check_machines
from agentctl.toml.positions import Path
from agentctl.toml.table import TomlValue
from agentctl.toml.words import nearest, one_of

Level: TypeAlias = Literal["warning", "note"]
"""A warning is most likely a mistake; a note is worth knowing before a run."""

_INPUT = re.compile(r"\{inputs\.([A-Za-z0-9_-]+)\}")
_REACHES = {
    "shell": ("shell", "write_file", "read_file", "network"),
    "edit_file": ("write_file",),
    "grep": ("read_file",),
    "glob": ("read_file",),
    "list_dir": ("read_file",),
    "fan_out": ("spawn_agent",),
}
"""Tool → the entries that its effects answer to besides its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """One finding about a blueprint that loads."""

    level: Level
    code: str
    """A stable name: `unreachable-stage`."""
    problem: Problem

    def __str__(self) -> str:
        place, _, rest = str(self.problem).partition(": ")
        return f"{place}: {self.level}: {rest} [{self.code}]"


def lints_of(blueprint: Blueprint) -> tuple[Lint, ...]:
    """Return every lint in file order. May block."""
    found = (
        *_graph(blueprint),
        *_permissions(blueprint),
        *_tools(blueprint),
        *_inputs(blueprint),
        *_checkpoints(blueprint),
        *_machines(blueprint),
        *_followed(blueprint),
        *_requests(blueprint),
    )
    return tuple(sorted(found, key=lambda lint: (lint.problem.position.line, lint.problem.position.column)))


def _lint(blueprint: Blueprint, code: str, path: Path, message: str, *, suggestion: str = "") -> Lint:
    return _at_level(blueprint, "warning", code, path, message, suggestion)


def _at_level(
    blueprint: Blueprint, level: Level, code: str, path: Path, message: str, suggestion: str = ""
) -> Lint:
    file = blueprint.source.table
    problem = Problem(
        position=file.value_position(*path), key=file.key(*path), message=message, suggestion=suggestion
    )
    return Lint(level=level, code=code, problem=problem)


def _graph(blueprint: Blueprint) -> Iterator[Lint]:
    entered = reachable(blueprint)
    for name in blueprint.stages:
        if name not in entered:
            message = f"no path leads here from the entry stage {blueprint.entry.name!r}"
            yield _lint(blueprint, "unreachable-stage", ("stages", name), message)
    for circle in circles(blueprint):
        if len(circle.stages) == 1:
            message = "the stage leads to itself without max_revisits, so a run may never end"
        else:
            message = f"{' and '.join(circle.stages)} lead to each other and none has max_revisits"
        yield _lint(blueprint, "cycle-without-max-revisits", ("stages", circle.stages[0]), message)
    for name in without_end(blueprint):
        message = "from here no path leads to a stage where the run can end"
        yield _lint(blueprint, "no-exit", ("stages", name), message)


def _followed(blueprint: Blueprint) -> Iterator[Lint]:
    """Effects and machines hold for sub-agents, too, whose scripts nobody knows here: so no error."""
    names = tool_names(blueprint)
    for tool, path in followed_tools(blueprint):
        if not names.accepts(tool):
            message = f"there is no tool {tool!r} here, so it waits for a sub-agent's"
            yield _lint(blueprint, "unknown-tool", path, message, suggestion=names.nearest(tool))
    owner = blueprint.workspace.owner
    for index, effect in enumerate(blueprint.state_effects):
        if effect.path and owner and not any(_is_below(effect.path, place) for place in owner):
            message = f"effects may write only below {one_of(owner)}, so this one is always left out"
            yield _lint(blueprint, "outside-owner", ("state_effects", index, "path"), message)


def _is_below(pointer: str, place: str) -> bool:
    return pointer == place or pointer.startswith(f"{place.removesuffix('/')}/")


def _permissions(blueprint: Blueprint) -> Iterator[Lint]:
    offered_anywhere: set[str] = set()
    for stage in blueprint.in_order:
        offered = _entries(blueprint, stage)
        offered_anywhere |= offered
        for tool, rule in stage.tool_permissions.values.items():
            if not _speaks(tool, rule, offered):
                message = f"the stage does not offer {tool!r}, so this rule is never asked"
                path: Path = ("stages", stage.name, "tool_permissions", tool)
                yield _lint(blueprint, "orphan-permission", path, message)
    for tool, rule in blueprint.tool_permissions.values.items():
        if not _speaks(tool, rule, offered_anywhere):
            message = f"no stage offers {tool!r}, so this rule is never asked"
            yield _lint(blueprint, "orphan-permission", ("tool_permissions", tool), message)


def _entries(blueprint: Blueprint, stage: StageTable) -> set[str]:
    """Return the names of the entries that calls of the stage can answer to; globs stay globs."""
    offered = {canonical_tool(tool) for tool in stage.offers}
    offered |= {f"{server}__*" for server in stage.available_connectors}
    offered |= {"transition"} if stage.transitions else set()
    offered |= {"submit_output"} if stage.output is not None else set()
    offered |= {"fan_out"} if stage.mode == "fan_out" else set()
    if blueprint.agent.dynamic_tools or any("*" in tool for tool in offered):
        offered |= {"network", "write_file", "read_file", "shell"}  # what a tool not known yet may do
    return offered | {entry for tool in offered for entry in _REACHES.get(tool, ())}


def _speaks(tool: str, rule: TomlValue, offered: Iterable[str]) -> bool:
    """Tell whether a rule can decide a call. Denies always can: sub-agents inherit them."""
    name = canonical_tool(tool)
    if rule == "deny" or (isinstance(rule, dict) and (rule.get("deny") or rule.get("default") == "deny")):
        return any("spawn_agent" in one or "fan_out" in one for one in offered) or _any_fits(name, offered)
    return _any_fits(name, offered)


def _any_fits(name: str, offered: Iterable[str]) -> bool:
    return any(fnmatchcase(one, name) or fnmatchcase(name, one) for one in offered)


def _tools(blueprint: Blueprint) -> Iterator[Lint]:
    for stage in blueprint.in_order:
        for index, tool in enumerate(stage.required_tools):
            if canonical_tool(tool) not in WAITING_TOOLS and "*" not in tool:
                message = f"{tool!r} does not wait for a person, so it is offered unattended anyway"
                path = ("stages", stage.name, "required_tools", index)
                yield _lint(blueprint, "needless-required-tool", path, message)
        yield from _lent_keys(blueprint, stage)
        servers = {server.name for server in blueprint.mcp_servers}
        for index, server in enumerate(stage.available_connectors):
            if server not in servers:
                message = f"the server {server!r} is not in this blueprint; the user's config must name it"
                path = ("stages", stage.name, "available_connectors", index)
                yield _at_level(blueprint, "note", "outside-server", path, message)


def _lent_keys(blueprint: Blueprint, stage: StageTable) -> Iterator[Lint]:
    worker = blueprint.stages.get(stage.fan_out.worker) if stage.fan_out and stage.fan_out.read else None
    if worker is not None and not any(fnmatchcase("shared_state", tool) for tool in worker.available_tools):
        message = f"{worker.name!r} does not offer shared_state, so it can't read these keys"
        yield _lint(blueprint, "unreadable-keys", ("stages", stage.name, "fan_out", "read"), message)


def _inputs(blueprint: Blueprint) -> Iterator[Lint]:
    texts: list[tuple[Path, str]] = [(("agent", "prompt"), blueprint.agent.prompt)]
    texts += [(("stages", stage.name, "prompt"), stage.prompt) for stage in blueprint.in_order]
    used = set()
    for path, text in texts:
        for name in dict.fromkeys(_INPUT.findall(text)):
            used.add(name)
            if name not in blueprint.inputs:
                known = list(blueprint.inputs)
                tail = f"; there is {one_of(known)}" if known else "; there is no [inputs] table"
                message = f"there is no input {name!r}{tail}"
                yield _lint(blueprint, "unknown-input", path, message, suggestion=nearest(name, known))
    for name in blueprint.inputs:
        if name not in used:
            message = f"no prompt uses {{inputs.{name}}}"
            yield _lint(blueprint, "unused-input", ("inputs", name), message)


def _checkpoints(blueprint: Blueprint) -> Iterator[Lint]:
    for stage in blueprint.in_order:
        for index, point in enumerate(stage.interaction_points):
            if point.unattended == "ask":
                path = ("stages", stage.name, "interaction_points", index)
                message = "stops a run without a person (exit 4), with --yolo too"
                yield _at_level(blueprint, "note", "holds-under-yolo", path, message)


def _machines(blueprint: Blueprint) -> Iterator[Lint]:
    for index, table in enumerate(blueprint.machines):
        for problem in check_machines((machine_of(table),), read_only_tools=READING_TOOLS):
            if problem.level == "warning":
                yield _lint(blueprint, problem.code, ("machines", index, *problem.path), problem.text)


def _requests(blueprint: Blueprint) -> Iterator[Lint]:
    """Yield what a blueprint asks of the user, who has to write it down for it to hold."""
    if blueprint.read_paths.allow:
        message = "the user must grant these under [read_paths] of their config"
        yield _at_level(blueprint, "note", "read-paths-declared", ("read_paths", "allow"), message)
    if blueprint.safe_commands.shell or blueprint.safe_commands.tools:
        message = "inert until the user writes the same under [safe_commands] of their config"
        yield _at_level(blueprint, "note", "safe-commands-declared", ("safe_commands",), message)
