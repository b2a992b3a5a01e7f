"""docs/subagents.md says what is there."""

import re
from pathlib import Path

from agentctl.blueprint.load import parse_blueprint
from agentctl.policy.budgets import Budgets
from agentctl.policy.ceilings import Ceilings
from agentctl.policy.paths import Place
from agentctl.run.children import Children
from agentctl.run.family import agents_of
from agentctl.run.recorder import RunRecorder
from agentctl.state.pages import Bounds
from agentctl.state.shared_state import SharedState
from agentctl.testing.memory_journal import MemoryJournal
from agentctl.tools.subagents import subagent_tools

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "subagents.md").read_text(encoding="utf-8")


def test_the_example_is_a_blueprint_whose_worker_can_be_started() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)

    blueprint = parse_blueprint(text.encode(), path=Path("surveyor.toml"), found_by="path")

    assert agents_of(blueprint)[0] == ("reader", "Looks up one thing.")


def test_the_tools_have_the_arguments_that_the_page_lists() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (`[^|]+`) \|", PAGE, flags=re.MULTILINE)
    listed = {tool: re.findall(r"`(\w+)`", arguments) for tool, arguments in rows}
    budgets = Budgets(Ceilings(), Place(workdir="/w", home="/h"))
    recorder = RunRecorder(journal=MemoryJournal(), run_id="r", thread_id="t", agent="a")
    children = Children(recorder=recorder, budgets=budgets, open_child=None)

    tools = subagent_tools(children, lambda _stage: SharedState(), Bounds(lines=1, size_bytes=1))

    assert listed == {tool.spec.name: list(tool.spec.parameters["properties"]) for tool in tools}  # type: ignore[arg-type]
