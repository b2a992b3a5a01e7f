"""A command line to the effects it would have, or the reason why that cannot be told."""

import re
from dataclasses import dataclass

from agentctl.policy.shell.commands import Findings
from agentctl.policy.shell.grammar import Reader
from agentctl.policy.shell.words import Refused
from agentctl.protocol.effects import Effect, OpaqueCommand

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MANY = 16


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
    findings = Findings(cwd=cwd, home=home)
    if _CONTROL.search(line):
        findings.flag("a control character stands in it")
    if line.startswith(("-", "+")):
        findings.flag("it begins like an option of the shell")
    try:
        Reader(line, findings).read_all()
    except Refused as refused:
        findings.flag(refused.reason)
    except RecursionError:
        findings.flag("it is nested too deep")
    return _answer(line, findings)


def _answer(line: str, findings: Findings) -> LineAnalysis:
    effects = findings.effects
    if len(effects) > _MANY:
        effects = list(dict.fromkeys(effects))
    if not findings.reasons:
        return LineAnalysis(effects=tuple(effects))
    reason = findings.reasons[0]
    return LineAnalysis(effects=(*effects, OpaqueCommand(line=line, reason=reason)), opaque_reason=reason)
