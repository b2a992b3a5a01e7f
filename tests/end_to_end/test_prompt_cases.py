"""The reported failures of approval prompts and terminals, on a real terminal, through the command line."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.terminal.visible import exact
from tests.end_to_end.command import Bench
from tests.terminal.pty_screen import Screen

OWN = Path(__file__).resolve().parents[1] / "corpus" / "prompts.jsonl"
Open = Callable[..., Screen]

ASKING = """
[agent]
name = "prompts"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work."
available_tools = ["shell", "ask_user"]
[script]
"""


def script(*commands: str) -> str:
    """Return a blueprint whose model runs `commands`, one a step."""
    calls = [f"{{ tool = 'shell', arguments = {{ command = {json.dumps(one)} }} }}" for one in commands]
    replies = "".join(f"[[script.replies]]\ntool_calls = [{call}]\n" for call in calls)
    return ASKING + replies + '[[script.replies]]\ntext = "Done."\n'


@pytest.fixture
def on_screen() -> Iterator[Open]:
    """Opens programs on terminals, and ends them with the test."""
    opened: list[Screen] = []

    def run(*command: str | Path, **more: Any) -> Screen:
        opened.append(Screen([sys.executable, "-m", "agentctl", *map(str, command)], **more))
        return opened[-1]

    yield run
    for screen in opened:
        screen.kill()


def hiding_cases(place: Path) -> list[str]:
    """Return the commands of a case file that try to hide a part of themselves."""
    cases = [json.loads(line) for line in place.read_text("utf-8").splitlines()]
    return [
        case["input"]["command"]
        for case in cases
        if "command" in case["input"] and "choice" not in case["input"]
    ]


def whole_on_screen(command: str, screen: Screen) -> None:
    """Check that every line of `command` stands on the screen, in rows behind the gutter."""
    flat = "".join(line[2:] for line in screen.text.splitlines() if line[:2] in ("│ ", "┆ "))
    assert "".join(exact(command).split()) in "".join(flat.split())


@pytest.mark.parametrize("command", hiding_cases(OWN))
def test_nothing_in_a_command_hides_another_part_of_it(command: str, bench: Bench, on_screen: Open) -> None:
    screen = on_screen("run", bench.blueprint(script(command)), "go")
    screen.wait_for("[n] >", timeout_s=30)

    whole_on_screen(command, screen)
    screen.send("n")

    assert screen.wait_end() == 0


def test_the_shared_cases_that_hide_something_are_shown_whole(
    shared: Path, bench: Bench, on_screen: Open
) -> None:
    commands = hiding_cases(shared / "cases" / "approval-ux.jsonl")
    screen = on_screen("run", bench.blueprint(script(*commands)), "go")

    for number, command in enumerate(commands, 1):
        screen.wait_for("[n] >", times=number, timeout_s=30)
        whole_on_screen(command, screen)
        screen.send("n")

    assert commands
    assert screen.wait_end() == 0


def test_always_remembers_the_uncovered_part_and_does_not_ask_for_it_again(
    bench: Bench, on_screen: Open, agentctl_home: Path
) -> None:
    """AU-006, AU-016: `cd` and what is covered already are not part of what is remembered."""
    for folder in ("src", "lib"):
        (bench.workdir / folder).mkdir()
    text = script("cd src && npm test", "cd lib && npm test", "git status && npm test")
    screen = on_screen("run", bench.blueprint(text), "go", "--workdir", bench.workdir)
    screen.wait_for("[n] >", timeout_s=30)
    assert "would be remembered: shell(npm test *)" in screen.text

    screen.send("a")

    assert screen.wait_end() == 0
    assert screen.text.count("[n] >") == 1
    config = (agentctl_home / "agentctl" / "config" / "config.toml").read_text("utf-8")
    assert 'rule = "shell(npm test *)"' in config


def test_what_is_offered_to_remember_is_the_narrow_rule(bench: Bench, on_screen: Open) -> None:
    """AU-008: for a package runner the package is named."""
    screen = on_screen("run", bench.blueprint(script("npx prettier --check .")), "go")
    screen.wait_for("[n] >", timeout_s=30)

    assert "shell(npx *)" not in screen.text
    screen.send("n")
    assert screen.wait_end() == 0


def test_one_enter_is_one_answer(bench: Bench, on_screen: Open) -> None:
    """AU-012: the second prompt is not answered by what answered the first."""
    screen = on_screen("run", bench.blueprint(script("npm one", "npm two")), "go")
    screen.wait_for("[n] >", timeout_s=30)

    screen.send("\r")
    screen.wait_for("│ npm two")
    screen.wait_for("[n] >", times=2)
    screen.pump(0.5)

    assert "Done." not in screen.text
    screen.send("n")
    assert screen.wait_end() == 0


def test_no_answer_lifts_a_deny(bench: Bench, on_screen: Open) -> None:
    """AU-009: what asks elsewhere does not turn a deny into a prompt."""
    screen = on_screen(
        "run", bench.blueprint(script("rm -rf build")), "go", "--deny", "shell(rm *)", "--ask", "shell"
    )

    assert screen.wait_end() == 0
    assert "[n] >" not in screen.text
    assert "⊘ shell rm -rf build · denied" in screen.text


@pytest.mark.parametrize("columns", [1, 3, 9])
def test_a_whole_run_on_a_very_narrow_terminal(bench: Bench, on_screen: Open, columns: int) -> None:
    """TE-004."""
    screen = on_screen("run", bench.blueprint(script("npm 日本 test")), "go", columns=columns, rows=60)
    screen.wait_raw(b">", timeout_s=30)
    screen.pump(1.0)

    screen.send("n")

    assert screen.wait_end() == 0
    assert "Traceback" not in screen.text


def test_without_a_terminal_a_needed_approval_is_not_success(bench: Bench) -> None:
    """TE-002."""
    ran = bench.agentctl("run", bench.blueprint(script("npm test")), "go", "--quiet")

    assert ran.code == 5
    assert ran.err.splitlines()[0] == "refused, nobody to ask: shell: npm test"


def test_links_in_a_programs_output_reach_the_model_as_their_text(bench: Bench) -> None:
    """TE-007."""
    printf = r"printf '\033]8;;file:///a\033\\a\033]8;;\033\\'"

    ran = bench.agentctl("run", bench.blueprint(script(printf)), "go", "--yolo", "--jsonl")

    results = [
        record["event"]["message"]["result"]["text"]
        for record in map(json.loads, ran.out.splitlines())
        if record["type"] == "event" and record["event"].get("message", {}).get("type") == "ToolMessage"
    ]
    assert len(results) == 1
    assert "a" in results[0]
    assert "file:///" not in results[0]
    assert "\x1b" not in results[0]


def test_a_character_that_comes_byte_by_byte_is_one_character(bench: Bench, on_screen: Open) -> None:
    """TE-008."""
    asking = ASKING + (
        '[[script.replies]]\ntool_calls = [{ tool = "ask_user", arguments = { question = "Who?" } }]\n'
        '[[script.replies]]\ntext = "Done."\n'
    )
    screen = on_screen("run", bench.blueprint(asking), "go")
    screen.wait_for("Enter sends", timeout_s=30)

    for byte in (b"\xe9", b"\x9f", b"\x93", b"\r"):
        screen.send(byte)

    assert screen.wait_end() == 0
    log = bench.agentctl("log", "last", "--json")
    assert "\\u97d3" in log.out
