"""Sub-agents through the real command: answers, limits, kills and the tree taken up again."""

import json
import os
from pathlib import Path

import pytest

from agentctl.locations import config_dir
from tests.end_to_end.command import Bench

FAMILY = """
[agent]
name = "family"
[model]
use = ["scripted:"]
[stages.lead]
prompt = "Lead."
available_tools = ["spawn_agent", "fan_out", "wait_agent", "check_agent", "kill_agent", "send_agent", "shell"]
[stages.digger]
prompt = "Dig."
description = "digs"
allow_as_worker = true
available_tools = ["shell"]
[script]
"""
FOUND = """
[[script.replies]]
agent = "digger"
times = 0
text = "gold"
"""
ALLOW = ("--allow", "spawn_agent", "--allow", "shell")


def lead(*calls: str) -> str:
    replies = "".join(f'[[script.replies]]\nstage = "lead"\ntool_calls = [{call}]\n' for call in calls)
    return replies + '[[script.replies]]\nstage = "lead"\ntext = "done"\n'


def tool_results(out: str) -> list[dict[str, object]]:
    events = [json.loads(line) for line in out.splitlines()]
    return [
        event["event"]["message"]["result"]
        for event in events
        if event["type"] == "event"
        and not event.get("parent")
        and event["event"].get("message", {}).get("type") == "ToolMessage"
    ]


def test_a_sub_agents_answer_comes_back_to_its_parent(bench: Bench) -> None:
    spawn = '{ tool = "spawn_agent", arguments = { agent = "digger", task = "dig" } }'
    path = bench.blueprint(FAMILY + lead(spawn) + FOUND)

    ran = bench.agentctl("run", path, "go", *ALLOW, "--jsonl")

    assert ran.code == 0, ran.err
    (result,) = tool_results(ran.out)
    assert "gold" in str(result["text"])
    assert result["outcome"] == "ok"


def test_fan_out_gives_one_report_with_every_worker(bench: Bench) -> None:
    fan = '{ tool = "fan_out", arguments = { agent = "digger", items = ["a", "b", "c"] } }'
    path = bench.blueprint(FAMILY + lead(fan) + FOUND)

    ran = bench.agentctl("run", path, "go", *ALLOW, "--jsonl")

    (result,) = tool_results(ran.out)
    assert str(result["text"]).startswith("3 of 3 finished.")
    assert str(result["text"]).count("gold") == 3


def test_a_child_is_refused_what_its_parents_run_would_be(bench: Bench) -> None:
    spawn = '{ tool = "spawn_agent", arguments = { agent = "digger", task = "dig" } }'
    dig = """
[[script.replies]]
agent = "digger"
tool_calls = [{ tool = "shell", arguments = { command = "echo x > out.txt" } }]
"""
    path = bench.blueprint(FAMILY + lead(spawn) + dig + FOUND)

    ran = bench.agentctl("run", path, "go", "--allow", "spawn_agent", "--yolo", "--deny", "shell")

    assert ran.code == 0, ran.err
    assert not (bench.workdir / "out.txt").exists()


def test_more_sub_agents_than_allowed_are_refused_with_the_key(bench: Bench) -> None:
    fan = '{ tool = "fan_out", arguments = { agent = "digger", items = ["a", "b", "c"] } }'
    path = bench.blueprint(FAMILY + lead(fan))

    ran = bench.agentctl("run", path, "go", *ALLOW, "--limit", "subagents=2", "--jsonl")

    (result,) = tool_results(ran.out)
    assert "limits.subagents" in str(result["text"])


def test_a_child_that_fails_is_never_an_empty_success(bench: Bench) -> None:
    spawn = '{ tool = "spawn_agent", arguments = { agent = "digger", task = "dig" } }'
    fails = """
[[script.replies]]
agent = "digger"
refusal = "I will not dig."
"""
    path = bench.blueprint(FAMILY + lead(spawn) + fails)

    ran = bench.agentctl("run", path, "go", *ALLOW, "--jsonl")

    (result,) = tool_results(ran.out)
    assert result["outcome"] == "failed"
    assert "I will not dig" in str(result["text"])


def test_an_agent_that_is_not_there_names_those_that_are(bench: Bench) -> None:
    spawn = '{ tool = "spawn_agent", arguments = { agent = "diger", task = "dig" } }'
    path = bench.blueprint(FAMILY + lead(spawn))

    ran = bench.agentctl("run", path, "go", *ALLOW, "--jsonl")

    (result,) = tool_results(ran.out)
    assert "digger" in str(result["text"])


