"""The `ask_user` family: questions of the model to a person. Nothing on the machine is touched."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from agentctl.ids import new_question_id
from agentctl.protocol.questions import Asker, PersonAnswer, PersonQuestion
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.schema import Bounds, Says
from agentctl.tools.typed import typed_tool

_REVIEW = "Show the person a document for approval or comments."
_EDIT = "Let the person edit a document; the result comes back."
_YES = frozenset({"yes", "y", "true"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AskArguments:
    """Arguments of `ask_user` and `ask_user_confirm`."""

    question: Annotated[str, Says("", Bounds(min_length=1))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceArguments:
    """Arguments of `ask_user_choice`."""

    question: Annotated[str, Says("", Bounds(min_length=1))]
    options: Annotated[tuple[str, ...], Says("What to choose from.", Bounds(min_length=2))]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentArguments:
    """Arguments of `ask_user_review` and `ask_user_edit`."""

    document: Annotated[str, Says("The whole text to show.")]
    question: Annotated[str, Says("What to look at.")] = ""


def ask_user_tools() -> tuple[Tool, ...]:
    """Return the five tools that wait for a person."""
    return (
        typed_tool("ask_user", "Ask the person a question; the answer is free text.", AskArguments, _ask),
        typed_tool(
            "ask_user_choice", "Let the person choose one of several options.", ChoiceArguments, _choose
        ),
        typed_tool("ask_user_confirm", "Ask the person a yes-or-no question.", AskArguments, _confirm),
        typed_tool("ask_user_review", _REVIEW, DocumentArguments, _review),
        typed_tool("ask_user_edit", _EDIT, DocumentArguments, _edit),
    )


async def _ask(arguments: AskArguments, place: ToolPlace) -> Prepared:
    question = PersonQuestion(
        question_id=new_question_id(), asker=_asker(place), kind="text", prompt=arguments.question
    )
    return _prepared(question, lambda answer: (answer.text, {"answer": answer.text}))


async def _choose(arguments: ChoiceArguments, place: ToolPlace) -> Prepared:
    question = PersonQuestion(
        question_id=new_question_id(),
        asker=_asker(place),
        kind="choice",
        prompt=arguments.question,
        options=tuple(dict.fromkeys(arguments.options)),
    )

    def told(answer: PersonAnswer) -> tuple[str, JsonObject]:
        chosen = answer.option or answer.text
        text = f"{answer.option}\n{answer.text}" if answer.option and answer.text else chosen
        return text, {"option": answer.option, "answer": chosen, "comment": answer.text}

    return _prepared(question, told)


async def _confirm(arguments: AskArguments, place: ToolPlace) -> Prepared:
    question = PersonQuestion(
        question_id=new_question_id(),
        asker=_asker(place),
        kind="confirm",
        prompt=arguments.question,
        options=("yes", "no"),
    )

    def told(answer: PersonAnswer) -> tuple[str, JsonObject]:
        confirmed = (answer.option or answer.text).strip().lower() in _YES
        word = "yes" if confirmed else "no"
        comment = answer.text if answer.option else ""
        return f"{word}: {comment}" if comment else word, {"confirmed": confirmed, "comment": comment}

    return _prepared(question, told)


async def _review(arguments: DocumentArguments, place: ToolPlace) -> Prepared:
    question = PersonQuestion(
        question_id=new_question_id(),
        asker=_asker(place),
        kind="review",
        prompt=arguments.question or "Please review this document.",
        options=("approve", "revise"),
        document=arguments.document,
    )

    def told(answer: PersonAnswer) -> tuple[str, JsonObject]:
        approved = answer.option == "approve"
        verdict = "The person approved the document." if approved else "The person wants changes."
        text = f"{verdict}\n{answer.text}" if answer.text else verdict
        return text, {"approved": approved, "comment": answer.text}

    return _prepared(question, told)


async def _edit(arguments: DocumentArguments, place: ToolPlace) -> Prepared:
    question = PersonQuestion(
        question_id=new_question_id(),
        asker=_asker(place),
        kind="edit",
        prompt=arguments.question or "Please edit this document.",
        document=arguments.document,
    )

    def told(answer: PersonAnswer) -> tuple[str, JsonObject]:
        changed = answer.document != arguments.document
        text = answer.document if changed else "The person left the document as it is."
        return text, {"document": answer.document, "changed": changed, "comment": answer.text}

    return _prepared(question, told)


def _asker(place: ToolPlace) -> Asker:
    return Asker(run_id=place.run_id, agent=place.agent, stage=place.stage)


def _prepared(question: PersonQuestion, told: Callable[[PersonAnswer], tuple[str, JsonObject]]) -> Prepared:
    async def act(context: ActContext) -> ToolOutput:
        answer = await context.ask_person(replace(question, call_id=context.call_id))
        if answer.no_answer:
            return ToolOutput(
                text=f"No answer came ({answer.no_answer}). Go on without it, and say what you assumed.",
                structured={"answered": False, "why": answer.no_answer},
            )
        text, structured = told(answer)
        return ToolOutput(text=text or "(an empty answer)", structured={"answered": True, **structured})

    return Prepared(effects=(), act=act, preview=question.prompt, read_only=True)
