"""`agentctl mcp`: the servers that runs may use, and blueprints served as tools to other programs."""

import json as json_text
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import anyio
import typer

from agentctl.blueprint.catalogue import entries, load
from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.trust import trust_needed
from agentctl.cli.command_app import command_app
from agentctl.cli.launch import overrides
from agentctl.cli.mcp_login import log_in
from agentctl.cli.options import Allow, Ask, Deny, Limit, Model, OnAsk, Yolo, launch_flags
from agentctl.cli.wiring import open_house
from agentctl.errors import AgentctlError, ExitCode, UsageError
from agentctl.executor.api import Roots
from agentctl.executor.local import open_executor
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.run.inputs import checked_workdir
from agentctl.run.tool_servers import known_servers
from agentctl.serve.mcp.offering import offered
from agentctl.settings.load import load_settings
from agentctl.settings.settings import Settings
from agentctl.settings.trust_store import TrustStore
from agentctl.terminal.visible import one_line
from agentctl.tools.mcp.line import Line
from agentctl.tools.mcp.logins import LoginFile
from agentctl.tools.mcp.names import named
from agentctl.tools.mcp.pool import open_pool
from agentctl.tools.mcp.server import ServerPlan
from agentctl.tools.mcp.source import fault_of

app = command_app("List MCP servers, or serve blueprints as MCP tools.")


@app.command("list")
def list_servers(
    blueprint: Annotated[
        str, typer.Argument(metavar="[BLUEPRINT]", help="Also the servers that this blueprint brings.")
    ] = "",
    *,
    connect: Annotated[
        bool, typer.Option("--connect", help="Start each one and list its tools; untrusted ones are not.")
    ] = False,
    workdir: Annotated[Path, typer.Option("--workdir", metavar="DIR", help="Where servers start.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="One JSON array on stdout.")] = False,
) -> int:
    """List the MCP servers of the user's config, and of a blueprint. Starts none without --connect.

    With --connect the exit code is 8 when one of them is not there.
    """
    settings = load_settings(())
    loaded = load(blueprint) if blueprint else None
    place = checked_workdir(workdir)
    with tempfile.TemporaryDirectory(prefix="agentctl-") as temp:
        roots = Roots(workdir=place, temp=Path(temp).resolve(), home=Path.home().resolve())
        plans = known_servers(settings, loaded, roots, dict(os.environ))
        untrusted = _untrusted(loaded, plans, settings)
        rows = [_row(plan, trusted=plan.name not in untrusted) for plan in plans]
        if connect:
            chosen = [plan for plan in plans if plan.name not in untrusted]
            lines = anyio.run(_connected, settings, chosen)
            rows = [row | lines.get(str(row["name"]), {}) for row in rows]
    if json:
        typer.echo(json_text.dumps(rows, indent=2, ensure_ascii=False))
    else:
        for row in rows:
            typer.echo(_shown(row))
        if not rows:
            typer.echo("no MCP servers: name one under [[mcp_servers]] in your config", err=True)
    return int(ExitCode.TOOL_SERVER if any(row.get("why") for row in rows) else ExitCode.FINISHED)


async def _connected(settings: Settings, plans: list[ServerPlan]) -> dict[str, JsonObject]:
    executor = open_executor(environment=dict(os.environ), passed=settings.config.environment.pass_)
    try:
        async with open_pool(executor) as pool:
            lines = [pool.take(plan) for plan in plans]
            for line in lines:
                await line.settled()
            return {line.plan.name: await _found(line) for line in lines}
    finally:
        await executor.aclose()


async def _found(line: Line) -> JsonObject:
    if line.session is None:
        return {"tools": [], "left_out": {}, "why": await line.gone()}
    found = named(line.plan.name, line.offer.tools)
    left_out: JsonObject = {name: fault for name, tool in found.tools if (fault := fault_of(tool))}
    left_out |= {tool.name: f"the name {name} means another tool" for name, tool in found.left_out}
    names: list[JsonValue] = [name for name, _ in found.tools if name not in left_out]
    names += [f"{line.plan.name}__{what}" for what in line.offer.readings]
    return {"tools": names, "left_out": left_out, "why": ""}


def _untrusted(blueprint: Blueprint | None, plans: tuple[ServerPlan, ...], settings: Settings) -> set[str]:
    """The blueprint's own servers, as long as its code is not trusted."""
    if blueprint is None:
        return set()
    trust = trust_needed(blueprint)
    if not trust.items or TrustStore().is_trusted(trust.sha256):
        return set()
    users = {table.name for table in settings.config.mcp_servers}
    return {plan.name for plan in plans if plan.name not in users}


def _row(plan: ServerPlan, *, trusted: bool) -> JsonObject:
    return {
        "name": plan.name,
        "command": list(plan.command),
        "url": plan.url,
        "required": plan.required,
        "position": plan.position,
        "trusted": trusted,
    }


def _shown(row: JsonObject) -> str:
    command = row["command"]
    how = row["url"] or (" ".join(map(str, command)) if isinstance(command, list) else "")
    marks = [
        word for word, is_so in (("required", row["required"]), ("not trusted", not row["trusted"])) if is_so
    ]
    head = f"{row['name']}  {how}  {row['position']}" + (f"  ({', '.join(marks)})" if marks else "")
    tools, left_out = row.get("tools"), row.get("left_out")
    if row.get("why"):
        return f"{head}\n  is not there: {row['why']}"
    listed = [f"  {tool}" for tool in tools] if isinstance(tools, list) else []
    if isinstance(left_out, dict):
        listed += [f"  {one_line(name)}  left out: {one_line(str(why))}" for name, why in left_out.items()]
    return "\n".join([head, *listed])


@app.command("login")
def login(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="A server of the user's config.")],
    *,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Seconds to wait for the login.")
    ] = 300.0,
) -> int:
    """Log in at a server that speaks OAuth; runs use the login until it ends or `mcp logout`."""
    settings = load_settings(())
    tools = anyio.run(log_in, settings, replace(_users(settings, server), startup_timeout_s=timeout))
    typer.echo(f"Logged in at {server!r}; it offers {tools} tools.")
    return int(ExitCode.FINISHED)


