"""Drives a run from the terminal: signals, prompts, control from outside, and the exit code at the end."""

import os
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

import anyio

from agentctl.errors import AgentctlError, ExitCode
from agentctl.interaction.unattended import RefusedAsk
from agentctl.protocol.events import RunEnded, RunSuspended
from agentctl.run.recorder import RunRecorder
from agentctl.run.runner import RunEnd, RunParts, fail_run, run_to_end
from agentctl.terminal.contract import Ending, Terminal


@dataclass(slots=True)
class Stop:
    """What a signal or another terminal asked for; the first one counts."""

    exit_code: int = 0
    reason: str = ""


async def drive(
    parts: RunParts, terminal: Terminal, companions: tuple[Callable[[], Coroutine[None, None, None]], ...]
) -> int:
    """Run to the end, show how it ended, and return the exit code.

    `companions` (prompts, the control socket) run beside it and end with it. Ctrl-C once stops the step and
    keeps the run; twice leaves at once. SIGTERM stops without another act.
    """
    stop = Stop()
    ended: list[RunEnd] = []
    async with anyio.create_task_group() as group:
        for companion in companions:
            group.start_soon(companion)
        scope = anyio.CancelScope()
        await group.start(_watch_signals, scope, stop)
        with scope:
            ended.append(await _run(parts))
        group.cancel_scope.cancel()
    if not ended:
        with anyio.CancelScope(shield=True):
            ended.append(await _keep(parts.recorder, stop))
    end = ended[0]
    terminal.finish(_ending(parts.recorder, end))
    return end.exit_code


async def _run(parts: RunParts) -> RunEnd:
    try:
        return await run_to_end(parts)
    except AgentctlError as error:
        return await fail_run(parts.recorder, error)


async def _watch_signals(
    scope: anyio.CancelScope, stop: Stop, *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            if stop.exit_code:
                # The second signal means now: what was committed is safe, and children die with us.
                os._exit(stop.exit_code)
            interrupted = number == signal.SIGINT
            stop.exit_code = int(ExitCode.SIGINT if interrupted else ExitCode.SIGTERM)
            stop.reason = "interrupted" if interrupted else "terminated"
            scope.cancel()


async def _keep(recorder: RunRecorder, stop: Stop) -> RunSuspended:
    event = RunSuspended(reason=stop.reason or "stopped", exit_code=stop.exit_code or int(ExitCode.SIGINT))
    await recorder.commit(event)
    return event


def _ending(recorder: RunRecorder, end: RunEnd) -> Ending:
    refused = tuple(
        RefusedAsk(tool=ask.tool, shown=ask.preview, allow=ask.flags, instead=ask.instead)
        for ask in recorder.snapshot.refused_asks
    )
    hint = "" if isinstance(end, RunEnded) and end.outcome == "finished" else resume_hint(recorder, end)
    return Ending(exit_code=end.exit_code, reason=end.reason, hint=hint, refused=refused)


def resume_hint(recorder: RunRecorder, end: RunEnd) -> str:
    """Return the next command to type."""
    match end:
        case RunSuspended(limit=limit) if limit:
            key = limit.removeprefix("limits.")
            return f"agentctl resume {recorder.run_id} --limit {key}=N"
        case RunSuspended(exit_code=ExitCode.WAITING):
            return f"agentctl approvals list {recorder.run_id}; agentctl resume {recorder.run_id}"
        case RunSuspended():
            return f"agentctl resume {recorder.run_id}"
        case RunEnded():
            return f"agentctl log {recorder.run_id}"
