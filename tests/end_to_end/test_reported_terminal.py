"""Faults of prompts and terminals that users of other agents reported, tried on a real terminal, by kind.

`tests/corpus/reported_terminal.jsonl` has each with its public source. Those of one kind share a run.
"""

import json
import os
import re
import signal
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from agentctl.terminal.visible import exact
from tests.end_to_end.command import ROOT, Bench
from tests.end_to_end.test_prompt_cases import DONE, script, whole_on_screen
from tests.terminal.pty_screen import Open, Screen

Case = dict[str, Any]
CASES: list[Case] = [
    json.loads(line)
    for line in (Path(__file__).resolve().parents[1] / "corpus" / "reported_terminal.jsonl")
    .read_text("utf-8")
    .splitlines()
]
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:3|4|9|10)[0-8](?:;\d+)*m")


def of(kind: str) -> list[Case]:
    return [case for case in CASES if case["kind"] == kind]


def each(kind: str) -> Any:
    return pytest.mark.parametrize("case", of(kind), ids=lambda case: case["id"])


def quiet(screen: Screen, seconds: float) -> None:
    """Take in what comes for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and screen.pump():
        pass


def choices(bench: Bench) -> list[str]:
    """Return how the questions of the last run were answered, in order."""
    events = [json.loads(line)["event"] for line in bench.agentctl("log", "last", "--json").out.splitlines()]
    return [event["answer"]["choice"] for event in events if event["type"] == "QuestionAnswered"]


def test_no_kind_of_case_is_left_out() -> None:
    assert {case["kind"] for case in CASES} == {
        "keys", "ahead", "hidden", "output", "json", "colour", "ends"
    }  # fmt: skip
    assert len({case["id"] for case in CASES}) == len(CASES) >= 40


def test_keys_that_are_no_answer_answer_nothing(bench: Bench, on_screen: Open) -> None:
    cases = of("keys")
    commands = [f"npm {case['id']}" for case in cases]
    screen = on_screen("run", bench.blueprint(script(*commands)), "go")
    wanted = []

    for number, case in enumerate(cases):
        screen.wait_for(f"│ npm {case['id']}", timeout_s=30)
        quiet(screen, 0.15)
        screen.send(case["input"]["keys"])
        quiet(screen, 0.35)
        answered = "Done." if number + 1 == len(cases) else f"│ npm {cases[number + 1]['id']}"
        if case["expected"] == "nothing":
            assert answered not in screen.text, (case["id"], screen.text[-800:])
            screen.send("y")
        wanted.append("once" if case["expected"] == "nothing" else case["expected"])

    assert screen.wait_end() == 0
    assert dict(zip(commands, choices(bench), strict=True)) == dict(zip(commands, wanted, strict=True))


@each("ahead")
def test_keys_typed_before_the_prompt_answer_nothing(case: Case, bench: Bench, on_screen: Open) -> None:
    text = script("npm test").replace("tool_calls =", "pause_s = 1.0\ntool_calls =", 1)
    screen = on_screen("run", bench.blueprint(text), "go")
    screen.wait_for("stage work", timeout_s=30)

    screen.send(case["input"]["keys"])
    screen.wait_for("[n] >", timeout_s=30)
    quiet(screen, 0.6)

    assert "Done." not in screen.text
    screen.send("n")
    assert screen.wait_end() == 0
    assert choices(bench) == ["no"]


def test_nothing_in_a_command_hides_a_part_of_it(bench: Bench, on_screen: Open) -> None:
    cases = of("hidden")
    screen = on_screen("run", bench.blueprint(script(*(case["input"]["command"] for case in cases))), "go")

    for number, case in enumerate(cases, 1):
        screen.wait_for("[n] >", times=number, timeout_s=30)
        whole_on_screen(case["input"]["command"].replace("\ufe0f", exact("\ufe0f")), screen)
        screen.send("n")

    assert screen.wait_end() == 0
    assert not re.search(rb"\x1b[]PX^_c]|\x07|\xc2[\x80-\x9f]", screen.raw)


@each("output")
def test_what_a_program_puts_out_steers_no_terminal_and_misleads_no_model(
    case: Case, bench: Bench, on_screen: Open
) -> None:
    (bench.workdir / "out.bin").write_bytes(case["input"]["output"].encode())
    blueprint = bench.blueprint(script("cat out.bin"))
    screen = on_screen("run", blueprint, "go", "--yolo", "--workdir", bench.workdir)
    assert screen.wait_end() == 0
    log = on_screen("log", "last")
    log.wait_end()

    for raw in (screen.raw, log.raw):
        assert not re.search(rb"\x1b[]PX^_c]|\x07|\x1b\[2J|\x1b\[31mred", raw)
    events = [json.loads(line)["event"] for line in bench.agentctl("log", "last", "--json").out.splitlines()]
    (told,) = [
        event["message"]["result"]["text"]
        for event in events
        if event.get("message", {}).get("type") == "ToolMessage"
    ]
    assert "\x1b" not in told
    assert "evil.example" not in told


@each("json")
def test_stdout_is_json_and_nothing_else_whatever_the_environment_says(case: Case, bench: Bench) -> None:
    blueprint = bench.blueprint(script("echo one", "npm test"))

    one = bench.agentctl("run", blueprint, "go", "--json", **case["input"]["env"])
    lines = bench.agentctl("run", blueprint, "go", "--jsonl", **case["input"]["env"])

    assert json.loads(one.out)["type"] == "result"
    records = [json.loads(line) for line in lines.out.split("\n")[:-1]]
    assert (records[0]["type"], records[-1]["type"]) == ("header", "result")
    assert "\x1b" not in one.out + one.err + lines.out + lines.err


@each("colour")
def test_colours_are_as_the_environment_wants_them(case: Case, bench: Bench, on_screen: Open) -> None:
    environ = {"NO_COLOR": "", **case["input"]["env"]}
    line = "sleep 1.2" if case["expected"] == "progress" else "echo 1"
    screen = on_screen("run", bench.blueprint(script(line)), "go", "--yolo", env=environ)

    assert screen.wait_end() == 0
    assert bool(COLOUR.search(screen.raw)) is (case["expected"] == "some")
    if case["expected"] == "progress":
        assert re.search(r"sleep 1\.2 · \d s", screen.raw.decode())


@each("ends")
def test_the_terminal_is_as_it_was_whatever_ended_the_run(case: Case, bench: Bench, on_screen: Open) -> None:
    at, wanted = case["input"]["at"], int(case["expected"])
    text = script("sleep 20" if at == "work" else "npm test")
    screen = on_screen("run", bench.blueprint(text), "go", *(["--yolo"] if at == "work" else []))
    before = termios.tcgetattr(screen.child.child_fd)[:4]
    screen.wait_for("sleep 20" if at == "work" else "[n] >", timeout_s=30)
    if at in ("view", "reason"):
        screen.send("v" if at == "view" else "t")
        screen.wait_for("q back" if at == "view" else "tell the model why:")
    quiet(screen, 0.3)

    for keys in case["input"].get("keys", ()):
        screen.send(keys)
    if "signal" in case["input"]:
        os.kill(screen.child.pid, signal.Signals[f"SIG{case['input']['signal']}"])

    modes = before
    end = time.monotonic() + 20
    while screen.pump():
        modes = termios.tcgetattr(screen.child.child_fd)[:4]
        assert time.monotonic() < end, screen.text
    assert screen.wait_end() == wanted
    assert modes == before
    for on, off in (
        (b"\x1b[?2004h", b"\x1b[?2004l"),
        (b"\x1b[?25l", b"\x1b[?25h"),
        (b"\x1b[?1049h", b"\x1b[?1049l"),
    ):
        assert screen.raw.rfind(on) <= screen.raw.rfind(off)
    if wanted:
        assert "agentctl resume" in screen.text


def test_a_window_that_is_dragged_gets_the_prompt_once_more_and_not_at_every_width(
    bench: Bench, on_screen: Open
) -> None:
    """anthropics/claude-code#49086, #51828: each width on the way left a copy in the scrollback."""
    screen = on_screen("run", bench.blueprint(script("npm test")), "go")
    screen.wait_for("[n] >", timeout_s=30)

    for columns in range(98, 70, -1):
        screen.resize(columns, 40)
        quiet(screen, 0.05)
    quiet(screen, 1.0)

    assert screen.raw.count(b"[n] >") == 2
    assert b"\x1b[3J" not in screen.raw
    screen.send("n")
    assert screen.wait_end() == 0


