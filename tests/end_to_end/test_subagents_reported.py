"""Faults of sub-agents that were reported elsewhere, tried with the whole command; docstrings say where."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.end_to_end.command import Bench
from tests.end_to_end.test_subagents import FAMILY, tool_results
from tests.executor.test_commands import gone

SPAWN = '{ tool = "spawn_agent", arguments = { agent = "digger", task = "dig" } }'
ALL = '"spawn_agent", "fan_out", "wait_agent", "check_agent", "kill_agent", "send_agent", "shell"'


def replies(agent: str, *turns: str, times: int = 1) -> str:
    """Replies of an agent: calls where a turn begins with a brace, else text."""
    made = ""
    for turn in turns:
        said = f"tool_calls = [{turn}]" if turn.startswith("{") else f'text = "{turn}"'
        made += f'[[script.replies]]\nagent = "{agent}"\ntimes = {times}\n{said}\n'
    return made


def family(bench: Bench, *parts: str) -> Path:
    """A lead and a digger that have every tool of sub-agents."""
    text = FAMILY.replace('available_tools = ["shell"]', f"available_tools = [{ALL}]")
    return bench.blueprint(text + "".join(parts))


def call(tool: str, **arguments: object) -> str:
    given = ", ".join(f"{name} = {json.dumps(value)}" for name, value in arguments.items())
    return f'{{ tool = "{tool}", arguments = {{ {given} }} }}'


def test_an_ask_that_nobody_answered_for_a_child_is_told_at_the_end_of_the_tree(bench: Bench) -> None:
    """claude-code#36042, qwen-code#4928: a background agent's asks were denied and nobody ever knew."""
    path = family(
        bench,
        replies("family", SPAWN, "done"),
        replies("digger", SPAWN, call("shell", command="touch new"), "could not", "below could not"),
    )

    ran = bench.agentctl("run", path, "go", "--allow", "spawn_agent", "--json")

    assert ran.code == 5, ran.err
    assert "--allow 'shell(touch new)'" in ran.err
    (refused,) = json.loads(ran.out)["refused"]
    assert refused["tool"] == "shell"
    assert "shell(touch new)" in refused["allow"]


def test_children_without_end_come_to_one(bench: Bench) -> None:
    """claude-code#68619, #69332: agents that start agents, until the account was empty."""
    path = family(bench, replies("family", SPAWN, "done"), replies("digger", SPAWN, times=0))

    ran = bench.agentctl("run", path, "go", "--yolo", "--limit", "steps=60", "--json")

    result = json.loads(ran.out)
    assert result["subagents"] <= 16
    assert result["steps"] <= 60
    assert ran.code in {0, 6}, ran.err


@pytest.mark.parametrize("schema", ["{ type = 5 }", '{ "$ref" = "https://example.com/x" }'])
@pytest.mark.parametrize(
    "tool", ['spawn_agent", arguments = { task = "x"', 'fan_out", arguments = { items = ["x"]']
)
def test_a_form_that_no_answer_can_have_starts_nobody(bench: Bench, tool: str, schema: str) -> None:
    asked = f'{{ tool = "{tool}, agent = "digger", output_schema = {schema} }} }}'
    path = family(bench, replies("family", asked, "done"))

    ran = bench.agentctl("run", path, "go", "--yolo", "--jsonl")

    (result,) = tool_results(ran.out)
    assert result["outcome"] == "failed"
    assert "output_schema is no JSON Schema" in str(result["text"])
    assert json.loads(ran.out.splitlines()[-1])["subagents"] == 0


def test_an_answer_of_blanks_is_no_success(bench: Bench) -> None:
    """cqlite#3452: a review that said nothing was read as one that found nothing."""
    path = family(bench, replies("family", SPAWN, "done"), replies("digger", "  ", times=0))

    ran = bench.agentctl("run", path, "go", "--yolo", "--jsonl")

    (result,) = tool_results(ran.out)
    assert result["outcome"] == "failed"
    assert "no usable answer" in str(result["text"])


def test_waiting_for_oneself_for_nobody_and_twice_ends_at_once(bench: Bench) -> None:
    """A wait on one's own id never ended in the seed."""
    odd = ", ".join(
        [
            call("wait_agent", agents=["family"]),
            call("wait_agent", agents=["nobody"]),
            call("wait_agent"),
            call("kill_agent", agent="family"),
            call("send_agent", agent="family", message="x"),
        ]
    )
    twice = ", ".join(
        [call("wait_agent", agents=["digger"]), call("wait_agent", agents=["digger", "digger"])]
    )
    path = family(
        bench,
        replies("family", odd, call("spawn_agent", agent="digger", task="dig", wait=False), twice, "done"),
        replies("digger", "gold"),
    )

    ran = bench.agentctl("run", path, "go", "--yolo", "--jsonl")

    results = tool_results(ran.out)
    assert ran.code == 0, ran.err
    assert [result["outcome"] for result in results] == [
        "failed", "failed", "ok", "failed", "failed", "ok", "ok", "ok",
    ]  # fmt: skip
    assert str(results[-1]["text"]).count("gold") == 2


def test_a_child_that_is_ended_while_it_is_waited_for_is_told_as_that(bench: Bench) -> None:
    """pi-subagents#318: the parent waited for ever on one that was gone."""
    both = ", ".join([call("wait_agent", agents=["digger"]), call("kill_agent", agent="digger")])
    path = family(
        bench,
        replies("family", call("spawn_agent", agent="digger", task="dig", wait=False), both, "done"),
        replies("digger", call("shell", command="sleep 60")),
    )

    ran = bench.agentctl("run", path, "go", "--yolo", "--jsonl")

    _, waited, killed = tool_results(ran.out)
    assert ran.code == 0, ran.err
    assert (waited["outcome"], killed["outcome"]) == ("failed", "ok")
    for result in (waited, killed):
        assert "cancelled, ended by its parent" in str(result["text"])


@pytest.mark.parametrize("agent", ["../digger", "/etc/passwd", "./evil.toml", "lead", "family", ""])
def test_only_agents_by_name_are_started(bench: Bench, agent: str) -> None:
    path = family(bench, replies("family", call("spawn_agent", agent=agent, task="x"), "done"))
    (bench.workdir / "evil.toml").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")

    ran = bench.agentctl("run", path, "go", "--yolo", "--jsonl")

    (result,) = tool_results(ran.out)
    assert result["outcome"] == "failed"
    assert json.loads(ran.out.splitlines()[-1])["subagents"] == 0


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
@pytest.mark.anyio
async def test_nothing_that_children_started_outlives_the_run(
    bench: Bench, sent: signal.Signals, code: int
) -> None:
    """Orphans after Ctrl-C: six agents, each with a command of its own."""
    log, marker = bench.workdir / "log.txt", f"120.8{code % 256}"
    path = family(
        bench,
        replies("family", call("fan_out", agent="digger", items=list("abcdef")), "done"),
        replies("digger", call("shell", command=f"echo x >> log.txt; exec sleep {marker}"), times=6),
    )

    with bench.start("run", path, "go", "--yolo") as process:
        while (len(log.read_text().split()) if log.exists() else 0) < 6 and process.poll() is None:
            os.sched_yield()
        process.send_signal(sent)
        assert process.wait(timeout=30) == code

    assert await gone(marker)
