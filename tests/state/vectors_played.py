"""What the vectors say of runs: hooks, approvals, batches, repeats. Each check plays one in a folder."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentctl.protocol.events import CallCompleted, HookActed, MessageAdded, RunEnded, RunSuspended
from agentctl.protocol.messages import ToolMessage, UserMessage
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, Question
from agentctl.run.runner import RunEnd
from agentctl.testing.play import Played, Turn, play
from tests.agent.test_run_hooks import HEAD, TIME, USE, Bench, hook
from tests.end_to_end.test_subagents import FAMILY

Check = Callable[[Any, Path], Awaitable[None]]


def opened(folder: Path) -> Bench:
    folder.mkdir()
    return Bench(folder)


async def hooked(folder: Path, code: str, *replies: Any, **more: Any) -> Played:
    """Play replies under one hook, whose methods are `code`."""
    bench = opened(folder)
    path = bench.blueprint(more.pop("head", "") + USE, h__py=hook(code))
    turns = more.pop("turns", [Turn(text="go", replies=replies)])
    return await play(path, turns, workdir=bench.workdir, **more)


def why(end: RunEnd) -> str:
    assert isinstance(end, RunEnded | RunSuspended)
    return end.reason


def calls(*tools: str) -> Any:
    return {"tool_calls": [{"tool": tool} for tool in tools]}


def writes(*names: str) -> Any:
    return {
        "tool_calls": [{"tool": "write_file", "arguments": {"path": name, "content": name}} for name in names]
    }


def acted(played: Played) -> list[tuple[str, str]]:
    return [(one.event, one.action) for one in played.events if isinstance(one, HookActed)]


DONE: Any = {"text": "done"}


async def skip(vector: Any, folder: Path) -> None:
    reason = vector["expected"]["model_sees"]
    code = f"""
    def on_tool_call(self, c, e): return Skip({reason!r})
    def on_tool_result(self, c, e): return RewriteResult(e.outcome + ":" + e.shown)"""
    played = await hooked(folder, code, TIME, DONE)
    assert len(played.calls) == vector["expected"]["tool_runs"]
    assert played.results[0].text == f"{vector['expected']['outcome']}:{reason}"


async def rewritten_result(vector: Any, folder: Path) -> None:
    shown = vector["input"].get("rewrite", "rewritten")
    if shown == "rewrite result":
        shown = "rewritten"
    code = f"    def on_tool_result(self, c, e): return RewriteResult({shown!r})"
    missing = {"tool_calls": [{"tool": "read_file", "arguments": {"path": "none"}}]}
    played = await hooked(folder, code, missing, DONE)
    (result,) = played.results
    assert (result.outcome, result.text) == ("failed", shown)


async def raising(vector: Any, folder: Path) -> None:
    played = await hooked(folder, "    def on_tool_call(self, c, e): raise ValueError", TIME, DONE)
    assert played.calls == ()
    assert played.results[0].outcome == "denied"


async def narrowing_chain(vector: Any, folder: Path) -> None:
    bench = opened(folder)
    names = ("modify", "allow", "deny")
    bodies = ("RewriteArguments({'path': 'a1'})", "Continue()", "Skip('why')")
    files = {
        f"{name}__py": hook(f"    def on_tool_call(self, c, e): return {body}")
        for name, body in zip(names, bodies, strict=True)
    }
    files["log__py"] = hook(
        "    def on_tool_result(self, c, e): return RewriteResult(str(e.arguments) + e.shown)"
    )
    uses = "".join(f'[[hooks]]\nname = "{name}"\nuse = "{name}.py:H"\n' for name in (*names, "log"))
    reading = {"tool_calls": [{"tool": "read_file", "arguments": {"path": "a0"}}]}
    played = await bench.play(bench.blueprint(uses, **files), reading, DONE)
    (result,) = played.results
    assert (result.outcome, played.calls) == ("denied", ())
    assert result.text.endswith("why")


BUDGET = """
    def on_turn_finished(self, c, e):
        tried = c.scratchpad.get(dict) or {}
        key = c.agent + type(self).__name__
        if e.reply.text != "rejected":
            return None
        if tried.get(key, 0) >= 1:
            return Stop("retries used up")
        tried[key] = tried.get(key, 0) + 1
        c.scratchpad.insert(tried)
        return Feedback("again")
