"""A machine over what calls are about: no commit before the tests, however the line is written."""

from pathlib import Path
from typing import Any

import pytest

from agentctl.testing.play import Turn, play

pytestmark = pytest.mark.anyio

BLUEPRINT = """
[agent]
name = "careful"
[model]
use = ["scripted:"]
[[machines]]
name = "tested"
initial = "open"
transitions = [
  { on = "bash(./tests *)", from = ["open", "tested"], to = "tested" },
  { on = "shell(./commit *)", from = "tested", to = "open", reason = "Run the tests first." },
]
[stages.work]
prompt = "Work."
available_tools = ["shell"]
"""


def line(command: str) -> dict[str, Any]:
    return {"tool_calls": [{"tool": "shell", "arguments": {"command": command}}]}


async def test_a_commit_comes_after_tests_that_passed(tmp_path: Path) -> None:
    path, workdir = tmp_path / "careful.toml", tmp_path / "work"
    path.write_text(BLUEPRINT, encoding="utf-8")
    workdir.mkdir()
    for name, text in {"tests": "test -e ready", "commit": "echo committed"}.items():
        (workdir / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (workdir / name).chmod(0o755)
    replies = [
        line("./commit -m x"),
        line("true && ./commit"),
        line("./tests -q"),
        line("timeout 9 './commit' -m x"),
        line("touch ready && ./tests"),
        line("cd . && ./commit -m x"),
        line("./commit -m again"),
        {"text": "done"},
    ]

    played = await play(
        path, [Turn(text="go", replies=replies)], workdir=workdir, allow=["shell", "write_file"]
    )

    assert [result.outcome for result in played.results] == [
        "denied", "denied", "failed", "denied", "ok", "ok", "denied",
    ]  # fmt: skip
    assert played.results[0].text == "Run the tests first."
    assert played.answer == "done"
