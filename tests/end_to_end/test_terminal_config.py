"""Each key of `[terminal]` in the config does what it says, on a real terminal."""

from pathlib import Path

import pytest

from tests.end_to_end.command import Bench
from tests.terminal.pty_screen import Open, Screen

BLUEPRINT = """
[agent]
name = "maker"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work."
available_tools = ["write_file"]
[[script.replies]]
reasoning = "First the plan.\\nThen the file."
tool_calls = [{ tool = "write_file", arguments = { path = "made.txt", content = "old" } }]
[[script.replies]]
text = "Done."
"""


@pytest.fixture
def start(bench: Bench, in_workdir: Open, tmp_path: Path) -> Open:
    """Opens agentctl on a terminal with `[terminal]` as given, up to the prompt."""

    def run(terminal: str, **environ: str) -> Screen:
        home = tmp_path / "agentctl-home"
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "config.toml").write_text(f"[terminal]\n{terminal}\n", encoding="utf-8")
        env = {"AGENTCTL_HOME": str(home), "NO_COLOR": "", **environ}
        screen = in_workdir("run", bench.blueprint(BLUEPRINT), "go", env=env)
        screen.wait_for("[n] >", timeout_s=30)
        return screen

    return run


def test_a_question_rings_only_where_the_bell_is_wanted(start: Open) -> None:
    assert b"\a" in start("bell = true").raw
    assert b"\a" not in start("").raw


def test_colours_are_there_unless_never(start: Open) -> None:
    assert b"\x1b[36m" in start("").raw
    assert b"\x1b[36m" not in start('color = "never"').raw
    assert b"\x1b[36m" in start('color = "always"', TERM="dumb").raw


def test_plain_output_draws_nothing_over(start: Open) -> None:
    for output, drawn in (("auto", True), ("plain", False)):
        screen = start(f'output = "{output}"')
        screen.send("n")
        assert screen.wait_end() == 0
        assert (b"\x1b[2K" in screen.raw or b"\x1b[J" in screen.raw) is drawn


@pytest.mark.parametrize("output", ["rich", "plain"])
def test_thinking_is_shown_where_it_is_wanted(start: Open, output: str) -> None:
    for wanted in ("true", "false"):
        screen = start(f'output = "{output}"\nreasoning = {wanted}')
        assert ("Then the file." in screen.text) is (wanted == "true")


def test_the_configured_editor_goes_before_the_environment(start: Open, bench: Bench) -> None:
    editor = bench.folder / "configured"
    editor.write_text('#!/bin/sh\nsed -i s/old/new/ "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    screen = start(f'editor = "{editor}"', EDITOR="false", VISUAL="")

    screen.send("e")
    screen.wait_for("[n] >", times=2)
    screen.send("y")

    assert screen.wait_end() == 0
    assert (bench.workdir / "made.txt").read_text(encoding="utf-8") == "new"
