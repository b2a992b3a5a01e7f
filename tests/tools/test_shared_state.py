"""The `shared_state` tool: values by reference, read a page at a time."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.errors import ToolError
from agentctl.protocol.values import JsonObject
from agentctl.state.pages import Bounds, find_lines, page_of
from agentctl.state.shared_state import SharedState
from agentctl.tools.definition import Tool, ToolOutput, ToolPlace
from agentctl.tools.shared_state import shared_state_tool

pytestmark = pytest.mark.anyio
Call = Callable[[Tool, JsonObject], Awaitable[ToolOutput]]


@pytest.fixture
def store() -> SharedState:
    return SharedState()


@pytest.fixture
def tool(store: SharedState) -> Tool:
    return shared_state_tool(lambda stage: store, Bounds(lines=3, size_bytes=40))


async def test_a_value_is_set_listed_read_and_removed(call: Call, tool: Tool, store: SharedState) -> None:
    stored = await call(tool, {"action": "set", "key": "plan", "value": "one"})
    listed = await call(tool, {"action": "list"})
    read = await call(tool, {"action": "get", "key": "plan"})
    removed = await call(tool, {"action": "remove", "key": "plan"})
    again = await call(tool, {"action": "remove", "key": "plan"})

    assert stored.text == "Stored 'plan' (3 bytes), version 1"
    assert "plan" in listed.text
    entries: Any = listed.structured
    assert entries["entries"][0]["writer"] == {
        "run": "r-1", "agent": "tester", "stage": "only", "call": "c-1",
    }  # fmt: skip
    assert (read.text, removed.text, again.text) == ("one", "Removed 'plan'", "Key 'plan' not found")
    assert await store.keys() == []


async def test_append_and_the_conditions_of_set(call: Call, tool: Tool, store: SharedState) -> None:
    await call(tool, {"action": "append", "key": "log", "value": "a"})
    await call(tool, {"action": "append", "key": "log", "value": "b"})

    with pytest.raises(ToolError, match="it is at version 2"):
        await call(tool, {"action": "set", "key": "log", "value": "x", "if_absent": True})
    with pytest.raises(ToolError, match="it is at version 2"):
        await call(tool, {"action": "set", "key": "log", "value": "x", "if_version": 1})

    await call(tool, {"action": "set", "key": "log", "value": "x", "if_version": 2})
    assert await store.get("log") == "x"


async def test_pages_say_where_they_stand_and_how_to_go_on(
    call: Call, tool: Tool, store: SharedState
) -> None:
    await store.set("t", "".join(f"line {number}\n" for number in range(1, 6)))

    first = await call(tool, {"action": "get", "key": "t"})
    rest = await call(tool, {"action": "get", "key": "t", "offset": 4})
    one = await call(tool, {"action": "get", "key": "t", "offset": 2, "limit": 1})

    assert first.text == "line 1\nline 2\nline 3\n[lines 1-3 of 5, 35 bytes in all; go on with offset=4]"
    assert rest.text == "line 4\nline 5\n[lines 4-5 of 5, 35 bytes in all; the end]"
    assert one.text.startswith("line 2\n[lines 2-2 of 5")


async def test_a_line_longer_than_a_page_comes_in_parts(call: Call, tool: Tool, store: SharedState) -> None:
    line = "ä" * 50
    await store.set("t", line)
    found, offset = "", 0

    while True:
        page = await call(tool, {"action": "get", "key": "t", "byte_offset": offset})
        structured: Any = page.structured
        found += structured["text"]
        offset = structured["next_byte_offset"] or 0
        if not offset:
            break

    assert found == line


async def test_grep_gives_lines_with_their_numbers(call: Call, tool: Tool, store: SharedState) -> None:
    await store.set("t", "alpha\nbeta\nalpha beta\ngamma\n" + "x" * 100)

    either = await call(tool, {"action": "get", "key": "t", "grep": "beta|gam"})
    spanned = await call(tool, {"action": "get", "key": "t", "grep": "al.*ta"})
    none = await call(tool, {"action": "get", "key": "t", "grep": "[a-z]"})
    long = await call(tool, {"action": "get", "key": "t", "grep": "xxx"})
    more = await call(tool, {"action": "get", "key": "t", "grep": "a", "limit": 2})

    assert either.text == "2: beta\n3: alpha beta\n4: gamma"
    assert spanned.text == "3: alpha beta"
    assert none.text == "No line of 't' has '[a-z]'."
    assert long.text == "5: " + "x" * 37 + "\n[line 5 is longer than a page]"
    assert more.text.endswith("[2 of 4 lines; go on with offset=3]")


async def test_matches_that_do_not_fit_a_page_are_counted(call: Call, tool: Tool, store: SharedState) -> None:
    await store.set("t", "\n".join("y" * 25 for _ in range(3)))

    found = await call(tool, {"action": "get", "key": "t", "grep": "y"})

    assert found.text == "1: " + "y" * 25 + "\n[1 of 3 lines; go on with offset=2]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "get"}, "Missing required 'key' parameter for get"),
        ({"action": "set", "key": "k"}, "Missing required 'value' parameter for set"),
        ({"action": "set", "key": "tool-out-x", "value": ""}, "kept for cut output"),
        ({"action": "append", "key": "s/tool-out-x", "value": ""}, "kept for cut output"),
    ],
)
async def test_a_call_that_cannot_be_meant_is_refused(
    tool: Tool, place: ToolPlace, arguments: JsonObject, message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        await tool.prepare(arguments, place)


@pytest.mark.parametrize(
    ("key", "message"), [("k", "not found in shared state.$"), ("tool-out-c-1", "It was recycled")]
)
async def test_what_is_not_there_is_told(call: Call, tool: Tool, key: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        await call(tool, {"action": "get", "key": key})


async def test_only_calls_that_read_are_read_only(tool: Tool, place: ToolPlace) -> None:
    reading = await tool.prepare({"action": "list"}, place)
    writing = await tool.prepare({"action": "set", "key": "k", "value": "v"}, place)

    assert reading.read_only
    assert not writing.read_only


@given(st.text(alphabet="ab\nä𝄞", max_size=60), st.integers(1, 4), st.integers(1, 9))
def test_pages_read_in_order_are_the_whole_text(text: str, lines: int, size: int) -> None:
    bounds = Bounds(lines=lines, size_bytes=size)
    found, offset, byte_offset = "", 1, 0
    for _ in range(200):
        page = page_of(text, offset=offset, byte_offset=byte_offset, bounds=bounds)
        found += page.text
        if not page.next_offset:
            break
        if not page.next_byte_offset:
            found += "\n"
        offset, byte_offset = page.next_offset, page.next_byte_offset
    else:
        pytest.fail("the pages never end")

    assert found in (text, text.removesuffix("\n"))


@given(st.text(alphabet="ab.*|\n", max_size=40), st.text(alphabet="ab.*|", max_size=6))
def test_a_pattern_never_fails_and_finds_lines_as_they_are(text: str, pattern: str) -> None:
    lines = text.split("\n")

    assert all(lines[number - 1] == line for number, line in find_lines(text, pattern))
