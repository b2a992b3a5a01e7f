"""Drives a run from the terminal: signals, prompts, control from outside, and the exit code at the end."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Literal

import anyio

from agentctl.errors import AgentctlError, ExitCode
from agentctl.interaction.hub import Hub
from agentctl.interaction.socket import serve_control
from agentctl.locations import live_dir
from agentctl.protocol.events import RunEnded, RunSuspended
from agentctl.protocol.questions import Answer
from agentctl.records import dataclass
from agentctl.run.recorder import RunRecorder
from agentctl.run.refused import refused_of
from agentctl.run.runner import RunEnd, RunParts, run_or_fail
from agentctl.terminal.api import Device, Ending, Terminal, serve_prompts

_LAST_WORDS_S = 0.5
_ON_ITS_WAY_S = 0.3


@dataclass(slots=True)
class Stop:
    """What a signal or another terminal asked for; the first one counts."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    exit_code: int = 0
    reason: str = ""
    over: bool = False
    """The run ends and is not kept for `resume`."""
    leave: Callable[[], None] = field(default=lambda: None)
    """What to do before the process ends at once."""

    def now(self, *, exit_code: int, reason: str, over: bool = False) -> None:
        """Stop the whole tree of agents. Idempotent."""
        if not self.exit_code:
            self.exit_code, self.reason, self.over = exit_code, reason, over
            self.scope.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What other terminals may do with this run."""

    hub: Hub
    stopping: Stop

    def answer(self, question_id: str, answer: Answer) -> bool:
        """Answer a question of any agent of the tree; False when it does not wait."""
        return self.hub.answer(question_id, answer)

    def stop(self, how: Literal["pause", "cancel"]) -> None:
        """Pause the run, to be resumed, or end it."""
        if how == "pause":
            self.stopping.now(exit_code=int(ExitCode.WAITING), reason="paused from another terminal")
        else:
            reason = "cancelled from another terminal"
            self.stopping.now(exit_code=int(ExitCode.FAILED), reason=reason, over=True)


async def drive(parts: RunParts, terminal: Terminal, hub: Hub, device: Device | None) -> int:
    """Run to the end, show how it ended, and return the exit code.

    The prompts on `device` and the door for other terminals are there beside it and end with it. Ctrl-C once
    stops the step and keeps the run; twice leaves at once. SIGTERM stops without another act.
    """
    stop = Stop()
    stop.leave = partial(_leave, terminal, device, stop, parts.recorder.run_id)
    code = 0
    failures: list[Exception] = []
    async with anyio.create_task_group() as watching:
        await watching.start(watch_signals, stop)
        try:
            code = await _driven(parts, terminal, hub, device, stop)
        except Exception as error:  # noqa: BLE001 - raised below as it is, not inside another group
            failures.append(error)
        stop.leave = _nothing  # all has been said
        watching.cancel_scope.cancel()
    if failures:
        raise failures[0]
    return code


async def _driven(parts: RunParts, terminal: Terminal, hub: Hub, device: Device | None, stop: Stop) -> int:
    """Run and show; signals are watched until the last word is out, so that none of them takes it away."""
    ended: list[RunEnd] = []
    async with anyio.create_task_group() as group:
        if device is not None:
            group.start_soon(serve_prompts, hub, device, terminal)
        group.start_soon(_open_door, parts.recorder.run_id, Door(hub=hub, stopping=stop))
        with stop.scope:
            ended.append(await run_or_fail(parts))
        group.cancel_scope.cancel()
    if not ended:
        with anyio.CancelScope(shield=True):
            ended.append(await _keep(parts, stop))
    end = ended[0]
    terminal.finish(_ending(parts.recorder, end))
    return end.exit_code


def _nothing() -> None:
    """Leave without another word."""


def _leave(terminal: Terminal, device: Device | None, stop: Stop, run_id: str) -> None:
    """Give the terminal back and write the last record, without waiting long for a reader that is stuck."""
    if device is not None:
        device.leave()
    hint = "" if stop.over else f"agentctl resume {run_id}"
    ending = Ending(exit_code=stop.exit_code, reason=stop.reason, hint=hint)
    last_words = threading.Thread(target=_finish, args=(terminal, ending), daemon=True)
    last_words.start()
    last_words.join(_LAST_WORDS_S)


def _finish(terminal: Terminal, ending: Ending) -> None:
    with suppress(AgentctlError):  # a full disk behind stdout; the exit code says already what happened
        terminal.finish(ending)


async def _open_door(run_id: str, door: Door) -> None:
    with suppress(OSError):  # a run without a door is still a run: its questions wait in the journal
        await serve_control(live_dir(), run_id, door)


async def watch_signals(stop: Stop, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    """Stop at the first SIGINT or SIGTERM, leave at the second. Runs until cancelled."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            if stop.exit_code:
                # The second signal means now: what was committed is safe, and children die with us. Most
                # often the end is on its way already, and would be cut off in its last words.
                with anyio.move_on_after(_ON_ITS_WAY_S):
                    await anyio.sleep_forever()
                stop.leave()
                os._exit(stop.exit_code)
            interrupted = number == signal.SIGINT
            stop.now(
                exit_code=int(ExitCode.SIGINT if interrupted else ExitCode.SIGTERM),
                reason="interrupted" if interrupted else "terminated",
            )


async def _keep(parts: RunParts, stop: Stop) -> RunEnd:
    reason, exit_code = stop.reason or "stopped", stop.exit_code or int(ExitCode.SIGINT)
    event: RunEnd = RunSuspended(reason=reason, exit_code=exit_code)
    if stop.over:
        event = RunEnded(outcome="cancelled", exit_code=exit_code, reason=reason)
    await parts.recorder.commit(event)
    if stop.over:
        await parts.children.end_all()
    return event


def _ending(recorder: RunRecorder, end: RunEnd) -> Ending:
    hint = "" if isinstance(end, RunEnded) and end.outcome == "finished" else resume_hint(recorder, end)
    return Ending(exit_code=end.exit_code, reason=end.reason, hint=hint, refused=refused_of(recorder))


def resume_hint(recorder: RunRecorder, end: RunEnd) -> str:
    """Return the next command to type."""
    match end:
        case RunSuspended(limit=limit) if limit:
            key = limit.removeprefix("limits.")
            return f"agentctl resume {recorder.run_id} --limit {key}=N"
        case RunSuspended(exit_code=ExitCode.WAITING) if recorder.snapshot.questions:
            return f"agentctl approvals list {recorder.run_id}; agentctl resume {recorder.run_id}"
        case RunSuspended():
            return f"agentctl resume {recorder.run_id}"
        case RunEnded():
            return f"agentctl log {recorder.run_id}"
