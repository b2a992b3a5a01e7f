import json
import os

from agentctl.clock import SystemClock
from agentctl.executor.local import open_executor
from agentctl.protocol.messages import ToolSpec
from agentctl.protocol.tool_names import BUILT_IN_TOOLS, TOOL_ALIASES
from agentctl.tools.built_in import built_in_tools
from agentctl.tools.registry import ToolRegistry

FOUR = ("read_file", "edit_file", "grep", "shell")


def in_a_request(spec: ToolSpec) -> str:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return json.dumps({"type": "function", "function": function}, separators=(",", ":"))


def registry() -> ToolRegistry:
    return ToolRegistry(built_in_tools(open_executor(environment=dict(os.environ), passed=()), SystemClock()))


def test_four_tools_take_less_than_two_and_a_half_kilobytes_of_a_request() -> None:
    specs = registry().specs(FOUR)

    assert sum(len(in_a_request(spec)) for spec in specs) < 2500


def test_every_built_in_is_named_and_findable_by_its_aliases() -> None:
    tools = registry()

    assert set(tools.names) <= set(BUILT_IN_TOOLS)
    assert set(BUILT_IN_TOOLS) - set(tools.names) == {
        "transition", "submit_output", "state_get", "state_set", "shared_state"
    }  # fmt: skip
    assert {alias: tools.canonical(alias) for alias in TOOL_ALIASES} == dict(TOOL_ALIASES)


def test_every_parameter_is_a_plain_schema_that_forbids_others() -> None:
    tools = registry()

    for name in tools.names:
        tool = tools.find(name)
        assert tool is not None
        assert tool.spec.parameters["type"] == "object"
        assert tool.spec.parameters["additionalProperties"] is False
        assert tool.spec.description
