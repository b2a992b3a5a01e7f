"""What can go wrong between a run and its resume: each answer says what happened and what to type next."""

import json
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import Bench
from tests.end_to_end.test_crash import lines_of
from tests.end_to_end.test_subagents import FAMILY, FOUND, lead

BLUEPRINT = """
[agent]
name = "noter"
[model]
use = ["scripted:"]
[workspace]
initial = { done = [] }
[[state_keys]]
name = "n"
merge = "fold"
fold = "sum"
default = 0
[[state_effects]]
tool = "shell"
ops = [{ op = "add", path = "/done/-", value = "{input.command}" }]
[stages.work]
prompt = "Work."
available_tools = ["shell", "state_*"]
state = { write = ["n"] }
[[script.replies]]
tool_calls = [
  { tool = "shell", arguments = { command = "echo 1 >> log.txt" } },
  { tool = "state_set", arguments = { key = "n", value = 2 } },
]
[[script.replies]]
tool_calls = [{ tool = "shell", arguments = { command = "echo 2 >> log.txt" } }]
[[script.replies]]
text = "done"
"""


@pytest.fixture
def halfway(bench: Bench) -> Path:
    """The blueprint of a run that stands still after its first step."""
    path = bench.blueprint(BLUEPRINT)
    ran = bench.agentctl("run", path, "go", "--yolo", "--limit", "steps=1")
    assert ran.code == 6, ran.err
    return path


@pytest.fixture
def database(agentctl_home: Path) -> Path:
    return agentctl_home / "agentctl" / "data" / "journal.sqlite"


def tear(database: Path, sequence: str, part: str = "body") -> None:
    """Leave half of one record."""
    with sqlite3.connect(database) as connection:
        connection.execute(
            f"UPDATE commits SET {part} = substr({part}, 1, 20) WHERE sequence = {sequence}"  # noqa: S608
        )


@pytest.mark.usefixtures("halfway")
def test_a_workdir_that_is_gone_is_named_with_what_can_be_done(bench: Bench) -> None:
    moved = bench.workdir.rename(bench.folder / "moved")
    gone = Bench(folder=bench.folder, workdir=moved)

    missing = gone.agentctl("resume", "last", "--yolo")
    bench.workdir.write_text("a file", encoding="utf-8")
    no_folder = gone.agentctl("resume", "last", "--yolo")

    assert (missing.code, no_folder.code) == (2, 2)
    assert "does not exist" in missing.err
    assert "is not a folder" in no_folder.err
    for told in (missing.err, no_folder.err):
        assert "make it again" in told
        assert "--workdir" not in told, "resume has no such option"


def test_a_stage_that_the_file_no_longer_has_is_not_taken_for_another(bench: Bench, halfway: Path) -> None:
    halfway.write_text(BLUEPRINT.replace("stages.work", "stages.other"), encoding="utf-8")

    changed = bench.agentctl("resume", "last", "--blueprint", "current", "--yolo")
    as_it_was = bench.agentctl("resume", "last", "--yolo")

    assert changed.code == 3
    assert "stands in the stage 'work', and there is none; there are other" in changed.err
    assert (as_it_was.code, as_it_was.out) == (0, "done\n")


@pytest.mark.usefixtures("halfway")
def test_of_two_resumes_at_once_one_goes_on(bench: Bench) -> None:
    both = [bench.start("resume", "last", "--yolo") for _ in range(3)]
    ends = [(*process.communicate(timeout=60), process.returncode) for process in both]

    codes = sorted(code for _, _, code in ends)
    assert codes[0] == 0, ends
    assert set(codes[1:]) <= {2, 9}, ends
    assert all("hint:" in err for _, err, code in ends if code)
    assert lines_of(bench.workdir / "log.txt") == ["1", "2"]


