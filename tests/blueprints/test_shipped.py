"""Every shipped blueprint: checked without a warning, and run offline on a real git repository."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from agentctl.blueprint.catalogue import entries
from tests.blueprints.speaking import Turn, Wire, speaking
from tests.end_to_end.command import ROOT, Bench, Ran

NAMES = [entry.name for entry in entries() if entry.found_by == "shipped"]
GREET = "def greet(name):\n    return f'Hello {name}!'\n"
GREET_TEST = """\
import unittest

from greet import greet


class GreetTest(unittest.TestCase):
    def test_a_comma_stands_before_the_name(self):
        self.assertEqual(greet("Ada"), "Hello, Ada!")
"""


def git(workdir: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments],
        cwd=workdir,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.fixture
def bench(tmp_path: Path, agentctl_home: Path) -> Bench:
    """A repository with one commit, a change that is not committed, a failing test and a log."""
    del agentctl_home
    workdir = tmp_path / "project"
    (workdir / "logs").mkdir(parents=True)
    (workdir / "README.md").write_text("# Project\n\nIt greets.\n")
    (workdir / "greet.py").write_text("def greet(name):\n    return name\n")
    (workdir / "test_greet.py").write_text(GREET_TEST)
    (workdir / "logs/app.log").write_text(
        "12:00 INFO up\n12:01 ERROR no route to port 8417\n12:02 INFO down\n"
    )
    git(workdir, "init", "--quiet")
    git(workdir, "add", "--all")
    git(workdir, "commit", "--quiet", "--message", "Greet people")
    (workdir / "greet.py").write_text(GREET)
    return Bench(folder=tmp_path, workdir=workdir)


def run(bench: Bench, name: str, *arguments: str) -> Ran:
    return bench.agentctl("run", name, "the task of this test", "--model", "scripted:", "--json", *arguments)


def test_all_the_blueprints_that_are_promised_ship() -> None:
    promised = {"hello", "coder", "reviewer", "log-analyzer", "release-notes", "researcher", "scout"}

    assert promised <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_checks_without_a_warning(bench: Bench, name: str) -> None:
    checked = bench.agentctl("check", name)

    assert checked.code == 0, checked.err
    assert "no warnings" in checked.out
    assert "warning:" not in checked.out + checked.err


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_offline_to_its_end(bench: Bench, name: str) -> None:
    ran = run(bench, name, "--yolo")

    assert ran.code == 0, ran.err
    result = json.loads(ran.out)
    assert result["outcome"] == "finished"
    assert "scripted demo" in ran.out or "I am a script" in ran.out


@pytest.mark.parametrize("name", NAMES)
def test_nobody_there_and_nothing_allowed_leaves_the_repository_as_it_was(bench: Bench, name: str) -> None:
    before = {path: path.read_bytes() for path in bench.workdir.rglob("*") if path.is_file()}

    ran = run(bench, name)

    after = {path: path.read_bytes() for path in bench.workdir.rglob("*") if path.is_file()}
    assert ran.code in {0, 5}, ran.err
    assert {path for path in before if ".git" not in path.parts} == {
        path for path in after if ".git" not in path.parts
    }
    assert all(after[path] == content for path, content in before.items() if ".git" not in path.parts)


def test_the_coder_demo_writes_tests_and_mends_a_real_module(bench: Bench) -> None:
    run(bench, "coder", "--yolo")

    made = bench.workdir / "demo_greeting"
    assert "Hello, {name}!" in (made / "greeting.py").read_text()
    subprocess.run(["python3", "test_greeting.py"], cwd=made, check=True, capture_output=True)


def test_the_reviewer_answers_in_the_form_that_programs_read(bench: Bench) -> None:
    ran = run(bench, "reviewer", "-i", "range=HEAD")

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["output"]["verdict"] == "comment"


def test_the_release_notes_go_into_the_file_with_the_very_flag_that_the_refusal_names(bench: Bench) -> None:
    refused = run(bench, "release-notes")
    ways = [line.partition("let it through with: ")[2] for line in refused.err.splitlines()]
    flags = [flag for way in ways for flag in shlex.split(way)]
    allowed = run(bench, "release-notes", *flags)

    assert refused.code == 5
    assert allowed.code == 0, allowed.err
    assert (bench.workdir / "RELEASE_NOTES.md").read_text().lstrip().startswith("# Release notes")


def test_the_changes_since_a_release_are_listed_by_a_script_tool(bench: Bench) -> None:
    git(bench.workdir, "tag", "v1")
    for number, message in enumerate(
        ("Fix the greeting (#7)", "feat!: greet by name", "docs: say how", "Let it greet twice #8 #9")
    ):
        git(
            bench.workdir,
            "commit",
            "--quiet",
            "--allow-empty",
            "--message",
            message,
            "--message",
            f"{number}",
        )

    ran = bench.agentctl("run", "release-notes", "--model", "scripted:", "--allow", "list_changes", "--jsonl")

    results = [
        result
        for line in ran.out.splitlines()
        if (result := json.loads(line).get("event", {}).get("message", {}).get("result"))
    ]
    found = next(result for result in results if result["tool"] == "list_changes")
    assert found["outcome"] == "ok", found["text"]
    listed = found["structured"]
    assert (listed["since"], listed["commits"]) == ("v1", 4)
    subjects = {
        kind: [one["subject"] for one in listed[kind]] for kind in ("breaking", "new", "mended", "other")
    }
    assert subjects == {
        "breaking": ["feat!: greet by name"],
        "new": ["Let it greet twice #8 #9"],
        "mended": ["Fix the greeting (#7)"],
        "other": ["docs: say how"],
    }
    assert listed["new"][0]["issues"] == ["#8", "#9"]


def test_without_the_engine_for_scripts_it_runs_without_that_tool(bench: Bench, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "sitecustomize.py").write_text("import sys\nsys.modules['pydantic_monty'] = None\n")

    ran = bench.agentctl(
        "run", "release-notes", "--model", "scripted:", "--yolo", PYTHONPATH=f"{away}{os.pathsep}{ROOT}"
    )

    assert ran.code == 0, ran.err
    assert "The run goes on without list_changes" in ran.err
    assert "agentctl[script]" in ran.err


CHANGE = [
    Turn("Let me look.", (("list_dir", {"path": "."}), ("read_file", {"path": "greet.py"}))),
    Turn("How is it tested?", (("shell", {"command": "python3 -m unittest -q test_greet"}),)),
    Turn("`greet` lacks the comma that test_greet.py wants."),
    Turn("1. greet.py: put a comma after Hello. 2. Run test_greet."),
    Turn("", (("edit_file", {"path": "greet.py", "old": "Hello {name}", "new": "Hello, {name}"}),)),
    Turn("", (("shell", {"command": "python3 -m unittest -q test_greet"}),)),
    Turn("The test passes."),
    Turn("", (("shell", {"command": "git diff"}),)),
    Turn("", (("transition", {"to": "report", "note": "one line, as planned"}),)),
    Turn("greet.py: `greet` now says 'Hello, NAME!'. test_greet passes."),
]


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_the_coder_makes_a_real_change_over_each_wire(bench: Bench, wire: Wire) -> None:
    address = {"openai-chat": ("OPENAI_BASE_URL", "/v1"), "anthropic": ("ANTHROPIC_BASE_URL", "")}
    variable, path = address[wire]
    key = "OPENAI_API_KEY" if wire == "openai-chat" else "ANTHROPIC_API_KEY"
    with speaking(wire, CHANGE) as service:
        ran = bench.agentctl(
            "run", "coder", "Mend the failing test", "--model", f"{wire}:planned", "--yolo", "--json",
            **{variable: f"{service.address}{path}", key: "k"},
        )  # fmt: skip

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["answer"].startswith("greet.py")
    assert len(service.asked) == len(CHANGE)
    assert "+    return f'Hello, {name}!'" in git(bench.workdir, "diff")
    subprocess.run(
        ["python3", "-m", "unittest", "-q", "test_greet"], cwd=bench.workdir, check=True, capture_output=True
    )
    told = json.dumps(service.asked)
    assert "FAILED (failures=1)" in told, "the model was told that the test fails"
    assert "Edited greet.py" in told
