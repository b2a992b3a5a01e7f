"""Hooks in real runs: every event, what is journaled, what a resume restores, programs in any language."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.trust import trust_needed
from agentctl.errors import InvalidInput
from agentctl.protocol.events import CallCompleted, HookActed, MessageAdded, RunEnded
from agentctl.protocol.messages import UserMessage
from agentctl.settings.trust_store import TrustStore
from agentctl.testing.play import Played, Turn, play

pytestmark = pytest.mark.anyio

HEAD = """
[agent]
name = "hooked"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work."
available_tools = ["current_time", "read_file", "run_info", "write_file", "edit_file"]
"""


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workdir = folder / "work"
        self.workdir.mkdir()

    def blueprint(self, hooks: str, **files: str) -> Path:
        for name, text in files.items():
            (self.folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
        path = self.folder / "hooked.toml"
        path.write_text(HEAD + hooks, encoding="utf-8")
        trust = trust_needed(load_blueprint(path))
        if trust.items:
            TrustStore().add(trust.sha256, blueprint=path)
        return path

    async def play(self, path: Path, *replies: Any, allow: tuple[str, ...] = ()) -> Played:
        return await play(path, [Turn(text="go", replies=replies)], workdir=self.workdir, allow=allow)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def hook(code: str) -> str:
    return f"from agentctl.api import *\n\nclass H(Hook):\n{code}\n"


USE = '[[hooks]]\nname = "h"\nuse = "h.py:H"\n'
TIME: Any = {"tool_calls": [{"tool": "current_time"}]}


async def test_a_skipped_call_does_not_run_and_its_reason_is_the_result(bench: Bench) -> None:
    path = bench.blueprint(
        USE,
        h__py=hook(
            "    def on_tool_call(self, c, e): return Skip('why')\n"
            "    def on_tool_result(self, c, e): return RewriteResult(f'{e.outcome}: {e.shown}')"
        ),
    )

    played = await bench.play(path, TIME, {"text": "done"})

    assert played.calls == ()
    assert [(result.outcome, result.text) for result in played.results] == [("denied", "skipped: why")]
    acted = [event for event in played.events if isinstance(event, HookActed)]
    assert [(one.hook, one.event, one.action) for one in acted] == [
        ("h", "tool_call", "Skip"),
        ("h", "tool_result", "RewriteResult"),
    ]
    assert acted[0].detail == {"reason": "why"}


async def test_rewritten_arguments_are_what_is_judged_and_run(bench: Bench) -> None:
    path = bench.blueprint(
        USE, h__py=hook("    def on_tool_call(self, c, e): return RewriteArguments({'path': '/etc/passwd'})")
    )
    (bench.workdir / "a.txt").write_text("fine", encoding="utf-8")

    played = await bench.play(
        path, {"tool_calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}, {"text": "done"}
    )

    assert played.results[0].outcome == "denied"
    assert "outside" in played.results[0].text


async def test_a_stop_ends_the_run_with_its_reason(bench: Bench) -> None:
    path = bench.blueprint(USE, h__py=hook("    def on_tool_call(self, c, e): return Stop('enough')"))

    played = await bench.play(path, TIME)

    assert isinstance(played.end, RunEnded)
    assert (played.end.outcome, played.end.exit_code) == ("failed", 1)
    assert "enough" in played.end.reason
    assert played.calls == ()


async def test_a_turn_can_be_asked_for_again(bench: Bench) -> None:
    path = bench.blueprint(
        USE,
        h__py=hook(
            "    def on_turn_finished(self, c, e):\n"
            "        if e.reply.text == 'bad': return Repeat()\n"
            "        if e.reply.text == 'short': return Feedback('longer, please')"
        ),
    )

    played = await bench.play(path, {"text": "bad"}, {"text": "short"}, {"text": "a longer answer"})

    assert played.answer == "a longer answer"
    added = [event.message for event in played.events if isinstance(event, MessageAdded)]
    texts = [
        message.parts[0].text if isinstance(message, UserMessage) else message.text  # type: ignore[union-attr]
        for message in added
    ]
    assert texts == ["go", "short", "longer, please", "a longer answer"]


async def test_a_turn_with_tool_calls_cannot_be_asked_for_again(bench: Bench) -> None:
    path = bench.blueprint(USE, h__py=hook("    def on_turn_finished(self, c, e): return Repeat()"))

    played = await bench.play(path, TIME)

    assert isinstance(played.end, RunEnded)
    assert "tool calls" in played.end.reason
    assert played.calls == ()


async def test_a_patch_is_for_one_request_and_can_only_narrow_tools(bench: Bench) -> None:
    path = bench.blueprint(
        USE,
        h__py=hook(
            "    def on_model_call(self, c, e):\n"
            "        if c.step == 1: return Patch(active_tools=('run_info', 'shell'), context=('NOTE',))"
        ),
    )

    played = await bench.play(
        path,
        {"expect": {"tools": ["run_info"], "last": "NOTE"}, "tool_calls": [{"tool": "run_info"}]},
        {"text": "done"},
    )

    assert played.answer == "done", played.end


async def test_a_required_tool_that_is_filtered_out_is_an_error_before_any_call(bench: Bench) -> None:
    path = bench.blueprint(
        USE,
        h__py=hook(
            "    def on_model_call(self, c, e): return Patch(tool_choice='required', active_tools=())"
        ),
    )

    played = await bench.play(path, {"text": "never asked"})

    assert isinstance(played.end, RunEnded)
    assert "required" in played.end.reason
    assert played.usage.input_tokens == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Repair('current_time')", "ok"),
        ("Skip('no such thing')", "no such thing"),
        ("RetryCall('use current_time')", "use current_time"),
        ("None", "There is no tool"),
    ],
)
async def test_a_call_of_an_unknown_tool_is_decided_by_hooks(
    bench: Bench, answer: str, expected: str
) -> None:
    path = bench.blueprint(USE, h__py=hook(f"    def on_invalid_tool_call(self, c, e): return {answer}"))
    both: Any = {"tool_calls": [{"tool": "get_time"}, {"tool": "run_info"}]}

    played = await bench.play(path, both, {"text": "done"})

    first, second = played.results
    assert expected in (first.outcome, first.text) or expected in first.text
    # Where one call is skipped, no call of the turn runs.
    assert (second.outcome == "ok") is (answer in ("None", "Repair('current_time')"))


async def test_an_unknown_tool_can_end_the_run(bench: Bench) -> None:
    path = bench.blueprint(USE, h__py=hook("    def on_invalid_tool_call(self, c, e): return Fail('lost')"))

    played = await bench.play(path, {"tool_calls": [{"tool": "get_time"}]})

    assert isinstance(played.end, RunEnded)
    assert played.end.reason == "lost"


async def test_a_hook_can_stop_a_reply_while_it_comes_in(bench: Bench) -> None:
    path = bench.blueprint(
        USE,
        h__py=hook(
            "    def on_text_delta(self, c, e):\n        return Stop('a secret') if 'sk-' in e.text else None"
        ),
    )

    played = await bench.play(path, {"text": "the key is sk-123"})

    assert isinstance(played.end, RunEnded)
    assert "a secret" in played.end.reason
    acted = [event for event in played.events if isinstance(event, HookActed)]
    assert [(event.event, event.action) for event in acted] == [("text_delta", "Stop")]


async def test_a_method_for_no_event_is_a_mistake_and_not_a_hook_that_never_acts(bench: Bench) -> None:
    path = bench.blueprint(
        USE, h__py=hook("    def on_stage_entry(self, c, e):\n        return Stop('never')")
    )

    with pytest.raises(InvalidInput, match="on_stage_entry is for no event; the events are model_call,"):
        await bench.play(path, {"text": "done"})


async def test_a_program_can_be_a_hook_and_keeps_notes(bench: Bench) -> None:
    script = """
