"""Small script tools, and a bench on which one runs with answers from a function."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentctl.protocol.messages import ToolResult
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.protocol.values import JsonObject
from agentctl.tables.script_header import parse_script
from agentctl.tools.definition import ActContext, InnerCall, Prepared, ToolOutput, ToolPlace
from agentctl.tools.script.tool import Origin, ScriptTool
from agentctl.tools.script.workshop import Workshop

HEADER = '# /// tool\n# description = "A tool of a test."\n# ///\n'
PLACE = ToolPlace(workdir=Path("/w"), temp=Path("/t"), why_protected=lambda _: "")


def script(body: str, *, header: str = HEADER) -> bytes:
    """Return the file of a tool whose `run()` has this body, or which is `body` where it defines `run`."""
    if "def run" not in body:
        body = "def run():\n" + "\n".join(f"    {line}" for line in body.strip("\n").split("\n")) + "\n"
    return (header + body).encode()


def ok(text: str = "", **structured: object) -> ToolResult:
    return ToolResult(call_id="c", tool="t", outcome="ok", text=text, structured=dict(structured))  # type: ignore[arg-type]


@dataclass
class Bench:
    """Runs one script after the other."""

    workshop: Workshop
    answer: Callable[[InnerCall], ToolResult] = lambda _: ok()
    calls: list[InnerCall] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def tool(self, data: bytes, origin: Origin = "blueprint") -> ScriptTool:
        shop = self.workshop
        parsed = parse_script(data, file="tools/sample.py")
        return ScriptTool(script=parsed, origin=origin, engine=shop.engine, environment=shop.environment)

    async def prepared(self, data: bytes, arguments: JsonObject | None = None) -> Prepared:
        return await self.tool(data).prepare(arguments or {}, PLACE)

    async def run(self, data: bytes, arguments: JsonObject | None = None) -> ToolOutput:
        prepared = await self.prepared(data, arguments)

        async def call_tool(inner: InnerCall) -> ToolResult:
            self.calls.append(inner)
            return self.answer(inner)

        async def nobody(question: PersonQuestion) -> PersonAnswer:
            raise AssertionError(question)

        return await prepared.act(
            ActContext(call_id="c1", emit_output=self.shown.append, ask_person=nobody, call_tool=call_tool)
        )


@asynccontextmanager
async def bench(
    answer: Callable[[InnerCall], ToolResult] = lambda _: ok(), environ: dict[str, str] | None = None
) -> AsyncIterator[Bench]:
    """Give a bench; its workers are ended at the end."""
    workshop = Workshop(environ=environ or {})
    try:
        yield Bench(workshop=workshop, answer=answer)
    finally:
        await workshop.aclose()
