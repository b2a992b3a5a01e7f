"""Every tool that can be offered here, and who brought it: built in, the user's, or a blueprint's."""

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from agentctl.blueprint.catalogue import load
from agentctl.clock import SystemClock
from agentctl.errors import InvalidInput
from agentctl.executor.local import open_executor
from agentctl.protocol.tool_names import CHILD_TOOLS
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tables.outside_tools import plugins, script_tools, user_scripts
from agentctl.tables.script_header import parse_script
from agentctl.toml.read import read_file
from agentctl.tools.built_in import built_in_tools

_BY_STATE = {
    "shared_state": "Read and write the store that agents share.",
    "state_get": "Read typed state.",
    "state_set": "Write typed state.",
    "transition": "Go to another stage; offered where a stage has several edges.",
    "submit_output": "Hand in the stage's output; offered where it has one.",
}
_CHILD = "Start or look after sub-agents: docs/subagents.md."


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """One line of the list."""

    name: str
    origin: str
    """`built-in`, `plugin PACKAGE VERSION`, `user FILE`, `blueprint FILE`, `server NAME`."""
    description: str
    fault: str = field(default="")
    """Why it could not be offered, or empty."""

    def record(self) -> JsonObject:
        """Return it as JSON."""
        found: JsonObject = {"name": self.name, "origin": self.origin, "description": self.description}
        return {**found, "fault": self.fault} if self.fault else found


def listed_tools(blueprint: str) -> list[ListedTool]:
    """Return the tools, with those of a blueprint where one is named. May block; starts and imports nothing.

    Raises:
        UsageError, InvalidInput: there is no such blueprint, or it is invalid.
    """
    built_in = built_in_tools(open_executor(environment={}, passed=()), SystemClock())
    found = [
        ListedTool(name=tool.spec.name, origin="built-in", description=tool.spec.description)
        for tool in built_in
    ]
    named = {**_BY_STATE, **dict.fromkeys(CHILD_TOOLS, _CHILD)}
    found += [ListedTool(name=name, origin="built-in", description=text) for name, text in named.items()]
    for plugin in plugins():
        origin = f"plugin {plugin.package}".strip()
        found.append(ListedTool(name=plugin.name, origin=origin, description=plugin.reference))
    found += [_script(path, "user") for path in user_scripts()]
    if blueprint:
        found += _of_blueprint(blueprint)
    return found


def _of_blueprint(name: str) -> Iterator[ListedTool]:
    loaded = load(name)
    for path in script_tools(loaded.source.path.parent / "tools"):
        yield _script(path, "blueprint")
    for server in loaded.mcp_servers:
        yield ListedTool(
            name=f"{server.name}__*", origin=f"server {server.name}", description="Known once it is started."
        )


def _script(path: Path, who: str) -> ListedTool:
    origin = f"{who} {path}"
    try:
        script = parse_script(read_file(path, what="script tool"), file=str(path))
    except InvalidInput as error:
        return ListedTool(name=path.stem, origin=origin, description="", fault=error.message)
    return ListedTool(name=script.name, origin=origin, description=script.description)