import json, sys
said = json.load(sys.stdin)
notes = said["scratchpad"]
notes["calls"] = notes.get("calls", 0) + 1
if said["event"] == "tool_call" and said["call"]["tool"] == "run_info":
    reason = f"call {notes['calls']} of {said['agent']}"
    print(json.dumps({"action": "skip", "reason": reason, "scratchpad": notes}))
else:
    print(json.dumps({"action": "continue", "scratchpad": notes}))
"""
    table = (
        f'[[hooks]]\nname = "p"\ncommand = [{json.dumps(sys.executable)}, "{bench.folder}/p.py"]\n'
        'events = ["tool_call"]\ntimeout = "20s"\n'
    )
    path = bench.blueprint(table, p__py=script)

    played = await bench.play(path, TIME, {"tool_calls": [{"tool": "run_info"}]}, {"text": "done"})

    assert [result.outcome for result in played.results] == ["ok", "denied"]
    assert played.results[1].text == "call 2 of hooked"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import sys; sys.exit('broken')", "broken"),
        ("print('no json')", "JSON"),
        ('print(\'{"action": "dance"}\')', "dance"),
        ("import time; time.sleep(60)", "longer than"),
    ],
)
async def test_a_program_that_fails_refuses_the_call(bench: Bench, script: str, why: str) -> None:
    table = (
        f'[[hooks]]\nname = "p"\ncommand = [{json.dumps(sys.executable)}, "{bench.folder}/p.py"]\n'
        'events = ["tool_call"]\ntimeout = "2s"\n'
    )
    path = bench.blueprint(table, p__py=script)

    played = await bench.play(path, TIME, {"text": "done"})

    assert played.results[0].outcome == "denied"
    assert why in played.results[0].text


async def test_redact_keeps_credentials_from_the_model_and_the_journal(bench: Bench) -> None:
    secrets = "key sk-abcdefghijklmnopqrstuvwx\nAKIAABCDEFGHIJKLMNOP\nmine-42\nkept"
    (bench.workdir / "a.txt").write_text(secrets, encoding="utf-8")
    path = bench.blueprint(
        '[[hooks]]\nname = "r"\nbuiltin = "redact"\nparams = { patterns = ["mine-[0-9]+"] }\n'
    )

    played = await bench.play(
        path, {"tool_calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}, {"text": "done"}
    )

    assert "kept" in played.results[0].text
    for secret in ("sk-abc", "AKIA", "mine-42"):
        assert secret not in str([event for event in played.events if isinstance(event, CallCompleted)])


async def test_audit_writes_a_line_for_each_call_result_and_reply(bench: Bench) -> None:
    log = bench.folder / "logs" / "audit.jsonl"
    path = bench.blueprint(f'[[hooks]]\nname = "a"\nbuiltin = "audit"\nparams = {{ file = "{log}" }}\n')

    await bench.play(path, TIME, {"text": "done"})

    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["event"] for line in lines] == ["model_reply", "tool_call", "tool_result", "model_reply"]
    assert lines[2]["outcome"] == "ok"
    assert all(line["run"] and line["at"] for line in lines)


async def test_read_before_write_refuses_what_was_not_read(bench: Bench) -> None:
    (bench.workdir / "a.txt").write_text("old", encoding="utf-8")
    path = bench.blueprint('[[hooks]]\nname = "rbw"\nbuiltin = "read_before_write"\n')
    edit: Any = {
        "tool_calls": [{"tool": "edit_file", "arguments": {"path": "a.txt", "old": "old", "new": "new"}}]
    }
    new: Any = {"tool_calls": [{"tool": "write_file", "arguments": {"path": "b.txt", "content": "x"}}]}

    played = await bench.play(
        path,
        edit,
        {"tool_calls": [{"tool": "read_file", "arguments": {"path": "./a.txt"}}]},
        edit,
        new,
        {"text": "done"},
        allow=("write_file",),
    )

    assert [result.outcome for result in played.results] == ["denied", "ok", "ok", "ok"]
    assert played.results[0].text == "Read a.txt before you change it."


async def test_notify_starts_its_command_with_a_sentence(bench: Bench) -> None:
    told = bench.folder / "told"
    table = f'params = {{ command = ["sh", "-c", "echo \\"$1\\" > {told}", "sh"] }}\n'
    path = bench.blueprint(f'[[hooks]]\nname = "n"\nbuiltin = "notify"\n{table}')

    played = await bench.play(path, {"text": "done"})

    assert played.answer == "done"
    with anyio.fail_after(10):
        while not (told.exists() and told.read_text(encoding="utf-8").endswith("\n")):
            await anyio.lowlevel.checkpoint()
    assert told.read_text(encoding="utf-8") == f"hooked ({played.runs[0]}) has ended: finished.\n"
