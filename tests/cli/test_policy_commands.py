"""`plan`, `why`, `grants` and `tools safe` as a person uses them."""

import json
from pathlib import Path

import pytest

from agentctl.cli.app import run_app
from agentctl.locations import config_dir

PUSHER = """
[agent]
name = "pusher"
[model]
use = ["scripted:"]
[tool_permissions]
shell = { default = "ask", allow = ["pytest *"], deny = ["git push *"] }
[stages.build]
available_tools = ["shell", "read_file", "ask_user"]
required_tools = ["ask_user"]
limits = { steps = 7 }
[[stages.build.interaction_points]]
name = "sign-off"
prompt = "Good?"
[stages.build.transitions.done]
hint = "built"
[stages.build.transitions.stuck]
hint = "no way on"
[stages.build.tool_permissions]
read_file = "ask"
[stages.done]
[stages.stuck]
[script]
[[script.replies]]
text = "I make it."
tool_calls = [{ tool = "shell", arguments = { command = "touch made.txt" }, call_id = "c-one" }]
[[script.replies]]
text = "Done."
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pusher.toml").write_text(PUSHER, encoding="utf-8")
    return tmp_path


class Said:
    """One command's exit code and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        capsys.readouterr()
        self.code = run_app(arguments)
        self.out, self.err = capsys.readouterr()

    @property
    def record(self) -> dict[str, object]:
        record: dict[str, object] = json.loads(self.out)
        return record


def user_config(text: str) -> None:
    config_dir().mkdir(parents=True, exist_ok=True)
    (config_dir() / "config.toml").write_text(text, encoding="utf-8")


