"""How hooks combine: order, first stop, chains of rewrites, patches, failures."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agentctl.agent.hook_stack import Acted, merge_patches
from agentctl.api import (
    Continue,
    Fail,
    Feedback,
    Hook,
    HookContext,
    HookStack,
    InvalidToolCall,
    Member,
    ModelCall,
    ModelReply,
    ModelSelect,
    Patch,
    Repeat,
    RewriteArguments,
    RewriteResult,
    Select,
    Skip,
    Stop,
    TextDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnFinished,
)
from agentctl.llm.base import ModelRequest
from agentctl.protocol.messages import AssistantMessage, TextPart, Usage

pytestmark = pytest.mark.anyio

CONTEXT = HookContext(run_id="r-1", agent="agent", step=3)
CALL = ToolCallEvent(call_id="c", tool="add", arguments={"step": 0})
RESULT = ToolResultEvent(
    call_id="c",
    tool="add",
    arguments={},
    outcome="failed",
    raw="raw failure (timeout)",
    structured=None,
    shown="raw failure (timeout)",
)
REQUEST = ModelCall(request=ModelRequest(system="s", messages=()))
REPLY = AssistantMessage(parts=(TextPart(text="hi"),))


def calls(answer: Callable[[ToolCallEvent], Any], log: list[Any] | None = None) -> Hook:
    class Calls(Hook):
        def on_tool_call(self, context: HookContext, event: ToolCallEvent) -> Any:
            if log is not None:
                log.append(event.arguments)
            return answer(event)

    return Calls()


def patches(*given: Patch | Stop) -> list[Hook]:
    def make(answer: Patch | Stop) -> Hook:
        class Patches(Hook):
            def on_model_call(self, context: HookContext, event: ModelCall) -> Any:
                return answer

        return Patches()

    return [make(answer) for answer in given]


def bump(event: ToolCallEvent) -> RewriteArguments:
    assert isinstance(event.arguments, dict)
    return RewriteArguments({"step": event.arguments["step"] + 1})  # type: ignore[operator]


async def test_a_hook_that_does_nothing_is_legal_and_observes_nothing() -> None:
    stack = HookStack([Hook()])

    assert await stack.on_tool_call(CONTEXT, CALL) == Continue()
    assert not stack.observes("tool_call")
    assert not HookStack([]).observes("tool_call")


async def test_a_stack_observes_what_any_member_does() -> None:
    class Results(Hook):
        def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> None:
            return None

    stack = HookStack([calls(lambda _: None), HookStack([Results()])])

    assert stack.observes("tool_call")
    assert stack.observes("tool_result")
    assert not stack.observes("text_delta")


async def test_hooks_are_asked_in_order_until_one_stops() -> None:
    log: list[Any] = []
    action = await HookStack(
        [calls(lambda _: None, log), calls(lambda _: Stop("enough"), log), calls(lambda _: None, log)]
    ).on_tool_call(CONTEXT, CALL)

    assert action == Stop("enough")
    assert len(log) == 2


async def test_rewrites_of_arguments_chain() -> None:
    log: list[Any] = []

    action = await HookStack([calls(bump, log), HookStack([calls(bump, log)])]).on_tool_call(CONTEXT, CALL)

    assert action == RewriteArguments({"step": 2})
    assert log == [{"step": 0}, {"step": 1}]


async def test_a_text_as_arguments_reaches_later_hooks_as_json() -> None:
    log: list[Any] = []

    await HookStack(
        [calls(lambda _: RewriteArguments("plain string")), calls(lambda _: None, log)]
    ).on_tool_call(CONTEXT, CALL)

    assert log == ["plain string"]


@pytest.mark.parametrize("end", [Skip("why"), Stop("why")])
async def test_a_rewrite_is_kept_for_the_record_when_a_later_hook_ends_the_chain(end: Skip | Stop) -> None:
    nested = HookStack([calls(lambda _: RewriteArguments({"x": 41})), HookStack([calls(lambda _: end)])])

    action = await HookStack([calls(bump), nested]).on_tool_call(CONTEXT, CALL)

    assert action == type(end)("why", rewritten={"x": 41})


async def test_rewrites_of_results_chain_and_raw_stays() -> None:
    seen: list[tuple[str, str]] = []

    def shows(text: str) -> Hook:
        class Shows(Hook):
            def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> RewriteResult:
                seen.append((event.raw, event.shown))
                return RewriteResult(text)

        return Shows()

    action = await HookStack([shows("redacted"), shows("truncated")]).on_tool_result(CONTEXT, RESULT)

    assert action == RewriteResult("truncated")
    assert seen == [("raw failure (timeout)",) * 2, ("raw failure (timeout)", "redacted")]


async def test_the_last_selected_model_wins_and_each_hook_sees_the_candidate() -> None:
    seen: list[str] = []

    def select(model: str | None) -> Hook:
        class Selects(Hook):
            def on_model_select(self, context: HookContext, event: ModelSelect) -> Any:
                seen.append(event.candidate)
                return Select(model) if model else Stop("no")

        return Selects()

    asked = ModelSelect(candidate="m0")
    assert await HookStack([select("m1"), select("m2")]).on_model_select(CONTEXT, asked) == Select("m2")
    assert seen == ["m0", "m1"]
    assert await HookStack([select(None), select("m2")]).on_model_select(CONTEXT, asked) == Stop("no")
    assert len(seen) == 3


async def test_patches_are_merged_and_a_stop_drops_them() -> None:
    inner = HookStack(patches(Patch(temperature=0.2), Patch(max_output_tokens=128)))

    merged = await HookStack([inner, *patches(Patch(system="outer"))]).on_model_call(CONTEXT, REQUEST)
    stopped = await HookStack(patches(Patch(temperature=0.1), Stop("no"))).on_model_call(CONTEXT, REQUEST)

    assert merged == Patch(temperature=0.2, max_output_tokens=128, system="outer")
    assert stopped == Stop("no")
    assert await HookStack([Hook()]).on_model_call(CONTEXT, REQUEST) == Continue()


def test_parts_of_patches_merge_each_in_its_way() -> None:
    assert merge_patches(Patch(context=("a",)), Patch(context=("b",))).context == ("a", "b")
    assert merge_patches(Patch(extra={"x": 1, "y": 2}), Patch(extra={"y": 3, "z": 4})).extra == {
        "x": 1,
        "y": 3,
        "z": 4,
    }
    assert merge_patches(Patch(temperature=0.1), Patch(temperature=0.9)).temperature == 0.9
    first = Patch(active_tools=("add", "sub"))
    assert merge_patches(first, Patch(active_tools=("sub", "mul"))).active_tools == ("sub",)
    assert merge_patches(Patch(active_tools=("a",)), Patch(active_tools=("b",))).active_tools == ()
    assert merge_patches(first, Patch()).active_tools == ("add", "sub")


async def test_the_first_answer_about_a_turn_wins() -> None:
    def finished(answer: Any) -> Hook:
        class Finished(Hook):
            async def on_turn_finished(self, context: HookContext, event: TurnFinished) -> Any:
                return answer

        return Finished()

    turn = TurnFinished(reply=REPLY)
    stack = HookStack([finished(Continue()), finished(Repeat()), finished(Stop("late"))])
    assert await stack.on_turn_finished(CONTEXT, turn) == Repeat()
    assert await HookStack([finished(Feedback("more"))]).on_turn_finished(CONTEXT, turn) == Feedback("more")


async def test_an_observer_of_replies_can_stop() -> None:
    class Watches(Hook):
        def on_model_reply(self, context: HookContext, event: ModelReply) -> Stop:
            return Stop(f"{event.usage.input_tokens}")

    action = await HookStack([Watches()]).on_model_reply(
        CONTEXT, ModelReply(reply=REPLY, usage=Usage(input_tokens=5))
    )

    assert action == Stop("5")


async def test_the_first_decision_on_an_invalid_call_wins_and_none_passes_on() -> None:
    def decides(answer: Any) -> Hook:
        class Decides(Hook):
            def on_invalid_tool_call(self, context: HookContext, event: InvalidToolCall) -> Any:
                return answer

        return Decides()

    event = InvalidToolCall(call_id="c", tool="x", arguments={}, offered=("y",))
    assert await HookStack([decides(None), decides(Skip("s"))]).on_invalid_tool_call(CONTEXT, event) == Skip(
        "s"
    )
    assert (
        await HookStack([decides(Fail()), decides(Skip("s"))]).on_invalid_tool_call(CONTEXT, event) == Fail()
    )
    assert await HookStack([decides(None)]).on_invalid_tool_call(CONTEXT, event) is None


def test_pieces_of_a_reply_are_seen_at_once() -> None:
    class Stops(Hook):
        def on_text_delta(self, context: HookContext, event: TextDelta) -> Stop | None:
            return Stop("secret") if "secret" in event.text else None

    stack = HookStack([Stops()])
    assert stack.on_text_delta(CONTEXT, TextDelta(text="fine")) == Continue()
    assert stack.on_text_delta(CONTEXT, TextDelta(text="a secret")) == Stop("secret")


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [
        ("deny", Skip("Refused: hook 'bad' failed: RuntimeError: no.")),
        ("continue", Continue()),
        ("stop", Stop("hook 'bad' failed: RuntimeError: no")),
    ],
)
async def test_a_hook_that_fails_means_what_its_table_says(on_error: Any, expected: Any) -> None:
    def fail(event: ToolCallEvent) -> None:
        raise RuntimeError("no")

    acted: list[Acted] = []
    stack = HookStack([Member(hook=calls(fail), name="bad", on_error=on_error)], report=acted.append)

    assert await stack.on_tool_call(CONTEXT, CALL) == expected
    assert [(one.hook, one.event, one.action, one.failure) for one in acted] == [
        ("bad", "tool_call", None, "RuntimeError: no")
    ]


async def test_a_failed_hook_withholds_a_result_rather_than_showing_it() -> None:
    class Bad(Hook):
        name = "bad"

        def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> Any:
            raise ValueError("x")

    action = await HookStack([Bad()]).on_tool_result(CONTEXT, RESULT)

    assert isinstance(action, RewriteResult)
    assert "withheld" in action.text


async def test_an_action_of_another_event_is_a_failure_that_names_what_is_allowed() -> None:
    wrong = Member(hook=calls(lambda _: RewriteResult("x")), name="wrong", on_error="stop")

    action = await HookStack([wrong]).on_tool_call(CONTEXT, CALL)

    assert isinstance(action, Stop)
    assert "Continue, RewriteArguments, Skip, Stop" in action.reason


async def test_a_hook_that_hangs_is_given_up() -> None:
    class Hangs(Hook):
        async def on_tool_call(self, context: HookContext, event: ToolCallEvent) -> None:
            await anyio.sleep_forever()

    member = Member(hook=Hangs(), name="slow", timeout_s=0.05)

    assert await HookStack([member]).on_tool_call(CONTEXT, CALL) == Skip(
        "Refused: hook 'slow' failed: it took longer than 0.05 s."
    )


async def test_a_hook_gets_only_its_tools_and_events() -> None:
    log: list[Any] = []
    member = Member(hook=calls(lambda _: None, log), tools=("shell", "write_*"))
    unwanted = Member(hook=calls(lambda _: None, log), events=("tool_result",))

    await HookStack([member, unwanted]).on_tool_call(CONTEXT, CALL)
    assert log == []
    await HookStack([member]).on_tool_call(
        CONTEXT, ToolCallEvent(call_id="c", tool="write_file", arguments={})
    )
    assert log == [{}]


async def test_actions_are_reported_once_with_the_hook_that_took_them() -> None:
    acted: list[Acted] = []
    inner = HookStack([Member(hook=calls(bump), name="inner")], report=acted.append)

    await HookStack([inner, Member(hook=calls(bump), name="outer")], report=acted.append).on_tool_call(
        CONTEXT, CALL
    )

    assert [(one.hook, type(one.action)) for one in acted] == [
        ("inner", RewriteArguments),
        ("outer", RewriteArguments),
    ]
    assert all(one.elapsed_s >= 0 for one in acted)


async def test_hooks_share_the_scratchpad_of_their_context() -> None:
    class Count:
        def __init__(self) -> None:
            self.n = 0

    def add(count: Count) -> None:
        count.n += 1

    class Counts(Hook):
        def on_tool_call(self, context: HookContext, event: ToolCallEvent) -> None:
            context.scratchpad.update(Count, add)

    context = HookContext()
    await HookStack([Counts(), HookStack([Counts()])]).on_tool_call(context, CALL)

    found = context.scratchpad.get(Count)
    assert found is not None
    assert found.n == 2
    assert context.run_id
    assert HookContext().run_id != context.run_id
