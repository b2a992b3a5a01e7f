"""The end of a step: results, hooks, state effects, cuts and budgets fold in call order into one commit."""

from dataclasses import replace

from agentctl.agent.context import AgentContext
from agentctl.agent.dispatch import Answered, completion
from agentctl.agent.snapshot import add_usage
from agentctl.errors import RunFailed
from agentctl.protocol.commands import Command
from agentctl.protocol.events import Event, MessageAdded, StepSettled, ToolCallDecided
from agentctl.protocol.messages import AssistantMessage, ToolMessage, Usage


async def settle_step(context: AgentContext, results: list[Answered]) -> None:
    """Commit the step's results, in call order, with everything that follows from them; all or nothing."""
    async with context.tools.fold.settling():
        await _settle(context, results)


async def _settle(context: AgentContext, results: list[Answered]) -> None:
    tools, recorder = context.tools, context.recorder
    events: list[Event] = []
    later: list[Event] = []
    commands: list[Command] = []
    failure = ""
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
        folded = await tools.fold.fold(done.call, done.result, shown, stage=context.plan.name)
        events.extend(folded.events)
        later.extend(folded.afterwards)
        commands.extend(folded.commands)
        failure = failure or folded.failure
        events.append(MessageAdded(message=ToolMessage(result=folded.result), step=recorder.snapshot.step))
    spent, own = tools.budgets.spent(), tools.budgets.own()
    events.append(StepSettled(step=recorder.snapshot.step, usage=_usage(context), spent=spent, own=own))
    commands.extend(tools.hooks.notes())
    await recorder.commit(*events, *later, commands=tuple(commands))
    if failure:
        raise RunFailed(failure, hint='Mend the effect, or give it on_error = "warn".')


def _usage(context: AgentContext) -> Usage:
    for message in reversed(context.recorder.snapshot.messages):
        if isinstance(message, AssistantMessage):
            return replace(add_usage(Usage(), message.usage))
    return Usage()
