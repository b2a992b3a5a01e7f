"""What servers do wrong, one case each; the ids are those of the cases we were given."""

import json
import os
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import anyio
import anyio.lowlevel
import pytest

from agentctl.errors import ToolServerMissing
from tests.tools.mcp.serving import plan, program, running

pytestmark = pytest.mark.anyio
ELSEWHERE = {"MC-027"}
"""Tried with the whole command, in tests/end_to_end/test_mcp.py."""


def test_every_case_has_a_test_of_its_id(shared: Path) -> None:
    lines = (shared / "cases" / "mcp.jsonl").read_text(encoding="utf-8").splitlines()
    ids = {json.loads(line)["id"] for line in lines}
    whole = (Path(__file__).parents[2] / "end_to_end" / "test_mcp.py").read_text(encoding="utf-8")

    assert [one for one in sorted(ids - ELSEWHERE) if not _tested(one, globals())] == []
    assert [one for one in ELSEWHERE if f"def test_{_word(one)}_" not in whole] == []


def _word(case: str) -> str:
    return case.lower().replace("-", "_")


def _tested(case: str, names: Iterable[str]) -> bool:
    return any(name.startswith(f"test_{_word(case)}_") for name in names)


async def test_mc_001_a_banner_before_the_handshake_is_skipped_and_told(tmp_path: Path) -> None:
    command = program("write('Server version: 1.0\\n\\n'); serve(echo)")
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert (await run.call("srv__echo", text="hi")).text == "hi"
        assert "not of the protocol: 'Server version: 1.0'" in run.notes()


async def test_mc_003_endless_output_without_a_line_end_ends_the_connection(tmp_path: Path) -> None:
    command = program("while True: write('x' * (1 << 20))")
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert run.names == []
        assert "MiB on its standard output without a line end" in run.notes()


async def test_mc_004_messages_may_come_split_and_packed(tmp_path: Path) -> None:
    command = program("""
        def call(m):
            whole = json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": text("hé")}, ensure_ascii=False)
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/x"})
            data = (note + "\\r\\n" + whole + "\\n" + note + "\\n").encode()
            for at in range(0, len(data), 7):
                sys.stdout.buffer.write(data[at : at + 7])
                sys.stdout.buffer.flush()
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert (await run.call("srv__echo")).text == "hé"
        assert run.notes() == ""


async def test_mc_005_a_server_that_dies_before_it_answers_is_told_with_code_and_complaint(
    tmp_path: Path,
) -> None:
    command = program("read(); sys.exit('no database at /nowhere')")
    with pytest.raises(ToolServerMissing) as missing:
        async with running(tmp_path, plan(tmp_path, command=command, required=True)):
            pass

    assert "exit code 1" in missing.value.message
    assert "no database at /nowhere" in missing.value.message
    assert "config.toml:1:1" in missing.value.hint


async def test_a_death_at_the_start_is_noticed_at_once(tmp_path: Path) -> None:
    command = program("sys.exit('gone')")
    async with running(tmp_path, plan(tmp_path, name="other", command=program("serve(echo)"))) as run:
        began = anyio.current_time()
        line = run.pool.take(plan(tmp_path, command=command))
        await line.settled()

        assert anyio.current_time() - began < 1.0
        assert "exit code 1" in line.why


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_mc_006_a_server_that_ignores_the_end_of_its_input_is_killed_with_its_tree(
    tmp_path: Path,
) -> None:
    command = program("""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        def call(m):
            answer(m, **text(f"{os.getpid()} {child.pid}"))
        try:
            serve(call)
        except SystemExit:
            while True:
                time.sleep(60)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        pids = [int(word) for word in (await run.call("srv__echo")).text.split()]
        assert all(map(_alive, pids))

    assert not any(map(_alive, pids))


async def test_mc_007_what_a_server_leaves_behind_is_killed(tmp_path: Path) -> None:
    command = program("""
        def call(m):
            child = subprocess.Popen(["sleep", "300"], start_new_session=True)
            answer(m, **text(str(child.pid)))
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        pid = int((await run.call("srv__echo")).text)

    assert not _alive(pid)


async def test_mc_008_a_server_that_stops_reading_fails_the_call_and_does_not_hold_up_the_end(
    tmp_path: Path,
) -> None:
    command = program("""
        while True:
            m = read()
            usual(m)
            if m.get("method") == "tools/list":
                time.sleep(300)
    """)
    began = 0.0
    async with running(tmp_path, plan(tmp_path, command=command, call_timeout_s=0.3)) as run:
        began = anyio.current_time()
        output = await run.call("srv__echo", text="x" * (1 << 20))

    assert output.failed
    assert "did not answer within 0.3 s" in output.text
    assert anyio.current_time() - began < 5


async def test_mc_009_after_a_timeout_the_next_call_works_and_the_late_answer_is_ignored(
    tmp_path: Path,
) -> None:
    command = program("""
        late = None
        def call(m):
            global late
            if late is None:
                late = m
            else:
                answer(late, **text("late"))
                echo(m)
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command, call_timeout_s=0.3)) as run:
        first = await run.call("srv__echo", text="first")

        assert first.failed
        assert "may have happened" in first.text
        assert (await run.call("srv__echo", text="second")).text == "second"


