"""Where views and the workspace stand in a request, and how long they stay the same."""

from typing import Any

import anyio
import pytest

from agentctl.protocol.messages import (
    AssistantMessage,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_text,
)
from agentctl.protocol.values import JsonObject
from agentctl.state import views as module
from agentctl.state.changes import changed_lines
from agentctl.state.views import (
    Blocks,
    Invocation,
    View,
    ViewRequest,
    clipped,
    context_block,
    place,
    workspace_block,
    workspace_changes,
)

pytestmark = pytest.mark.anyio

CALLED = AssistantMessage(parts=(ToolCall(call_id="c", tool="t"),), stop="tool_calls")
RESULT = ToolMessage(result=ToolResult(call_id="c", tool="t", outcome="ok", text="r"))
STATE: JsonObject = {"w": {"d": {"1": {"t": "é"}}}, "x": None, "l": [1, 2]}


def texts(message: Message) -> list[str]:
    assert isinstance(message, UserMessage)
    return [part.text for part in message.parts if isinstance(part, TextPart)]


def request(state: JsonObject | None = None, **context: str) -> ViewRequest:
    return ViewRequest(
        agent="a", thread_id="t", run_id="r", first_call=False, context=context, state=state or {}
    )


async def test_bases_open_the_latest_human_message_and_results_stay_where_they_are() -> None:
    placed = place((user_text("q"), CALLED, RESULT), Blocks(bases=("CTX",)))

    assert texts(placed[0]) == ["CTX", "q"]
    assert placed[1:] == (CALLED, RESULT)


async def test_words_of_the_harness_are_no_human_message() -> None:
    messages = (user_text("q", source="task"), CALLED, RESULT, user_text("go on", source="harness"))

    placed = place(messages, Blocks(bases=("CTX",)))

    assert texts(placed[0]) == ["CTX", "q"]
    assert placed[3] == messages[3]


async def test_without_a_human_message_bases_stand_at_the_start() -> None:
    placed = place((CALLED, RESULT), Blocks(bases=("CTX",)))

    assert texts(placed[0]) == ["CTX"]
    assert placed[1:] == (CALLED, RESULT)


async def test_changes_end_a_users_message_or_follow_what_is_last() -> None:
    assert texts(place((user_text("q"),), Blocks(changes="CH"))[-1]) == ["q", "CH"]
    assert texts(place((user_text("q"), CALLED, RESULT), Blocks(changes="CH"))[-1]) == ["CH"]
    assert texts(place((), Blocks(changes="CH"))[-1]) == ["CH"]


async def test_nothing_to_show_changes_nothing() -> None:
    messages = (user_text("q"), CALLED, RESULT)

    assert place(messages, Blocks()) == messages


async def test_reading_order_is_context_workspace_last_base_first_base() -> None:
    invocation = Invocation(
        workspace=("/w",),
        views=(("one", lambda asked: View(base="B1")), ("two", lambda asked: View("B2", "CH2"))),
    )

    blocks, warnings = await invocation.render(request({"w": 1}, place="here"))

    assert warnings == ()
    assert blocks.bases == (
        "Context provided by the application:\n- place: here",
        "The workspace, as it was when this was said:\n/w: 1",
        "B2",
        "B1",
    )
    assert blocks.changes == "CH2"


async def test_the_base_stays_while_changes_are_rendered_at_every_call() -> None:
    seen: list[bool] = []

    def view(asked: ViewRequest) -> View:
        seen.append(asked.first_call)
        return View(base=f"base {len(seen)}", changes=f"changes {len(seen)}")

    invocation = Invocation(workspace=("/w",), views=(("v", view),))
    first, _ = await invocation.render(request({"w": {"n": 1}}))
    second, _ = await invocation.render(request({"w": {"n": 2, "m": [1]}}))

    assert seen == [True, False]
    assert second.bases == first.bases
    assert second.changes == (
        "What changed in the workspace since (+ added, - removed, ~ replaced):\n"
        "~ /w/n: 2\n+ /w/m: [1]\n\nchanges 2"
    )


async def test_a_base_is_asked_for_until_it_is_given() -> None:
    answers: list[Any] = [None, RuntimeError("not yet"), View(base="B"), View(base="late")]

    def view(asked: ViewRequest) -> View | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert asked.first_call or not answers
        return answer  # type: ignore[no-any-return]

    invocation = Invocation(views=(("v", view),))
    rendered = [await invocation.render(request()) for _ in range(4)]

    assert [blocks.bases for blocks, _ in rendered] == [(), (), ("B",), ("B",)]
    assert rendered[1][1] == ("view 'v' was left out of this call: it raised RuntimeError: not yet",)


async def test_a_view_that_returns_something_else_or_hangs_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "VIEW_TIMEOUT_S", 0.05)

    async def hang(asked: ViewRequest) -> View:
        await anyio.sleep_forever()
        return View()

    async def fine(asked: ViewRequest) -> View:
        return View(changes="fine")

    bad: Any = lambda asked: "text"  # noqa: E731 - what a careless person writes
    worse: Any = lambda asked: View(base=5)  # type: ignore[arg-type]  # noqa: E731

    invocation = Invocation(views=(("bad", bad), ("worse", worse), ("hang", hang), ("fine", fine)))
    blocks, warnings = await invocation.render(request())

    assert blocks == Blocks(changes="fine")
    assert ["str" in warnings[0], "texts" in warnings[1], "longer than" in warnings[2]] == [True] * 3


async def test_a_view_gets_a_copy_of_the_state() -> None:
    def view(asked: ViewRequest) -> None:
        asked.state.clear()

    state: JsonObject = {"w": 1}
    await Invocation(views=(("v", view),)).render(request(state))

    assert state == {"w": 1}


@pytest.mark.parametrize(
    ("pointers", "lines"),
    [
        (["/w"], ['/w: {"d":{"1":{"t":"é"}}}']),
        (["/w", "/x"], ['/w: {"d":{"1":{"t":"é"}}}', "/x: null"]),
        (["/nope"], []),
        (["/nope", "/l/0"], ["/l/0: 1"]),
        ([""], [': {"w":{"d":{"1":{"t":"é"}}},"x":null,"l":[1,2]}']),
        (["bad"], []),
        ([], []),
        (["/l/-"], []),
    ],
)
async def test_the_workspace_shows_what_its_pointers_lead_to(pointers: list[str], lines: list[str]) -> None:
    block = workspace_block(pointers, STATE)

    assert block.split("\n")[1:] == lines
    assert bool(block) is bool(lines)


async def test_a_part_that_comes_or_goes_is_a_change() -> None:
    assert workspace_changes(("/a", "/b"), {"a": 1}, {"b": 2}).split("\n")[1:] == ["- /a", "+ /b: 2"]
    assert workspace_changes(("/a",), {"a": 1, "b": 1}, {"a": 1, "b": 2}) == ""


async def test_changed_lines_name_each_place_once() -> None:
    assert changed_lines({"l": [1, 2, 3], "s": 1}, {"l": [1, 9], "s": True}, "/d") == [
        "~ /d/l/1: 9",
        "- /d/l/2",
        "~ /d/s: true",
    ]
    assert changed_lines([1], [1, {"a/b": 2}]) == ['+ /1: {"a/b":2}']
    assert changed_lines({"a": 1}, [1], "/x") == ["~ /x: [1]"]


async def test_a_block_that_is_too_long_is_cut_at_a_character_and_says_so() -> None:
    assert clipped("ééé", 5) == "éé\n[cut here: 1 of 6 bytes are not shown]"
    assert clipped("ééé", 6) == "ééé"
    assert context_block({}) == ""
