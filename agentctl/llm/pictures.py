"""Pictures and files in a thread, for a model that reads none."""

from dataclasses import replace

from agentctl.llm.base import ModelRequest
from agentctl.protocol.messages import ImagePart, Message, TextPart, ToolMessage, UserMessage


def without_pictures(request: ModelRequest) -> ModelRequest:
    """Return the request with words in the place of each picture: a thread may have begun with another model.

    Pure. A service refuses the whole request for one picture that its model cannot read.
    """
    messages = tuple(_told(message) for message in request.messages)
    return request if messages == request.messages else replace(request, messages=messages)


def _told(message: Message) -> Message:
    match message:
        case UserMessage(parts=parts) if any(isinstance(part, ImagePart) for part in parts):
            told = (TextPart(text=_words(part)) if isinstance(part, ImagePart) else part for part in parts)
            return replace(message, parts=tuple(told))
        case ToolMessage(result=result) if result.images:
            text = "\n".join([result.text, *map(_words, result.images)]).lstrip("\n")
            return replace(message, result=replace(result, text=text, images=()))
        case _:
            return message


def _words(picture: ImagePart) -> str:
    name = f" {picture.name}" if picture.name else ""
    return f"[not shown, since this model reads no pictures:{name} ({picture.media_type})]"