async def test_mc_010_answers_out_of_order_reach_their_own_callers(tmp_path: Path) -> None:
    command = program("""
        held = []
        def call(m):
            held.append(m)
            if len(held) == 2:
                for one in reversed(held):
                    echo(one)
        serve(call)
    """)
    texts: dict[str, str] = {}
    async with running(tmp_path, plan(tmp_path, command=command)) as run:

        async def call(word: str) -> None:
            texts[word] = (await run.call("srv__echo", text=word)).text

        async with anyio.create_task_group() as group:
            group.start_soon(call, "one")
            group.start_soon(call, "two")

    assert texts == {"one": "one", "two": "two"}


async def test_mc_013_an_unknown_protocol_version_is_told(tmp_path: Path) -> None:
    command = program('VERSION = "1999-01-01"; serve(echo)')
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert run.names == []
        assert "1999-01-01" in run.notes()


async def test_mc_015_a_list_that_never_comes_keeps_the_old_tools(tmp_path: Path) -> None:
    command = program("""
        listed = False
        while True:
            m = read()
            if m.get("method") == "tools/list":
                if listed:
                    continue
                listed = True
            if not usual(m):
                send(method="notifications/tools/list_changed")
                echo(m)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        run.line.refresh_timeout_s = 0.2
        await run.call("srv__echo", text="hi")
        with anyio.fail_after(5):
            while "stay as known" not in run.notes():
                await anyio.lowlevel.checkpoint()

        assert run.names == ["srv__echo"]
        assert (await run.call("srv__echo", text="again")).text == "again"


async def test_a_changed_list_is_taken_in_before_the_next_step(tmp_path: Path) -> None:
    command = program("""
        def call(m):
            TOOLS.append(tool("more"))
            send(method="notifications/tools/list_changed")
            echo(m)
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        await run.call("srv__echo", text="hi")
        with anyio.fail_after(5):
            while run.names == ["srv__echo"]:
                await anyio.lowlevel.checkpoint()
                await run.ready()

        assert run.names == ["srv__echo", "srv__more"]


async def test_mc_016_a_server_that_exits_takes_its_tools_along(tmp_path: Path) -> None:
    command = program("""
        def call(m):
            sys.stderr.write("out of coffee\\n")
            sys.exit(3)
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        output = await run.call("srv__echo")

        assert output.failed
        assert "'srv'" in output.text
        assert "exit code 3" in output.text
        assert "out of coffee" in output.text
        assert run.names == []
        assert "'srv' is not there" in run.source.why_missing("srv__echo")


async def test_mc_019_of_two_tools_with_one_cut_name_the_second_is_left_out_and_told(tmp_path: Path) -> None:
    command = program('TOOLS = [tool("a" * 70), tool("a" * 71), tool("a.b"), tool("a_b")]; serve(echo)')
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert run.names == [("srv__" + "a" * 70)[:64], "srv__a_b"]
        notes = run.notes()
        assert f"{'a' * 71!r} is left out" in notes
        assert "'a_b' is left out" in notes


async def test_mc_020_the_same_tool_on_two_servers_is_two_tools(tmp_path: Path) -> None:
    first = plan(tmp_path, name="s1", command=program('serve(lambda m: answer(m, **text("one")))'))
    second = plan(tmp_path, name="s2", command=program('serve(lambda m: answer(m, **text("two")))'))
    async with running(tmp_path, first, second) as run:
        assert run.names == ["s1__echo", "s2__echo"]
        assert (await run.call("s1__echo")).text == "one"
        assert (await run.call("s2__echo")).text == "two"


async def test_a_schema_with_null_where_it_means_nothing_is_offered(tmp_path: Path) -> None:
    command = program("""
        schema = {"type": "object", "properties": None, "required": None}
        TOOLS[:] = [{"name": "echo", "inputSchema": schema}]
        serve(lambda m: answer(m, **text("hi")))
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert (await run.call("srv__echo")).text == "hi"


@pytest.mark.parametrize(("result", "failed"), [("", False), ("isError=True", True), ("_meta={}", False)])
async def test_an_answer_that_says_nothing_is_an_answer(tmp_path: Path, result: str, *, failed: bool) -> None:
    command = program(f"serve(lambda m: answer(m, {result}))")
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        output = await run.call("srv__echo")

    assert (output.text, output.failed) == ("(no output)", failed)


async def test_mc_022_an_image_beside_structured_content_is_kept(tmp_path: Path) -> None:
    command = program("""
        image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        serve(lambda m: answer(m, content=[image], structuredContent={"x": 1}))
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        output = await run.call("srv__echo")

    assert output.structured == {"x": 1}
    assert [(image.media_type, image.data) for image in output.images] == [("image/png", "aGk=")]
    assert '"x": 1' in output.text


async def test_mc_023_cancelling_a_call_tells_the_server_and_leaves_it_there(tmp_path: Path) -> None:
    command = program("""
        cancelled = []
        held = []
        while True:
            m = read()
            if m.get("method") == "notifications/cancelled":
                cancelled.append(m["params"]["requestId"])
            elif not usual(m):
                if not held:
                    held.append(m["id"])
                    send(method="notifications/progress",
                         params={"progressToken": m["params"]["_meta"]["progressToken"], "progress": 1})
                else:
                    answer(m, **text(str(cancelled == held)))
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        async with anyio.create_task_group() as group:
            group.start_soon(run.call, "srv__echo")
            with anyio.fail_after(10):
                while not run.shown:
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

        assert (await run.call("srv__echo")).text == "True"


async def test_mc_025_a_secret_is_shown_by_its_name(tmp_path: Path) -> None:
    secrets = (("s3cret-value", "${TOKEN}"),)
    local = plan(
        tmp_path,
        name="local",
        command=program("sys.exit('refused: ' + os.environ['KEY'])"),
        env=(("KEY", "s3cret-value"),),
        secrets=secrets,
    )
    remote = plan(
        tmp_path,
        name="remote",
        url="http://127.0.0.1:9/mcp",
        headers=(("Authorization", "s3cret-value"),),
        secrets=secrets,
    )
    async with running(tmp_path, local, remote) as run:
        notes = run.notes()

    assert "refused: ${TOKEN}" in notes
    assert "'remote' is not there" in notes
    assert "s3cret-value" not in notes + repr(local) + repr(remote)


async def test_mc_028_any_name_of_a_tool_can_be_called(tmp_path: Path) -> None:
    names = ["constructor", "__class__", "__proto__", "a b/c", "", "tool\u00e9"]
    command = program(
        f"TOOLS = [tool(n) for n in {names!r}]; serve(lambda m: answer(m, **text(m['params']['name'])))"
    )
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        offered = run.names
        said = [(await run.call(name)).text for name in offered]

    assert offered == [
        "srv__constructor", "srv____class__", "srv____proto__", "srv__a_b_c", "srv___", "srv__tool_",
    ]  # fmt: skip
    assert said == [name or "(no output)" for name in names]


async def test_a_far_server_that_wants_more_says_so(tmp_path: Path) -> None:
    class Guarded(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        async with running(tmp_path, plan(tmp_path, url=url)) as run:
            notes = run.notes()
        server.shutdown()

    assert "HTTP status 401; it wants headers or [mcp_servers.oauth]" in notes


async def test_a_far_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with running(tmp_path, plan(tmp_path, url="http://127.0.0.1:9/mcp")) as run:
        assert "it cannot be reached" in run.notes()
