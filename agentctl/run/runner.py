"""One run: from its first commit through its stages to its end. Everything it does stands in the journal."""

from collections.abc import Awaitable, Callable

from agentctl.agent.asking_tool import PersonAbsent
from agentctl.agent.compaction import summarise_stage
from agentctl.agent.context import AgentContext, AskPerson, Inbox, StageEnd, Suspend
from agentctl.agent.loop import run_stage
from agentctl.agent.showing import Showing
from agentctl.agent.tool_state import ToolState
from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.clock import Clock
from agentctl.errors import (
    AgentctlError,
    ExitCode,
    JournalUnwritable,
    LimitReached,
    ProviderError,
    ToolServerMissing,
    known_error,
)
from agentctl.llm.base import LanguageModel
from agentctl.protocol.children import RunOutcome
from agentctl.protocol.events import (
    MessageAdded,
    RunEnded,
    RunSuspended,
    StageEntered,
    StageLeft,
)
from agentctl.protocol.messages import user_text
from agentctl.records import dataclass
from agentctl.run.active_time import ActiveTime
from agentctl.run.checkpoints import pass_checkpoints
from agentctl.run.children import Children
from agentctl.run.fan_out import run_fan_out
from agentctl.run.recorder import RunRecorder
from agentctl.run.stages import StageModel, next_transition, plan_stage
from agentctl.tools.child_reports import told

RunEnd = RunEnded | RunSuspended


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What a run is built from; made by `cli/wiring.py`."""

    root_run: str
    """The run a person started, whose tree this one is in."""
    agent: str
    """What the agent is: a blueprint's name, or a worker stage's."""
    blueprint: Blueprint
    recorder: RunRecorder
    tools: ToolState
    model_of: Callable[[StageTable], StageModel]
    person: AskPerson
    active: ActiveTime
    inbox: Inbox
    children: Children
    sandboxed: Callable[[StageTable], Awaitable[bool]]
    """Tells whether a sandbox is in force for the processes of a stage."""
    showing: Showing
    open_model: Callable[[str], LanguageModel]
    """Opens a model that a hook chose by its name."""
    clock: Clock


async def run_to_end(parts: RunParts) -> RunEnd:
    """Take the run from where its journal stands to its end, or to where it must stand still.

    The journal begins with a RunStarted that the caller committed. Calling this again after a crash goes on.
    What is returned has been committed.
    """
    recorder, budgets = parts.recorder, parts.tools.budgets

    budgets.measure_time(parts.active.seconds)
    end: RunEnd | None = None
    with parts.active.limited(budgets.seconds_left):
        async with parts.children.living():
            end = await _guarded(parts)
    if end is not None:
        return end
    reason = f"The run's time is up: {parts.active.seconds():.0f} s (limits.wall_time)."
    return await _suspend(recorder, reason, ExitCode.LIMIT, limit="limits.wall_time")


async def run_or_fail(parts: RunParts) -> RunEnd:
    """Run to the end; an error that a person must act on ends the run as failed, and is committed too."""
    try:
        end = await run_to_end(parts)
    except AgentctlError as error:
        end = await fail_run(parts.recorder, error)
    except BaseExceptionGroup as group:
        known = known_error(group)
        if known is None:
            raise
        end = await fail_run(parts.recorder, known)
    if isinstance(end, RunEnded):
        await parts.children.end_all()
    return end


async def _guarded(parts: RunParts) -> RunEnd:
    """The stages; a limit, model service or tool server that stops them leaves an end to resume from."""
    recorder = parts.recorder
    try:
        async with parts.tools.parts.outside.living():
            return await _stages(parts)
    except ToolServerMissing as error:
        return await _suspend(recorder, f"{error.message} {error.hint}".strip(), ExitCode.TOOL_SERVER)
    except LimitReached as limit:
        reason = f"{limit.message} {limit.hint}".strip()
        return await _suspend(recorder, reason, ExitCode.LIMIT, limit=limit.key, above=limit.above)
    except ProviderError as error:
        return await _suspend(recorder, error.message, ExitCode.PROVIDER)


async def _stages(parts: RunParts) -> RunEnd:
    recorder = parts.recorder
    await _begin_document(parts)
    stage = parts.blueprint.stages.get(recorder.snapshot.stage) or parts.blueprint.entry
    while True:
        context = await _enter(parts, stage)
        fans_out = stage.mode == "fan_out"
        ended = await (run_fan_out(context, stage) if fans_out else run_stage(context))
        if isinstance(ended, Suspend):
            return await _stand_still(recorder, ended)
        heard = await _heard_children(parts) if stage.requires_children else False
        if isinstance(heard, Suspend):
            return await _stand_still(recorder, heard)
        if heard:
            continue
        if await _held_by_machines(parts, stage, ended):
            continue
        passed = await pass_checkpoints(context, parts.blueprint, stage, ended)
        match passed:
            case Suspend():
                return await _stand_still(recorder, passed)
            case StageEnd():
                following = await _leave(context, parts, stage, passed)
                if isinstance(following, RunEnded):
                    return following
                stage = following
            case None:
                pass  # a person sent the stage back to work


async def _begin_document(parts: RunParts) -> None:
    """Commit the state document's beginning, in a thread that has none yet."""
    async with parts.tools.fold.settling():
        begun = parts.tools.fold.begin()
        if begun is not None:
            await parts.recorder.commit(*begun.events, commands=begun.commands)


