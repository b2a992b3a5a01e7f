"""What a tool call would do, said before it does it. Policy judges these, not tool names."""

from typing import TypeAlias

from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgram:
    """A simple command. Judged by the `shell` entry on its words, never on text."""

    argv: tuple[str, ...]
    """The words as the program would receive them, unquoted; the program first, never empty."""
    via: tuple[str, ...] = ()
    """Programs that were looked through to find this one (`env`, `timeout`), outermost first."""
    outer: tuple[tuple[str, ...], ...] = ()
    """Whole argv of each wrapper or assignment prefix looked through (`nohup rm x`, `FOO=1 rm x`).

    Each ends with `argv`, so the program stands at `len(outer[i]) - len(argv)`. An allow pattern covers this
    command through one of them only when the pattern's words before a last `*` reach that position: `nohup
    pytest *` does, `nohup *` does not. Deny and ask patterns need not look here: a wrapper is also an effect
    of its own."""
    seen_inside: bool = False
    """Deny and ask rules reach it, but no allow rule is required for it: found inside a wrapper that runs
    anything and whose own argv is an effect that needs one (`bash -c`, `sudo`), an inert wrapper (`timeout
    5`, whose inner command needs the rule), or a `cd` inside the workdir."""
    unknown: tuple[int, ...] = ()
    """Positions in `argv` whose value only the shell will know (the text is as written); only a pattern's
    last `*` or a `*` word covers them, and a deny or ask pattern that could match them does."""
    spread: tuple[int, ...] = ()
    """Those of `unknown` that may become any number of words, none included (`$x`, `*.py`, xargs input)."""
    dashed: tuple[int, ...] = ()
    """Those of `unknown` that may turn into an option: their value could begin with `-`."""
    cwd: tuple[str, ...] = ()
    """Absolute directories it may run in where the line changes directory; empty is the call's own."""
    distrust: str = ""
    """Why the safe list must not cover it, found on the machine by the tool (`.git/config sets
    core.fsmonitor`); the analysis leaves it empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePath:
    """A file or directory made, changed or removed. Judged by the `write_file` entry."""

    path: str
    """Absolute and resolved, symlinks included, unless `unresolved`."""
    unresolved: bool = False
    """The shell would build the name from something not known yet."""
    glob: bool = False
    """`path` holds the shell's wildcards: the files that match when it runs."""
    tree: bool = False
    """Everything under it goes with it: removed, moved, or changed as a whole. A deny on a place inside
    reaches it."""
    into: tuple[str, ...] = ()
    """The names that are made in it instead, should it be a directory (`cp f DIR`)."""
    protected: str = ""
    """Why the path is protected (`git internals`, `agentctl's own config`), or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPath:
    """A file or directory read. Judged by the `read_file` entry."""

    path: str
    """Absolute and resolved, symlinks included."""
    glob: bool = False
    """`path` holds the shell's wildcards: the files that match when it runs."""
    outside: bool = False
    """Outside the workdir and every granted read path: for a shell line a held ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachHost:
    """A connection to a host. Judged by the `network` entry."""

    host: str
    """Lower case, no port, no user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnAgent:
    """A sub-agent started. Judged by the `spawn_agent` entry."""

    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueCommand:
    """A shell line, or a part of one, that cannot be told. No pattern, safe entry or grant covers it."""

    line: str
    reason: str
    """Why it cannot be told, for the prompt: `a variable stands where the program's name is expected`."""


Effect: TypeAlias = RunProgram | WritePath | ReadPath | ReachHost | SpawnAgent | OpaqueCommand
