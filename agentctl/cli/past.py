"""A call of a past run: what was decided about it, who was asked, and how it went."""

from dataclasses import field

from agentctl.cli.reading import find, opened_journal, tree
from agentctl.errors import UsageError
from agentctl.interaction.unattended import quoted
from agentctl.journal.store import Journal, RunInfo
from agentctl.protocol.decisions import Decision
from agentctl.protocol.events import (
    AskRefused,
    CallCompleted,
    Event,
    QuestionAnswered,
    QuestionAsked,
    ToolCallDecided,
)
from agentctl.protocol.questions import Answer, ApprovalAnswer
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDecision:
    """What a journal knows of one judged call."""

    run_id: str
    call_id: str
    tool: str
    decision: Decision
    notes: tuple[str, ...]
    """Who was asked and answered, and how the call ended."""


@dataclass(slots=True, kw_only=True)
class _Trail:
    """The facts about one call, while its run's journal is read."""

    decided: ToolCallDecided
    notes: list[str] = field(default_factory=list)


def names_a_run(name: str) -> bool:
    """Return whether `name` is a run's and not a blueprint's: `last`, an id, or RUN/CHILD."""
    first = name.partition("/")[0]
    return first == "last" or (first.startswith("r-") and not name.endswith(".toml"))


async def past_decision(run: str, call: str) -> PastDecision:
    """Return what was decided about a call of a run or of its sub-agents.

    `call` may be a unique beginning of the call's id.

    Raises:
        UsageError: no call, or more than one, fits.
    """
    async with opened_journal() as journal:
        info = await find(journal, run)
        found: dict[str, tuple[RunInfo, _Trail]] = {}
        for one in await tree(journal, info):
            for call_id, trail in _with_callers(await _trails(journal, one)).items():
                found[call_id] = (one, trail)
    fitting = [call_id for call_id in found if call and call_id.startswith(call)]
    if call in found:
        fitting = [call]
    if len(fitting) != 1:
        listed = fitting or list(found)
        known = ", ".join(f"{call_id} ({found[call_id][1].decided.tool})" for call_id in listed)
        none = f"No call {call!r} was judged in {info.run_id}"
        problem = f"Several calls fit {call!r}" if fitting else none
        raise UsageError(f"{problem if call else 'Say which call'}; there are: {known or 'none'}.")
    one, trail = found[fitting[0]]
    return PastDecision(
        run_id=one.run_id,
        call_id=fitting[0],
        tool=trail.decided.tool,
        decision=trail.decided.decision,
        notes=tuple(trail.notes),
    )


async def _trails(journal: Journal, info: RunInfo) -> dict[str, _Trail]:
    trails: dict[str, _Trail] = {}
    asked: dict[str, str] = {}
    early: dict[str, list[str]] = {}
    for record in await journal.read(info.run_id):
        for event in record.events:
            call_id, notes = _about(event, asked)
            if isinstance(event, ToolCallDecided):
                trails[event.call_id] = _Trail(decided=event, notes=early.pop(event.call_id, []))
            elif call_id in trails:
                trails[call_id].notes += notes
            elif call_id:
                early.setdefault(call_id, []).extend(notes)
    return trails


def _with_callers(trails: dict[str, _Trail]) -> dict[str, _Trail]:
    """Say with each call that a script tool made which one that was, and there which calls it made."""
    for call_id, trail in trails.items():
        outer = call_id.rpartition("/")[0]
        if outer in trails:
            trail.notes.insert(0, f"the script tool {trails[outer].decided.tool} ({outer}) called it")
            trails[outer].notes.append(f"it called {trail.decided.tool} ({call_id})")
    return trails


def _about(event: Event, asked: dict[str, str]) -> tuple[str, list[str]]:
    """Return the call that an event is about, and what it says of it."""
    match event:
        case QuestionAsked(question=question):
            asked[question.question_id] = question.call_id
            return question.call_id, [f"a person was asked ({question.question_id})"]
        case QuestionAnswered(question_id=question_id, answer=answer):
            return asked.get(question_id, ""), [_answered(answer)]
        case AskRefused(call_id=call_id, reason=reason, flags=flags, instead=instead):
            ways = " ".join(f"--allow {quoted(flag)}" for flag in flags)
            way = [f"a way through: {ways or instead}"] if ways or instead else []
            return call_id, [f"refused, nobody to ask: {reason}", *way]
        case CallCompleted(call_id=call_id, result=result):
            return call_id, [f"it ended: {result.outcome}"]
        case _:
            return "", []


def _answered(answer: Answer) -> str:
    if isinstance(answer, ApprovalAnswer):
        words = f": {answer.reason}" if answer.reason else ""
        return f"answered {answer.choice} by {answer.by}{words}"
    return f"answered by {answer.by}"
