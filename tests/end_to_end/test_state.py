"""Every face of state through the command line: keys, effects, views, hooks, machines, shared state."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.command import Bench, Ran

CODE = {
    "effects.py": """
def wrote(call):
    return [{"op": "add", "path": "/workspace/files/-", "value": call.input["path"]}]
""",
    "hooks.py": """
from dataclasses import dataclass
from agentctl.api import Hook, RewriteResult

@dataclass
class Count:
    n: int = 0

def bump(count):
    count.n += 1
    return count.n

class Counting(Hook):
    def on_tool_result(self, context, event):
        n = context.scratchpad.update(Count, bump)
        if event.tool == "current_time":
            return RewriteResult(f"call {n}: noon")
""",
    "views.py": """
from agentctl.api import View

def files(request):
    return View(base="BASE", changes=f"files now: {request.state['workspace']['files']}")
""",
}
BLUEPRINT = """
[agent]
name = "faces"
workspace = ["/workspace"]
views = ["views.py:files"]
[model]
use = ["scripted:"]
[workspace]
owner = ["/workspace"]
initial = { workspace = { files = [] } }
[[state_keys]]
name = "writes"
merge = "fold"
fold = "sum"
default = 10
[[state_keys]]
name = "verdict"
scope = "thread"
schema = { type = "string", enum = ["good", "bad"] }
[[state_effects]]
tool = "write_file"
mapper = "effects.py:wrote"
[[hooks]]
name = "counting"
use = "hooks.py:Counting"
[[machines]]
name = "rbw"
key = "{path}"
key_normaliser = "path"
initial = "unread"
transitions = [
  { on = "read_file", from = ["unread", "read", "written"], to = "read" },
  { on = "edit_file", from = ["read"], to = "written", reason = "Read {path} before editing it." },
]
[stages.work]
prompt = "Work."
available_tools = ["current_time", "write_file", "read_file", "edit_file", "state_*", "shared_state"]
state = { read = ["writes"], write = ["verdict", "writes"] }
[[script.replies]]
tool_calls = [
  { tool = "current_time" },
  { tool = "write_file", arguments = { path = "a.txt", content = "hello" } },
]
[[script.replies]]
tool_calls = [
  { tool = "state_set", arguments = { key = "writes", value = 2 } },
  { tool = "state_set", arguments = { key = "writes", value = 3 } },
  { tool = "state_set", arguments = { key = "verdict", value = "ugly" } },
  { tool = "edit_file", arguments = { path = "a.txt", old = "hello", new = "bye" } },
]
[[script.replies]]
tool_calls = [
  { tool = "read_file", arguments = { path = "a.txt" } },
  { tool = "shared_state", arguments = { action = "set", key = "notes", value = "kept" } },
]
[[script.replies]]
tool_calls = [{ tool = "edit_file", arguments = { path = "./a.txt", old = "hello", new = "bye" } }]
[[script.replies]]
text = "done"
"""


@pytest.fixture
def blueprint(bench: Bench) -> Path:
    for name, text in CODE.items():
        (bench.folder / name).write_text(text, encoding="utf-8")
    return bench.blueprint(BLUEPRINT)


WRITES = ("--allow", "write_file")


def trusted(bench: Bench, blueprint: Path, *arguments: str) -> Ran:
    refused = bench.agentctl("run", blueprint, "go")
    assert refused.code == 3
    assert "not trusted" in refused.err
    digest = refused.err.rsplit("--trust ", 1)[1].split()[0]
    return bench.agentctl("run", blueprint, "go", "--trust", digest, *WRITES, *arguments)


def results(ran: Ran) -> dict[str, tuple[str, str]]:
    """Call id → outcome and text as the model saw it."""
    found: dict[str, tuple[str, str]] = {}
    for line in ran.out.splitlines():
        event = json.loads(line).get("event", {})
        message = event.get("message", {})
        if message.get("type") == "ToolMessage":
            result = message["result"]
            found[result["call_id"]] = (result["outcome"], result["text"])
    return found


def test_all_faces_of_state_work_in_one_run(bench: Bench, blueprint: Path) -> None:
    ran = trusted(bench, blueprint, "--jsonl")

    assert ran.code == 0, ran.err
    seen = results(ran)
    assert seen["call-0-0-0"] == ("ok", "call 1: noon")
    assert seen["call-1-0-2"][0] == "failed"
    assert '"ugly" is not one of' in seen["call-1-0-2"][1]
    assert seen["call-1-0-3"] == ("denied", "Read a.txt before editing it.")
    assert seen["call-3-0-0"][0] == "ok"
    assert (bench.workdir / "a.txt").read_text(encoding="utf-8") == "bye"


def test_state_can_be_read_and_written_from_the_command_line(bench: Bench, blueprint: Path) -> None:
    trusted(bench, blueprint)

    assert bench.agentctl("state", "get", "last", "writes").out == "15\n"
    assert bench.agentctl("state", "get", "last", "verdict").code == 1
    assert bench.agentctl("state", "set", "last", "verdict", "good").code == 0
    assert bench.agentctl("state", "set", "last", "verdict", "ugly").code == 9
    assert bench.agentctl("state", "get", "last", "verdict").out == '"good"\n'
    rows = json.loads(bench.agentctl("state", "list", "last", "--json").out)
    assert {(row["scope"], row["key"], row["writer"]) for row in rows} == {
        ("run", "writes", "call-1-0-1"),
        ("thread", "verdict", "person"),
    }
    history = json.loads(bench.agentctl("state", "history", "last", "writes", "--json").out)
    assert [(row["action"], row["value"]) for row in history] == [("sum", 2), ("sum", 3)]
    assert bench.agentctl("state", "verify", "last").code == 0
    assert bench.agentctl("state", "rm", "last", "verdict").code == 0
    assert bench.agentctl("state", "rm", "last", "verdict").code == 1


def test_shared_state_workspace_and_scratchpad_can_be_looked_at(bench: Bench, blueprint: Path) -> None:
    trusted(bench, blueprint)

    assert bench.agentctl("shared", "get", "last", "notes").out == "kept\n"
    assert bench.agentctl("shared", "get", "last", "nope").code == 1
    assert bench.agentctl("shared", "set", "last", "researcher/x", "secret").code == 0
    assert bench.agentctl("shared", "set", "last", "notes", "other", "--if-absent").code == 1
    assert bench.agentctl("shared", "grep", "last", "sec.*t").out == "researcher/x:1: secret\n"
    assert bench.agentctl("shared", "list", "last", "--scope", "researcher", "--json").code == 1
    assert bench.agentctl("shared", "rm", "last", "notes").code == 0
    assert bench.agentctl("workspace", "show", "last", "/workspace/files", "--json").out == '["a.txt"]\n'
    assert bench.agentctl("workspace", "show", "last", "/nope").code == 1
    assert (
        bench.agentctl("workspace", "at", "last", "/workspace", "--seq", "0", "--json").out
        == '{"files":[]}\n'
    )
    assert bench.agentctl("workspace", "diff", "last", "0", "1").out == '+ /workspace/files/0: "a.txt"\n'
    log = json.loads(bench.agentctl("workspace", "log", "last", "--json").out)
    assert [(row["sequence"], row["writer"]) for row in log] == [(0, "workspace.initial"), (1, "call-0-0-1")]
    notes = json.loads(bench.agentctl("scratch", "last", "Count", "--json").out)
    assert list(notes.values()) == [{"n": 9}]


def test_a_key_that_drifted_is_refused_until_it_is_migrated(bench: Bench, blueprint: Path) -> None:
    trusted(bench, blueprint)
    bench.agentctl("state", "set", "last", "verdict", "good")
    blueprint.write_text(
        BLUEPRINT.replace(
            'schema = { type = "string", enum = ["good", "bad"] }',
            'version = 2\nschema = { type = "object" }\ndefault = {}',
        ),
        encoding="utf-8",
    )
    (bench.workdir / "lift.py").write_text(
        "def verdict(value, version):\n    return {'word': value, 'was': version}\n", encoding="utf-8"
    )

    refused = bench.agentctl("state", "migrate", "last")
    assert refused.code == 9
    assert "stored by version 1" in refused.out
    shown = bench.agentctl("state", "migrate", "last", "verdict", "--with", "lift.py:verdict", "--dry-run")
    assert '"good" → {"word":"good","was":1}' in shown.out
    assert bench.agentctl("state", "get", "last", "verdict").out == '"good"\n'
    assert bench.agentctl("state", "migrate", "last", "--with", "lift.py:verdict").code == 0
    assert bench.agentctl("state", "get", "last", "verdict").out == '{"word":"good","was":1}\n'
    assert bench.agentctl("state", "migrate", "last").code == 0


def test_the_thread_keeps_its_document_for_the_next_run(bench: Bench, blueprint: Path) -> None:
    first = trusted(bench, blueprint, "--json")
    thread = str(first.result["thread"])
    (bench.workdir / "a.txt").unlink()

    second = bench.agentctl("run", blueprint, "again", "--thread", thread, *WRITES, "--json")

    assert second.code == 0, second.err
    files = bench.agentctl("workspace", "show", "last", "/workspace/files", "--json").out
    assert files == '["a.txt","a.txt"]\n'
    assert bench.agentctl("state", "get", "last", "writes").out == "15\n"


def test_a_recorded_run_is_replayed_under_todays_policy(bench: Bench, blueprint: Path) -> None:
    trusted(bench, blueprint)
    (bench.workdir / "a.txt").unlink()
    strict = bench.folder / "strict.toml"
    strict.write_text('[tool_permissions]\nwrite_file = "deny"\n', encoding="utf-8")

    same = bench.agentctl("replay", "last")
    other = bench.agentctl("replay", "last", "--policy", strict, "--json")

    assert (same.code, same.out) == (0, "nothing would differ\n"), same.out
    assert other.code == 1
    rows = json.loads(other.out)
    assert rows[0] == {
        "what": "decision",
        "about": "call-0-0-1 write_file",
        "recorded": "allow by --allow write_file (launch)",
        "today": "deny by write_file (user)",
    }
    assert {"what": "state", "about": "document", "recorded": "", "today": "- /workspace/files/0"} in rows
    assert list(bench.workdir.iterdir()) == []
    assert bench.agentctl("replay", "last", "--until", "9999").code == 0


ALONE = """
[agent]
name = "alone"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work."
available_tools = ["shell", "ask_user"]
required_tools = ["ask_user"]
[[script.replies]]
tool_calls = [{ tool = "shell", arguments = { command = "make a" } }]
[[script.replies]]
tool_calls = [{ tool = "ask_user", arguments = { question = "What?" } }]
[[script.replies]]
text = "done"
"""


@pytest.mark.parametrize("paused", [False, True], ids=["refused at once", "paused, then resumed"])
def test_a_run_that_nobody_answered_is_replayed_as_it_was(bench: Bench, *, paused: bool) -> None:
    blueprint = bench.blueprint(ALONE)
    if paused:
        assert bench.agentctl("run", blueprint, "go", "--on-ask", "pause").code == 4
        assert bench.agentctl("resume", "last").code == 5
    else:
        assert bench.agentctl("run", blueprint, "go").code == 5

    again = bench.agentctl("replay", "last")

    assert (again.code, again.out) == (0, "nothing would differ\n"), again.out


def test_a_run_is_forked_from_an_earlier_point_and_goes_on(bench: Bench, blueprint: Path) -> None:
    first = trusted(bench, blueprint, "--json")
    run = str(first.result["run"])
    log = bench.agentctl("state", "history", run, "writes", "--json")
    at = json.loads(log.out)[-1]["sequence"]

    forked = bench.agentctl("fork", run, "--at", str(at), "--json")
    new = forked.result["run"]

    assert forked.code == 0, forked.err
    assert bench.agentctl("state", "get", str(new), "writes").out == "15\n"
    assert bench.agentctl("workspace", "show", str(new), "/workspace/files", "--json").out == '["a.txt"]\n'
    assert bench.agentctl("shared", "get", str(new), "notes").out == "kept\n"
    (bench.workdir / "a.txt").write_text("hello", encoding="utf-8")
    resumed = bench.agentctl("resume", str(new), *WRITES, "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.result["answer"] == "done"
    assert bench.agentctl("state", "verify", str(new)).code == 0
    assert bench.agentctl("fork", run, "--at", "9999").code == 2


def test_hooks_can_be_listed_and_tried(bench: Bench, blueprint: Path) -> None:
    trusted(bench, blueprint)
    event = bench.folder / "event.json"
    event.write_text(
        json.dumps({"event": "tool_result", "call": {"tool": "current_time"}, "raw": "x"}), encoding="utf-8"
    )

    listed = json.loads(bench.agentctl("hooks", "list", blueprint, "--json").out)
    tried = json.loads(bench.agentctl("hooks", "test", blueprint, "--event", event, "--json").out)

    assert [(row["name"], row["events"]) for row in listed] == [("counting", ["tool_result"])]
    assert tried["action"] == {"type": "RewriteResult", "text": "call 1: noon"}
    assert tried["acted"][0]["hook"] == "counting"
    event.write_text('{"event": "dance"}', encoding="utf-8")
    assert bench.agentctl("hooks", "test", blueprint, "--event", event).code == 2


def test_a_stage_that_names_state_keys_gives_its_model_the_tools_for_them(bench: Bench) -> None:
    blueprint = bench.blueprint(
        """
        [agent]
        name = "cells"
        [model]
        use = ["scripted:"]
        [[state_keys]]
        name = "verdict"
        [stages.judge]
        prompt = "Judge."
        state = { write = ["verdict"] }
        transitions.report = {}
        [stages.report]
        prompt = "Report."
        state = { read = ["verdict"] }
        [[script.replies]]
        stage = "judge"
        expect = { tools = ["state_get", "state_set"] }
        tool_calls = [{ tool = "state_set", arguments = { key = "verdict", value = "good" } }]
        [[script.replies]]
        stage = "judge"
        text = "Judged."
        [[script.replies]]
        stage = "report"
        expect = { tools = ["state_get"] }
        text = "Reported."
        """
    )

    ran = bench.agentctl("run", blueprint, "go")

    assert ran.code == 0, ran.err
    assert bench.agentctl("state", "get", "last", "verdict").out == '"good"\n'
    planned = bench.agentctl("plan", blueprint).out
    assert planned.count("state_get  ") == 2
    assert planned.count("state_set  ") == 1


def test_shared_state_is_kept_at_the_address_that_is_named_without_a_backend(bench: Bench) -> None:
    kept = bench.folder / "kept.sqlite"
    blueprint = bench.blueprint(
        f"""
        [agent]
        name = "keeper"
        [model]
        use = ["scripted:"]
        [shared_state]
        url = "{kept}"
        [stages.work]
        prompt = "Keep it."
        available_tools = ["shared_state"]
        [[script.replies]]
        tool_calls = [{{ tool = "shared_state", arguments = {{ action = "set", key = "k", value = "v" }} }}]
        [[script.replies]]
        text = "Kept."
        """
    )
    digest = bench.agentctl("run", blueprint, "go").err.rsplit("--trust ", 1)[1].split()[0]

    assert bench.agentctl("run", blueprint, "go", "--trust", digest).code == 0

    assert kept.is_file()
    assert bench.agentctl("shared", "get", "last", "k").out == "v\n"
