"""What a tool server costs: loading the SDK, connecting, and each call beside the bare SDK's.

The server answers at once. Our calls come with what a run needs of them: the supervisor, the journaled
context, and the workdir measured for the write budgets. Writes `bench/results/mcp_calls.json`.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from agentctl.executor.api import Roots, SandboxKind, SandboxPolicy
from agentctl.executor.local import LocalExecutor
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.tools.definition import ActContext, ToolPlace
from agentctl.tools.mcp.pool import open_pool
from agentctl.tools.mcp.server import ServerPlan
from agentctl.tools.mcp.source import McpTools
from agentctl.tools.outside import Wanted

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench" / "results" / "mcp_calls.json"
CALLS = 300
ECHO = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    r = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        about = {"name": "echo", "version": "1"}
        r["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    elif m["method"] == "tools/list":
        r["result"] = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        r["result"] = {"content": [{"type": "text", "text": "x"}]}
    else:
        r["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(r), flush=True)
"""


async def nobody(question: PersonQuestion) -> PersonAnswer:
    del question
    return PersonAnswer(no_answer="unattended")


async def ours(folder: Path) -> tuple[float, float]:
    """Return milliseconds to connect, and the median of a call."""
    executor = LocalExecutor()
    plan = ServerPlan(
        name="s", position="bench", command=(sys.executable, "-c", ECHO),
        roots=Roots(workdir=folder, temp=folder / "temp"), sandbox=SandboxPolicy(kind=SandboxKind.NONE),
    )  # fmt: skip
    place = ToolPlace(workdir=folder, temp=folder / "temp", why_protected=lambda _: "")
    act = ActContext(call_id="c", emit_output=lambda _: None, ask_person=nobody)
    async with open_pool(executor) as pool:
        source = McpTools(pool=pool, executor=executor, plans=(plan,))
        async with source.living():
            began = time.perf_counter()
            await source.ready(Wanted(tools=("*",), connectors=()))
            connected = time.perf_counter() - began
            (tool,) = source.tools()
            times = []
            for _ in range(CALLS):
                began = time.perf_counter()
                await (await tool.tool.prepare({}, place)).act(act)
                times.append(time.perf_counter() - began)
    await executor.aclose()
    return connected * 1000, statistics.median(times) * 1000


async def bare() -> tuple[float, float]:
    """Return the same of the SDK's own client."""
    began = time.perf_counter()
    async with Client(StdioServerParameters(command=sys.executable, args=["-c", ECHO])) as client:
        await client.list_tools()
        connected = time.perf_counter() - began
        times = []
        for _ in range(CALLS):
            began = time.perf_counter()
            await client.call_tool("echo", {})
            times.append(time.perf_counter() - began)
    return connected * 1000, statistics.median(times) * 1000


def cpu_of_import(module: str) -> float:
    """Return milliseconds of CPU that importing a module takes in a fresh process, the best of three."""
    program = f"import time; a = time.process_time(); import {module}; print(time.process_time() - a)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    return min(float(done.stdout) for done in runs) * 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as large:
        for number in range(2000):
            place = Path(large) / f"d{number % 50}"
            place.mkdir(exist_ok=True)
            (place / f"f{number}.txt").write_text("x", encoding="utf-8")
        connect, call = anyio.run(ours, Path(small).resolve())
        _, call_large = anyio.run(ours, Path(large).resolve())
    bare_connect, bare_call = anyio.run(bare)
    found = {
        "import_cpu_ms": {
            "sdk": cpu_of_import("mcp"),
            "wire": cpu_of_import("agentctl.tools.mcp.wire.session"),
        },
        "connect_ms": {"ours": connect, "bare_sdk": bare_connect},
        "call_ms": {"ours": call, "ours_2000_files": call_large, "bare_sdk": bare_call},
    }
    rounded = {key: {name: round(value, 2) for name, value in row.items()} for key, row in found.items()}
    RESULT.write_text(json.dumps(rounded, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(rounded, indent=2))


if __name__ == "__main__":
    main()
