"""Questions of a server to a person (elicitation), put one field at a time through the run's own prompts."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitRequestURLParams, ElicitResult

from agentctl.ids import new_question_id
from agentctl.protocol.questions import Asker, PersonAnswer, PersonQuestion
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

Ask: TypeAlias = Callable[[PersonQuestion], Awaitable[PersonAnswer]]
Given: TypeAlias = str | int | float | bool | list[str] | None

DECLINE = "Decline"
_DEFAULT = "(take the default)"
_LEAVE_OUT = "(leave it out)"
_TRIES = 3
_NOBODY = Asker(run_id="", agent="", stage="")  # the run puts itself in


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    kind: Literal["text", "integer", "number", "boolean", "choice", "choices"]
    options: tuple[tuple[str, str], ...] = ()
    """What is shown, and what is sent."""
    words: str = ""
    required: bool = False
    default: JsonValue = None


class _Declined(Exception):
    """The person said no."""


class _NoAnswer(Exception):
    """Nobody answered."""


async def elicit(server: str, params: ElicitRequestParams, ask: Ask) -> ElicitResult:
    """Return a person's answer in the form that a server wants, or that there is none.

    Every question names the server and can be declined.
    """
    try:
        match params:
            case ElicitRequestFormParams():
                return await _form(server, params, ask)
            case ElicitRequestURLParams():
                return await _address(server, params, ask)
    except _Declined:
        return ElicitResult(action="decline")
    except _NoAnswer:
        return ElicitResult(action="cancel")


async def _form(server: str, params: ElicitRequestFormParams, ask: Ask) -> ElicitResult:
    fields = _fields(params.requested_schema)
    head = f"The tool server {server!r} asks: {params.message}"
    if not fields:
        await _choose(head, ("Accept",), ask)
        return ElicitResult(action="accept", content={})
    content: dict[str, Given] = {}
    for one in fields:
        value = await _value(f"{head}\n{one.words}", one, ask)
        if value is not None:
            content[one.name] = value
    return ElicitResult(action="accept", content=content)


async def _address(server: str, params: ElicitRequestURLParams, ask: Ask) -> ElicitResult:
    """Nothing is opened for the person: an address from a server is theirs to judge."""
    head = f"The tool server {server!r} asks: {params.message}\nOpen this address yourself: {params.url}"
    await _choose(head, ("I have opened it",), ask)
    return ElicitResult(action="accept")


async def _choose(prompt: str, options: tuple[str, ...], ask: Ask) -> str:
    answer = await _answer(prompt, (*options, DECLINE), ask)
    chosen = answer.option or answer.text.strip()
    if chosen not in options:
        raise _Declined
    return chosen


async def _answer(prompt: str, options: tuple[str, ...], ask: Ask) -> PersonAnswer:
    question = PersonQuestion(
        question_id=new_question_id(),
        asker=_NOBODY,
        kind="choice" if options else "text",
        prompt=prompt,
        options=options,
    )
    answer = await ask(question)
    if answer.no_answer == "declined":
        raise _Declined
    if answer.no_answer:
        raise _NoAnswer
    return answer


async def _value(prompt: str, one: _Field, ask: Ask) -> Given:
    if one.kind in {"choice", "boolean"}:
        shown = tuple(label for label, _ in one.options)
        skip = _DEFAULT if one.default is not None else "" if one.required else _LEAVE_OUT
        chosen = await _choose(prompt, (*shown, *([skip] if skip else [])), ask)
        if chosen == skip and chosen not in shown:
            return _as_given(one.default)
        return chosen == "yes" if one.kind == "boolean" else dict(one.options)[chosen]
    problem = ""
    for _ in range(_TRIES):
        text = (await _answer(f"{problem}{prompt}", (), ask)).text.strip()
        if not text:
            if one.required and one.default is None:
                raise _Declined
            return _as_given(one.default)
        try:
            return _read(text, one)
        except ValueError as error:
            problem = f"({text!r} is not taken: {error}.) "
    raise _Declined


def _read(text: str, one: _Field) -> Given:
    match one.kind:
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "choices":
            known = dict(one.options)
            chosen = [word.strip() for word in text.split(",") if word.strip()]
            unknown = [word for word in chosen if word not in known]
            if unknown:
                raise ValueError(f"there is no {unknown[0]!r}")
            return [known[word] for word in chosen]
        case _:
            return text


def _as_given(value: JsonValue) -> Given:
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return None if isinstance(value, dict) else value


def _fields(schema: JsonObject) -> list[_Field]:
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list) else []
    if not isinstance(properties, dict):
        return []
    return [
        _field(name, described, needed=name in needed)
        for name, described in properties.items()
        if isinstance(described, dict)
    ]


def _field(name: str, schema: JsonObject, *, needed: bool) -> _Field:
    items = schema.get("items")
    options = _options(schema) or (_options(items) if isinstance(items, dict) else ())
    kind: Literal["text", "integer", "number", "boolean", "choice", "choices"] = "text"
    match schema.get("type"):
        case "boolean":
            kind, options = "boolean", (("yes", "yes"), ("no", "no"))
        case "integer":
            kind = "integer"
        case "number":
            kind = "number"
        case "array":
            kind = "choices"
        case _ if options:
            kind = "choice"
        case _:
            pass
    return _Field(
        name=name,
        kind=kind,
        options=options,
        words=_words(name, schema, kind, options),
        required=needed,
        default=schema.get("default"),
    )


def _words(name: str, schema: JsonObject, kind: str, options: tuple[tuple[str, str], ...]) -> str:
    title, description, default = schema.get("title"), schema.get("description"), schema.get("default")
    text = str(title) if title else name
    if description:
        text = f"{text}: {description}"
    if kind == "choices":
        text = f"{text} (any of {', '.join(label for label, _ in options)}; with commas between)"
    return text if default is None else f"{text} (where empty: {default})"


def _options(schema: JsonObject) -> tuple[tuple[str, str], ...]:
    """Return label and value of an enumeration, in each of the forms that servers write it."""
    values, names = schema.get("enum"), schema.get("enumNames")
    if isinstance(values, list):
        labels = names if isinstance(names, list) and len(names) == len(values) else values
        return tuple((str(label), str(value)) for label, value in zip(labels, values, strict=True))
    for key in ("oneOf", "anyOf"):
        choices = schema.get(key)
        if isinstance(choices, list):
            return tuple(
                (str(choice.get("title") or choice["const"]), str(choice["const"]))
                for choice in choices
                if isinstance(choice, dict) and "const" in choice
            )
    return ()
