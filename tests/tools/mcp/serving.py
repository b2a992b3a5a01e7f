"""Small servers that misbehave in one way each, and a run's view of them."""

import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from agentctl.executor.api import Roots, SandboxKind, SandboxPolicy
from agentctl.executor.local import LocalExecutor
from agentctl.protocol.messages import AssistantMessage, TextPart
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.protocol.values import JsonObject
from agentctl.tools.definition import ActContext, SampleRequest, ToolOutput, ToolPlace
from agentctl.tools.mcp.line import Line
from agentctl.tools.mcp.pool import ServerPool, open_pool
from agentctl.tools.mcp.server import ServerPlan
from agentctl.tools.mcp.source import McpTools
from agentctl.tools.outside import Wanted

NO_SANDBOX = SandboxPolicy(kind=SandboxKind.NONE)
PREAMBLE = '''
import json, os, signal, subprocess, sys, threading, time

VERSION = "2025-06-18"
CAPABILITIES = {"tools": {"listChanged": True}}


def tool(name, **more):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "inputSchema": schema, **more}


TOOLS = [tool("echo", description="Says it again.")]


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def send(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def answer(m, **result):
    send(id=m["id"], result=result)


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def usual(m):
    """Answer what every server answers; return whether that was all there is to do."""
    method = m.get("method")
    if "id" not in m:
        return True
    if method == "initialize":
        about = {"name": "fake", "version": "1"}
        answer(m, protocolVersion=VERSION, capabilities=CAPABILITIES, serverInfo=about)
    elif method == "tools/list":
        answer(m, tools=TOOLS)
    elif method == "tools/call":
        return False
    elif method:
        send(id=m["id"], error={"code": -32601, "message": "Method not found"})
    return True


def serve(call):
    while True:
        m = read()
        if not usual(m):
            call(m)


def echo(m):
    answer(m, **text(m["params"]["arguments"].get("text", "")))
'''


def program(body: str) -> tuple[str, ...]:
    """Return the command of a server: the preamble, then `body`."""
    return (sys.executable, "-c", PREAMBLE + textwrap.dedent(body))


@dataclass
class Person:
    """Answers what it is asked, in order, and keeps the questions."""

    answers: list[PersonAnswer] = field(default_factory=list)
    asked: list[PersonQuestion] = field(default_factory=list)

    async def ask(self, question: PersonQuestion) -> PersonAnswer:
        self.asked.append(question)
        return self.answers.pop(0)


@dataclass
class Model:
    """Answers a server's wishes."""

    text: str = "an answer"
    wishes: list[SampleRequest] = field(default_factory=list)

    async def sample(self, wish: SampleRequest) -> AssistantMessage:
        self.wishes.append(wish)
        return AssistantMessage(parts=(TextPart(text=self.text),), model="scripted:")


@dataclass(kw_only=True)
class Bench:
    """A run's view of its servers."""

    folder: Path
    executor: LocalExecutor
    pool: ServerPool
    source: McpTools
    shown: list[str] = field(default_factory=list)
    person: Person = field(default_factory=Person)
    model: Model = field(default_factory=Model)

    @property
    def place(self) -> ToolPlace:
        return ToolPlace(workdir=self.folder, temp=self.folder / "temp", why_protected=lambda _: "")

    @property
    def line(self) -> Line:
        """The only server."""
        (line,) = self.source._lines.values()  # noqa: SLF001 - what a run sees of it is what is tested
        return line

    @property
    def names(self) -> list[str]:
        return [one.tool.spec.name for one in self.source.tools()]

    async def ready(self) -> None:
        await self.source.ready(Wanted(tools=("*",), connectors=()))

    async def call(self, name: str, **arguments: str) -> ToolOutput:
        return await self.call_with(name, dict(arguments))

    async def call_with(self, name: str, arguments: JsonObject) -> ToolOutput:
        tool = next(one.tool for one in self.source.tools() if one.tool.spec.name == name)
        prepared = await tool.prepare(arguments, self.place)
        return await prepared.act(
            ActContext(
                call_id="c1",
                emit_output=self.shown.append,
                ask_person=self.person.ask,
                sample=self.model.sample,
            )
        )

    def notes(self) -> str:
        return "\n".join(note.text for note in self.source.take_notes())


def plan(folder: Path, name: str = "srv", **more: object) -> ServerPlan:
    base = ServerPlan(
        name=name,
        position="config.toml:1:1",
        roots=Roots(workdir=folder, temp=folder / "temp"),
        sandbox=NO_SANDBOX,
        startup_timeout_s=20.0,
        call_timeout_s=20.0,
    )
    return replace(base, **more)  # type: ignore[arg-type]


@asynccontextmanager
async def running(folder: Path, *plans: ServerPlan) -> AsyncIterator[Bench]:
    """Give a run with these servers, each there or known not to come; end them afterwards."""
    executor = LocalExecutor(environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "SECRET_TOKEN": "hidden"})
    try:
        with anyio.fail_after(60):
            async with open_pool(executor) as pool:
                source = McpTools(pool=pool, executor=executor, plans=plans)
                async with source.living():
                    bench = Bench(folder=folder, executor=executor, pool=pool, source=source)
                    await bench.ready()
                    yield bench
    finally:
        await executor.aclose()
