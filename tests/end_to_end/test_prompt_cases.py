"""The reported failures of approval prompts and terminals, each by its id, through the command line.

Cases of `../shared/cases` run where that folder is; those of `tests/corpus/terminal_cases.jsonl` are tried
in the same ways everywhere. A case whose id has no check fails.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentctl.terminal.visible import exact
from tests.end_to_end.command import Bench
from tests.terminal.pty_screen import Open, Screen

Case = dict[str, Any]
TESTS = Path(__file__).resolve().parents[1]
SHARED = TESTS.parent.parent / "shared" / "cases"

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
DONE = '[[script.replies]]\ntext = "Done."\n'


def script(*commands: str) -> str:
    """Return a blueprint whose model runs `commands`, one a step."""
    lines = [json.dumps(one, ensure_ascii=False).replace("\x7f", "\\u007f") for one in commands]
    calls = [f"{{ tool = 'shell', arguments = {{ command = {line} }} }}" for line in lines]
    return ASKING + "".join(f"[[script.replies]]\ntool_calls = [{call}]\n" for call in calls) + DONE


def whole_on_screen(command: str, screen: Screen) -> None:
    """Check that every line of `command` stands on the screen, in rows behind the gutter."""
    flat = "".join(line[2:] for line in screen.text.splitlines() if line[:2] in ("│ ", "┆ "))
    assert "".join(exact(command).split()) in "".join(flat.split())


@dataclass(frozen=True, kw_only=True)
class Trying:
    """What a check works with."""

    case: Case
    bench: Bench
    open: Open
    home: Path

    @property
    def given(self) -> Case:
        given: Case = self.case["input"]
        return given

    def asked(self, *commands: str, flags: tuple[str, ...] = (), **more: Any) -> Screen:
        """Run a model that wants `commands`, up to the first prompt."""
        folder = ("--workdir", self.bench.workdir)
        blueprint = self.bench.blueprint(script(*commands))
        screen = self.open("run", blueprint, "go", *folder, *flags, **more)
        screen.wait_for("[n] >", timeout_s=30)
        return screen

    def remembered(self) -> list[str]:
        config = self.home / "agentctl" / "config" / "config.toml"
        return re.findall(r'^rule = "(.*)"$', config.read_text("utf-8"), re.MULTILINE)


def shown_whole(trying: Trying) -> None:
    screen = trying.asked(trying.given["command"])

    whole_on_screen(trying.given["command"], screen)
    screen.send("n")

    assert screen.wait_end() == 0


def remembers_the_uncovered_part_alone(trying: Trying) -> None:
    """`cd` and what is covered already are no part of what is remembered; elsewhere it needs no prompt."""
    for folder in ("src", "lib"):
        (trying.bench.workdir / folder).mkdir()
    command = trying.given["command"]
    part = command.rpartition("&& ")[2]
    screen = trying.asked(command, f"cd lib && {part}")

    screen.send("a")

    assert screen.wait_end() == 0
    assert screen.text.count("[n] >") == 1
    program = " ".join(part.split()[: 3 if " run " in part else 2])
    assert trying.remembered() == [f"shell({program} *)"]


def remembers_the_package(trying: Trying) -> None:
    """Said before it is asked; the program itself is not started here."""
    screen = trying.asked(trying.given["command"])

    package = " ".join(trying.given["command"].split()[:2])
    assert f"would be remembered: shell({package} " in screen.text
    screen.send("n")
    assert screen.wait_end() == 0


def deny_stays(trying: Trying) -> None:
    """What asks elsewhere does not turn a deny into a prompt."""
    command = trying.given["deny"].replace("*", "x")
    flags = ("--deny", f"shell({trying.given['deny']})", "--ask", "shell")
    screen = trying.open("run", trying.bench.blueprint(script(command)), "go", *flags)

    assert screen.wait_end() == 0
    assert "[n] >" not in screen.text
    assert f"⊘ shell {command} · denied" in screen.text


def rewritten_is_judged(trying: Trying) -> None:
    """What a hook makes of a call is what is judged, and shown."""
    rewrite = {"action": "rewrite", "arguments": {"command": trying.given["rewritten"]}}
    hook = f"#!/bin/sh\ncat > /dev/null\ncat <<'END'\n{json.dumps(rewrite)}\nEND\n"
    (trying.bench.folder / "hook.sh").write_text(hook, encoding="utf-8")
    table = '[[hooks]]\nname = "h"\ncommand = ["sh", "hook.sh"]\nevents = ["tool_call"]\n'
    text = script(trying.given["checked"]).replace("[script]\n", f"{table}[script]\n")
    blueprint = trying.bench.blueprint(text)
    trust = json.loads(trying.bench.agentctl("check", blueprint, "--json").out)["trust"]["sha256"]

    deny = f"shell({trying.given['deny']})"
    ran = trying.bench.agentctl("run", blueprint, "go", "--yolo", "--deny", deny, "--trust", trust)

    assert ran.code == 0
    assert f"⊘ shell {trying.given['rewritten']} · denied" in ran.err


def approved_is_executed(trying: Trying) -> None:
    """The very text that was shown is what bash gets."""
    command = trying.given["approved"]
    screen = trying.asked(command, flags=("--ask", "shell"))
    whole_on_screen(command, screen)

    screen.send("y")

    assert screen.wait_end() == 0
    log = trying.bench.agentctl("log", "last", "--json").out
    events = [json.loads(line)["event"] for line in log.splitlines()]
    (decided,) = [event for event in events if event["type"] == "ToolCallDecided"]
    (completed,) = [event for event in events if event["type"] == "CallCompleted"]
    assert decided["arguments"]["command"] == command
    wanted = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert wanted.rstrip("\n") in completed["result"]["text"]


def one_enter_is_one_answer(trying: Trying) -> None:
    screen = trying.asked("npm one", "npm two")

    screen.send("\r")
    screen.wait_for("│ npm two")
    screen.wait_for("[n] >", times=2)
    screen.pump(0.5)

    assert "Done." not in screen.text
    screen.send("n")
    assert screen.wait_end() == 0


def without_a_terminal_it_is_no_success(trying: Trying) -> None:
    ran = trying.bench.agentctl("run", trying.bench.blueprint(script("npm test")), "go", "--quiet")

    assert ran.code == 5
    assert ran.err.splitlines()[0] == "refused, nobody to ask: shell: npm test"


def narrow_is_no_trouble(trying: Trying) -> None:
    blueprint = trying.bench.blueprint(script("npm 日本 test"))
    screen = trying.open("run", blueprint, "go", columns=trying.given["columns"], rows=60)
    screen.wait_raw(b">", timeout_s=30)
    screen.pump(1.0)

    screen.send("n")

    assert screen.wait_end() == 0
    assert "Traceback" not in screen.text


def blank_lines_are_passed_over(trying: Trying) -> None:
    """Everything that reads JSON a line: items of a batch, lines to judge."""
    blank = trying.given["stdin"].replace("\\r", "\r").replace("\\n", "\n").partition("{")[0]
    two = trying.bench.blueprint(ASKING + DONE)
    wanted = {
        ("batch", str(two), "--inputs", "-", "--json"): ('{"task": "one"}\r\n', '"total":1'),
        ("policy", "effects", "--stdin"): ('"ls"\r\n', '"opaque": false'),
    }
    for arguments, (line, told) in wanted.items():
        ran = subprocess.run(
            [sys.executable, "-m", "agentctl", *arguments], input=blank + line + "\r\n", text=True,
            capture_output=True, check=False, env=trying.bench.environ(), timeout=60, start_new_session=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert told in ran.stdout
        assert len(ran.stdout.splitlines()) == 1


def links_are_their_text(trying: Trying) -> None:
    written = trying.given["output"].encode().decode("unicode_escape")
    (trying.bench.workdir / "out.bin").write_text(written, encoding="latin-1")

    trying.bench.agentctl("run", trying.bench.blueprint(script("cat out.bin")), "go", "--yolo")

    log = trying.bench.agentctl("log", "last", "--json").out
    events = [json.loads(line)["event"] for line in log.splitlines()]
    (text,) = [
        event["message"]["result"]["text"]
        for event in events
        if event.get("message", {}).get("type") == "ToolMessage"
    ]
    assert "a" in text
    assert "://" not in text
    assert "\x1b" not in text


def bytes_become_one_character(trying: Trying) -> None:
    data = bytes.fromhex(re.match(r"(?:[0-9a-f]{2} )+", trying.given["input_bytes"])[0])  # type: ignore[index]
    ask = '[[script.replies]]\ntool_calls = [{ tool = "ask_user", arguments = { question = "Who?" } }]\n'
    screen = trying.open("run", trying.bench.blueprint(ASKING + ask + DONE), "go")
    screen.wait_for("Enter sends", timeout_s=30)

    for byte in (*data, 13):
        screen.send(bytes([byte]))

    assert screen.wait_end() == 0
    log = trying.bench.agentctl("log", "last", "--json").out
    events = [json.loads(line)["event"] for line in log.splitlines()]
    (answer,) = [event["answer"] for event in events if event["type"] == "QuestionAnswered"]
    assert answer["text"] == data.decode()


CHECKS: dict[str, Callable[[Trying], None]] = {
    "AU-001": shown_whole,
    "AU-003": shown_whole,
    "AU-004": shown_whole,
    "AU-005": shown_whole,
    "AU-006": remembers_the_uncovered_part_alone,
    "AU-008": remembers_the_package,
    "AU-009": deny_stays,
    "AU-010": rewritten_is_judged,
    "AU-011": approved_is_executed,
    "AU-012": one_enter_is_one_answer,
    "AU-016": remembers_the_uncovered_part_alone,
    "TE-002": without_a_terminal_it_is_no_success,
    "TE-004": narrow_is_no_trouble,
    "TE-006": blank_lines_are_passed_over,
    "TE-007": links_are_their_text,
    "TE-008": bytes_become_one_character,
}


def read(*places: Path) -> list[Case]:
    """Return the cases of those files that are there."""
    lines = [line for place in places if place.exists() for line in place.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines]


CASES = read(
    TESTS / "corpus" / "terminal_cases.jsonl", SHARED / "approval-ux.jsonl", SHARED / "terminal.jsonl"
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_reported_case(case: Case, bench: Bench, on_screen: Open, agentctl_home: Path) -> None:
    number = case.get("like", case["id"])
    assert number in CHECKS, f"{case['id']} has no check: write one for its kind"

    CHECKS[number](Trying(case=case, bench=bench, open=on_screen, home=agentctl_home))


def test_each_check_is_tried_with_an_input_of_our_own() -> None:
    assert {case["like"] for case in CASES if "like" in case} == set(CHECKS)
