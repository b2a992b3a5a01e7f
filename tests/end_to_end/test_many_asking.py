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