@app.command("logout")
def logout(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="A server of the user's config.")],
) -> int:
    """Forget the login at a server. What the service still remembers is its own."""
    existed = LoginFile(url=_users(load_settings(()), server).url).forget()
    typer.echo(f"The login at {server!r} is forgotten." if existed else f"There was no login at {server!r}.")
    return int(ExitCode.FINISHED)


def _users(settings: Settings, name: str) -> ServerPlan:
    nowhere = Roots(workdir=Path.cwd(), temp=Path.cwd())
    plans = {plan.name: plan for plan in known_servers(settings, None, nowhere, dict(os.environ))}
    if name not in plans:
        known = ", ".join(plans) or "none"
        raise UsageError(f"There is no MCP server {name!r} in your config; there: {known}.")
    return plans[name]


@app.command("serve")
def serve_blueprints(  # noqa: PLR0913 - one parameter an option of the command line
    blueprints: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BLUEPRINT]...", help="Names or paths; all that have a name."),
    ] = None,
    *,
    workdir: Annotated[
        Path, typer.Option("--workdir", metavar="DIR", help="The folder that runs work in.")
    ] = Path(),
    model: Model = "",
    yolo: Yolo = False,
    allow: Allow = None,
    ask: Ask = None,
    deny: Deny = None,
    on_ask: OnAsk = "deny",
    limit: Limit = None,
) -> int:
    """Serve blueprints as MCP tools on standard input and output, one run a call, until the client leaves.

    What a person must approve is asked through the client (elicitation); one that can't ask gets a refusal.
    """
    flags = launch_flags(yolo=yolo, allow=allow, ask=ask, deny=deny, on_ask=on_ask, limit=limit)
    chosen = [load(one) for one in blueprints] if blueprints else _catalogue()
    try:
        from agentctl.serve.mcp.server import Serving, serve_stdio  # noqa: PLC0415 - the SDK costs 700 ms
    except ModuleNotFoundError as error:
        raise UsageError(
            f"Serving MCP needs the package {error.name!r}.", hint="pip install 'agentctl[mcp]'"
        ) from error
    serving = Serving(
        tools=offered(chosen),
        settings=load_settings(overrides(flags.limits, model)),
        open_house=open_house,
        workdir=checked_workdir(workdir),
        flags=flags,
    )
    anyio.run(serve_stdio, serving)
    return int(ExitCode.FINISHED)


def _catalogue() -> list[Blueprint]:
    """Every blueprint that has a name; a broken one is told and does not hide the others."""
    found: list[Blueprint] = []
    for entry in entries():
        try:
            found.append(load_blueprint(entry.path, found_by=entry.found_by))
        except AgentctlError as error:
            typer.echo(error.message, err=True)
    return found
