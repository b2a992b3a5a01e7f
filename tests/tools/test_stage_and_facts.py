from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from agentctl.errors import ToolError
from agentctl.protocol.messages import ToolCall
from agentctl.protocol.values import JsonObject
from agentctl.tools.definition import Tool, ToolOutput
from agentctl.tools.facts import current_time_tool, run_info_tool
from agentctl.tools.registry import InvalidArguments, ToolRegistry
from agentctl.tools.stage import submit_output_tool, transition_tool

pytestmark = pytest.mark.anyio
Call = Callable[[Tool, JsonObject], Awaitable[ToolOutput]]


class StoppedClock:
    def now(self) -> datetime:
        return datetime(2026, 3, 1, 23, 30, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here waits")


async def test_transition_offers_the_open_edges_with_their_hints(call: Call) -> None:
    tool = transition_tool({"implement": "the plan stands", "discover": ""})

    output = await call(tool, {"to": "implement"})

    properties = tool.spec.parameters["properties"]
    assert isinstance(properties, dict)
    assert properties["to"] == {
        "type": "string",
        "enum": ["implement", "discover"],
        "description": "implement: the plan stands",
    }
    assert output.structured == {"to": "implement", "note": ""}


async def test_transition_to_a_closed_edge_is_an_invalid_argument() -> None:
    tool = transition_tool({"implement": ""})

    checked = ToolRegistry([tool]).check(
        tool, ToolCall(call_id="c-1", tool="transition", arguments={"to": "publish"})
    )

    assert isinstance(checked, InvalidArguments)
    assert "implement" in checked.text


async def test_an_output_that_is_an_object_is_the_arguments_themselves(call: Call) -> None:
    schema: JsonObject = {"type": "object", "properties": {"score": {"type": "integer"}}}

    output = await call(submit_output_tool(schema), {"score": 3})

    assert output.structured == {"score": 3}


async def test_an_output_of_another_type_is_wrapped_with_its_definitions_in_reach(call: Call) -> None:
    schema: JsonObject = {
        "type": "array",
        "items": {"$ref": "#/$defs/name"},
        "$defs": {"name": {"type": "string"}},
    }
    tool = submit_output_tool(schema)

    output = await call(tool, {"output": ["a"]})

    wrong = ToolCall(call_id="c-1", tool="submit_output", arguments={"output": [1]})
    assert output.structured == ["a"]
    assert isinstance(ToolRegistry([tool]).check(tool, wrong), InvalidArguments)


async def test_the_time_is_told_in_utc_unless_asked_otherwise(call: Call) -> None:
    output = await call(current_time_tool(StoppedClock()), {})

    assert output.text == "2026-03-01T23:30:00+00:00 (Sunday, UTC)"


async def test_an_unknown_time_zone_is_told_to_the_model(call: Call) -> None:
    with pytest.raises(ToolError, match="Use an IANA name"):
        await call(current_time_tool(StoppedClock()), {"timezone": "Mars/Base"})


async def test_run_info_tells_run_stage_and_workdir(call: Call) -> None:
    output = await call(run_info_tool(), {})

    assert isinstance(output.structured, dict)
    assert output.structured["run"] == "r-1"
    assert "stage: only" in output.text