def test_a_newer_ask_does_not_take_the_place_of_the_one_that_is_shown(bench: Bench, on_screen: Open) -> None:
    """anthropics/claude-code#65910: the answer to what was read must not land on what came after it."""
    calls = ", ".join(
        f"{{ tool = 'shell', arguments = {{ command = 'npm {name}' }} }}" for name in ("one", "two")
    )
    text = script("npm zero").replace("[script]\n", f"[script]\n[[script.replies]]\ntool_calls = [{calls}]\n")
    screen = on_screen("run", bench.blueprint(text), "go")
    screen.wait_for("│ npm one", timeout_s=30)
    quiet(screen, 0.8)

    assert "│ npm two" not in screen.text
    screen.send("y")
    screen.wait_for("│ npm two")
    quiet(screen, 0.3)
    screen.send("n")
    screen.wait_for("│ npm zero")
    quiet(screen, 0.3)
    screen.send("n")

    assert screen.wait_end() == 0
    assert choices(bench) == ["once", "no", "no"]


def test_a_stop_from_outside_and_a_shell_that_takes_the_modes_leave_the_prompt_usable(
    bench: Bench, on_screen: Open
) -> None:
    """anthropics/claude-code#88249: after a stop and a continue, keys were lost and echoed."""
    screen = on_screen("run", bench.blueprint(script("npm test")), "go")
    screen.wait_for("[n] >", timeout_s=30)
    cooked = termios.tcgetattr(screen.child.child_fd)
    cooked[3] |= termios.ICANON | termios.ECHO

    os.kill(screen.child.pid, signal.SIGSTOP)
    termios.tcsetattr(screen.child.child_fd, termios.TCSANOW, cooked)
    os.kill(screen.child.pid, signal.SIGCONT)
    screen.wait_for("[n] >", times=2)
    screen.send("n")

    assert screen.wait_end() == 0
    assert choices(bench) == ["no"]