def test_why_names_the_rule_that_denies_a_line_and_where_it_stands(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(
        capsys, "why", "./pusher.toml", "--stage", "build", "--", "env", "-C", ".", "git", "push", "x"
    )

    assert said.code == 0
    assert said.out.startswith("deny: Running `git push x` is denied by the rule shell(git push *)")
    assert "pusher.toml:7:58" in said.out
    assert "nothing else lifts a deny" in said.out


def test_why_tells_the_flag_and_the_line_that_would_let_a_call_through(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, "why", "./pusher.toml", "--json", "--", "npm run build && echo ok")

    assert said.record["verdict"] == "ask"
    assert said.record["flags"] == ["shell(npm run build *)"]
    assert said.record["lines"] == ['shell = { default = "ask", allow = ["npm run build *"] }']
    again = Said(
        capsys, "why", "./pusher.toml", "--json", "--allow", "shell(npm run build *)", "--", "npm run build"
    )
    assert again.record["verdict"] == "allow"
    assert again.record["layer"] == "launch"


def test_why_says_that_a_write_outside_is_refused_whatever_the_rules_say(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, "why", "./pusher.toml", "write_file(/etc/hosts)", "--yolo", "--json")

    assert said.record["verdict"] == "deny"
    assert "outside the working directory" in str(said.record["reason"])
    assert said.record["flags"] == []


def test_why_refuses_an_unknown_tool_stage_or_an_empty_question(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Did you mean 'write_file'?" in Said(capsys, "why", "./pusher.toml", "writ_file(x)").err
    assert "it has: build" in Said(capsys, "why", "./pusher.toml", "shell(ls)", "--stage", "x").err
    assert Said(capsys, "why", "./pusher.toml", "--").code == 2


def test_plan_shows_each_tool_with_its_rule_and_what_still_asks_under_yolo(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Said(capsys, "plan", "./pusher.toml", "--yolo", "--json").record

    build = record["stages"][0]  # type: ignore[index]
    tools = {tool["tool"]: tool for tool in build["tools"]}
    assert list(tools) == ["read_file", "shell", "ask_user", "transition"]
    assert (tools["read_file"]["verdict"], tools["read_file"]["layer"]) == ("allow", "launch")
    assert [pattern["rule"] for pattern in tools["shell"]["patterns"]] == [
        "shell(git push *)",
        "shell(pytest *)",
    ]
    assert "your config says nothing about shell" in tools["shell"]["patterns"][1]["note"]
    assert tools["ask_user"]["required"]
    assert [one["what"] for one in build["still_asks"]] == [
        "the checkpoint 'sign-off'",
        "ask_user, which the stage requires",
    ]
    assert build["limits"]["limits.steps"] == 7
    assert record["limits"]["limits.steps"] == 100  # type: ignore[index]
    assert any("cannot be told" in text for text in record["always_asks"])  # type: ignore[attr-defined]


def test_plan_follows_the_users_config_and_prints_for_people(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user_config('[tool_permissions]\nshell = "allow"\nread_file = "deny"\n[limits]\nsteps = 9\n')

    out = Said(capsys, "plan", "./pusher.toml").out

    assert "deny   read_file" in out
    assert "steps 9" in out
    assert "stage build  (the run begins here)" in out
    assert "your config says nothing" not in out


def test_a_grant_is_shown_explained_and_taken_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Said(capsys, "run", "./pusher.toml", "go", "--on-ask", "pause").code == 4
    assert Said(capsys, "grants", "last").out == ""
    assert Said(capsys, "approvals", "answer", "last", "--run").code == 0
    Said(capsys, "resume", "last", "--on-ask", "pause")

    assert (here / "made.txt").exists()
    held = Said(capsys, "grants", "last", "--json").record["grants"]
    keys = [grant["key"] for grant in held]  # type: ignore[attr-defined]
    assert keys == ["shell(touch made.txt)", f"write_file({here}/*)"]

    past = Said(capsys, "why", "last", "c-one", "--json").record
    assert (past["call"], past["verdict"]) == ("c-one", "allow")
    assert any("answered run" in str(note) for note in past["notes"])  # type: ignore[attr-defined]

    assert "remembers no approval 'x'" in Said(capsys, "grants", "last", "--revoke", "x").err
    left = Said(capsys, "grants", "last", "--revoke", keys[0], "--json").record
    assert [grant["key"] for grant in left["grants"]] == keys[1:]  # type: ignore[attr-defined]
    assert Said(capsys, "grants", "last").out == f"{keys[1]}  for this run\n"


def test_why_lists_the_calls_of_a_run_where_none_is_named(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Said(capsys, "run", "./pusher.toml", "go")

    said = Said(capsys, "why", "last")

    assert said.code == 2
    assert "c-one (shell)" in said.err


def test_tools_safe_names_the_file_of_each_entry(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    user_config('[safe_commands]\nshell = ["terraform fmt"]\n')

    entries = json.loads(Said(capsys, "tools", "safe", "--json").out)

    assert entries[0]["entry"] == "terraform fmt *"
    assert (entries[0]["by"], entries[0]["line"]) == ("user", 2)
    assert {"ls", "git status", "find"} <= {entry["entry"] for entry in entries}
    assert "safe_commands.toml:" in Said(capsys, "tools", "safe").out


def test_without_defaults_and_entries_nothing_is_safe(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    user_config("[safe_commands]\ndefaults = false\n")

    said = Said(capsys, "tools", "safe")

    assert (said.out, said.code) == ("", 0)
    assert "defaults = false" in said.err


def test_a_stages_limit_holds_while_in_the_stage(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "two.toml").write_text(
        """
[agent]
name = "two"
[model]
use = ["scripted:"]
[stages.first]
available_tools = ["current_time"]
limits = { steps = 1 }
[script]
[[script.replies]]
text = "What time is it?"
tool_calls = [{ tool = "current_time" }]
[[script.replies]]
text = "Late."
""",
        encoding="utf-8",
    )

    assert Said(capsys, "run", "./two.toml", "go").code == 6
    assert "1 are allowed (limits.steps)" in Said(capsys, "runs", "show", "last").out
