"""What happens to a question when nobody is there, or nobody answers in time.

An ask without a person is a refusal or a saved question: never an approval and never a wait.
"""

import shlex
from typing import Literal, TypeAlias, assert_never

from agentctl.protocol.decisions import Held
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, PersonAnswer, Question
from agentctl.protocol.values import JsonValue
from agentctl.records import dataclass

OnAsk: TypeAlias = Literal["deny", "pause"]

_GO_ON = "Do it another way, or go on without."


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """The question stays saved, and the run stands still with exit 4 until a person answered it."""

    question: Question
    reason: str
    """One sentence for the end of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedAsk:
    """An ask that was refused for lack of a person, and what would have let it through."""

    tool: str
    shown: str
    """The call as the prompt would have shown it."""
    allow: tuple[str, ...] = ()
    """The rules that, each behind an `--allow`, let this call through; empty when no flag does."""
    instead: str = ""
    """What to write where no flag helps."""


def without_person(question: Question, *, on_ask: OnAsk) -> Answer | Suspend:
    """Return what becomes of `question` when nobody can answer it. Pure.

    `deny`: an approval is refused with a reason that the model can act on, a question gets no answer, a
    checkpoint that insists on a person suspends the run. `pause`: everything suspends the run.
    """
    if on_ask == "pause":
        return Suspend(question=question, reason="a question waits for a person")
    if isinstance(question, ApprovalQuestion):
        return ApprovalAnswer(
            choice="no",
            reason=f"This call needs a person's approval and nobody is there. {_GO_ON}",
            by="unattended",
        )
    if question.insists:
        return Suspend(question=question, reason=f"checkpoint {question.checkpoint!r} waits for a person")
    return PersonAnswer(no_answer="unattended", by="unattended")


def after_deadline(question: Question) -> Answer:
    """Return the answer that `question` gives itself at its deadline: no, or that none came. Pure."""
    if isinstance(question, ApprovalQuestion):
        return ApprovalAnswer(
            choice="no",
            reason=f"Nobody answered within {question.deadline_s:g} s. {_GO_ON}",
            by="deadline",
        )
    return PersonAnswer(no_answer="deadline", by="deadline")


def suspends(question: Question, answer: Answer) -> bool:
    """Return whether the run must stand still after `answer`: an insisting checkpoint got none. Pure."""
    return (
        not isinstance(question, ApprovalQuestion)
        and question.insists
        and isinstance(answer, PersonAnswer)
        and bool(answer.no_answer)
    )


def what_instead(held: Held) -> str:
    """Return what to write where no `--allow` lifts an ask that is held; empty where a flag does. Pure."""
    match held:
        case "" | "pattern":
            return ""
        case "launch":
            return "leave out the --ask that holds it, or answer it on a terminal"
        case "outside":
            return "add the folder to [read_paths] allow in your config, or answer it on a terminal"
        case "opaque":
            return "have the command written plainly, or answer it on a terminal"
        case "machine":
            return "do first what the machine waits for, or answer it on a terminal"
        case "protected":
            return "make this change yourself: a write to a protected path is asked every time"
        case _:
            assert_never(held)


def refusal_lines(refused: tuple[RefusedAsk, ...]) -> tuple[str, ...]:
    """Return the lines for stderr at the end: each refused ask once, with what lets it through. Pure."""
    lines: list[str] = []
    for ask in dict.fromkeys(refused):
        lines.append(f"refused, nobody to ask: {ask.tool}: {_in_short(ask.shown) or ask.tool}")
        if ask.allow:
            lines.append(
                "  let it through with: " + " ".join(f"--allow {quoted(rule)}" for rule in ask.allow)
            )
        else:
            lines.append(f"  no flag lets it through; {ask.instead or 'answer it on a terminal'}")
    return tuple(lines)


def refused_records(refused: tuple[RefusedAsk, ...]) -> list[JsonValue]:
    """Return each refused ask once, as the records for programs hold it. Pure."""
    return [
        {"tool": ask.tool, "call": ask.shown, "allow": list[JsonValue](ask.allow), "instead": ask.instead}
        for ask in dict.fromkeys(refused)
    ]


def _in_short(shown: str) -> str:
    """Return a call as one line: a command's first line and how many follow, the file of a diff."""
    first, *others = shown.strip().splitlines() or [""]
    if first.startswith("--- ") and others and others[0].startswith("+++ "):
        return others[0].removeprefix("+++ ")
    count = "1 more line" if len(others) == 1 else f"{len(others)} more lines"
    return f"{first} … and {count}" if others else first


def quoted(rule: str) -> str:
    """Return `rule` as one word for a shell, always in single quotes. Pure."""
    text = shlex.quote(rule)
    return text if text.startswith("'") else f"'{text}'"
