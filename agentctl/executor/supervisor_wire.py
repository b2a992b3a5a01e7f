"""What agentctl and a supervisor say to each other, as JSON."""

from typing import TypedDict


class Confinement(TypedDict):
    """What the kernel itself shall hold a command to, set by the command's own process before it starts."""

    readable: list[str]
    """Files and directories with all below them that can be read and executed."""
    listable: list[str]
    """Directories of which the names can be seen."""
    writable: list[str]
    network: bool
    filter_hex: str
    """A seccomp program."""


class Request(TypedDict):
    """A command to run. Descriptors: control, directory, stdin, and then stdout and stderr, or a log."""

    argv: list[str]
    """`{filter}` and `{status}` as whole words stand for descriptors that a wrapper (bubblewrap) is given."""
    environment: dict[str, str]
    timeout_s: float
    """0: no limit."""
    grace_s: float
    """Between SIGTERM and SIGKILL."""
    wrapped: bool
    """The command is a sandbox that keeps a reaper of its own."""
    filter_hex: str
    """A seccomp program for the wrapper."""
    confinement: Confinement | None
    descriptors: int
    """How many the command may have open."""
    floor_path: str
    """A directory on the disk that the command mostly writes to."""
    floor_bytes: int
    """The command is stopped when less is free there, unless that was so when it began; 0: never."""
    log_keep_bytes: int
    """0: stdout and stderr were given; else output goes to the log, which keeps its last bytes, this many."""


class Ended(TypedDict):
    """What a supervisor says at the end."""

    status: int
    """As `waitpid` gives it."""
    timed_out: bool
    disk_low: bool
    """It was stopped because the disk was nearly full."""
    survivors: int
    left: int
    blocks: int
    """Blocks of 512 bytes that the command's processes wrote to disks, as far as the kernel counts them."""
    wrapper_said: str
    """What the wrapper told on `{status}`."""


class Answer(TypedDict, total=False):
    """One line from a supervisor: first `supervisor`, then `started` or `failed`, at last `ended`."""

    supervisor: int
    """Its own process number."""
    started: int
    """The command's process number."""
    failed: str
    about: str
    """What could not be found or entered, with `failed`."""
    ended: Ended
