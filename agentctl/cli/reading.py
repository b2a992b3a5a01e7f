"""The journal from a command of its own: which run is meant, and what is known of it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from agentctl.errors import UsageError
from agentctl.journal.sqlite import open_journal
from agentctl.journal.store import Journal, RunInfo
from agentctl.locations import data_dir
from agentctl.protocol.events import Event, QuestionAnswered, QuestionAsked, RunEnded
from agentctl.protocol.questions import ApprovalQuestion, Question
from agentctl.records import dataclass


@asynccontextmanager
async def opened_journal() -> AsyncIterator[Journal]:
    """Give the user's journal."""
    journal = await open_journal(data_dir() / "journal.sqlite")
    try:
        yield journal
    finally:
        await journal.aclose()


async def find(journal: Journal, name: str) -> RunInfo:
    """Return the run that `name` means: an id, a unique beginning of it, `last`, or `RUN/CHILD`.

    CHILD is a sub-agent's run id, a unique beginning of it, or its agent's name; more of them may follow.

    Raises:
        UsageError: none or several fit.
    """
    first, *children = name.split("/")
    info = await journal.find_run(first)
    for child in children:
        below = await journal.runs(parent_run=info.run_id)
        fitting = [one for one in below if child and (one.run_id.startswith(child) or one.agent == child)]
        if len(fitting) != 1:
            known = ", ".join(f"{one.agent} ({one.run_id})" for one in fitting or below)
            count = "Several sub-agents fit" if fitting else "No sub-agent fits"
            raise UsageError(
                f"{count} {child!r} in {info.run_id}" + (f": {known}." if known else "; it started none.")
            )
        info = fitting[0]
    return info


async def tree(journal: Journal, info: RunInfo) -> tuple[RunInfo, ...]:
    """Return a run and all its sub-agents' runs, parents before children. Links in a circle end it."""
    found = {info.run_id: info}
    level = [info]
    for one in level:
        below = [child for child in await journal.runs(parent_run=one.run_id) if child.run_id not in found]
        found |= {child.run_id: child for child in below}
        level += below
    return tuple(found.values())


async def root_of(journal: Journal, info: RunInfo) -> RunInfo:
    """Return the run at the top of the tree that `info` is in: its process is at work on all of it.

    Where links lead in a circle, as they do in no journal that is whole, it is the run before it closes.
    """
    seen = {info.run_id}
    while info.parent_run and (parent := await journal.run(info.parent_run)) is not None:
        if parent.run_id in seen:
            break
        seen.add(parent.run_id)
        info = parent
    return info


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A question that waits, and in which run."""

    run: RunInfo
    question: Question
    asked: str
    """When, in UTC."""


async def waiting_questions(journal: Journal, runs: Sequence[RunInfo]) -> tuple[Waiting, ...]:
    """Return the questions of `runs` that nobody has answered, oldest first in each run."""
    found: list[Waiting] = []
    for info in runs:
        if info.open_questions:
            found += await _questions(journal, info)
    return tuple(found)


async def _questions(journal: Journal, info: RunInfo) -> tuple[Waiting, ...]:
    waiting: dict[str, Waiting] = {}
    for record in await journal.read(info.run_id):
        for event in record.events:
            _note(waiting, event, info, record.at)
    return tuple(waiting.values())


def _note(waiting: dict[str, Waiting], event: Event, info: RunInfo, at: str) -> None:
    match event:
        case QuestionAsked(question=question):
            # A resumed run asks again for what was not answered: the latest question stands for the call.
            for earlier in [one.question for one in waiting.values()]:
                if _subject(earlier) == _subject(question):
                    del waiting[earlier.question_id]
            waiting[question.question_id] = Waiting(run=info, question=question, asked=at)
        case QuestionAnswered(question_id=question_id):
            waiting.pop(question_id, None)
        case RunEnded():
            waiting.clear()
        case _:
            pass


def _subject(question: Question) -> str:
    if question.call_id or isinstance(question, ApprovalQuestion):
        return question.call_id
    return f"{question.asker.stage}/{question.checkpoint}"
