"""The calls that a running script tool makes: ordinary calls through the funnel, each with its own id.

A script is run again from its beginning when a run goes on. Its calls have ids that follow from their order
and arguments, so what it did before is answered from the journal and does not happen twice.
"""

import hashlib
import json
from dataclasses import replace
from itertools import count

from agentctl.agent.asking import ask_all
from agentctl.agent.asking_tool import PersonAbsent
from agentctl.agent.context import AgentContext, Suspend
from agentctl.agent.dispatch import Answered, Asking, CallTool, Ready, judge, run_call
from agentctl.errors import ToolError
from agentctl.protocol.events import ToolCallDecided
from agentctl.protocol.messages import ToolCall, ToolResult
from agentctl.tools.definition import InnerCall

_IN_DOUBT = (
    "agentctl was stopped while this script tool made a {tool} call. It may have happened, wholly, partly or "
    "not at all. Look at the state of things before you do it again."
)
_ANOTHER_WAY = (
    "This script tool had begun before agentctl was stopped, and now takes another way than it did then. "
    "What it did then has happened. Look at the state of things before you call it again."
)


def inner_caller(context: AgentContext, outer: str) -> CallTool:
    """Return what the script tool of the call `outer` makes its calls with; see `ActContext.call_tool`."""
    numbers = count(1)

    async def call_tool(inner: InnerCall) -> ToolResult:
        place = f"{outer}/{next(numbers)}-"
        call = ToolCall(call_id=f"{place}{_digest(inner)}", tool=inner.tool, arguments=inner.arguments)
        known = _known(context, call, place)
        if known is not None:
            return known
        outermost = context.recorder.snapshot.running.get(outer)
        reach = replace(
            context.tools.script_reach(written_here=inner.written_here),
            caller=outermost.tool if outermost else "",
        )
        judged = await judge(context, call, reach)
        if isinstance(judged, Asking):
            answered = await ask_all(context, [judged])
            if isinstance(answered, Suspend):
                raise PersonAbsent(answered)
            (judged,) = answered
        match judged:
            case Ready():
                done = await run_call(context, judged, settles_at_once=False)
                if isinstance(done, Suspend):
                    raise PersonAbsent(done)
                return done.result
            case Answered():
                await _record(context, judged)
                return judged.result
            case Asking():
                raise ToolError(f"{call.tool} needs a person's approval.")

    return call_tool


def _known(context: AgentContext, call: ToolCall, place: str) -> ToolResult | None:
    """Return the result that the journal has for this very call, if the script got as far before."""
    snapshot = context.recorder.snapshot
    before = [one for one in (*snapshot.running, *snapshot.completed) if one.startswith(place)]
    if any(one != call.call_id for one in before):
        raise ToolError(_ANOTHER_WAY)
    done = snapshot.completed.get(call.call_id)
    if done is not None:
        return done.result
    begun = snapshot.running.get(call.call_id)
    if begun is not None and not begun.read_only:
        if (decided := snapshot.decided.get(call.call_id)) is not None:
            context.tools.count_in_doubt(decided)
        raise ToolError(_IN_DOUBT.format(tool=call.tool))
    return None


async def _record(context: AgentContext, refused: Answered) -> None:
    if refused.decision is not None:
        decided = ToolCallDecided(
            call_id=refused.call.call_id,
            tool=refused.call.tool,
            arguments=refused.call.arguments,
            decision=refused.decision,
        )
        await context.recorder.commit(decided)


def _digest(inner: InnerCall) -> str:
    text = json.dumps([inner.tool, inner.arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
