"""`agentctl tools`: which tools there are, what needs no prompt, and which file says so."""

import json
import sys
from typing import Annotated

import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.tool_list import listed_tools
from agentctl.policy.safe_data import safe_list
from agentctl.policy.safe_list import SafeEntry
from agentctl.policy.written import BUILT_IN_NAMES
from agentctl.protocol.values import JsonObject
from agentctl.settings.load import load_settings
from agentctl.settings.rules import names_for, shipped_table

app = command_app("Which tools there are, and what they may do without a prompt.")


@app.callback()
def _group() -> None:
    """Which tools there are, and what they may do without a prompt."""


@app.command("list")
def list_tools(
    blueprint: Annotated[
        str, typer.Argument(metavar="BLUEPRINT", help="A blueprint whose own tools are listed too.")
    ] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array on stdout.")] = False,
) -> None:
    """Show every tool, who brought it, and what it does. Nothing is started or imported.

    Built-in tools; plugins that are installed; script tools in the tools/ folder of your config; with
    BLUEPRINT also the scripts beside it and its MCP servers.

    Examples: agentctl tools list · agentctl tools list ./agent.toml --json
    """
    found = listed_tools(blueprint)
    if as_json:
        sys.stdout.write(json.dumps([tool.record() for tool in found], ensure_ascii=False) + "\n")
        return
    width = max(len(tool.name) for tool in found)
    for tool in found:
        first = (tool.fault or tool.description).partition("\n")[0]
        sys.stdout.write(f"{tool.name:<{width}}  {tool.origin}: {first}\n")


@app.command("safe")
def safe(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array on stdout.")] = False,
) -> None:
    """Show every command and tool that needs no prompt, and which file put it on the list.

    The file tells under which options a command counts. Your own entries: [safe_commands] in your config.

    Examples: agentctl tools safe · agentctl tools safe --json
    """
    settings = load_settings()
    own = settings.table.table("safe_commands")
    names = names_for(settings.config.safe_commands.tools, BUILT_IN_NAMES.known)
    entries = safe_list(shipped_table("safe_commands.toml"), own, names=names).entries
    if as_json:
        sys.stdout.write(json.dumps([_record(entry) for entry in entries]) + "\n")
        return
    if not entries:
        sys.stderr.write("nothing: [safe_commands] defaults = false in your config\n")
        return
    width = max(len(entry.text) for entry in entries)
    for entry in entries:
        sys.stdout.write(f"{entry.text:<{width}}  {entry.by:<7}  {entry.position}\n")


def _record(entry: SafeEntry) -> JsonObject:
    place = entry.position
    return {
        "entry": entry.text,
        "by": entry.by,
        "file": place.file,
        "line": place.line,
        "column": place.column,
    }