async def _held_by_machines(parts: RunParts, stage: StageTable, end: StageEnd) -> bool:
    """Send the model back to what a machine waits for, where the run would end now; tell whether it was."""
    if end.reason != "answer" or next_transition(parts.blueprint, stage, parts.recorder.snapshot, end):
        return False
    held = parts.tools.state.continuation()
    if held is None:
        return False
    words, command = held
    await parts.recorder.commit(MessageAdded(message=user_text(words, source="harness")), commands=(command,))
    return True


async def _heard_children(parts: RunParts) -> bool | Suspend:
    """Hold a stage until its sub-agents have ended; tell whether the model has something new to read.

    `Suspend` when one of them waits for a person who is not there.
    """
    reports = parts.children.reports()
    open_ones = tuple(report.child for report in reports if report.outcome in {"running", "waiting"})
    if not open_ones:
        return False
    try:
        reports = await parts.children.wait(open_ones, any_of=False, timeout_s=0)
    except PersonAbsent as absent:
        return absent.suspend
    text = f"Your sub-agents have ended.\n\n{told(reports).text}"
    await parts.recorder.commit(MessageAdded(message=user_text(text, source="harness")))
    return True


async def _enter(parts: RunParts, stage: StageTable) -> AgentContext:
    """Swap everything to `stage` at once; commit its entry unless the journal is in the middle of it."""
    recorder, snapshot = parts.recorder, parts.recorder.snapshot
    model = parts.model_of(stage)
    if not snapshot.stage_open:
        visit = snapshot.visits.get(stage.name, 0) + 1
        await recorder.commit(
            StageEntered(stage=stage.name, index=stage.index, visit=visit, model=model.model.name)
        )
    plan = plan_stage(parts.blueprint, stage, snapshot, model)
    parts.tools.sandboxed = await parts.sandboxed(stage)
    parts.tools.enter_stage(stage.index, {edge.target: edge.hint for edge in plan.edges}, plan.output_schema)
    return AgentContext(
        run_id=recorder.run_id,
        root_run=parts.root_run,
        agent=parts.agent,
        plan=plan,
        recorder=recorder,
        tools=parts.tools,
        person=parts.person,
        inbox=parts.inbox,
        showing=parts.showing,
        open_model=parts.open_model,
        clock=parts.clock,
    )


async def _leave(
    context: AgentContext, parts: RunParts, stage: StageTable, end: StageEnd
) -> StageTable | RunEnded:
    """Commit that the stage is over, and with it the entry of the next one or the end of the run."""
    recorder, snapshot = parts.recorder, parts.recorder.snapshot
    edge = next_transition(parts.blueprint, stage, snapshot, end)
    left = StageLeft(stage=stage.name, reason=end.reason, taken=edge.to if edge else "", note=end.note)
    if edge is None:
        ended = _outcome(snapshot.refused_asks != [], end)
        await recorder.commit(left, ended)
        return ended
    following = parts.blueprint.stages[edge.to]
    summary = (await summarise_stage(context),) if edge.carry == "summary" else ()
    visit = snapshot.visits.get(following.name, 0) + 1
    note = f" {end.note}" if end.note else ""
    await recorder.commit(
        left,
        StageEntered(
            stage=following.name,
            index=following.index,
            visit=visit,
            model=parts.model_of(following).model.name,
            carry=edge.carry,
        ),
        *summary,
        MessageAdded(message=user_text(f"The stage `{following.name}` begins.{note}", source="harness")),
    )
    return following


def _outcome(refused: bool, end: StageEnd) -> RunEnded:  # noqa: FBT001 - one caller, named there
    outcome: RunOutcome = "finished"
    code = ExitCode.FINISHED
    reason, limit = "", ""
    match end.reason:
        case "max_steps":
            outcome, code, reason, limit = "limited", ExitCode.LIMIT, end.note, "max_steps"
        case "error" | "stuck" | "dead_end":
            outcome, code, reason = "failed", ExitCode.FAILED, f"{end.reason}: {end.note}"
        case "answer" | "transition":
            if refused:
                outcome, code = "refused", ExitCode.REFUSED
                reason = "an ask was refused because nobody was there to answer"
    return RunEnded(
        outcome=outcome, exit_code=int(code), answer=end.answer, output=end.output, reason=reason, limit=limit
    )


async def _stand_still(recorder: RunRecorder, why: Suspend) -> RunSuspended:
    code = ExitCode.LIMIT if why.limit else ExitCode.WAITING
    return await _suspend(recorder, why.reason, code, limit=why.limit, above=why.above)


async def _suspend(
    recorder: RunRecorder, reason: str, code: ExitCode, *, limit: str = "", above: int = 0
) -> RunSuspended:
    event = RunSuspended(reason=reason, exit_code=int(code), limit=limit, above=above)
    await recorder.commit(event)
    return event


async def fail_run(recorder: RunRecorder, error: AgentctlError) -> RunEnd:
    """Commit that the run ended with `error`; for errors that no resume can mend.

    A journal that takes nothing more ends no run: it stands where its last commit left it, as after a kill.
    """
    if isinstance(error, JournalUnwritable):
        try:
            return await _suspend(recorder, error.message, ExitCode.FAILED)
        except JournalUnwritable:
            return RunSuspended(reason=error.message, exit_code=int(ExitCode.FAILED))
    ended = RunEnded(outcome="failed", exit_code=int(error.exit_code), reason=error.message)
    await recorder.commit(ended)
    return ended
