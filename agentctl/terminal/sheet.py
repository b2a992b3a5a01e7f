"""Questions as rows of text: all of the command or document, who asks, why, what is remembered. Pure."""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from agentctl.protocol.decisions import Decision, Judgement, Verdict
from agentctl.protocol.effects import (
    Effect,
    OpaqueCommand,
    ReachHost,
    ReadPath,
    RunProgram,
    SpawnAgent,
    WritePath,
)
from agentctl.protocol.questions import ApprovalQuestion, PersonQuestion
from agentctl.records import dataclass
from agentctl.terminal.visible import cells, exact, mixed_scripts, right_to_left, wrap

Style: TypeAlias = Literal["head", "plain", "dim", "added", "removed", "warning", "keys"]

_CODES: dict[Style, str] = {
    "head": "1;33", "plain": "", "dim": "2", "added": "32", "removed": "31", "warning": "1;31", "keys": "36",
}  # fmt: skip
_GUTTER, _GUTTER_ON = "│ ", "┆ "
_NARROW = 8
"""Below so many columns every column goes to the text."""
_REASONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Text that is visible already, for one or more rows of the screen."""

    style: Style
    text: str
    framed: bool = False
    """Stands behind the gutter, so that nothing in it can pass for a line of the prompt itself."""


def approval_rows(question: ApprovalQuestion, *, others: tuple[ApprovalQuestion, ...] = ()) -> Iterator[Row]:
    """Yield the rows of an approval: whole, in the order a person needs them.

    `others` wait too and would be covered by what this one offers to remember; they are shown whole as well.
    """
    asker = question.asker
    child = f" (sub-agent, run {asker.run_id})" if asker.parent else ""
    script = f", called by the script tool {question.called_by}" if question.called_by else ""
    yield _row("head", f"? {asker.agent} · {asker.stage} asks to run {question.tool}{script}{child}")
    yield from framed(question.preview)
    for word in mixed_scripts(question.preview):
        yield _row("warning", f"careful: {word} mixes letters of several scripts that look alike")
    for word in right_to_left(question.preview):
        yield _row("warning", f"careful: {word} runs from right to left, and may stand elsewhere than shown")
    yield from _why(question.decision)
    if question.would_remember:
        yield _row("dim", "would be remembered: " + "  ".join(question.would_remember))
    else:
        yield _row("dim", "nothing can be remembered for this one: it is asked every time")
    if others:
        yield from others_rows(others)


def others_rows(others: tuple[ApprovalQuestion, ...]) -> Iterator[Row]:
    """Yield the rows of the asks that the one shown above would cover as well."""
    if not others:
        yield _row("dim", "no other ask would be covered any more")
        return
    yield _row("head", f"{len(others) + 1} asks that one rule would cover; these wait too:")
    for other in others:
        yield _row("dim", f"{other.asker.agent} · {other.asker.stage} · {other.tool}")
        yield from framed(other.preview)


def person_rows(question: PersonQuestion) -> Iterator[Row]:
    """Yield the rows of a question of the model or of a checkpoint."""
    asker = question.asker
    what = f"checkpoint {question.checkpoint}" if question.checkpoint else "asks"
    yield _row("head", f"? {asker.agent} · {asker.stage} · {what}")
    for line in exact(question.prompt).split("\n"):
        yield Row(style="plain", text=line, framed=True)
    if question.document:
        yield _row("dim", "the document:")
        yield from framed(question.document)


def framed(text: str) -> Iterator[Row]:
    """Yield all lines of `text` behind the gutter, coloured where they are a diff."""
    shown = exact(text.removesuffix("\n"))
    lines = shown.split("\n")
    is_diff = any(line.startswith("@@ ") for line in lines)
    for line in lines:
        style: Style = "plain"
        if is_diff and line[:1] in ("+", "-"):
            style = "added" if line[0] == "+" else "removed"
        yield Row(style=style, text=line, framed=True)


def explain_rows(decision: Decision) -> Iterator[Row]:
    """Yield everything the policy said about a call: each effect, each layer, each place."""
    yield _row("dim", f"verdict: {decision.verdict.word} ({decision.reason})")
    for judgement in decision.judgements:
        yield _row("plain", f"{_effect_words(judgement)}: {_said(judgement)}")
        for say in judgement.says:
            note = f" ({say.note})" if say.note else ""
            yield _row("dim", f"    {say.layer}: {say.verdict.word} by {say.rule}, {say.position}{note}")


def paint(rows: Iterable[Row], *, columns: int, colour: bool) -> tuple[str, ...]:
    """Return rows of the screen, none wider than `columns`: wrapped where they are longer, never cut."""
    painted: list[str] = []
    gutter = columns >= _NARROW
    for row in rows:
        width = columns - 2 if row.framed and gutter else columns
        for number, part in enumerate(wrap(row.text, width)):
            front = (_GUTTER_ON if number else _GUTTER) if row.framed and gutter else ""
            painted.append(front + styled(part, row.style, colour=colour))
    return tuple(painted)


def flow(items: Iterable[str], columns: int) -> tuple[str, ...]:
    """Return `items` joined into lines that fit in `columns`; only an item that is longer does not."""
    lines: list[str] = []
    for item in items:
        if lines and cells(f"{lines[-1]} · {item}") <= columns:
            lines[-1] += f" · {item}"
        else:
            lines.append(item)
    return tuple(lines)


def styled(text: str, style: Style, *, colour: bool) -> str:
    """Return `text` in the style's colour where there is colour."""
    code = _CODES[style]
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text


def _row(style: Style, text: str) -> Row:
    return Row(style=style, text=exact(text).replace("\n", " "))


def _why(decision: Decision) -> Iterator[Row]:
    asking = [one for one in decision.judgements if one.verdict is not Verdict.ALLOW and not one.lift]
    if not asking:
        yield _row("dim", f"why: {decision.reason}: {decision.rule} ({decision.layer}, {decision.position})")
        return
    yield _row("dim", f"why: {decision.reason}")
    for judgement in asking[:_REASONS]:
        yield _row("dim", f"  {_effect_words(judgement)}: {_said(judgement)}")
        if isinstance(judgement.effect, OpaqueCommand):
            yield _row("warning", f"  cannot be told what it does: {judgement.effect.reason}")
        if judgement.held == "protected":
            yield _row("warning", "  this path is protected")
    if len(asking) > _REASONS:
        yield _row("dim", f"  and {len(asking) - _REASONS} more; ? shows all")


def _said(judgement: Judgement) -> str:
    lift = f", lifted by {judgement.lift}" if judgement.lift else ""
    return f"{judgement.verdict.word} by {judgement.rule} ({judgement.layer}, {judgement.position}){lift}"


def _effect_words(judgement: Judgement) -> str:
    return effect_words(judgement.effect) if judgement.effect is not None else judgement.entry


def effect_words(effect: Effect) -> str:
    """Return what a call would do, in a few words."""
    match effect:
        case RunProgram(argv=argv):
            return "run " + " ".join(argv)
        case WritePath(path=path):
            return f"write {path}"
        case ReadPath(path=path):
            return f"read {path}"
        case ReachHost(host=host):
            return f"reach {host}"
        case SpawnAgent(agent=agent):
            return f"start agent {agent}"
        case OpaqueCommand(line=line):
            return f"run {line}"
