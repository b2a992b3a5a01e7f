"""What showing a run means: modes, streams, and the protocol that every view follows."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from agentctl.interaction.unattended import RefusedAsk
from agentctl.protocol.events import Published
from agentctl.records import dataclass

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
    said: bool = False
    """Reason and hint are said on stderr by somebody else."""


class Terminal(Watcher, Protocol):
    """Shows one run."""

    def held(self) -> AbstractContextManager[None]:
        """Return a context in which nothing is drawn, since a prompt has the terminal.

        What comes meanwhile is kept and follows afterwards. Contexts may nest.
        """

    def finish(self, ending: Ending) -> None:
        """Write the answer, the last record and the last lines, and wait until all is written. Idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What the user wants of the terminal: `[terminal]` of the config."""

    color: Literal["auto", "always", "never"] = "auto"
    output: Literal["auto", "rich", "plain"] = "auto"
    editor: str = ""
    bell: bool = False
    reasoning: bool = False

    def colours(self, environ: Mapping[str, str]) -> bool:
        """Return whether a terminal gets colours; with `auto` one that can, if the environment allows."""
        if self.color == "auto":
            unwanted = environ.get("NO_COLOR") or environ.get("CLICOLOR") == "0"
            return not unwanted and environ.get("TERM", "") not in CANNOT
        return self.color == "always"


CANNOT = ("", "dumb")
"""Values of TERM for which escape sequences only make a mess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """File descriptors to write to, and what the environment and the user say about them."""

    stdout: int = 1
    stderr: int = 2
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    looks: Looks = Looks()

    def same(self) -> bool:
        """Return whether both lead to one place, so that text on one need not be repeated on the other."""
        try:
            out, err = os.fstat(self.stdout), os.fstat(self.stderr)
        except OSError:
            return False
        return (out.st_dev, out.st_ino, out.st_rdev) == (err.st_dev, err.st_ino, err.st_rdev)

    def is_terminal(self, descriptor: int) -> bool:
        """Return whether a person sees what is written to `descriptor`."""
        try:
            return os.isatty(descriptor)
        except OSError:
            return False

    @property
    def colour(self) -> bool:
        """Whether stderr gets colours."""
        return self.is_terminal(self.stderr) and self.looks.colours(self.environ)


def choose_mode(*, json: bool, jsonl: bool, quiet: bool, streams: Streams) -> Mode:
    """Return the mode for the command line's flags; without one, what the user wants of this terminal.

    Else rich where stderr is a terminal that can move its cursor. Off a terminal it is always plain.
    """
    if json or jsonl:
        return "json" if json else "jsonl"
    if quiet:
        return "quiet"
    wanted = streams.looks.output
    can = streams.environ.get("TERM", "") not in CANNOT if wanted == "auto" else wanted == "rich"
    return "rich" if can and streams.is_terminal(streams.stderr) else "plain"
