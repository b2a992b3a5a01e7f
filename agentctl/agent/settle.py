"""The end of a step: results, hooks, state effects, cuts and budgets fold in call order into one commit."""

from dataclasses import replace

from agentctl.agent.context import AgentContext
from agentctl.agent.dispatch import Answered, completion
from agentctl.agent.snapshot import add_usage
from agentctl.protocol.commands import Command
from agentctl.protocol.events import Event, MessageAdded, StepSettled, ToolCallDecided
from agentctl.protocol.messages import AssistantMessage, ToolMessage, Usage


async def settle_step(context: AgentContext, results: list[Answered]) -> None:
    """Commit the step's results, in call order, with everything that follows from them; all or nothing."""
    tools, recorder = context.tools, context.recorder
    events: list[Event] = []
    commands: list[Command] = []
    for done in results:
        if done.ran and not done.recorded:
            events.append(completion(done))
        if not done.ran and done.decision is not None:
            events.append(
                ToolCallDecided(
                    call_id=done.call.call_id,
                    tool=done.call.tool,
                    arguments=done.call.arguments,
                    decision=done.decision,
                )
            )
        shown = await tools.hooks.after_call(done.call, done.result)
        folded = await tools.fold.fold(done.call, done.result, shown)
        events.extend(folded.events)
        commands.extend(folded.commands)
        events.append(MessageAdded(message=ToolMessage(result=folded.result), step=recorder.snapshot.step))
    events.append(
        StepSettled(step=recorder.snapshot.step, usage=_usage(context), spent=dict(tools.budgets.spent()))
    )
    await recorder.commit(*events, commands=tuple(commands))


def _usage(context: AgentContext) -> Usage:
    for message in reversed(context.recorder.snapshot.messages):
        if isinstance(message, AssistantMessage):
            return replace(add_usage(Usage(), message.usage))
    return Usage()
