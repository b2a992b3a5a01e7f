"""Shows a run and lets a person at the terminal answer; brackets a run from its first to its last word."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agentctl.cli.drive import drive
from agentctl.cli.options import Output
from agentctl.clock import SystemClock
from agentctl.errors import AgentctlError, ExitCode
from agentctl.records import dataclass
from agentctl.run.house import House
from agentctl.run.runner import RunParts
from agentctl.terminal.api import (
    Device,
    Ending,
    Looks,
    Streams,
    Terminal,
    choose_mode,
    open_device,
    open_terminal,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A run's terminal, with the prompts on the device where there is one."""

    house: House
    terminal: Terminal
    device: Device | None

    async def drive(self, parts: RunParts) -> int:
        """Run to the end, show how it ended, and return the exit code."""
        return await drive(parts, self.terminal, self.house.hub, self.device)


def streams_of(house: House) -> Streams:
    """Return the process's streams, as the user's config wants them."""
    wanted = house.settings.config.terminal
    looks = Looks(
        color=wanted.color,
        output=wanted.output,
        editor=wanted.editor,
        bell=wanted.bell,
        reasoning=wanted.reasoning,
    )
    return Streams(environ=dict(os.environ), looks=looks)


def recorded(output: Output, work: Callable[[], int]) -> int:
    """Return what `work` returns; with --json and --jsonl an error that ends it is a record on stdout too.

    Raises:
        AgentctlError: what `work` raised.
    """
    try:
        return work()
    except AgentctlError as error:
        if output in ("json", "jsonl") and not error.recorded:
            terminal = open_terminal(output, streams=Streams(), clock=SystemClock())
            terminal.finish(_ending_of(error))
        raise


@asynccontextmanager
async def show_run(house: House, output: Output) -> AsyncIterator[View]:
    """Give the view of a run; what happens in the house is shown in it."""
    streams = streams_of(house)
    mode = choose_mode(
        json=output == "json", jsonl=output == "jsonl", quiet=output == "quiet", streams=streams
    )
    terminal = open_terminal(mode, streams=streams, clock=house.clock)
    device = open_device(streams.environ, streams.looks)
    house.watch = terminal.on_event
    if device is not None:
        house.someone_there = device.answers
    try:
        yield View(house=house, terminal=terminal, device=device)
    except AgentctlError as error:
        terminal.finish(_ending_of(error))
        error.recorded = True
        raise
    finally:
        # Only after a mistake of ours is there anything left to finish: the last record is written even so.
        terminal.finish(Ending(exit_code=int(ExitCode.FAILED)))
        if device is not None:
            device.close()


def _ending_of(error: AgentctlError) -> Ending:
    return Ending(exit_code=int(error.exit_code), reason=error.message, hint=error.hint, said=True)
