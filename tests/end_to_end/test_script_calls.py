"""What a person sees of the calls that a script tool makes: at the prompt, in the log, with `why`."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.command import Bench

BLUEPRINT = """
[agent]
name = "noter"
[model]
use = ["scripted:"]
[stages.one]
prompt = "Note."
available_tools = ["note", "write_file"]
[script]
[[script.replies]]
tool_calls = [{ tool = "note", arguments = {} }]
[[script.replies]]
text = "noted"
"""
NOTE = """\
# /// tool
# description = "Write two notes."
# ///


def run():
    write_file("a.txt", "one")
    write_file("b.lock", "two")
"""


@pytest.fixture
def noted(bench: Bench) -> Bench:
    path = bench.blueprint(
        BLUEPRINT + '[tool_permissions]\nwrite_file = { default = "ask", deny = ["*.lock"] }\n'
    )
    tools = Path(path).parent / "tools"
    tools.mkdir()
    (tools / "note.py").write_text(NOTE)
    refused = bench.agentctl("run", path, "go", "--yolo")
    assert refused.code == 3, refused.err
    trust = refused.err.partition("--trust ")[2].split()[0]
    ran = bench.agentctl("run", path, "go", "--yolo", "--trust", trust)
    assert ran.code == 0, ran.err
    assert (bench.workdir / "a.txt").read_text() == "one"
    assert not (bench.workdir / "b.lock").exists()
    return bench


def calls_of(bench: Bench) -> list[str]:
    none = bench.agentctl("why", "last")
    return [word.split()[-1] for word in none.err.partition("there are: ")[2].split(" (")[:-1]]


def test_why_explains_each_call_of_a_script_and_names_the_script(noted: Bench) -> None:
    outer, allowed, denied = calls_of(noted)

    first = noted.agentctl("why", "last", allowed)
    second = noted.agentctl("why", "last", denied.rpartition("-")[0], "--json")

    assert first.code == 0, first.err
    assert first.out.startswith("allow: ")
    assert "--yolo" in first.out
    assert f"the script tool note ({outer}) called it" in first.out
    assert "it ended: ok" in first.out
    record = json.loads(second.out)
    assert (record["call"], record["tool"], record["verdict"]) == (denied, "write_file", "deny")
    assert record["rule"] == "write_file(*.lock)"


def test_why_says_of_a_script_tool_which_calls_it_made(noted: Bench) -> None:
    outer, allowed, denied = calls_of(noted)

    told = noted.agentctl("why", "last", outer)

    assert f"it called write_file ({allowed})" in told.out
    assert f"it called write_file ({denied})" in told.out


def test_the_log_names_the_script_with_each_of_its_calls(noted: Bench) -> None:
    log = noted.agentctl("log", "last").out

    assert "✓ note → write_file a.txt" in log
    assert "⊘ note → write_file b.lock · denied: " in log