@pytest.mark.usefixtures("halfway")
def test_a_torn_last_record_is_left_out_and_told(bench: Bench, database: Path) -> None:
    tear(database, "(SELECT max(sequence) FROM commits)")

    resumed = bench.agentctl("resume", "last", "--yolo")

    assert (resumed.code, resumed.out) == (0, "done\n"), resumed.err
    assert "its last record is torn and was left out" in resumed.err
    assert "torn and was left out" in bench.agentctl("log", "last").out
    assert bench.agentctl("state", "verify", "last").code == 0


@pytest.mark.parametrize(
    ("part", "sequence"),
    [
        ("body", "5"),
        ("commands", "(SELECT min(sequence) FROM commits WHERE commands <> '' AND sequence > 3)"),
    ],
)
def test_what_the_message_about_damage_says_to_type_goes_on(
    bench: Bench, database: Path, part: str, sequence: str
) -> None:
    bench.agentctl("run", bench.blueprint(BLUEPRINT), "go", "--yolo", "--limit", "steps=2")
    tear(database, sequence, part)

    resumed = bench.agentctl("resume", "last", "--yolo")
    assert resumed.code == 9
    advised = resumed.err.split("; ")[-1].split(" goes on")[0].split()
    forked = bench.agentctl(*advised[1:], "--json")

    assert advised[:2] == ["agentctl", "fork"]
    assert forked.code == 0, forked.err
    assert bench.agentctl("resume", str(forked.result["run"]), "--yolo").code == 0


