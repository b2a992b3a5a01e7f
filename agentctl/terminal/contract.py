"""What showing a run means: modes, streams, and the protocol that every view follows."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from agentctl.interaction.unattended import RefusedAsk
from agentctl.protocol.events import Published

Mode: TypeAlias = Literal["rich", "plain", "json", "jsonl", "quiet"]


class Watcher(Protocol):
    """Is told what happens. `on_event` never blocks and never raises."""

    def on_event(self, published: Published) -> None:
        """Take note of an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended, for the last lines and the last record."""

    exit_code: int
    reason: str = ""
    """Why, where no `RunEnded` or `RunSuspended` says it: an interrupt, an error before the run began."""
    hint: str = ""
    """The next command to type, or empty."""
    refused: tuple[RefusedAsk, ...] = ()


class Terminal(Watcher, Protocol):
    """Shows one run."""

    def held(self) -> AbstractContextManager[None]:
        """Return a context in which nothing is drawn, since a prompt has the terminal.

        What comes meanwhile is kept and follows afterwards. Contexts may nest.
        """

    def finish(self, ending: Ending) -> None:
        """Write the answer, the last record and the last lines, and wait until all is written. Idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """File descriptors to write to, and what is known of them."""

    stdout: int = 1
    stderr: int = 2
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


def choose_mode(*, json: bool, jsonl: bool, quiet: bool, streams: Streams) -> Mode:
    """Return the mode for the command line's flags: rich where stderr is a terminal that can, else plain."""
    if json or jsonl:
        return "json" if json else "jsonl"
    if quiet:
        return "quiet"
    rich = os.isatty(streams.stderr) and streams.environ.get("TERM", "") not in ("", "dumb")
    return "rich" if rich else "plain"
