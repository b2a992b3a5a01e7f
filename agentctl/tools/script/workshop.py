"""What all script tools of a process share: the engine, connections, and what they may call."""

from collections.abc import Iterable, Mapping
from dataclasses import field

from agentctl.executor.api import Executor
from agentctl.llm.http import Http
from agentctl.records import dataclass
from agentctl.tools.definition import Tool
from agentctl.tools.script.engine import Engine
from agentctl.tools.script.host import Environment, env_tool, read_whole_tool
from agentctl.tools.script.web import web_tools

_STAND_FOR = frozenset({"write_file", "shell"})


@dataclass(slots=True, kw_only=True)
class Workshop:
    """Made once a process, closed once. Costs nothing until a script runs."""

    environ: Mapping[str, str] = field(default_factory=dict)
    passed: tuple[str, ...] = ()
    """Credential-shaped names that the user lets through."""
    engine: Engine = field(default_factory=Engine)
    http: Http = field(init=False)

    def __post_init__(self) -> None:
        self.http = Http(self.environ)

    @property
    def environment(self) -> Environment:
        """What `env` tells."""
        return Environment(values=self.environ, passed=self.passed)

    def host_tools(self, executor: Executor, shared: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return what scripts may call; `shared` are the built-in tools, of which they have two."""
        return (
            read_whole_tool(executor),
            *(tool for tool in shared if tool.spec.name in _STAND_FOR),
            *web_tools(self.http),
            env_tool(self.environment),
        )

    async def aclose(self) -> None:
        """End the workers and close the connections. Idempotent."""
        await self.engine.aclose()
        await self.http.aclose()
