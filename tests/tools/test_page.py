"""docs/tools.md names every built-in tool with every parameter."""

import os
import re
from pathlib import Path

from agentctl.clock import SystemClock
from agentctl.executor.local import open_executor
from agentctl.protocol.tool_names import BUILT_IN_TOOLS
from agentctl.tools.built_in import built_in_tools
from agentctl.tools.look import PAGE_BYTES, PAGE_LINES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
STATE = {"state_get", "state_set", "shared_state"}


def test_every_tool_stands_in_the_table_with_its_parameters() -> None:
    rows: dict[str, set[str]] = {}
    built_in = PAGE.partition("## Script tools")[0]
    for row in re.findall(r"^\| (.*?) \| (.*?) \|", built_in, re.MULTILINE):
        names = re.findall(r"`(\w+)`", row[0])
        rows |= {name: set(re.findall(r"`(\w+)`", row[1])) for name in names}
    tools = built_in_tools(open_executor(environment=dict(os.environ), passed=()), SystemClock())

    assert set(rows) == set(BUILT_IN_TOOLS) - STATE
    for tool in tools:
        properties = tool.spec.parameters["properties"]
        assert isinstance(properties, dict)
        assert rows[tool.spec.name] == set(properties), tool.spec.name


def test_the_sizes_of_a_page_are_as_written() -> None:
    assert f"{PAGE_LINES} lines or {PAGE_BYTES:,} bytes" in PAGE
