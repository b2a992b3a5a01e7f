"""`agentctl blueprints`: what can be named, and what one says."""

import json as json_text
import sys
from typing import Annotated

import typer

from agentctl.blueprint.catalogue import Entry, entries, find
from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.cli.command_app import command_app
from agentctl.errors import AgentctlError, ExitCode
from agentctl.protocol.values import JsonObject

app = command_app("List and show the blueprints that can be named.")


@app.command("list")
def list_blueprints(
    *, json: Annotated[bool, typer.Option("--json", help="One JSON array on stdout.")] = False
) -> int:
    """List the user's blueprints and those that ship with agentctl.

    A broken one is told on stderr and does not hide the others; the exit code is then 3.
    """
    loaded: list[tuple[Entry, Blueprint]] = []
    broken: list[AgentctlError] = []
    for entry in entries():
        try:
            loaded.append((entry, load_blueprint(entry.path, found_by=entry.found_by)))
        except AgentctlError as error:
            broken.append(error)
    if json:
        typer.echo(json_text.dumps([_row(*pair) for pair in loaded], indent=2, ensure_ascii=False))
    else:
        width = max((len(entry.name) for entry, _ in loaded), default=0)
        for entry, blueprint in loaded:
            typer.echo(f"{entry.name.ljust(width)}  {entry.found_by.ljust(7)}  {blueprint.agent.description}")
    for failure in broken:
        typer.echo(failure.message, err=True)
    return int(ExitCode.INVALID if broken else ExitCode.FINISHED)


@app.command("show")
def show_blueprint(
    blueprint: Annotated[str, typer.Argument(metavar="BLUEPRINT", help="A name, or a path.")],
    *,
    json: Annotated[bool, typer.Option("--json", help="Where it is and its text, as JSON.")] = False,
) -> None:
    """Print a blueprint's TOML, as it is in its file; on stderr where that is."""
    entry = find(blueprint)
    loaded = load_blueprint(entry.path, found_by=entry.found_by)
    if json:
        row = {**_row(entry, loaded), "text": loaded.source.text}
        typer.echo(json_text.dumps(row, indent=2, ensure_ascii=False))
        return
    typer.echo(f"# {loaded.source.path}", err=True)
    sys.stdout.write(loaded.source.text)


def _row(entry: Entry, blueprint: Blueprint) -> JsonObject:
    return {
        "name": entry.name,
        "agent": blueprint.name,
        "description": blueprint.agent.description,
        "found_by": entry.found_by,
        "path": str(blueprint.source.path),
        "sha256": blueprint.source.sha256,
        "stages": list(blueprint.stages),
        "inputs": list(blueprint.inputs),
    }
