"""Questions of a run as forms that a client shows, and what a person filled in as answers. Pure."""

from typing import Literal

from agentctl.protocol.questions import (
    Answer,
    ApprovalAnswer,
    ApprovalQuestion,
    PersonAnswer,
    PersonQuestion,
    Question,
)
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

_CHOICES = {
    "once": "Yes, this once",
    "stage": "Yes, for the rest of this stage",
    "run": "Yes, for the rest of this run",
    "no": "No",
}
BY = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a client shows to a person."""

    message: str
    schema: JsonObject


def form_of(question: Question) -> Form:
    """Return the form for a question. What is asked is shown whole."""
    match question:
        case ApprovalQuestion():
            return _approval(question)
        case PersonQuestion():
            return _question(question)


def answer_of(
    question: Question, action: Literal["accept", "decline", "cancel"], content: JsonObject
) -> Answer:
    """Return a person's answer. Everything but a clear yes to an approval is a no. Total."""
    text = _text(content, "comment")
    match question:
        case ApprovalQuestion():
            choice = _text(content, "answer") if action == "accept" else "no"
            if choice == "stage" and question.would_remember:
                return ApprovalAnswer(choice="stage", by=BY)
            if choice == "run" and question.would_remember:
                return ApprovalAnswer(choice="run", by=BY)
            if choice == "once":
                return ApprovalAnswer(choice="once", by=BY)
            return ApprovalAnswer(choice="no", reason=text, by=BY)
        case PersonQuestion():
            if action != "accept":
                return PersonAnswer(no_answer="declined", by=BY)
            document = _text(content, "document") if "document" in content else question.document
            chosen = _text(content, "answer")
            if question.options:
                option = chosen if chosen in question.options else ""
                return PersonAnswer(option=option, text=text, document=document, by=BY)
            return PersonAnswer(text=chosen or text, document=document, by=BY)


def _approval(question: ApprovalQuestion) -> Form:
    who = (
        f"{question.asker.agent} (stage {question.asker.stage})"
        if question.asker.stage
        else question.asker.agent
    )
    remembered = "\n".join(question.would_remember)
    parts = [f"{who} wants to call {question.tool}:", question.preview, question.decision.reason]
    if remembered:
        parts.append(f"What a yes for the stage or the run would remember:\n{remembered}")
    choices = [choice for choice in _CHOICES if remembered or choice in {"once", "no"}]
    return Form(
        message="\n\n".join(part for part in parts if part),
        schema={
            "type": "object",
            "properties": {
                "answer": _enum("May it run?", choices, [_CHOICES[choice] for choice in choices]),
                "comment": {"type": "string", "title": "Why not", "description": "Words for the model."},
            },
            "required": ["answer"],
        },
    )


def _question(question: PersonQuestion) -> Form:
    properties: JsonObject = {}
    if question.options:
        properties["answer"] = _enum("Answer", question.options, question.options)
        properties["comment"] = {"type": "string", "title": "Comment"}
    elif question.kind != "edit":
        properties["answer"] = {"type": "string", "title": "Answer"}
    if question.kind == "edit" or question.edit_options:
        properties["document"] = {"type": "string", "title": "The text", "default": question.document}
    required: list[JsonValue] = ["answer"] if "answer" in properties else []
    message = question.prompt
    if question.document:
        message = f"{message}\n\n{question.document}"
    return Form(message=message, schema={"type": "object", "properties": properties, "required": required})


def _enum(title: str, values: tuple[str, ...] | list[str], labels: tuple[str, ...] | list[str]) -> JsonObject:
    return {"type": "string", "title": title, "enum": list(values), "enumNames": list(labels)}


def _text(content: JsonObject, key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""
