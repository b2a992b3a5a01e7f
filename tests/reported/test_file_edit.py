"""Edits and writes that lost bytes, modes or links elsewhere."""

import ast
import os
import re
import signal
import stat
import subprocess
import sys

import pytest

from agentctl.testing.play import Turn, open_stage
from tests.end_to_end.command import ROOT
from tests.reported.cases import Case, each_case, nobody_reads
from tests.reported.desk import Desk, call, no_file_beyond

pytestmark = pytest.mark.anyio


def unescaped(text: str) -> bytes:
    """Return bytes as the cases write them."""
    quoted = text.replace('\\"', '"').replace('"', '\\"').replace("\n", "\\n")
    return bytes(ast.literal_eval(f'b"{quoted}"'))


@each_case("file-edit")
async def test_a_reported_edit(case: Case, desk: Desk) -> None:
    given = case.given
    match given:
        case {"bytes": str(data), "old": str(), "new": str()}:
            await an_edit(case, desk, unescaped(data))
        case {"tool": "write new file", "umask": str(umask)}:
            bits = int(umask, 8)
            before = os.umask(bits)
            try:
                await desk.calls(call("write_file", path="new.txt", content="x\n"))
            finally:
                os.umask(before)
            assert stat.S_IMODE((desk.work / "new.txt").stat().st_mode) == 0o666 & ~bits
        case {"tool": "write", "setup": str(setup), "path": str(path)}:
            await through_a_link(desk, setup, path)
        case {"tool": "write", "path": str(path), "content": str(content)}:
            (told,) = await desk.calls(call("write_file", path=path, content=content))
            assert told.outcome == "ok", told.text
            assert (desk.work / path).read_bytes() == content.encode()
        case {"tool": "create", "path": str(path)}:
            (desk.work / path).write_text("as it was\n")
            (told,) = await desk.calls(call("write_file", path=path, content="new\n"))
            assert told.outcome == "failed"
            assert "overwrite=true" in told.text
            assert (desk.work / path).read_text() == "as it was\n"
        case {"setup": str(setup)} if "kill" in setup:
            killed_in_a_write(desk)
        case {"setup": str(setup)} if "ENOSPC" in setup:
            await a_full_disk(desk)
        case {"setup": str(setup)} if "external" in setup:
            await changed_since_it_was_read(desk)
        case _:
            nobody_reads(case)


async def an_edit(case: Case, desk: Desk, data: bytes) -> None:
    file = desk.work / "file.txt"
    file.write_bytes(data)
    mode = int(case.given.get("mode", "0644"), 8)
    file.chmod(mode)
    wanted = {key: case.given[key] for key in ("old", "new", "replace_all") if key in case.given}

    (told,) = await desk.calls(call("edit_file", path="file.txt", **wanted))

    now = file.read_bytes()
    if case.expected.startswith("result bytes "):
        text = case.expected.removeprefix("result bytes ").partition(" (")[0]
        assert (told.outcome, now) == ("ok", unescaped(text)), told.text
    elif case.expected.startswith(("error", "either a not-found error")):
        if told.outcome == "ok":
            assert case.expected.startswith("either")
            assert now.decode() == re.search(r"giving (.*);", case.expected)[1] + "\n"  # type: ignore[index]
            return
        assert (told.outcome, now) == ("failed", data), told.text
        for word in re.findall(r"\d+ occurrences|not found", case.expected):
            assert word in told.text or (word == "not found" and "not in" in told.text), told.text
    else:
        assert case.expected.startswith("mode still "), case.expected
        assert (told.outcome, stat.S_IMODE(file.stat().st_mode)) == ("ok", mode)


async def through_a_link(desk: Desk, setup: str, path: str) -> None:
    desk.set_up(setup)
    link = desk.work / path
    target = link.resolve()
    (told,) = await desk.calls(call("write_file", path=path, content="new\n", overwrite=True))
    assert told.outcome == "ok", told.text
    assert link.is_symlink()
    assert target.read_text() == "new\n"


WRITER = """
import sys
from pathlib import Path
import anyio
from agentctl.executor.api import Roots, WriteMode
from agentctl.executor.local import LocalExecutor

async def main():
    executor = LocalExecutor()
    roots = Roots(workdir=Path(sys.argv[1]), temp=Path(sys.argv[1]))
    print("ready", flush=True)
    while True:
        for letter in "ab":
            path = await executor.resolve("big.txt", roots)
            await executor.apply_write(await executor.plan_write(path, letter * 5_000_000, WriteMode.REPLACE))

anyio.run(main)
"""


def killed_in_a_write(desk: Desk) -> None:
    """Nine processes that write the same 5 MB over and over, each killed at another moment."""
    file = desk.work / "big.txt"
    file.write_bytes(b"a" * 5_000_000)
    for number in range(9):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(desk.work)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(0.01 + 0.007 * number)
            writer.send_signal(signal.SIGKILL)
        content = file.read_bytes()
        assert content in (b"a" * 5_000_000, b"b" * 5_000_000)


async def a_full_disk(desk: Desk) -> None:
    """The kernel takes a part of the write and then no more: no file may grow beyond a size here."""
    file = desk.work / "file.txt"
    file.write_text("as it was\n")
    with no_file_beyond(1_000_000):
        (told,) = await desk.calls(
            call("write_file", path="file.txt", content="x" * 5_000_000, overwrite=True)
        )
    assert told.outcome == "failed"
    assert file.read_text() == "as it was\n"
    assert [one.name for one in desk.work.iterdir()] == ["file.txt"]


async def changed_since_it_was_read(desk: Desk) -> None:
    file = desk.work / "f.txt"
    file.write_text("one\ntwo\n")
    read, edit = call("read_file", path="f.txt"), call("edit_file", path="f.txt", old="one", new="1")
    async with open_stage(desk.blueprint(), workdir=desk.work, allow=["write_file", "edit_file"]) as stage:
        run_id, _ = await stage.begin(Turn(text="read", replies=[{"tool_calls": [read]}, {"text": "read"}]))
        info = await stage.journal.run(run_id)
        with file.open("a") as other:
            other.write("added\n")
        assert info is not None
        await stage.begin(
            Turn(text="edit", replies=[{"tool_calls": [edit]}, {"text": "done"}]), info.thread_id
        )
    assert file.read_text() == "1\ntwo\nadded\n"