def test_a_command_that_runs_right_to_left_is_announced(bench: Bench, on_screen: Open) -> None:
    """h0x91b/dev-3.0#1224 and others: terminals reorder such words, and what stands beside them."""
    screen = on_screen("run", bench.blueprint(script("npm run שלום-123 x")), "go")

    screen.wait_for("careful: שלום-123 runs from right to left", timeout_s=30)
    screen.send("n")
    assert screen.wait_end() == 0


def test_a_terminals_report_is_no_part_of_an_answer_in_words(bench: Bench, on_screen: Open) -> None:
    """NousResearch/hermes-agent#30218, microsoft/terminal#19904."""
    ask = '[[script.replies]]\ntool_calls = [{ tool = "ask_user", arguments = { question = "Who?" } }]\n'
    screen = on_screen("run", bench.blueprint(script().replace(DONE, ask + DONE)), "go")
    screen.wait_for("Enter sends", timeout_s=30)

    for keys in ("me", "\x1b]11;rgb:3030/3434/4646\x1b\\", "\x1b[12;40R", "\x1b[I", "\x1b[13u"):
        screen.send(keys)
        quiet(screen, 0.2)

    assert screen.wait_end() == 0
    assert '"text":"me"' in bench.agentctl("log", "last", "--json").out


def test_nobody_types_a_key_that_nothing_would_keep(on_screen: Open, tmp_path: Path) -> None:
    # Python reads this at its start: as if the extra had not been installed.
    (tmp_path / "sitecustomize.py").write_text('import sys\nsys.modules["keyring"] = None\n', "utf-8")
    screen = on_screen("auth", "set", "anthropic", env={"PYTHONPATH": f"{tmp_path}:{ROOT}"})

    assert screen.wait_end() == 7
    assert "The keyring is not installed." in screen.text
    assert "Key for" not in screen.text


@pytest.mark.parametrize("ends", ["exit 0", "exit 3", "kill -KILL $$", "sleep 30"])
def test_an_editor_that_leaves_a_mess_leaves_none_behind(bench: Bench, on_screen: Open, ends: str) -> None:
    """antirez/ds4 PR#367: what a child did to the terminal stayed."""
    editor = bench.folder / "editor"
    editor.write_text(
        f"#!/bin/sh\nprintf '\\033[?1049h\\033[?25l'; stty raw -echo; {ends}\n", encoding="utf-8"
    )
    editor.chmod(0o755)
    environ = {"VISUAL": str(editor), "PATH": f"{os.environ['PATH']}:/usr/bin:/bin"}
    screen = on_screen("run", bench.blueprint(script("npm test")), "go", env=environ)
    before = termios.tcgetattr(screen.child.child_fd)[:4]
    screen.wait_for("[n] >", timeout_s=30)

    screen.send("e")
    if ends == "sleep 30":
        screen.wait_raw(b"\x1b[?25l")
        quiet(screen, 0.3)
        os.kill(screen.child.pid, signal.SIGTERM)
    else:
        screen.wait_for("[n] >", times=2)
        screen.send("n")

    modes = before
    while screen.pump():
        modes = termios.tcgetattr(screen.child.child_fd)[:4]
    assert screen.wait_end() == (143 if ends == "sleep 30" else 0)
    assert modes == before
    if ends != "exit 0":
        assert screen.raw.rfind(b"\x1b[?25h") > screen.raw.rfind(b"\x1b[?25l")
