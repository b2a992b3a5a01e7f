"""The MCP servers that runs of a blueprint may use: the user's and, once trusted, the blueprint's own."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

from agentctl.blueprint.code import CodeLoader
from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.blueprint.trust import Trust, trust_needed
from agentctl.errors import ToolServerMissing
from agentctl.executor.file_types import Roots
from agentctl.executor.sandbox_policy import SandboxKind, SandboxPolicy
from agentctl.records import dataclass
from agentctl.run.beside import beside
from agentctl.run.house import House
from agentctl.run.sandboxing import sandbox_of_all
from agentctl.settings.settings import Settings
from agentctl.tables.declared import McpOauthTable, McpServerTable
from agentctl.toml.table import Table
from agentctl.tools.mcp.server import OauthPlan, ServerPlan
from agentctl.tools.mcp.source import McpTools, wants
from agentctl.tools.outside import ToolSource, Wanted

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SHORTEST_SECRET = 4
_BARE = SandboxPolicy(kind=SandboxKind.NONE)


def server_plans(house: House, blueprint: Blueprint, workdir: Path) -> tuple[ServerPlan, ...]:
    """Return the servers that a stage of the blueprint wants, and those that are required. May block.

    Nothing is started.
    """
    if not house.settings.config.mcp_servers and not blueprint.mcp_servers:
        return ()
    roots = Roots(
        workdir=workdir,
        temp=house.temp_of("servers"),
        home=Path.home().resolve(),
        kept=(blueprint.source.path, *trust_needed(blueprint).files),
    )
    return tuple(
        plan
        for plan in known_servers(house.settings, blueprint, roots, house.environ)
        if plan.required or any(_wants(stage, plan.name) for stage in blueprint.in_order)
    )


def known_servers(
    settings: Settings, blueprint: Blueprint | None, roots: Roots, environ: Mapping[str, str]
) -> tuple[ServerPlan, ...]:
    """Return every server of the user's config and of a blueprint, under names that differ. Starts nothing.

    Of two servers with one name the user's counts: the user's rules for it must not come to mean something
    that a blueprint brings.
    """
    folder = settings.file.parent
    declared = [
        _Declared(table=table, file=settings.table, index=index, folder=folder, environ=environ)
        for index, table in enumerate(settings.config.mcp_servers)
    ]
    if blueprint is not None:
        own, trust = blueprint.source, trust_needed(blueprint)
        declared += [
            _Declared(
                table=table, file=own.table, index=index, folder=own.path.parent, environ=None, trust=trust
            )
            for index, table in enumerate(blueprint.mcp_servers)
        ]
    plans: dict[str, ServerPlan] = {}
    for one in declared:
        name = one.table.name
        sandbox = _sandbox(settings, blueprint, name) if one.table.sandbox else _BARE
        plans.setdefault(name, one.plan(roots, sandbox))
    return tuple(plans.values())


def _sandbox(settings: Settings, blueprint: Blueprint | None, server: str) -> SandboxPolicy:
    """What is allowed in every stage that the server works for: it outlives each of them."""
    stages = [stage for stage in blueprint.in_order if _wants(stage, server)] if blueprint else []
    return sandbox_of_all(settings, blueprint, stages)


def server_sources(
    house: House, plans: tuple[ServerPlan, ...], connectors: Iterable[str]
) -> tuple[ToolSource, ...]:
    """Return where a run gets the tools of its servers from; empty when it wants none.

    `connectors` are those that its stages list.

    Raises:
        ToolServerMissing: one is required, and this process runs no servers.
    """
    if house.servers is None:
        needed = next((plan for plan in plans if plan.required), None)
        if needed is not None:
            raise ToolServerMissing(f"The MCP server {needed.name!r} is required; no servers are run here.")
        return ()
    named = {plan.name for plan in plans}
    unknown = tuple(name for name in dict.fromkeys(connectors) if name not in named)
    if not plans and not unknown:
        return ()
    return (McpTools(pool=house.servers, executor=house.executor, plans=plans, unknown=unknown),)


def _wants(stage: StageTable, server: str) -> bool:
    return wants(Wanted(tools=stage.available_tools, connectors=stage.available_connectors), server)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """One `[[mcp_servers]]` table and where it stands."""

    table: McpServerTable
    file: Table
    index: int
    folder: Path
    environ: Mapping[str, str] | None
    """What `${NAME}` stands for; None where a file may not reach into the environment."""

    trust: Trust = field(default_factory=Trust)
    """What of its command's files was trusted."""

    def plan(self, roots: Roots, sandbox: SandboxPolicy) -> ServerPlan:
        table, filled = self.table, _Filling(self.environ)
        command = beside(self.folder, table.command)
        cwd = (self.folder / Path(table.cwd).expanduser()).resolve() if table.cwd else None
        return ServerPlan(
            name=table.name,
            position=str(self.file.position("mcp_servers", self.index)),
            command=command,
            pinned=tuple(CodeLoader(self.folder, self.trust).pinned(command).items()),
            url=table.url,
            headers=tuple((name, filled.fill(value)) for name, value in table.headers.items()),
            oauth=_oauth(table.oauth, filled),
            env=tuple((name, filled.fill(value)) for name, value in table.env.items()),
            cwd=cwd,
            roots=roots if table.sandbox else replace(roots, kept=()),
            required=table.required,
            startup_timeout_s=table.startup_timeout,
            call_timeout_s=table.call_timeout,
            sandbox=sandbox,
            sampling=table.sampling,
            secrets=tuple(filled.secrets.items()),
            fault=filled.fault,
        )


def _oauth(table: McpOauthTable | None, filled: "_Filling") -> OauthPlan | None:
    if table is None:
        return None
    return OauthPlan(
        grant=table.grant,
        client_id=filled.fill(table.client_id),
        client_secret=filled.fill(table.client_secret),
        private_key=filled.fill(table.private_key),
        algorithm=table.algorithm,
        issuer=table.issuer,
        scope=table.scope,
        id_token=filled.fill(table.id_token),
        exchange=table.exchange,
        exchange_client_id=filled.fill(table.exchange_client_id),
        exchange_client_secret=filled.fill(table.exchange_client_secret),
    )


class _Filling:
    """Fills `${NAME}` in, and keeps what came in for hiding it in messages."""

    def __init__(self, environ: Mapping[str, str] | None) -> None:
        self._environ = environ
        self.secrets: dict[str, str] = {}
        self.fault = ""

    def fill(self, text: str) -> str:
        """Return `text` with the variables in it filled in; one that is not set becomes `fault`."""
        if self._environ is None:
            return text
        environ = self._environ

        def value(match: re.Match[str]) -> str:
            found = environ.get(match[1])
            if found is None and match[2] is not None:
                return match[2]
            if found is None:
                self.fault = self.fault or f"the environment variable {match[1]} is not set"
                return ""
            if len(found) >= _SHORTEST_SECRET:
                self.secrets[found] = f"${{{match[1]}}}"
            return found

        return _VARIABLE.sub(value, text)
