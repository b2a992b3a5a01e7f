"""What a tool call would do, said before it does it. Policy judges these, not tool names."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgram:
    """A simple command. Judged by the `shell` entry on its words, never on text."""

    argv: tuple[str, ...]
    """The words as the program would receive them, unquoted; the program first, never empty."""
    via: tuple[str, ...] = ()
    """Programs that were looked through to find this one (`env`, `timeout`), outermost first."""
    outer: tuple[tuple[str, ...], ...] = ()
    """Whole argv of each inert wrapper looked through; an allow for one of them covers this command too."""
    seen_inside: bool = False
    """Found inside a wrapper or substitution that is not inert, and whose own argv is an effect of its own:
    deny and ask rules reach it, but no allow rule is required for it beyond the ones of its surroundings."""
    unknown: tuple[int, ...] = ()
    """Positions in `argv` whose value only the shell will know; only a pattern's last `*` or a `*` word
    covers them, and a deny or ask pattern that could match them does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePath:
    """A file or directory made, changed or removed. Judged by the `write_file` entry."""

    path: str
    """Absolute and resolved, symlinks included, unless `unresolved`."""
    unresolved: bool = False
    """The shell would build the name from something not known yet."""
    protected: str = ""
    """Why the path is protected (`git internals`, `agentctl's own config`), or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPath:
    """A file or directory read. Judged by the `read_file` entry."""

    path: str
    """Absolute and resolved, symlinks included."""
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
