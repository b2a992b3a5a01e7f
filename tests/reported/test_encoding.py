"""Bytes that were taken for something else, elsewhere."""

import json
import os
from pathlib import Path

import pytest

from agentctl.testing.replay_server import Answer, replay_server_in_thread
from tests.end_to_end.command import Bench
from tests.end_to_end.test_mcp import results, trust
from tests.reported.cases import Case, each_case, nobody_reads
from tests.reported.desk import Desk, call
from tests.reported.services import config_of, said
from tests.reported.test_file_edit import unescaped
from tests.tools.mcp.serving import PREAMBLE

pytestmark = pytest.mark.anyio

EDITOR = """
[agent]
name = "editor"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work."
available_tools = ["read_file", "edit_file", "shell"]
[[script.replies]]
tool_calls = [
  { tool = "read_file", arguments = { path = "f.txt" } },
  { tool = "edit_file", arguments = { path = "f.txt", old = "c", new = "\u00e7" } },
  { tool = "shell", arguments = { command = "cat f.txt" } },
]
[[script.replies]]
text = "done"
"""


@each_case("encoding")
async def test_reported_bytes(case: Case, desk: Desk, bench: Bench) -> None:
    match case.given:
        case {"env": dict(env), "bytes": str(data)}:
            another_locale(bench, env, unescaped(data))
        case {"bytes_hex": str(data)}:
            await output_of(desk, bytes.fromhex(data))
        case {"text": str(text)}:
            await legitimate(desk, text.encode().decode("unicode_escape"))
        case {"bytes": str(data)}:
            a_config(bench, unescaped(data))
        case {"chunks_hex": list(chunks)}:
            lines_in_pieces(bench, [bytes.fromhex(one) for one in chunks])
        case {"agent_name": str(name)}:
            a_name_in_a_header(bench, name)
        case _:
            nobody_reads(case)


def another_locale(bench: Bench, env: dict[str, str], data: bytes) -> None:
    file = bench.workdir / "f.txt"
    file.write_bytes(data)
    path = bench.blueprint(EDITOR)
    ran = bench.agentctl("run", path, "go", "--allow", "write_file", "--allow", "shell", "--jsonl", **env)
    told = results(ran)
    assert [outcome for outcome, _ in told] == ["ok"] * 3, told
    assert file.read_bytes() == data.replace(b"c", "\u00e7".encode(), 1)
    assert data.decode().strip() in told[0][1]


async def output_of(desk: Desk, data: bytes) -> None:
    (desk.work / "out").write_bytes(data)
    plain = data.split(b"\n")[0].decode("ascii")
    whole, slowly = await desk.calls(
        call("shell", command="cat out"),
        call("shell", command=f"for n in $(seq {len(data)}); do tail -c +$n out | head -c 1; done"),
    )
    assert whole.outcome == "ok"
    assert whole.text == slowly.text
    assert whole.text.splitlines()[0] == plain


async def legitimate(desk: Desk, text: str) -> None:
    (desk.work / "f.txt").write_text(f"{text}\n", encoding="utf-8")
    read, shown, found, edited = await desk.calls(
        call("read_file", path="f.txt"),
        call("shell", command="cat f.txt"),
        call("grep", pattern="\ufffd", path="."),
        call("edit_file", path="f.txt", old=text, new=f"{text}!"),
    )
    assert text in read.text
    assert shown.text == text
    assert found.text.startswith("f.txt:1:")
    assert edited.outcome == "ok"
    assert (desk.work / "f.txt").read_text(encoding="utf-8") == f"{text}!\n"


def a_config(bench: Bench, data: bytes) -> None:
    """The mark of a file is no part of it: neither of a config nor of a blueprint nor of a script."""
    mark = data[: len(data) - len(data.decode("utf-8-sig").encode())]
    home = Path(os.environ["AGENTCTL_HOME"]) / "config"
    home.mkdir(parents=True)
    (home / "config.toml").write_bytes(mark + b"[limits]\nsteps = 7\n")
    shown = bench.agentctl("config", "show")
    assert "7" in shown.out, shown.err
    (bench.folder / "marked.toml").write_bytes(mark + EDITOR.encode())
    checked = bench.agentctl("check", bench.folder / "marked.toml")
    assert checked.code == 0, checked.err


def lines_in_pieces(bench: Bench, chunks: list[bytes]) -> None:
    """A server on pipes flushes its lines in the middle of characters."""
    text = json.loads(b"".join(chunks))["t"]
    program = f"""
def slow(m):
    line = json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": {{"content": [
        {{"type": "text", "text": {text!r} * 3}}]}}}}, ensure_ascii=False).encode() + b"\\n"
    for byte in line:
        sys.stdout.buffer.write(bytes([byte]))
        sys.stdout.buffer.flush()
serve(slow)
"""
    (bench.folder / "server.py").write_text(PREAMBLE + program, encoding="utf-8")
    path = bench.blueprint(
        '[agent]\nname = "a"\n[model]\nuse = ["scripted:"]\n[stages.w]\nprompt = "W."\n'
        'available_connectors = ["srv"]\n[[mcp_servers]]\nname = "srv"\ncommand = ["python3", "server.py"]\n'
        "[[script.replies]]\ntool_calls = [{ tool = 'srv__echo', arguments = { text = 'x' } }]\n"
        '[[script.replies]]\ntext = "done"\n'
    )
    ran = bench.agentctl("run", path, "go", "--allow", "srv__*", "--trust", trust(bench, path), "--jsonl")
    assert results(ran) == [("ok", text * 3)], ran.err


def a_name_in_a_header(bench: Bench, name: str) -> None:
    """No header carries a name by itself; a user may put any value into one, and a task into the body."""
    path = bench.blueprint(
        f'[agent]\nname = "a"\ndescription = {json.dumps(name)}\n[model]\nuse = ["mine:m"]\n'
        f"[stages.w]\nprompt = {json.dumps(name)}\n"
    )
    with replay_server_in_thread([Answer(body=said("done"))]) as server:
        config_of(server.url, headers={"x-agent": "${AGENT_NAME}"})
        ran = bench.agentctl("run", path, name, "--json", AGENT_NAME=name)
    assert (ran.code, len(server.received)) == (0, 1), ran.err
    assert name in json.dumps(server.received[0].json(), ensure_ascii=False)
