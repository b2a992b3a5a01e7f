"""`plan` shows for each sub-agent what is left of its rules under those of the run."""

import json
from pathlib import Path

import pytest

from agentctl.cli.app import run_app

LEADER = """
[agent]
name = "leader"
[model]
use = ["scripted:"]
[stages.lead]
available_tools = ["spawn_agent"]
[stages.lead.tool_permissions]
shell = { default = "allow", deny = ["rm *"] }
grep = "deny"
spawn_agent = { default = "deny", ask = ["digger"] }
[stages.digger]
allow_as_worker = true
available_tools = ["shell", "grep", "read_file"]
[script]
[[script.replies]]
text = "done"
"""


@pytest.fixture
def leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "leader.toml"
    path.write_text(LEADER, encoding="utf-8")
    return path


def test_a_child_is_shown_as_a_table_of_what_holds_alone_and_here(
    leader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_app(("plan", str(leader), "--deny", "read_file(secret/*)"))
    out = capsys.readouterr().out

    assert code == 0
    table = out.partition("child digger of lead  (to start it: ask")[2]
    lines = [line.split() for line in table.splitlines()]
    assert ["tool", "alone", "here", "decided", "by"] in lines
    assert ["grep", "allow", "deny"] in [line[:3] for line in lines]
    assert ["shell", "ask", "ask"] in [line[:3] for line in lines]
    assert any(line[:3] == ["deny", "shell(rm", "*)"] for line in lines)
    assert any(line[:4] == ["deny", "--deny", "read_file(secret/*)", "·"] for line in lines)


def test_agents_that_may_not_be_started_are_left_out(
    leader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_app(("plan", str(leader), "--json"))
    record = json.loads(capsys.readouterr().out)

    assert [(child["agent"], child["spawned_by"]) for child in record["children"]] == [("digger", "lead")]
    grep = next(tool for tool in record["children"][0]["tools"] if tool["tool"] == "grep")
    assert (grep["alone"], grep["verdict"], grep["layer"]) == ("allow", "deny", "parent")


def test_every_blueprint_that_may_be_started_is_shown(
    leader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leader.write_text(LEADER.replace('spawn_agent = { default = "deny", ask = ["digger"] }', ""))
    run_app(("plan", str(leader), "--json"))
    record = json.loads(capsys.readouterr().out)

    assert {"digger", "researcher", "hello"} <= {child["agent"] for child in record["children"]}
    assert not any(child["invalid"] for child in record["children"])
