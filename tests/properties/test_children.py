"""A child is never allowed what its parent's run would be refused: through the tool states of real runs."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctl.agent.tool_state import ToolState
from agentctl.blueprint.load import load_blueprint
from agentctl.ids import new_run_id, new_thread_id
from agentctl.protocol.children import ChildStarted
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.events import LaunchFlags
from agentctl.protocol.messages import ToolCall
from agentctl.run.child import ChildSeed
from agentctl.run.family import open_child
from agentctl.run.start import Order, begun
from agentctl.testing.play import Stage, open_stage

WORDS = ("allow", "ask", "deny")
PATTERNS = {
    "shell": ("git push *", "git *", "rm *", "touch *", "*"),
    "write_file": ("src/**", "a.txt", "**"),
    "read_file": ("secret/**", "**"),
}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("shell", {"command": "git push origin main"}),
    ("shell", {"command": "sh -c 'rm x' && git status"}),
    ("shell", {"command": "touch src/b.txt"}),
    ("shell", {"command": "echo $(cat secret/key) > a.txt"}),
    ("shell", {"command": "$unknown"}),
    ("write_file", {"path": "a.txt", "content": "a"}),
    ("write_file", {"path": ".git/config", "content": "a"}),
    ("write_file", {"path": "../out.txt", "content": "a"}),
    ("read_file", {"path": "secret/key"}),
    ("read_file", {"path": "/etc/hostname"}),
    ("list_dir", {}),
)


@st.composite
def permissions(draw: st.DrawFn, table: str) -> str:
    lines = [f"[{table}]"]
    for tool, patterns in PATTERNS.items():
        if not draw(st.booleans()):
            continue
        parts = [f'default = "{draw(st.sampled_from(WORDS))}"']
        for word in WORDS:
            chosen = draw(st.lists(st.sampled_from(patterns), max_size=1))
            parts += [f'{word} = ["{pattern}"]' for pattern in chosen]
        lines.append(f"{tool} = {{ {', '.join(parts)} }}")
    return "\n".join(lines)


@st.composite
def families(draw: st.DrawFn) -> str:
    return f"""
[agent]
name = "family"
[model]
use = ["scripted:"]
{draw(permissions("tool_permissions"))}
[stages.lead]
available_tools = ["*"]
{draw(permissions("stages.lead.tool_permissions"))}
[stages.digger]
allow_as_worker = true
available_tools = ["*"]
{draw(permissions("stages.digger.tool_permissions"))}
[script]
[[script.replies]]
text = "done"
"""


rules = st.lists(
    st.sampled_from([f"{tool}({one})" for tool, patterns in PATTERNS.items() for one in patterns]),
    max_size=2,
).map(tuple)
flags = st.builds(LaunchFlags, yolo=st.booleans(), allow=rules, ask=rules, deny=rules)


async def _said(tools: ToolState, tool: str, arguments: dict[str, Any]) -> Verdict:
    """What a call comes to, containment included."""
    call = ToolCall(call_id="c", tool=tool, arguments=arguments)
    prepared = await tools.prepare(call, tools.reach())
    if tools.outside(call, prepared):
        return Verdict.DENY
    return tools.decide(call, prepared).verdict


async def _compare(stage: Stage, launch: LaunchFlags, script: Any) -> None:
    house = stage.house(script)
    order = Order(task="go", workdir=stage.workdir, flags=launch)
    async with begun(house, stage.blueprint, order) as parts:
        parts.tools.enter_stage(0, {}, None)
        started = ChildStarted(
            child_run=new_run_id(),
            child_thread=new_thread_id(),
            agent="digger",
            call_id="c",
            task="dig",
            name="digger",
            stage="lead",
        )
        child = await open_child(house, parts, ChildSeed(started=started), {})
        child.parts.tools.enter_stage(0, {}, None)
        # What the stage asks or allows is its own; what it denies holds for all below it.
        parts.tools.layers = parts.tools.layers.for_children()
        for tool, arguments in CALLS:
            above = await _said(parts.tools, tool, arguments)
            below = await _said(child.parts.tools, tool, arguments)
            assert below >= above, (tool, arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("family")
    (folder / "work" / "secret").mkdir(parents=True)
    (folder / "work" / "secret" / "key").write_text("k", encoding="utf-8")
    return folder


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(families(), flags)
def test_a_child_is_never_allowed_what_its_parents_run_would_be_refused(
    folder: Path, text: str, launch: LaunchFlags
) -> None:
    path = folder / "family.toml"
    path.write_text(text, encoding="utf-8")

    async def main() -> None:
        async with open_stage(load_blueprint(path), workdir=folder / "work") as stage:
            await _compare(stage, launch, stage._script(()))  # noqa: SLF001 - the blueprint's own script

    anyio.run(main)
