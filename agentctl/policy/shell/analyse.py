"""A command line to the effects it would have, or the reason why that cannot be told."""

from dataclasses import dataclass

from agentctl.protocol.effects import Effect, OpaqueCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class LineAnalysis:
    """What a line would do. On an opaque line the effects are what could be seen, for deny and the prompt."""

    effects: tuple[Effect, ...]
    """In the order of the line. Holds one `OpaqueCommand` when `opaque_reason` is not empty. Paths are
    absolute, joined on the directory the line would be in, and not resolved: `..` and symlinks are left for
    whoever can look at the disk, who also marks what is protected or outside and expands `glob` paths."""
    opaque_reason: str = ""
    """Why the line cannot be told, in words for the prompt; empty when everything it runs is listed."""


def analyse(line: str, *, cwd: str, home: str) -> LineAnalysis:
    """Return the effects of running `line` with bash in `cwd`.

    Pure, bounded in time, and total: every string has an answer, in the worst case an opaque one.
    """
    del cwd, home
    reason = "the analysis does not know this form yet"
    return LineAnalysis(effects=(OpaqueCommand(line=line, reason=reason),), opaque_reason=reason)
