"""Ten sub-agents of one run ask at once; each gets its own answer."""

import json
import re
import sys

from tests.end_to_end.command import Bench
from tests.terminal.pty_screen import Screen

AGENTS = 10
CALL = "tool_calls = [{ tool = 'shell', arguments = { command = 'npm %d' } }]"
TEN = (
    """
[agent]
name = "ten"
[model]
use = ["scripted:"]
[limits]
subagents = 10
[stages.lead]
prompt = "Lead."
available_tools = ["fan_out"]
[stages.worker]
prompt = "Work."
allow_as_worker = true
available_tools = ["shell"]
[script]
[[script.replies]]
stage = "lead"
tool_calls = [{{ tool = "fan_out", arguments = {{ agent = "worker", items = ["{}"], max_workers = 10 }} }}]
[[script.replies]]
stage = "lead"
text = "All ten."
""".format('", "'.join(f"item-{number}." for number in range(AGENTS)))
    + "".join(
        f"""
[[script.replies]]
stage = "worker"
when = "item-{number}."
{CALL % number}
[[script.replies]]
stage = "worker"
when = "item-{number}."
text = "Done."
"""
        for number in range(AGENTS)
    )
)


def test_ten_agents_that_ask_at_once_are_answered_right(bench: Bench) -> None:
    blueprint = bench.blueprint(TEN)
    command = [sys.executable, "-m", "agentctl", "run", str(blueprint), "go", "--allow", "fan_out"]
    screen = Screen([*command, "--allow", "spawn_agent"], rows=60)
    try:
        for asked in range(1, AGENTS + 1):
            screen.wait_for("[n] >", times=asked, timeout_s=40)
            number = int(re.findall(r"│ npm (\d+)\n", screen.text)[-1])
            screen.send("y" if number % 2 == 0 else "n")
            screen.wait_for("[n] > yes, once" if number % 2 == 0 else "[n] > no")

        assert screen.wait_end(40) == 0
    finally:
        screen.kill()

    runs = json.loads(bench.agentctl("runs", "list", "--all", "--json", "-n", "0").out)
    workers = [run["run_id"] for run in runs if run.get("parent_run")]
    answers = dict(answer_in(bench, run_id) for run_id in workers)
    assert answers == {number: "no" if number % 2 else "once" for number in range(AGENTS)}


def answer_in(bench: Bench, run_id: str) -> tuple[int, str]:
    """Return which command a worker asked for, and what it was told."""
    records = [json.loads(line)["event"] for line in bench.agentctl("log", run_id, "--json").out.splitlines()]
    asked = next(record["question"] for record in records if record["type"] == "QuestionAsked")
    answered = next(record["answer"] for record in records if record["type"] == "QuestionAnswered")
    return int(asked["arguments"]["command"].split()[-1]), answered["choice"]


TREE = """
[agent]
name = "family"
[model]
use = ["scripted:"]
[stages.lead]
prompt = "Lead."
available_tools = ["fan_out"]
[stages.digger]
prompt = "Dig."
allow_as_worker = true
available_tools = ["shell", "spawn_agent"]
[script]
[[script.replies]]
stage = "lead"
tool_calls = [{ tool = "fan_out", arguments = { agent = "digger", items = ["north", "south"] } }]
[[script.replies]]
agent = "digger"
when = "north"
tool_calls = [{ tool = "shell", arguments = { command = "echo at-the-north; sh wait.sh" } }]
[[script.replies]]
agent = "digger"
when = "south"
tool_calls = [{ tool = "spawn_agent", arguments = { agent = "digger", task = "deep" } }]
[[script.replies]]
agent = "digger"
when = "deep"
tool_calls = [{ tool = "shell", arguments = { command = "echo deep-down; sh wait.sh" } }]
[[script.replies]]
agent = "digger"
times = 3
text = "gold"
[[script.replies]]
stage = "lead"
text = "All found."
"""


def test_a_tree_at_work_shows_each_agent_and_its_last_line(bench: Bench) -> None:
    command = [sys.executable, "-m", "agentctl", "run", str(bench.blueprint(TREE)), "go", "--yolo"]
    (bench.workdir / "wait.sh").write_text("while ! test -e on; do sleep 0.05; done", encoding="utf-8")
    screen = Screen([*command, "--workdir", str(bench.workdir)], columns=120)
    try:
        screen.wait_for(" s · at-the-north", timeout_s=30)
        screen.wait_for(" s · deep-down", timeout_s=30)
        live = screen.text
        (bench.workdir / "on").touch()
        assert screen.wait_end() == 0, screen.text
        whole = screen.text
    finally:
        screen.kill()

    assert "└ digger · step 1 · shell echo at-the-north" in live
    assert "└ digger-2 · step 1 · spawn_agent digger" in live
    assert "  └ digger · step 1 · shell echo deep-down" in live
    assert "└ " not in whole
    assert "✓ [digger-2/digger] shell echo deep-down" in whole
    told = bench.agentctl("log", "last/digger-2/digger")
    assert "deep-down" in told.out
    assert "✓ sub-agent digger finished" in bench.agentctl("log", "last/digger-2").out