@pytest.mark.parametrize("kill_after", [1, 2, 3])
def test_a_killed_tree_is_taken_up_again_as_a_whole(bench: Bench, kill_after: int) -> None:
    fan = '{ tool = "fan_out", arguments = { agent = "digger", items = ["a", "b", "c"], max_workers = 1 } }'
    dig = """
[[script.replies]]
agent = "digger"
times = 3
tool_calls = [{ tool = "shell", arguments = { command = "echo dug >> log.txt; sleep 0.2" } }]
"""
    found = FOUND.replace("times = 0", "times = 3")
    path = bench.blueprint(FAMILY + lead(fan) + dig + found)
    log = bench.workdir / "log.txt"

    with bench.start("run", path, "go", "--yolo") as process:
        while (log.read_text().count("dug") if log.exists() else 0) < kill_after and process.poll() is None:
            os.sched_yield()
        process.kill()
    resumed = bench.agentctl("resume", "last", "--yolo")

    assert resumed.code in {0, 7}, resumed.err
    assert resumed.out.strip() == "done"
    assert log.read_text().count("dug") <= 3


def test_workers_are_told_apart_by_name_in_the_events(bench: Bench) -> None:
    fan = '{ tool = "fan_out", arguments = { agent = "digger", items = ["a", "b"] } }'
    path = bench.blueprint(FAMILY + lead(fan) + FOUND)

    ran = bench.agentctl("run", path, "go", *ALLOW, "--jsonl")

    events = [json.loads(line) for line in ran.out.splitlines()]
    agents = {event["agent"] for event in events if event.get("parent")}
    assert agents == {"digger", "digger-2"}


def test_a_stage_that_requires_its_children_waits_for_them(bench: Bench, tmp_path: Path) -> None:
    del tmp_path
    spawn = '{ tool = "spawn_agent", arguments = { agent = "digger", task = "dig", wait = false } }'
    waits = FAMILY.replace('prompt = "Lead."', 'prompt = "Lead."\nrequires_children = true')
    last = '[[script.replies]]\nstage = "lead"\ntext = "they dug gold"\n'
    path = bench.blueprint(waits + lead(spawn) + last + FOUND)

    ran = bench.agentctl("run", path, "go", *ALLOW)

    assert ran.code == 0, ran.err
    assert ran.out == "they dug gold\n"


FAN_STAGE = """
[agent]
name = "fanner"
[model]
use = ["scripted:"]
[stages.split]
prompt = "Name the items."
mode = "fan_out"
[stages.split.fan_out]
worker = "digger"
max_workers = 2
[stages.split.transitions.report]
hint = "all are done"
[stages.digger]
prompt = "Dig."
allow_as_worker = true
available_tools = ["shell"]
[stages.report]
prompt = "Report."
[script]
[[script.replies]]
stage = "split"
tool_calls = [{ tool = "submit_output", arguments = { items = ["north", "south", "west"] } }]
[[script.replies]]
agent = "digger"
times = 3
text = "gold"
[[script.replies]]
stage = "report"
expect = { anywhere = ["3 of 3 finished."] }
text = "reported"
"""


FAN_FORM = """
read = ["plan"]
output_schema = { type = "object", required = ["gold"], properties = { gold = { type = "integer" } } }
[stages.split.transitions.report]
"""
FAN_SPLIT = """
[[script.replies]]
stage = "split"
tool_calls = [{ tool = "shared_state", arguments = { action = "set", key = "plan", value = "look deep" } }]
[[script.replies]]
stage = "split"
tool_calls = [{ tool = "shared_state", arguments = { action = "set", key = "secret", value = "42" } }]
"""
FAN_DIG = """
[[script.replies]]
agent = "digger"
times = 3
tool_calls = [
  { tool = "shared_state", arguments = { action = "get", key = "plan" } },
  { tool = "shared_state", arguments = { action = "get", key = "secret" } },
]
[[script.replies]]
agent = "digger"
times = 3
expect = { anywhere = ["look deep"] }
tool_calls = [{ tool = "submit_output", arguments = { gold = "much" } }]
[[script.replies]]
agent = "digger"
times = 3
tool_calls = [{ tool = "submit_output", arguments = { gold = 7 } }]
"""


def formed(text: str) -> str:
    """The fan-out stage with keys that its workers may read, and a form for their answers."""
    text = text.replace("[stages.split.transitions.report]\n", FAN_FORM.lstrip())
    text = text.replace('prompt = "Name the items."\n', 'prompt = "N."\navailable_tools = ["shared_state"]\n')
    text = text.replace('available_tools = ["shell"]', 'available_tools = ["shared_state"]')
    text = text.replace("[script]\n", "[script]\n" + FAN_SPLIT)
    plain = '[[script.replies]]\nagent = "digger"\ntimes = 3\ntext = "gold"\n'
    assert plain in text
    return text.replace(plain, FAN_DIG)