"""


async def retry_budget(vector: Any, folder: Path) -> None:
    """A budget in the scratchpad is one a run: two turns are two runs, each with its own."""
    rejected: Any = {"text": "rejected"}
    if vector["case"] == "retry_budget_isolated_by_hook_id":
        bench = opened(folder)
        code = BUDGET.replace("type(self).__name__", "self.name").replace(
            '"rejected"', '"rejected by " + self.name'
        )
        one = hook(f"    name = 'A'\n{code}")
        path = bench.blueprint(
            USE + '[[hooks]]\nname = "g"\nuse = "g.py:H"\n', h__py=one, g__py=one.replace("'A'", "'B'")
        )
        played = await bench.play(path, {"text": "rejected by A"}, {"text": "rejected by B"}, DONE)
        assert acted(played) == [("turn_finished", "Feedback")] * len(vector["expected"])
        assert played.answer == "done"
        return
    turns = [Turn(text="one", replies=[rejected, DONE]), Turn(text="two", replies=[rejected, DONE])]
    played = await hooked(folder, BUDGET, turns=turns)
    assert acted(played) == [("turn_finished", "Feedback")] * 2
    assert played.answer == "done"
    again = await hooked(folder / "third", BUDGET, rejected, rejected)
    assert acted(again)[-1] == ("turn_finished", "Stop")


ASKS = """
[tool_permissions]
write_file = "ask"
"""


def reviewer(*answers: ApprovalAnswer) -> Callable[[Question], Answer]:
    left = list(answers)

    def answer(question: Question) -> Answer:
        assert isinstance(question, ApprovalQuestion)
        return left.pop(0) if left else ApprovalAnswer(choice="no", reason="fail closed")

    return answer


async def reviewed(vector: Any, folder: Path) -> None:
    bench = opened(folder)
    person = reviewer(
        ApprovalAnswer(choice="once"),
        ApprovalAnswer(choice="no", reason="denied by reviewer"),
        ApprovalAnswer(choice="edit", arguments={"path": "edited", "content": "x"}),
        ApprovalAnswer(choice="once"),
    )
    played = await play(
        bench.blueprint(ASKS), [Turn(text="go", replies=[writes("a", "b", "c"), DONE])],
        workdir=bench.workdir, answers=person,
    )  # fmt: skip
    assert [result.outcome for result in played.results] == ["ok", "denied", "ok"]
    assert "denied by reviewer" in played.results[1].text
    assert sorted(path.name for path in bench.workdir.iterdir()) == ["a", "edited"]


async def nobody_decides(vector: Any, folder: Path) -> None:
    bench = opened(folder)
    played = await play(
        bench.blueprint(ASKS), [Turn(text="go", replies=[writes("a"), DONE])],
        workdir=bench.workdir, answers=reviewer(),
    )  # fmt: skip
    assert (played.results[0].outcome, played.calls) == ("denied", ())
    assert "fail closed" in played.results[0].text


async def aborted(vector: Any, folder: Path) -> None:
    reason = vector["input"]["decision"].removeprefix("abort ").strip("'")
    played = await hooked(folder, f"    def on_tool_call(self, c, e): return Stop({reason!r})", TIME)
    assert vector["expected"]["contains"] in why(played.end)


async def sticky(vector: Any, folder: Path) -> None:
    code = """
    def on_tool_call(self, c, e):
        known = c.scratchpad.get(dict) or {}
        if e.tool not in known:
            known[e.tool] = e.tool == "current_time"
            c.scratchpad.insert(known)
        return None if known[e.tool] else Skip(f"denied by policy: {e.tool}")"""
    played = await hooked(folder, code, TIME, calls("run_info"), TIME, DONE)
    assert [result.outcome for result in played.results] == ["ok", "denied", "ok"]


async def batch(vector: Any, folder: Path) -> None:
    """Results enter the thread in call order, all at once, whatever finished first."""
    played = await hooked(folder, "    pass", writes("a", "b", "c", "d"), DONE, allow=["write_file"])
    asked = [result.call_id for result in played.results]
    assert asked == [f"call-0-0-{number}" for number in range(4)]
    kinds = [type(event) for event in played.events if isinstance(event, CallCompleted)]
    shown = [
        index
        for index, event in enumerate(played.events)
        if isinstance(event, MessageAdded) and isinstance(event.message, ToolMessage)
    ]
    ran = [index for index, event in enumerate(played.events) if isinstance(event, CallCompleted)]
    assert len(kinds) == 4
    assert max(ran) < min(shown)


async def stops_in_a_batch(vector: Any, folder: Path) -> None:
    code = """
    def on_tool_call(self, c, e): return Stop("at " + e.arguments["path"])"""
    played = await hooked(folder, code, writes("a", "b"), allow=["write_file"])
    assert why(played.end).endswith("at a")
    assert played.calls == ()
    assert played.results == ()


async def most_at_once(vector: Any, folder: Path) -> None:
    """Each call writes down how many others were under way; a shell call sees what the others left."""
    limit, count = vector["input"]["tool_concurrency"], vector["input"]["calls"]
    head = f"tool_concurrency = {limit}\n"
    line = "mine=$(mktemp -d busy.XXXXXX) && ls -d busy.* | wc -l >> seen && rmdir $mine"
    replies = {"tool_calls": [{"tool": "shell", "arguments": {"command": line}}] * count}
    bench = opened(folder)
    text = HEAD.replace('"current_time"', '"shell"').replace("[stages.work]\n", f"[stages.work]\n{head}")
    path = folder / "many.toml"
    path.write_text(text, encoding="utf-8")
    played = await play(
        path, [Turn(text="go", replies=[replies, DONE])], workdir=bench.workdir, allow=["shell", "write_file"]
    )
    seen = [int(word) for word in (bench.workdir / "seen").read_text("utf-8").split()]
    assert len(played.calls) == len(seen) == count
    assert max(seen) <= vector["expected"]["max_in_flight"]


async def repeated_turn(vector: Any, folder: Path) -> None:
    code = "    def on_turn_finished(self, c, e): return Repeat()"
    if vector["case"] == "model_turn_retry_tool_turn_rejected":
        played = await hooked(folder, code, TIME)
        assert "turn with tool calls" in why(played.end)
        assert (played.calls, played.results) == ((), ())
        return
    played = await hooked(folder, code, DONE, DONE, head="[limits]\nsteps = 1\n")
    assert "1 are allowed (limits.steps)" in why(played.end)


async def patch_once(vector: Any, folder: Path) -> None:
    code = "    def on_model_call(self, c, e): return Patch(context=('NOTE',)) if c.step == 1 else None"
    first = {"expect": {"last": "NOTE"}, "tool_calls": [{"tool": "current_time"}]}
    played = await hooked(folder, code, first, DONE)
    assert played.answer == "done"
    assert acted(played) == [("model_call", "Patch")]
    added = [one.message for one in played.events if isinstance(one, MessageAdded)]
    assert not any("NOTE" in repr(message) for message in added)


async def patched_history(vector: Any, folder: Path) -> None:
    code = """
    def on_model_call(self, c, e):
        from agentctl.protocol.messages import user_text
        return Patch(history=(user_text("other words"),))"""
    played = await hooked(folder, code, {"expect": {"last": "other words"}, "text": "done"})
    assert played.answer == "done", played.end
    said = [
        one.message
        for one in played.events
        if isinstance(one, MessageAdded) and isinstance(one.message, UserMessage)
    ]
    assert "other words" not in repr(said)


async def required_tool(vector: Any, folder: Path) -> None:
    code = "    def on_model_call(self, c, e): return Patch(tool_choice='required', active_tools=())"
    played = await hooked(folder, code, DONE)
    assert "none" in why(played.end)
    assert played.usage.input_tokens == 0


async def recovered_turn(vector: Any, folder: Path) -> None:
    code = """
    def on_invalid_tool_call(self, c, e): return Skip("no such thing")
    def on_model_reply(self, c, e): return Stop("seen") if e.reply.tool_calls else None
    def on_turn_finished(self, c, e): return Stop("finished") if e.reply.tool_calls else None"""
    played = await hooked(folder, code, calls("no_such_tool"), DONE)
    assert played.answer == "done", played.end
    assert acted(played) == [("invalid_tool_call", "Skip")]


EFFECT = """
[workspace]
initial = { ran = [] }
[[state_effects]]
tool = "*"
ops = [{ op = "add", path = "/ran/-", value = "x" }]
"""


async def failed_calls_have_no_effect(vector: Any, folder: Path) -> None:
    bench = opened(folder)
    missing = {"tool_calls": [{"tool": "read_file", "arguments": {"path": "none"}}, {"tool": "none"}]}
    played = await bench.play(bench.blueprint(EFFECT), missing, DONE)
    assert {result.outcome for result in played.results} == {"failed"}
    assert played.state() == {"ran": []}


STEER = "You are repeating the same calls"


def steers(played: Played) -> int:
    return sum(STEER in repr(one) for one in played.events if isinstance(one, MessageAdded))


async def circles(vector: Any, folder: Path) -> None:
    bench = opened(folder)
    path = bench.blueprint("")
    match vector["case"]:
        case "loop_threshold_nth":
            two = await bench.play(path, *[calls("run_info")] * 2, DONE)
            assert steers(two) == 0
            three = await bench.play(path, *[looking("a", "b")] * vector["expected"][2]["steer"], DONE)
            assert steers(three) == 1
        case "loop_key_order":
            swapped = [looking("a", "b"), looking("a", "b", swapped=True), looking("a", "b")]
            assert steers(await bench.play(path, *swapped, DONE)) == 1
        case _:
            assert steers(await bench.play(path, *[TIME, TIME, calls("run_info")] * 2, DONE)) == 0


def looking(path: str, other: str, *, swapped: bool = False) -> Any:
    both = [("path", path), ("limit", 5)]
    return {"tool_calls": [{"tool": "read_file", "arguments": dict(both[::-1] if swapped else both)}]}


async def child(vector: Any, folder: Path) -> None:
    """A sub-agent that fails is a failed call; one without its arguments is none."""
    bench = opened(folder)
    spawn = {"tool": "spawn_agent", "arguments": {"agent": "digger", "task": "dig"}}
    if vector["case"] == "subagent_missing_task":
        spawn["arguments"] = {}
    again = {"tool_calls": [{"tool": "shell", "arguments": {"command": "echo same"}}]}
    text = FAMILY.replace("[script]", "")
    if vector["case"] == "subagent_turn_limit_is_partial":
        text = text.replace("[stages.digger]\n", "[stages.digger]\nmax_steps = 1\n")
    path = folder / "family.toml"
    path.write_text(text, encoding="utf-8")
    replies: list[Any] = [
        {"stage": "lead", "tool_calls": [spawn]},
        {"stage": "lead", "text": "led"},
        {**again, "agent": "digger", "text": "so far", "times": 0},
    ]
    played = await play(
        path, [Turn(text="go", replies=replies)], workdir=bench.workdir, allow=["spawn_agent", "shell"]
    )
    outcomes = {result.tool: result.outcome for result in played.results}
    partial = vector["case"] == "subagent_turn_limit_is_partial"
    assert outcomes["spawn_agent"] == ("ok" if partial else "failed")
    (spawned,) = [result for result in played.results if result.tool == "spawn_agent"]
    assert not partial or ("limited" in spawned.text and "so far" in spawned.text)


async def childs_state(vector: Any, folder: Path) -> None:
    """A sub-agent reads what its parent shared, and its last text is the parent's result."""
    bench = opened(folder)
    tools = 'available_tools = ["shared_state", "spawn_agent", "shell"]'
    text = FAMILY.replace("[script]", "").replace('available_tools = ["shell"]', tools)
    path = folder / "family.toml"
    path.write_text(text.replace('"send_agent", "shell"]', '"shared_state"]'), encoding="utf-8")
    artifact = vector["input"]["state"]["artifact"]
    sets = {"action": "set", "key": "artifact", "value": artifact}
    spawn = {"tool": "spawn_agent", "arguments": {"agent": "digger", "task": "dig", "read": ["artifact"]}}
    replies: list[Any] = [
        {"stage": "lead", "tool_calls": [{"tool": "shared_state", "arguments": sets}]},
        {"stage": "lead", "tool_calls": [spawn]},
        {"stage": "lead", "text": "led"},
        {
            "agent": "digger",
            "tool_calls": [{"tool": "shared_state", "arguments": {"action": "get", "key": "artifact"}}],
        },
        {"agent": "digger", "expect": {"anywhere": [artifact]}, "text": "its last text"},
    ]
    played = await play(
        path, [Turn(text="go", replies=replies)], workdir=bench.workdir, allow=["spawn_agent"]
    )
    (spawned,) = [result for result in played.results if result.tool == "spawn_agent"]
    assert "its last text" in spawned.text


