"""What each key at the prompt does to a real run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import Bench
from tests.terminal.pty_screen import Open, Screen

MAKING = """
[agent]
name = "maker"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work."
available_tools = ["shell", "write_file", "edit_file"]
[script]
"""
TOUCH = """
[[script.replies]]
tool_calls = [{ tool = "shell", arguments = { command = "touch made.txt" } }]
"""
DONE = """
[[script.replies]]
text = "Done."
"""


@pytest.fixture
def start(in_workdir: Open) -> Open:
    """Opens agentctl on a terminal, in the bench's workdir, up to the prompt."""

    def run(*arguments: str | Path, **more: Any) -> Screen:
        screen = in_workdir(*arguments, **more)
        screen.wait_for("[n] >", timeout_s=30)
        return screen

    return run


def test_yes_runs_the_call_and_no_does_not(bench: Bench, start: Open) -> None:
    blueprint = bench.blueprint(MAKING + TOUCH + DONE)

    for key, made in (("n", False), ("y", True)):
        screen = start("run", blueprint, "go")
        screen.send(key)
        assert screen.wait_end() == 0
        assert (bench.workdir / "made.txt").exists() is made


def test_this_run_is_asked_once(bench: Bench, start: Open) -> None:
    screen = start("run", bench.blueprint(MAKING + TOUCH * 3 + DONE), "go")

    screen.send("r")

    assert screen.wait_end() == 0
    assert screen.text.count("[n] >") == 1
    assert screen.text.count("allowed by grant") == 2


def test_the_reason_of_a_no_reaches_the_model(bench: Bench, start: Open) -> None:
    told = '[[script.replies]]\nexpect = { last = ["not in this folder"] }\ntext = "Understood."\n'
    screen = start("run", bench.blueprint(MAKING + TOUCH + told), "go")

    screen.send("t")
    screen.wait_for("tell the model why:")
    screen.send("not in this folder\r")

    assert screen.wait_end() == 0, screen.text
    assert "Understood." in screen.text


def test_edited_arguments_are_judged_again_and_run(bench: Bench, start: Open) -> None:
    editor = bench.folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/made.txt/other.txt/ "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    screen = start(
        "run", bench.blueprint(MAKING + TOUCH + DONE), "go", env={"EDITOR": str(editor), "VISUAL": ""}
    )

    screen.send("e")
    screen.wait_for("│ touch other.txt")
    screen.wait_for("[n] >", times=2)
    screen.send("y")

    assert screen.wait_end() == 0
    assert (bench.workdir / "other.txt").exists()
    assert not (bench.workdir / "made.txt").exists()


def test_an_edit_cannot_pass_a_deny(bench: Bench, start: Open) -> None:
    editor = bench.folder / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/touch made.txt/rm -rf ./' \"$1\"\n", encoding="utf-8")
    editor.chmod(0o755)
    screen = start(
        "run",
        bench.blueprint(MAKING + TOUCH + DONE),
        "go",
        "--deny",
        "shell(rm *)",
        env={"VISUAL": str(editor)},
    )

    screen.send("e")

    assert screen.wait_end() == 0
    assert "denied" in screen.text
    assert screen.text.count("[n] >") == 1


def test_quit_keeps_the_question_for_later(bench: Bench, start: Open) -> None:
    screen = start("run", bench.blueprint(MAKING + TOUCH + DONE), "go")

    screen.send("q")
    assert screen.wait_end() == 4
    assert "next: agentctl approvals list" in screen.text

    again = start("resume", "last")
    again.send("y")
    assert again.wait_end() == 0
    assert (bench.workdir / "made.txt").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_at_the_prompt_ends_the_run_and_gives_the_terminal_back(
    bench: Bench, start: Open, number: int, code: int
) -> None:
    screen = start("run", bench.blueprint(MAKING + TOUCH + DONE), "go")

    os.kill(screen.child.pid, number)

    assert screen.wait_end() == code
    assert screen.raw.rindex(b"\x1b[?2004l") > screen.raw.rindex(b"\x1b[?2004h")
    assert not (bench.workdir / "made.txt").exists()


def test_an_edit_of_a_file_is_asked_with_its_diff(bench: Bench, start: Open) -> None:
    (bench.workdir / "a.py").write_text("one = 1\ntwo = 2\n", encoding="utf-8")
    call = '{ path = "a.py", old = "two = 2", new = "two = 日本" }'
    text = (
        MAKING + f'[[script.replies]]\ntool_calls = [{{ tool = "edit_file", arguments = {call} }}]\n' + DONE
    )
    screen = start("run", bench.blueprint(text), "go")

    shown = screen.text.replace("日 本 ", "日本")  # the emulator gives a wide character two cells
    assert "│ -two = 2" in shown
    assert "│ +two = 日本" in shown
    screen.send("y")

    assert screen.wait_end() == 0
    assert (bench.workdir / "a.py").read_text("utf-8") == "one = 1\ntwo = 日本\n"


def test_an_answer_given_to_edited_arguments_holds_for_those_after_a_crash(bench: Bench, start: Open) -> None:
    """The run is killed while the call asks a second time; the first arguments never run."""
    editor = bench.folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/made.txt/other.txt/ "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    screen = start("run", bench.blueprint(MAKING + TOUCH + DONE), "go", env={"VISUAL": str(editor)})
    screen.send("e")
    screen.wait_for("│ touch other.txt")
    screen.wait_for("[n] >", times=2)
    os.kill(screen.child.pid, signal.SIGKILL)
    screen.wait_end()

    again = start("resume", "last")
    assert "│ touch other.txt" in again.text
    again.send("y")

    assert again.wait_end() == 0
    assert (bench.workdir / "other.txt").exists()
    assert not (bench.workdir / "made.txt").exists()


def test_two_interrupts_leave_at_once_with_the_last_record(bench: Bench) -> None:
    stubborn = "trap : INT TERM; sleep 60; sleep 60"
    call = (
        f"[[script.replies]]\ntool_calls = [{{ tool = 'shell', arguments = {{ command = '{stubborn}' }} }}]\n"
    )
    blueprint = bench.blueprint(MAKING + call + DONE)
    out = bench.folder / "out.jsonl"
    with out.open("wb") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-m", "agentctl", "run", blueprint, "--yolo", "--jsonl"],
            stdout=stdout, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=bench.environ(),
            cwd=bench.workdir, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while b"CallStarted" not in out.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130

    assert '"type":"result"' in out.read_text("utf-8").splitlines()[-1]
    assert bench.agentctl("runs", "list").code == 0
