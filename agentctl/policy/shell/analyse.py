"""A command line to the effects it would have, or the reason why that cannot be told."""

import re
from dataclasses import replace

from agentctl.policy.shell.commands import Findings
from agentctl.policy.shell.grammar import MAX_TEXT, Reader
from agentctl.policy.shell.scan import rough_commands
from agentctl.policy.shell.second import commands_seen
from agentctl.policy.shell.words import Refused
from agentctl.protocol.effects import Effect, OpaqueCommand, RunProgram
from agentctl.records import dataclass

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_QUOTED_HEREDOC = re.compile(r"<<-?[ \t]*(?:(['\"])([A-Za-z0-9_.!-]+)\1|\\([A-Za-z0-9_.!-]+))")
_MANY = 16
_LOOKED_AT_TWICE = 8 * 1024
"""Longer lines are not given to the second reading, whose time is not bounded by their length."""


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
    if len(line) > MAX_TEXT and _length_without_bodies(line) > MAX_TEXT:
        findings.flag("it is too long to be read")
        findings.effects.extend(rough_commands(line))
        return _answer(line, findings)
    if not line.isprintable() and _CONTROL.search(line):
        findings.flag("a control character stands in it")
    if line.startswith(("-", "+")):
        findings.flag("it begins like an option of the shell")
    try:
        Reader(line, findings).read_all()
    except Refused as refused:
        findings.flag(refused.reason)
        _look_again(line, findings)
    except RecursionError:
        findings.flag("it is nested too deep")
        findings.effects.extend(rough_commands(line))
    findings.settle()
    _free_last_move(findings)
    return _answer(line, findings)


def _free_last_move(findings: Findings) -> None:
    """A `cd` behind all else leads nowhere: the shell ends there. Alone it is what the line is for."""
    effects = findings.effects
    last = effects[-1] if len(effects) > 1 else None
    if isinstance(last, RunProgram) and last.argv[0] == "cd" and not last.via and not findings.reasons:
        effects[-1] = replace(last, seen_inside=True)


def _length_without_bodies(line: str) -> int:
    """The length of `line` without what seem to be bodies of quoted heredocs; the reader measures again."""
    length, at = len(line), 0
    while True:
        match = _QUOTED_HEREDOC.search(line, at)
        if match is None:
            return length
        start = line.find("\n", match.end())
        end = line.find(f"\n{match[2] or match[3]}", start) if start >= 0 else -1
        if end < 0:
            return length
        length -= end - start
        at = end


def _look_again(line: str, findings: Findings) -> None:
    """Add what a second reading sees in a line that the grammar refused: for deny rules and the prompt."""
    if len(line) > _LOOKED_AT_TWICE:
        findings.effects.extend(rough_commands(line))
        return
    fragments, rough = commands_seen(line)
    for fragment in fragments:
        inside = Findings(cwd=findings.places.start, home=findings.home)
        try:
            Reader(fragment, inside).read_all()
        except (Refused, RecursionError):
            inside.effects.extend(rough_commands(fragment))
        findings.effects.extend(inside.effects)
    findings.effects.extend(rough)
    findings.effects[:] = dict.fromkeys(findings.effects)


def _answer(line: str, findings: Findings) -> LineAnalysis:
    effects = findings.effects
    if len(effects) > _MANY:
        effects = list(dict.fromkeys(effects))
    if not findings.reasons:
        return LineAnalysis(effects=tuple(effects))
    reason = findings.reasons[0]
    return LineAnalysis(effects=(*effects, OpaqueCommand(line=line, reason=reason)), opaque_reason=reason)
