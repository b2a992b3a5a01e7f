"""`state_get` and `state_set`: what a stage's model may read and write of the typed state."""

from collections.abc import Awaitable, Callable

import pytest

from agentctl.agent.agent_state import AgentState, LiveState, StageState, StatePlan
from agentctl.agent.state_plan import key_of
from agentctl.blueprint.state_tables import StateKeyTable
from agentctl.errors import ToolError
from agentctl.protocol.commands import FoldValue, Merge, RemoveValue, SetValue
from agentctl.protocol.values import JsonObject
from agentctl.state.commit import Origin, assemble
from agentctl.state.keys import KeyTable
from agentctl.tools.definition import Tool, ToolOutput, ToolPlace
from agentctl.tools.state_keys import command_of, state_tools

pytestmark = pytest.mark.anyio
Call = Callable[[Tool, JsonObject], Awaitable[ToolOutput]]

COUNT = key_of(StateKeyTable(name="count", merge="fold", fold="sum", default=0))
VERDICT = key_of(
    StateKeyTable(
        name="verdict", schema={"type": "string", "enum": ["good", "bad"]}, description="what you found"
    )
)
HIDDEN = key_of(StateKeyTable(name="hidden", default="?"))
PLAN = StatePlan(
    keys=KeyTable([COUNT, VERDICT, HIDDEN]),
    stages={"only": StageState(read=("verdict",), write=("count", "verdict"))},
)


@pytest.fixture
def state() -> AgentState:
    return AgentState(run_id="r-1", thread_id="t-1", agent="a", live=LiveState(thread_id="t-1"), plan=PLAN)


@pytest.fixture
def tools(state: AgentState) -> tuple[Tool, ...]:
    return state_tools(state)


async def test_all_readable_keys_are_given_with_defaults_and_what_they_are_for(
    call: Call, tools: tuple[Tool, ...]
) -> None:
    everything = await call(tools[0], {})
    one = await call(tools[0], {"key": "count"})

    assert everything.text == "verdict (what you found): null\ncount: 0"
    assert one.text == "0"


async def test_a_write_is_checked_when_planned_and_made_by_the_commit(
    call: Call, tools: tuple[Tool, ...], state: AgentState
) -> None:
    output = await call(tools[1], {"key": "verdict", "value": "good"})

    assert output.text == "verdict written."
    assert state.load(VERDICT) is None  # the commit that carries the result writes it
    command = command_of(VERDICT, {"value": "good"}, "c-1")
    origin = Origin(run_id="r-1", thread_id="t-1")
    state.live.cells = assemble(origin, (), (command,), keys=PLAN.keys, cells=state.live.cells).cells
    assert (await call(tools[0], {"key": "verdict"})).text == '"good"'


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        (0, {"key": "hidden"}, "'hidden' cannot be read in this stage. Keys here: verdict, count"),
        (1, {"key": "hidden", "value": 1}, "'hidden' cannot be written in this stage"),
        (1, {"key": "count"}, "Give `value`, or `remove = true`"),
        (1, {"key": "verdict", "value": "ugly"}, "ugly"),
        (1, {"key": "count", "value": "three"}, "count"),
    ],
)
async def test_a_call_that_cannot_be_is_refused_before_anybody_is_asked(
    tools: tuple[Tool, ...], place: ToolPlace, tool: int, arguments: JsonObject, message: str
) -> None:
    with pytest.raises(ToolError) as refused:
        await tools[tool].prepare(arguments, place)

    assert message in str(refused.value)


def test_a_call_becomes_the_command_that_fits_its_key() -> None:
    assert command_of(COUNT, {"value": 2}, "c").action == FoldValue(value=2, fold="sum")
    assert command_of(VERDICT, {"value": "bad"}, "c").action == SetValue(value="bad")
    assert command_of(COUNT, {"remove": True}, "c").action == RemoveValue()
    assert command_of(COUNT, {"value": 2}, "c").merge is Merge.FOLD
