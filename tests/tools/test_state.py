from collections.abc import Awaitable, Callable

import pytest

from agentctl.errors import ToolError
from agentctl.protocol.commands import Command, FoldValue, Merge, RemoveValue, SetValue
from agentctl.protocol.messages import ToolCall
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state.cells import Cells
from agentctl.state.keys import KeyDefinition
from agentctl.state.shared_state import SharedState
from agentctl.tools.definition import Tool, ToolOutput, ToolPlace
from agentctl.tools.shared import shared_state_tool
from agentctl.tools.state import state_command, state_tools

pytestmark = pytest.mark.anyio
Call = Callable[[Tool, JsonObject], Awaitable[ToolOutput]]


def number_only(value: JsonValue) -> str:
    return "" if isinstance(value, int) else "it is no whole number"


KEYS = {
    "count": KeyDefinition(
        name="count", schema={"type": "integer"}, default=7, shape=number_only, description="How many."
    ),
    "log": KeyDefinition(name="log", merge=Merge.FOLD, fold="append", scope="thread", default=[]),
}


def tools(read: tuple[str, ...], write: tuple[str, ...], cells: Cells | None = None) -> dict[str, Tool]:
    view = (cells or Cells()).view("r-1")
    return {tool.spec.name: tool for tool in state_tools(KEYS, read=read, write=write, cells=lambda: view)}


async def test_an_absent_key_reads_as_its_default(call: Call) -> None:
    output = await call(tools(("count",), ())["state_get"], {"key": "count"})

    assert (output.text, output.structured) == ("7", {"key": "count", "value": 7})


def test_a_stage_has_the_tools_that_its_keys_need() -> None:
    assert set(tools((), ())) == set()
    assert set(tools(("count",), ())) == {"state_get"}
    assert set(tools((), ("count",))) == {"state_get", "state_set"}


async def test_a_value_of_another_form_is_refused_with_the_form(call: Call) -> None:
    with pytest.raises(ToolError, match="no whole number") as raised:
        await call(tools((), ("count",))["state_set"], {"key": "count", "value": "x"})

    assert '{"type": "integer"}' in str(raised.value)


async def test_a_set_needs_a_value_or_a_remove(call: Call) -> None:
    with pytest.raises(ToolError, match="give a value"):
        await call(tools((), ("count",))["state_set"], {"key": "count"})


async def test_a_drifted_value_is_told_and_not_taken_for_the_default(call: Call) -> None:
    stale = Cells().after([Command(scope="run", key="count", action=SetValue(value="old"), run_id="r-1")])

    with pytest.raises(ToolError, match="does not match its declared shape"):
        await call(tools(("count",), (), stale)["state_get"], {"key": "count"})


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (
            {"key": "count", "value": 3},
            Command(scope="run", key="count", action=SetValue(value=3), writer="c-9"),
        ),
        (
            {"key": "count", "remove": True},
            Command(scope="run", key="count", action=RemoveValue(), writer="c-9"),
        ),
        (
            {"key": "log", "value": "x"},
            Command(scope="thread", key="log", action=FoldValue(value="x"), merge=Merge.FOLD, writer="c-9"),
        ),
    ],
)
def test_a_successful_call_is_one_command(arguments: JsonObject, command: Command) -> None:
    call = ToolCall(call_id="c-9", tool="state_set", arguments=arguments)

    assert state_command(call, KEYS) == command


async def test_shared_state_is_set_read_listed_and_removed(call: Call) -> None:
    tool = shared_state_tool(SharedState())

    stored = await call(tool, {"action": "set", "key": "plan", "value": "one\ntwo\n"})
    added = await call(tool, {"action": "append", "key": "plan", "value": "three"})
    read = await call(tool, {"action": "get", "key": "plan"})
    listed = await call(tool, {"action": "list"})
    removed = await call(tool, {"action": "remove", "key": "plan"})

    assert stored.text.startswith("Stored plan (8 bytes, version ")
    assert added.text.startswith("Added to plan (13 bytes")
    assert read.text == "one\ntwo\nthree"
    assert listed.text.startswith("plan  (13 bytes")
    assert removed.structured == {"key": "plan", "removed": True}


async def test_a_long_value_is_read_in_pages(call: Call) -> None:
    store = SharedState()
    await store.set("long", "\n".join(f"line {number}" for number in range(1, 1001)))
    tool = shared_state_tool(store)

    first = await call(tool, {"action": "get", "key": "long"})
    last = await call(tool, {"action": "get", "key": "long", "offset": 999})

    assert isinstance(first.structured, dict)
    assert first.structured["next_offset"] == 351
    assert "[lines 1-350 of 1000; go on with offset=351" in first.text
    assert last.text.startswith("line 999\nline 1000\n[lines 999-1000 of 1000;")


async def test_one_very_long_line_is_read_in_pages_too(call: Call) -> None:
    store = SharedState()
    await store.set("wide", "x" * 100_000)
    tool = shared_state_tool(store)
    offset, read = 1, ""

    while offset:
        page = (await call(tool, {"action": "get", "key": "wide", "offset": offset})).structured
        assert isinstance(page, dict)
        read += str(page["value"]).replace("\n", "")
        offset = int(str(page["next_offset"] or 0))

    assert read == "x" * 100_000


async def test_grep_shows_matching_lines_with_their_numbers(call: Call) -> None:
    store = SharedState()
    await store.set("log", "ok\nERROR a\nok\nERROR b")
    tool = shared_state_tool(store)

    output = await call(tool, {"action": "get", "key": "log", "grep": "^ERROR"})

    assert output.text.startswith("2\tERROR a\n4\tERROR b\n[2 of 4 lines match")


async def test_a_failed_condition_comes_with_what_is_there(call: Call) -> None:
    tool = shared_state_tool(SharedState())
    await call(tool, {"action": "set", "key": "owner", "value": "first"})

    with pytest.raises(ToolError, match="It holds: first"):
        await call(tool, {"action": "set", "key": "owner", "value": "second", "if_absent": True})


async def test_an_absent_key_is_told_with_the_keys_there_are(call: Call) -> None:
    tool = shared_state_tool(SharedState())
    await call(tool, {"action": "set", "key": "plan", "value": "x"})

    with pytest.raises(ToolError, match=r"no key 'plna'.*plan \(1 bytes\)"):
        await call(tool, {"action": "get", "key": "plna"})


@pytest.mark.parametrize(
    "arguments",
    [{"action": "get"}, {"action": "set", "key": "a"}, {"action": "get", "key": "a", "grep": "("}],
)
async def test_incomplete_calls_say_what_is_missing(call: Call, arguments: JsonObject) -> None:
    with pytest.raises(ToolError):
        await call(shared_state_tool(SharedState()), arguments)


async def test_only_reading_may_run_again_after_a_crash(place: ToolPlace) -> None:
    tool = shared_state_tool(SharedState())

    reading = await tool.prepare({"action": "get", "key": "a"}, place)
    adding = await tool.prepare({"action": "append", "key": "a", "value": "x"}, place)

    assert (reading.read_only, adding.read_only) == (True, False)