def test_a_full_disk_stops_a_run_and_does_not_end_it(bench: Bench) -> None:
    """A limit on the size of files stands for the disk's end."""
    path = bench.blueprint(BLUEPRINT)
    codes = []
    for blocks in range(120, 420, 20):
        (bench.workdir / "log.txt").unlink(missing_ok=True)
        command = shlex.join([sys.executable, "-m", "agentctl", "run", str(path), "go", "--yolo", "--json"])
        ran = subprocess.run(
            ["bash", "-c", f"ulimit -f {blocks}; exec {command}"],
            cwd=bench.workdir, env=bench.environ(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        codes.append(ran.returncode)
        if ran.returncode == 0:
            break
        assert ran.returncode == 1, ran.stderr
        assert "The journal" in ran.stderr
        result: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1]) if ran.stdout else {}
        if not result.get("steps"):
            continue
        assert (result["outcome"], result["hint"]) == ("failed", f"agentctl resume {result['run']}")
        resumed = bench.agentctl("resume", str(result["run"]), "--yolo")
        assert (resumed.code, resumed.out) == (0, "done\n"), resumed.err
        written = lines_of(bench.workdir / "log.txt")
        assert len(set(written)) == len(written), "no side effect twice"
    assert codes[-1] == 0
    assert len(codes) > 1, "the disk was never full"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fork", "last", "--at", "0"), "has commits 1 to"),
        (("fork", "last", "--at", "-1"), "there is no commit -1"),
        (("state", "set", "last", "n", '"x"'), "'x' is not a number, as its fold 'sum' wants it"),
        (("state", "set", "last", "n", "{bad"), "begins like JSON and is none"),
        (("state", "set", "last", "n", "1e999"), "too large"),
        (("state", "set", "last", "agentctl/machine/x", "1"), "agentctl state rm last KEY"),
        (("state", "set", "last", "", "1"), "is no key to write"),
        (("state", "get", "last", "n", "--scope", "all"), "--scope is one of run, thread"),
        (("state", "migrate", "last", "m"), "it declares n"),
        (("workspace", "show", "last", "done"), "Try '/done'"),
        (("workspace", "at", "last", "--seq", "99"), "the last one is 1"),
        (("shared", "list", "last", "--scope", "a//b"), "without empty parts"),
        (("shared", "set", "last", "k", "@none"), "cannot be read"),
        (("scratch", "none"), "agentctl runs list"),
        (("replay", "last", "--policy", "none"), "The policy 'none' is not there"),
        (("resume", "last", "--blueprint", "other"), "--blueprint is `current`"),
        (("resume", "last/none"), "No sub-agent fits 'none'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("halfway")
def test_a_wrong_argument_is_answered_with_what_would_be_right(
    bench: Bench, arguments: tuple[str, ...], told: str
) -> None:
    ran = bench.agentctl(*arguments)

    assert ran.code in {2, 9}, ran
    assert told in ran.err
    assert ran.out == ""


def test_a_sub_agents_run_is_neither_resumed_nor_removed_alone(bench: Bench) -> None:
    spawn = '{ tool = "spawn_agent", arguments = { agent = "digger", task = "dig" } }'
    dig = """
[[script.replies]]
agent = "digger"
tool_calls = [{ tool = "shell", arguments = { command = "echo dug >> log.txt" } }]
"""
    path = bench.blueprint(FAMILY + lead(spawn) + dig + FOUND)
    ran = bench.agentctl("run", path, "go", "--yolo", "--limit", "steps=2", "--json")
    run = str(ran.result["run"])
    (child,) = [
        info["run_id"]
        for info in json.loads(bench.agentctl("runs", "list", "--all", "--json").out)
        if info["run_id"] != run
    ]

    for name in (child, "last/digger"):
        resumed = bench.agentctl("resume", name, "--yolo")
        assert (resumed.code, f"agentctl resume {run}" in resumed.err) == (2, True), resumed.err
        removed = bench.agentctl("runs", "rm", name)
        assert (removed.code, f"agentctl runs rm {run}" in removed.err) == (2, True), removed.err

    assert bench.agentctl("resume", "last", "--yolo").code == 0
    assert lines_of(bench.workdir / "log.txt") == ["dug"]
    assert bench.agentctl("runs", "rm", child).code == 0


def test_code_that_is_gone_is_told_as_that_and_not_as_untrusted(bench: Bench) -> None:
    ops = 'ops = [{ op = "add", path = "/done/-", value = "{input.command}" }]'
    code = bench.folder / "effects.py"
    code.write_text("def wrote(call): return []\n", encoding="utf-8")
    path = bench.blueprint(BLUEPRINT.replace(ops, 'mapper = "effects.py:wrote"'))
    refused = bench.agentctl("run", path, "go", "--yolo")
    digest = refused.err.rsplit("--trust ", 1)[1].split()[0]
    limited = bench.agentctl("run", path, "go", "--yolo", "--trust", digest, "--limit", "steps=1")
    assert limited.code == 6, limited.err
    moved = code.rename(bench.folder / "elsewhere.py")

    gone = bench.agentctl("resume", "last", "--yolo")
    checked = bench.agentctl("check", path)
    moved.rename(code)

    for told in (gone, checked):
        assert (told.code, "effects.py' that can be read" in told.err) == (3, True), told.err
        assert "--trust" not in told.err
    assert bench.agentctl("resume", "last", "--yolo").code == 0


def test_a_question_that_is_asked_again_is_one_question(bench: Bench) -> None:
    path = bench.blueprint(BLUEPRINT)
    bench.agentctl("run", path, "go", "--on-ask", "pause")
    for _ in range(2):
        again = bench.agentctl("resume", "last", "--on-ask", "pause")
        assert again.code == 4, again.err

    assert "waiting (1)" in bench.agentctl("runs", "list").out
    assert len(json.loads(bench.agentctl("approvals", "list", "last", "--json").out)) == 1
    assert bench.agentctl("approvals", "answer", "last", "--once").code == 0
    assert "suspended" in bench.agentctl("runs", "list").out


@pytest.mark.usefixtures("halfway")
def test_text_that_is_no_json_is_stored_as_text(bench: Bench) -> None:
    for value, stored in (("5 minutes", '"5 minutes"'), ("NaN", '"NaN"'), ('"Infinity"', '"Infinity"')):
        assert bench.agentctl("state", "set", "last", "note", value).code == 0
        assert bench.agentctl("state", "get", "last", "note").out == stored + "\n"
