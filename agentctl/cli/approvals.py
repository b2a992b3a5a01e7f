"""`agentctl approvals`: what waits for a person in any run, and the answer from another terminal."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import anyio
import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.given import given_text
from agentctl.cli.options import WholeRun
from agentctl.cli.reading import Waiting, find, opened_journal, root_of, tree, waiting_questions
from agentctl.errors import StateConflict, UsageError
from agentctl.interaction.socket import GiveAnswer, send_request
from agentctl.journal.store import Journal, RunInfo, commit_to
from agentctl.locations import live_dir
from agentctl.protocol.codec import encode
from agentctl.protocol.events import QuestionAnswered, QuestionAsked
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, PersonAnswer, PersonQuestion
from agentctl.protocol.values import JsonObject
from agentctl.terminal.contract import Streams
from agentctl.terminal.sheet import Row, approval_rows, paint, person_rows

app = command_app("Questions that wait for a person: list them, answer them.")


@app.command("list")
def list_waiting(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Only this run and its sub-agents; default: all runs.")
    ] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array on stdout.")] = False,
) -> None:
    """Show what waits for a person, each with the command that answers it.

    Examples: agentctl approvals list · agentctl approvals list last --json
    """
    found = anyio.run(_waiting, run)
    if as_json:
        sys.stdout.write(json.dumps([_record(one) for one in found]) + "\n")
    elif not found:
        sys.stderr.write("nothing waits for a person\n")
    else:
        sys.stdout.write("\n".join(_shown(one) for one in found))


@app.command("answer")
def answer(  # noqa: PLR0913 - one parameter an option of the command line
    run: WholeRun,
    question: Annotated[
        str, typer.Argument(metavar="[ID]", help="The question; may be left out when one waits.")
    ] = "",
    *,
    once: Annotated[bool, typer.Option("--once", help="Yes, to this call.")] = False,
    stage: Annotated[bool, typer.Option("--stage", help="Yes, and remember it for this stage.")] = False,
    whole_run: Annotated[bool, typer.Option("--run", help="Yes, and remember it for this run.")] = False,
    always: Annotated[bool, typer.Option("--always", help="Yes, and remember it in your config.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="No.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="With --deny: words for the model.")] = "",
    option: Annotated[str, typer.Option(metavar="OPTION", help="For a question: one of its options.")] = "",
    text: Annotated[str, typer.Option(metavar="TEXT", help="For a question: the answer in words.")] = "",
    document: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For a question: the edited document.")
    ] = None,
) -> None:
    """Answer a question of a run, whether it is running or stands still.

    Examples: agentctl approvals answer last --once · agentctl approvals answer r-1m8 --deny --reason "no"
    """
    choices = {"once": once, "stage": stage, "run": whole_run, "always": always, "no": deny}
    chosen = [name for name, given in choices.items() if given]
    content = given_text(document, what="--document", exact=True) if document is not None else ""
    words = PersonAnswer(option=option, text=text, document=content, by="approvals")
    said = _Said(choices=chosen, reason=reason, words=words)
    sys.stderr.write(anyio.run(_answer, run, question, said) + "\n")


class _Said:
    """What the command line says, before it is known to which kind of question."""

    def __init__(self, *, choices: Sequence[str], reason: str, words: PersonAnswer) -> None:
        self.choices = choices
        self.reason = reason
        self.words = words

    def to(self, waiting: Waiting) -> Answer:
        """Return the answer to a question.

        Raises:
            UsageError: the options do not fit the question.
        """
        match waiting.question:
            case ApprovalQuestion() as question:
                return self._approval(question)
            case PersonQuestion() as question:
                return self._person(question)

    def _approval(self, question: ApprovalQuestion) -> ApprovalAnswer:
        if len(self.choices) != 1 or self.words != PersonAnswer(by="approvals"):
            raise UsageError("An approval takes one of --once, --stage, --run, --always or --deny.")
        choice = self.choices[0]
        if self.reason and choice != "no":
            raise UsageError("--reason goes with --deny.")
        if choice in _REMEMBERING and not question.would_remember:
            raise UsageError(f"Nothing can be remembered for {question.tool} here.", hint="take --once")
        match choice:
            case "once" | "stage" | "run" | "always":
                return ApprovalAnswer(choice=choice, by="approvals")
            case _:
                return ApprovalAnswer(choice="no", reason=self.reason, by="approvals")

    def _person(self, question: PersonQuestion) -> PersonAnswer:
        words = self.words
        if question.checkpoint and not (words.option or words.text):
            raise UsageError(
                f"The checkpoint {question.checkpoint!r} is answered with one of its options, or in words.",
                hint=f"--option {' | '.join(question.options)}, or --text" if question.options else "--text",
            )
        if self.choices == ["no"] and words == PersonAnswer(by="approvals"):
            return PersonAnswer(no_answer="declined", text=self.reason, by="approvals")
        if self.choices or self.reason:
            raise UsageError("A question takes --option, --text or --document, or --deny to decline it.")
        if words.option and not question.options:
            raise UsageError("This question has no options.", hint="answer it with --text")
        if words.option and words.option not in question.options:
            raise UsageError(f"{words.option!r} is none of: {', '.join(question.options)}.")
        if words.option in question.edit_options and not words.document:
            raise UsageError(
                f"{words.option!r} takes the edited document.",
                hint=f"--option {words.option} --document FILE",
            )
        if words == PersonAnswer(by="approvals"):
            offered = f" with one of: {', '.join(question.options)}" if question.options else ""
            raise UsageError(f"Say the answer: --text, or --option{offered}.")
        return words


_REMEMBERING = frozenset({"stage", "run", "always"})


async def _waiting(name: str) -> tuple[Waiting, ...]:
    async with opened_journal() as journal:
        runs = await tree(journal, await find(journal, name)) if name else await journal.runs()
        return await waiting_questions(journal, runs)


async def _answer(name: str, question: str, said: _Said) -> str:
    async with opened_journal() as journal:
        info = await find(journal, name)
        runs = await tree(journal, info)
        found = await waiting_questions(journal, runs)
        if question and not any(_is_named(one.question.question_id, question) for one in found):
            await _refuse_late(journal, runs, question)
        waiting = _pick(found, question, info)
        answered = said.to(waiting)
        root = await root_of(journal, waiting.run)
        request = GiveAnswer(question_id=waiting.question.question_id, answer=answered)
        if await send_request(live_dir(), root.run_id, request):
            return f"answered {waiting.question.question_id}; the run goes on"
        await _save(journal, waiting, answered)
        return f"answered {waiting.question.question_id}; go on with: agentctl resume {root.run_id}"


async def _save(journal: Journal, waiting: Waiting, answered: Answer) -> None:
    """Write the answer into the journal of a run that stands still.

    Raises:
        StateConflict: a process is at work on it, and did not take the answer.
    """
    try:
        lease = await journal.acquire(waiting.run.thread_id)
    except StateConflict as error:
        raise StateConflict(
            f"The run {waiting.run.run_id} is at work and does not wait for {waiting.question.question_id}"
            f" now: {error.message}",
            hint="see  agentctl approvals list",
        ) from error
    try:
        still = await waiting_questions(journal, [waiting.run])
        if waiting.question.question_id not in {one.question.question_id for one in still}:
            raise StateConflict(f"{waiting.question.question_id} was answered meanwhile.")
        event = QuestionAnswered(question_id=waiting.question.question_id, answer=answered)
        await journal.append(commit_to(waiting.run, event))
    finally:
        await lease.release()


async def _refuse_late(journal: Journal, runs: Sequence[RunInfo], name: str) -> None:
    """Say that a question was asked and waits no longer.

    Raises:
        StateConflict: one of the runs asked it.
    """
    for info in runs:
        for record in await journal.read(info.run_id):
            for event in record.events:
                if isinstance(event, QuestionAsked) and _is_named(event.question.question_id, name):
                    raise StateConflict(
                        f"{event.question.question_id} waits no longer: it was answered, or asked anew.",
                        hint="see  agentctl approvals list",
                    )


def _is_named(question_id: str, name: str) -> bool:
    return question_id.startswith(name)


def _pick(found: Sequence[Waiting], name: str, info: RunInfo) -> Waiting:
    fitting = [one for one in found if _is_named(one.question.question_id, name or "q-")]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(one.question.question_id for one in found)
    if not found:
        raise UsageError(f"Nothing waits in {info.run_id}.", hint="agentctl approvals list")
    if not fitting:
        raise UsageError(f"No question {name!r} waits in {info.run_id}; these do: {known}.")
    raise UsageError(f"Several questions fit; name one: {known}.")


def _shown(waiting: Waiting) -> str:
    question = waiting.question
    columns = shutil.get_terminal_size((100, 24)).columns if os.isatty(1) else 10_000
    if isinstance(question, ApprovalQuestion):
        rows = tuple(approval_rows(question))
        options = (
            "--once | --stage | --run | --always | --deny" if question.would_remember else "--once | --deny"
        )
    else:
        choices = [Row(style="keys", text=f"option: {option}") for option in question.options]
        rows = (*person_rows(question), *choices)
        ways = (
            "--option OPTION" if question.options else "",
            "--document FILE" if question.kind == "edit" or question.edit_options else "",
            "--text TEXT",
            "" if question.checkpoint else "--deny",
        )
        options = " | ".join(filter(None, ways))
    command = f"agentctl approvals answer {waiting.run.run_id} {question.question_id} {options}"
    rows = (
        *rows,
        Row(style="dim", text=f"since {waiting.asked}; answer with"),
        Row(style="keys", text=command),
    )
    colour = os.isatty(1) and Streams().colour
    return "".join(f"{row}\n" for row in paint(rows, columns=columns, colour=colour))


def _record(waiting: Waiting) -> JsonObject:
    return {
        "run": waiting.run.run_id,
        "id": waiting.question.question_id,
        "status": waiting.run.status,
        "asked": waiting.asked,
        "question": encode(waiting.question),
    }