def test_workers_of_a_fan_out_stage_read_the_lent_keys_alone_and_answer_in_the_form(bench: Bench) -> None:
    path = bench.blueprint(formed(FAN_STAGE))

    ran = bench.agentctl("run", path, "go", "--allow", "spawn_agent", "--allow", "fan_out", "--jsonl")

    assert ran.code == 0, ran.err
    assert bench.agentctl("check", path).code == 0
    events = [json.loads(line) for line in ran.out.splitlines()]
    results = [
        result
        for event in events
        if event["type"] == "event" and (result := event["event"].get("message", {}).get("result"))
    ]
    of_workers = [one for one in results if one["tool"] == "shared_state" and one["text"] != ""]
    assert sum(one["outcome"] == "ok" and one["text"] == "look deep" for one in of_workers) == 3
    assert sum(one["outcome"] == "failed" for one in of_workers) == 3
    (report,) = [one for one in results if one["tool"] == "fan_out"]
    assert [worker["output"] for worker in report["structured"]["workers"]] == [{"gold": 7}] * 3
    refused = [one for one in results if one["tool"] == "submit_output" and one["outcome"] != "ok"]
    assert len(refused) == 3


def test_the_plan_shows_what_the_workers_of_a_fan_out_stage_are_given(bench: Bench) -> None:
    path = bench.blueprint(formed(FAN_STAGE))

    shown = bench.agentctl("plan", path)
    record = json.loads(bench.agentctl("plan", path, "--json").out)

    assert "workers  digger, 2 at a time, may read plan, answers by output_schema" in shown.out
    assert record["stages"][0]["workers"]["read"] == ["plan"]
    (worker,) = record["children"]
    assert "submit_output" in [tool["tool"] for tool in worker["tools"]]


def test_keys_lent_to_workers_that_cannot_read_them_are_noticed(bench: Bench) -> None:
    text = formed(FAN_STAGE).replace('[stages.digger]\nprompt = "Dig."', '[stages.digger]\nprompt = "D."')
    head, _, tail = text.partition("[stages.digger]")
    path = bench.blueprint(
        head + "[stages.digger]" + tail.replace('available_tools = ["shared_state"]\n', "")
    )

    checked = bench.agentctl("check", path)

    assert "unreadable-keys" in checked.out + checked.err


def test_a_fan_out_stage_splits_its_job_and_hands_the_report_on(bench: Bench) -> None:
    path = bench.blueprint(FAN_STAGE)

    ran = bench.agentctl("run", path, "go", "--allow", "spawn_agent", "--allow", "fan_out")

    assert ran.code == 0, ran.err
    assert ran.out == "reported\n"


def test_a_worker_of_the_same_blueprint_has_its_parents_inputs(bench: Bench) -> None:
    text = FAMILY.replace("[stages.lead]", "[inputs.place]\n[inputs.depth]\n[stages.lead]")
    text = text.replace('"Dig."', '"Dig {inputs.depth} in {inputs.place}."')
    arguments = '{ agent = "digger", task = "dig", inputs = { depth = "deep" } }'
    spawn = f'{{ tool = "spawn_agent", arguments = {arguments} }}'
    found = FOUND.replace("times", 'expect = { system = "Dig deep in Graz." }\ntimes')
    path = bench.blueprint(text + lead(spawn) + found)

    ran = bench.agentctl("run", path, "go", "-i", "place=Graz", "-i", "depth=flat", *ALLOW, "--jsonl")

    assert ran.code == 0, ran.err
    assert "gold" in str(tool_results(ran.out)[0]["text"])


def test_a_sub_agent_cannot_rewrite_the_blueprint_of_the_run_that_started_it(bench: Bench) -> None:
    config = config_dir()
    (config / "blueprints").mkdir(parents=True)
    (config / "config.toml").write_text('[tool_permissions]\nwrite_file = "allow"\nspawn_agent = "allow"\n')
    (config / "blueprints" / "helper.toml").write_text(
        '[agent]\nname = "helper"\n[model]\nuse = "scripted:"\n'
        '[stages.one]\navailable_tools = ["write_file"]\n'
    )
    above = bench.workdir / "above.toml"
    above.write_text("""
[agent]
name = "above"
[model]
use = "scripted:"
[stages.one]
available_tools = ["spawn_agent"]
[[script.replies]]
agent = "above"
tool_calls = [{ tool = "spawn_agent", arguments = { agent = "helper", task = "go" } }]
[[script.replies]]
agent = "helper"
tool_calls = [{ tool = "write_file", arguments = { path = "above.toml", content = "", overwrite = true } }]
[[script.replies]]
text = "Done."
times = 0
""")
    before = above.read_text()

    ran = bench.agentctl("run", above, "go")

    assert "above.toml" in ran.err
    assert ran.code == 5, ran.err
    assert above.read_text() == before
