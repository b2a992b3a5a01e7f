"""Ollama's own protocol: request and reply.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from collections.abc import Sequence

from agentctl.llm.assemble import (
    Assembler,
    PartList,
    member,
    members,
    message_of,
    text_member,
    whole_number,
)
from agentctl.llm.base import ModelRequest
from agentctl.llm.identifiers import plain_name
from agentctl.llm.wire import ReplyContext, Target
from agentctl.protocol.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ReasoningPart,
    RefusalPart,
    StopReason,
    TextPart,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from agentctl.protocol.values import JsonObject, JsonValue


class Ollama:
    """The protocol of `POST {base}/api/chat`."""

    lines = True

    def path(self, target: Target) -> str:
        """Return the path, the same for every model."""
        del target
        return "/api/chat"

    def key_headers(self, key: str) -> dict[str, str]:
        """Return a bearer token, for servers behind a gateway."""
        return {"authorization": f"Bearer {key}"}

    def fixed_headers(self, target: Target) -> dict[str, str]:
        """Return none."""
        del target
        return {}

    def body(self, request: ModelRequest, target: Target) -> JsonObject:
        """Return the body; the parts that stay the same from call to call come first."""
        body: JsonObject = {"model": target.model}
        if request.tools and request.tool_choice != "none":
            body["tools"] = [_tool(tool) for tool in request.tools]
        messages: list[JsonValue] = []
        if request.system:
            messages.append({"role": "system", "content": request.system})
        for message in request.messages:
            messages.extend(_message(message))
        body["messages"] = messages
        if request.output_schema is not None:
            body["format"] = request.output_schema
        if request.reasoning_effort:
            effort, thinks = request.reasoning_effort, request.reasoning_effort != "none"
            # gpt-oss takes words; the others only yes and no.
            body["think"] = effort if thinks and target.facts.thinking == "effort" else thinks
        body["options"] = _options(request, target)
        # Left out means streamed.
        body["stream"] = target.stream
        return body

    def assembler(self, context: ReplyContext) -> Assembler:
        """Return an assembler for one reply."""
        return OllamaAssembler(context)


class OllamaAssembler:
    """Builds one message from lines, or from one object; `done` ends it."""

    def __init__(self, context: ReplyContext) -> None:
        self._context = context
        self._parts = PartList(context.emit)
        self._stop: StopReason | None = None
        self._seen = False
        self._usage = Usage()

    def feed(self, event: JsonObject, name: str) -> None:
        """Take one line."""
        del name
        if "message" not in event and not event.get("done"):
            return
        self._seen = True
        message = member(event, "message")
        if thought := text_member(message, "thinking"):
            self._parts.reasoning(thought)
        if text := text_member(message, "content"):
            self._parts.text(text)
        for told in members(message, "tool_calls"):
            call = self._parts.call()
            function = member(told, "function")
            call.call_id, call.tool = text_member(told, "id"), text_member(function, "name")
            call.arguments = member(function, "arguments")
            if isinstance(function.get("arguments"), str):
                call.pieces.append(text_member(function, "arguments"))
        if event.get("done") is True:
            self._stop = "length" if event.get("done_reason") == "length" else "end"
            self._usage = Usage(
                input_tokens=whole_number(event.get("prompt_eval_count")),
                output_tokens=whole_number(event.get("eval_count")),
            )

    def whole(self, body: JsonObject) -> None:
        """Take one object; the same as a line."""
        self.feed(body, "")

    def done(self) -> bool:
        """Return whether the line with `done` was seen."""
        return self._stop is not None

    def stopped(self) -> bool:
        """Return the same as `done`."""
        return self.done()

    def empty(self) -> bool:
        """Return whether no line of a reply was seen."""
        return not self._seen

    def finish(self) -> AssistantMessage:
        """Return the message."""
        return message_of(
            self._parts.parts(self._make_id),
            stop=self._stop or "incomplete",
            usage=self._usage,
            model=self._context.target.name,
            response_id="",
        )

    def _make_id(self, number: int) -> str:
        return f"call_{self._context.turn}_{number}"


def _options(request: ModelRequest, target: Target) -> JsonObject:
    options: JsonObject = {}
    if request.max_output_tokens is not None:
        options["num_predict"] = request.max_output_tokens
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.stop:
        options["stop"] = list(request.stop)
    window = target.dialect.get("num_ctx")
    if isinstance(window, int):
        options["num_ctx"] = window
    return options


def _tool(tool: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }


def _message(message: Message) -> list[JsonValue]:
    match message:
        case UserMessage(parts=parts):
            text = "".join(part.text for part in parts if isinstance(part, TextPart))
            found: JsonObject = {"role": "user", "content": text}
            return [_with_images(found, [part for part in parts if isinstance(part, ImagePart)])]
        case ToolMessage(result=result):
            answer: JsonObject = {"role": "tool", "content": result.text, "tool_name": result.tool}
            return [_with_images(answer, result.images)]
        case AssistantMessage():
            return _assistant(message)


def _with_images(message: JsonObject, images: Sequence[ImagePart]) -> JsonObject:
    """The service takes pictures by their data alone."""
    data: list[JsonValue] = [image.data for image in images if image.data]
    return {**message, "images": data} if data else message


def _assistant(message: AssistantMessage) -> list[JsonValue]:
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart | RefusalPart))
    found: JsonObject = {"role": "assistant", "content": text}
    thoughts = "".join(part.text for part in message.parts if isinstance(part, ReasoningPart))
    if thoughts:
        found["thinking"] = thoughts
    calls: list[JsonValue] = [
        {"function": {"name": plain_name(call.tool), "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    if calls:
        found["tool_calls"] = calls
    return [found] if text or calls else []
