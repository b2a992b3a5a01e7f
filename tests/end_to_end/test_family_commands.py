"""Trees of agents through the real command: saved questions, limits, catalogues, and killed processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.locations import config_dir
from tests.end_to_end.command import Bench, environment
from tests.end_to_end.test_subagents import ALLOW, FAMILY, FOUND, lead, tool_results

SPAWN = '{ tool = "spawn_agent", arguments = { agent = "digger", task = "dig" } }'
WRITES = """
[[script.replies]]
agent = "digger"
tool_calls = [{ tool = "shell", arguments = { command = "touch dug.txt" } }]
"""


def test_a_sub_agents_saved_question_is_answered_from_outside_and_the_tree_goes_on(bench: Bench) -> None:
    path = bench.blueprint(FAMILY + lead(SPAWN) + WRITES + FOUND)

    stopped = bench.agentctl("run", path, "go", "--allow", "spawn_agent", "--on-ask", "pause")
    waiting = json.loads(bench.agentctl("approvals", "list", "last", "--json").out)
    answered = bench.agentctl("approvals", "answer", "last", "--once")
    resumed = bench.agentctl("resume", "last", "--allow", "spawn_agent")

    assert stopped.code == 4, stopped.err
    assert [one["question"]["tool"] for one in waiting] == ["shell"]
    assert answered.code == 0, answered.err
    assert resumed.code == 0, resumed.err
    assert resumed.out == "done\n"
    assert (bench.workdir / "dug.txt").exists()


def test_cancelling_a_run_that_stands_still_ends_its_sub_agents(bench: Bench) -> None:
    path = bench.blueprint(FAMILY + lead(SPAWN) + WRITES + FOUND)
    bench.agentctl("run", path, "go", "--allow", "spawn_agent", "--on-ask", "pause")

    cancelled = bench.agentctl("cancel", "last")
    left = json.loads(bench.agentctl("approvals", "list", "--json").out)
    child = bench.agentctl("log", "last/digger", "--json")

    assert cancelled.code == 0, cancelled.err
    assert left == []
    assert '"cancelled"' in child.out.splitlines()[-1]


def test_cancelling_a_run_at_work_ends_its_sub_agents(bench: Bench) -> None:
    sleeps = WRITES.replace("touch dug.txt", "touch dug.txt; sleep 600")
    path = bench.blueprint(FAMILY + lead(SPAWN) + sleeps + FOUND)

    with bench.start("run", path, "go", "--yolo") as process:
        while not (bench.workdir / "dug.txt").exists() and process.poll() is None:
            os.sched_yield()
        cancelled = bench.agentctl("cancel", "last")
        process.communicate(timeout=30)
    child = bench.agentctl("log", "last/digger", "--json")

    assert cancelled.code == 0, cancelled.err
    assert "its parent has ended" in child.out.splitlines()[-1]
    assert bench.agentctl("resume", "last").code == 2


def test_only_what_stood_there_when_the_root_run_began_can_be_started(bench: Bench) -> None:
    place = config_dir() / "blueprints" / "helper.toml"
    place.parent.mkdir(parents=True)
    helper = '[agent]\nname = "helper"\n[model]\nuse = ["scripted:"]\n[stages.work]\nprompt = "Help."\n'
    place.write_text(helper, encoding="utf-8")
    spawn = SPAWN.replace("digger", "helper")
    slow = '{ tool = "shell", arguments = { command = "touch here; while test -e here; do :; done" } }'
    helped = '[[script.replies]]\nagent = "helper"\ntext = "helped"\n'
    path = bench.blueprint(FAMILY + lead(spawn, slow, spawn) + helped)

    with bench.start("run", path, "go", *ALLOW, "--yolo", "--jsonl") as process:
        while not (bench.workdir / "here").exists() and process.poll() is None:
            os.sched_yield()
        place.write_text(helper + "# as the run would have it\n", encoding="utf-8")
        (bench.workdir / "here").unlink()
        out, err = process.communicate(timeout=60)

    first, _, second = tool_results(out)
    assert process.returncode == 0, err
    assert "helped" in str(first["text"])
    assert second["outcome"] == "failed"
    assert "has changed since this run began" in str(second["text"])


def test_money_that_is_spent_halts_running_children(bench: Bench) -> None:
    spends = """
[[script.replies]]
agent = "digger"
times = 0
tool_calls = [{ tool = "shell", arguments = { command = "echo x >> log.txt" } }]
usage = { input_tokens = 10, output_tokens = 10, cost_usd = 0.4 }
"""
    items = '{ tool = "fan_out", arguments = { agent = "digger", items = ["a", "b"] } }'
    free = "usage = { input_tokens = 1, output_tokens = 1, cost_usd = 0.0 }\n"
    path = bench.blueprint(FAMILY + lead(items).replace("tool_calls", free + "tool_calls") + spends)

    ran = bench.agentctl("run", path, "go", "--yolo", "--limit", "cost_usd=1", "--json")

    assert ran.code == 6, ran.err
    assert (bench.workdir / "log.txt").read_text().count("x") <= 3
    assert "limits.cost_usd" in ran.err


@pytest.mark.parametrize(("limit", "code"), [("-Sn 60", 0), ("-n 60", 2)])
def test_many_runs_ask_for_the_files_they_need(bench: Bench, two_stages: Path, limit: str, code: int) -> None:
    command = f"ulimit {limit}; exec {sys.executable} -m agentctl run {two_stages} go --count 20 --json"
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=bench.workdir,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == code, ran.stderr
    assert ("--max-workers" in ran.stderr) is (code == 2)
