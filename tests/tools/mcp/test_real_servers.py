"""Servers that nobody here wrote, over standard streams and over HTTP.

`make test` installs them beside the environment; where that was not possible, these tests are skipped.
"""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agentctl.errors import ToolError
from agentctl.protocol.questions import PersonAnswer
from tests.tools.mcp.serving import plan, running

pytestmark = pytest.mark.anyio
PLACE = Path(__file__).resolve().parents[3] / ".venv" / "mcp-servers"
ENV = (("PATH", os.environ["PATH"]),)


def python_server(name: str) -> str:
    program = PLACE / "bin" / name
    if not program.exists():
        pytest.skip(f"{name} could not be installed here")
    return str(program)


def node_server(name: str) -> str:
    program = PLACE / "node" / "node_modules" / ".bin" / name
    if not program.exists() or shutil.which("node") is None:
        pytest.skip(f"{name} could not be installed here")
    return str(program)


async def test_the_git_server_reads_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("x", encoding="utf-8")
    command = (python_server("mcp-server-git"), "--repository", str(tmp_path))
    async with running(tmp_path, plan(tmp_path, name="git", command=command)) as run:
        status = await run.call("git__git_status", repo_path=str(tmp_path))

    assert "new.txt" in status.text
    assert not status.failed


async def test_the_time_server_answers_with_json(tmp_path: Path) -> None:
    command = (python_server("mcp-server-time"), "--local-timezone", "Europe/Berlin")
    async with running(tmp_path, plan(tmp_path, name="time", command=command)) as run:
        now = await run.call("time__get_current_time", timezone="Asia/Tokyo")
        wrong = await run.call("time__get_current_time", timezone="Moon/Base")

    assert "Asia/Tokyo" in now.text
    assert wrong.failed


async def test_the_fetch_server_refuses_what_is_not_there(tmp_path: Path) -> None:
    command = (python_server("mcp-server-fetch"), "--ignore-robots-txt")
    async with running(tmp_path, plan(tmp_path, name="fetch", command=command)) as run:
        names = run.names
        output = await run.call("fetch__fetch", url="http://127.0.0.1:9/")

    assert "fetch__fetch" in names
    assert "fetch__get_prompt" in names
    assert output.failed


async def test_the_filesystem_server_stays_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("inside", encoding="utf-8")
    command = (node_server("mcp-server-filesystem"), str(tmp_path))
    async with running(tmp_path, plan(tmp_path, name="fs", command=command, env=ENV)) as run:
        inside = await run.call("fs__read_text_file", path=str(tmp_path / "in.txt"))
        outside = await run.call("fs__read_text_file", path="/etc/passwd")
        written = await run.call("fs__write_file", path=str(tmp_path / "out.txt"), content="12345")

    assert inside.text == "inside"
    assert outside.failed
    assert (written.bytes_written, written.files_written) == (5, 1)


async def test_everything_over_standard_streams(tmp_path: Path) -> None:
    command = (node_server("mcp-server-everything"), "stdio")
    server = plan(tmp_path, name="every", command=command, env=ENV, sampling=True)
    async with running(tmp_path, server) as run:
        echoed = await run.call("every__echo", message="hello")
        image = await run.call("every__get-tiny-image")
        structured = await run.call("every__get-structured-content", location="Chicago")
        await run.call_with("every__trigger-long-running-operation", {"duration": 0.4, "steps": 2})
        resources = await run.call("every__list_resources")
        prompts = await run.call("every__list_prompts")
        sampled = await run.call_with("every__trigger-sampling-request", {"prompt": "2+2", "maxTokens": 5})
        roots = await run.call("every__get-roots-list")

    assert "hello" in echoed.text
    assert [part.media_type for part in image.images] == ["image/png"]
    assert isinstance(structured.structured, dict)
    assert "2 of 2\n" in run.shown
    assert isinstance(resources.structured, list)
    assert isinstance(prompts.structured, list)
    assert "an answer" in sampled.text
    assert tmp_path.name in roots.text


async def test_everything_asks_a_person(tmp_path: Path) -> None:
    command = (node_server("mcp-server-everything"), "stdio")
    async with running(tmp_path, plan(tmp_path, name="every", command=command, env=ENV)) as run:
        run.person.answers = [PersonAnswer(no_answer="declined")]
        output = await run.call("every__trigger-elicitation-request")

    assert "declin" in output.text
    assert "'every' asks" in run.person.asked[0].prompt


@contextmanager
def everything(port: int) -> Iterator[str]:
    """The server over HTTP, while it runs."""
    with subprocess.Popen(
        [node_server("mcp-server-everything"), "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        try:
            for line in server.stderr:
                if re.search(r"listening", line):
                    break
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.kill()


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_everything_over_http(tmp_path: Path, port: int) -> None:
    with everything(port) as url:
        async with running(tmp_path, plan(tmp_path, name="every", url=url)) as run:
            echoed = await run.call("every__echo", message="hello")
            await run.call_with("every__trigger-long-running-operation", {"duration": 0.4, "steps": 2})
            run.person.answers = [PersonAnswer(no_answer="declined")]
            asked = await run.call("every__trigger-elicitation-request")

    assert "hello" in echoed.text
    assert "2 of 2\n" in run.shown
    assert "declin" in asked.text


async def test_a_far_server_that_was_away_is_reached_again(tmp_path: Path, port: int) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(everything(port))
        async with running(tmp_path, plan(tmp_path, name="every", url=url, call_timeout_s=5.0)) as run:
            stack.pop_all().close()
            with pytest.raises(ToolError, match="'every'"):
                await run.call("every__echo", message="away")
            stack.enter_context(everything(port))
            await run.ready()
            back = await run.call("every__echo", message="hello")

    assert "hello" in back.text