async def store_tool(vector: Any, folder: Path) -> None:
    """The schema refuses the call before it runs, and says what it takes; words are not the original's."""
    bench = opened(folder)
    path = bench.blueprint("")
    path.write_text(HEAD.replace('"current_time"', '"shared_state"'), encoding="utf-8")
    wrong = {"tool_calls": [{"tool": "shared_state", "arguments": vector["input"]}]}
    played = await play(path, [Turn(text="go", replies=[wrong, DONE])], workdir=bench.workdir)
    (result,) = played.results
    assert (result.outcome != "ok") is vector["expected"]["is_error"]
    named = {"tool_unknown_action": ("get", "set", "list", "remove"), "tool_no_action": ("action",)}
    assert all(word in result.text for word in named.get(vector["case"], ("value",)))


PLAYED: dict[str, Check] = {
    "subagent_reads_state": childs_state,
    **dict.fromkeys(("tool_unknown_action", "tool_no_action", "tool_set_non_string_value"), store_tool),
    "skip_feeds_reason": skip,
    **dict.fromkeys(("rewrite_does_not_mask_outcome", "rewrite_result_verbatim"), rewritten_result),
    "middleware_panic_denies": raising,
    "middleware_modify_chain": narrowing_chain,
    **dict.fromkeys(
        ("retry_budget_isolated_by_run", "retry_budget_isolated_by_hook_id", "concurrent_runs_budgets"),
        retry_budget),
    "hitl_approve_deny_edit": reviewed,
    "hitl_abort": aborted,
    "sticky_policy": sticky,
    "hook_state_shared_over_clones_fail_closed": nobody_decides,
    **dict.fromkeys(("concurrency_history_order", "concurrency_results_after_batch"), batch),
    **dict.fromkeys(("concurrency_two_terminations", "sequential_stop_skips_rest"), stops_in_a_batch),
    "concurrency_bound": most_at_once,
    **dict.fromkeys(
        ("model_turn_retry_tool_turn_rejected", "model_turn_retry_respects_max_turns"), repeated_turn),
    "patch_not_sticky": patch_once,
    "history_patch_only_on_wire": patched_history,
    "required_with_no_active_tool": required_tool,
    "invalid_recovery_suppresses_finish": recovered_turn,
    **dict.fromkeys(
        ("effect_failed_call_writes_nothing", "effect_exception_writes_nothing"),
        failed_calls_have_no_effect),
    **dict.fromkeys(("loop_threshold_nth", "loop_key_order", "loop_interleaved_resets"), circles),
    **dict.fromkeys(
        ("subagent_loop_is_error", "subagent_missing_task", "subagent_turn_limit_is_partial"), child),
}  # fmt: skip
