"""Anthropic Messages: the reply, streamed or whole."""

from agentctl.llm.assemble import (
    CallInProgress,
    PartList,
    member,
    members,
    message_of,
    read_arguments,
    text_member,
    whole_number,
)
from agentctl.llm.wire import ReplyContext
from agentctl.protocol.messages import AssistantMessage, StopReason, Usage
from agentctl.protocol.values import JsonObject

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "pause_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
}
_DIRECT = (None, "direct")
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class MessagesAssembler:
    """Builds one message from the service's events. The terminator is `message_stop`."""

    def __init__(self, context: ReplyContext) -> None:
        self._context = context
        self._parts = PartList(context.emit)
        self._calls: dict[str, CallInProgress] = {}
        self._blocks: dict[str, JsonObject] = {}
        self._inputs: dict[str, list[str]] = {}
        self._stop: StopReason | None = None
        self._done = False
        self._seen = False
        self._response_id = ""
        self._counts: dict[str, int] = {}
        self._compaction: dict[str, int] = {}
        self._thinking_tokens = 0

    def feed(self, event: JsonObject, name: str) -> None:
        """Take one event."""
        match text_member(event, "type") or name:
            case "content_block_delta":
                self._delta(str(event.get("index")), member(event, "delta"))
            case "content_block_start":
                self._seen = True
                self._start(str(event.get("index")), member(event, "content_block"))
            case "message_start":
                self._begin(member(event, "message"))
            case "message_delta":
                self._seen = True
                self._stopped(member(event, "delta"))
                self._count(member(event, "usage"))
            case "content_block_stop":
                self._end_block(str(event.get("index")))
            case "message_stop":
                self._done = True
            case _:
                # `ping`, and whatever comes to be
                pass

    def whole(self, body: JsonObject) -> None:
        """Take one message."""
        if text_member(body, "type") != "message" and "content" not in body:
            return
        self._done = True
        self._begin(body)

    def done(self) -> bool:
        """Return whether `message_stop` was seen."""
        return self._done

    def stopped(self) -> bool:
        """Return whether a reason to stop was seen."""
        return self._stop is not None

    def empty(self) -> bool:
        """Return whether no part of a message was seen."""
        return not self._seen

    def finish(self) -> AssistantMessage:
        """Return the message."""
        counts = {name: self._counts.get(name, 0) + self._compaction.get(name, 0) for name in _COUNTS}
        read, written = counts["cache_read_input_tokens"], counts["cache_creation_input_tokens"]
        usage = Usage(
            # The service counts what came from the cache apart.
            input_tokens=counts["input_tokens"] + read + written,
            output_tokens=counts["output_tokens"],
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=self._thinking_tokens,
        )
        stop: StopReason = "incomplete"
        if self._done:
            stop = self._stop or "end"
        return message_of(
            self._parts.parts(self._make_id),
            stop=stop,
            usage=usage,
            model=self._context.target.name,
            response_id=self._response_id,
        )

    def _begin(self, message: JsonObject) -> None:
        """A stream may open with a message that holds something already, even all of it."""
        again, self._seen = self._seen, True
        self._response_id = text_member(message, "id")
        for index, block in enumerate([] if again else members(message, "content")):
            self._start(str(index), block)
        self._stopped(message)
        self._count(member(message, "usage"))

    def _start(self, index: str, block: JsonObject) -> None:
        match text_member(block, "type"):
            case "text":
                self._parts.text(text_member(block, "text"), index)
            case "thinking":
                self._parts.reasoning(text_member(block, "thinking"), index)
                opaque = self._parts.opaque("reasoning", index)
                opaque.update({"type": "thinking", "signature": text_member(block, "signature")})
                self._blocks[index] = opaque
            case "tool_use":
                call = self._parts.call()
                call.call_id, call.tool = text_member(block, "id"), text_member(block, "name")
                call.arguments = member(block, "input")
                if isinstance(block.get("input"), str):
                    # Some gateways send the text of the arguments.
                    call.pieces.append(text_member(block, "input"))
                if member(block, "caller").get("type") not in _DIRECT:
                    # Code that the service runs made this call, and is known again by it.
                    call.opaque["caller"] = block["caller"]
                self._calls[index] = call
            case _:
                # redacted thinking, the service's own tools: to be sent back as they came
                own = member(block, "caller").get("type") in _DIRECT
                self._blocks[index] = {
                    name: value for name, value in block.items() if name != "caller" or not own
                }
                self._parts.block(self._blocks[index])

    def _delta(self, index: str, delta: JsonObject) -> None:
        match delta.get("type"):
            case "text_delta":
                self._parts.text(text_member(delta, "text"), index)
            case "thinking_delta":
                self._parts.reasoning(text_member(delta, "thinking"), index)
            case "signature_delta":
                if (block := self._blocks.get(index)) is not None:
                    block["signature"] = text_member(block, "signature") + text_member(delta, "signature")
            case "input_json_delta":
                self._input(index, text_member(delta, "partial_json"))
            case "compaction_delta" if index in self._blocks:
                # What the service made of the thread so far: in its place from now on.
                block = self._blocks[index]
                block["content"] = text_member(block, "content") + text_member(delta, "content")
            case _:
                # citations: the text itself came as text
                pass

    def _input(self, index: str, piece: str) -> None:
        call = self._calls.get(index)
        if call is not None:
            call.pieces.append(piece)
        elif index in self._blocks:
            # A tool of the service's own: its input comes in pieces too.
            pieces = self._inputs.setdefault(index, [])
            pieces.append(piece)

    def _end_block(self, index: str) -> None:
        pieces = self._inputs.pop(index, None)
        if pieces:
            self._blocks[index]["input"] = read_arguments("".join(pieces))[0]

    def _stopped(self, delta: JsonObject) -> None:
        reason = text_member(delta, "stop_reason")
        if reason:
            self._stop = _STOPS.get(reason, "end")
        declined = text_member(member(delta, "stop_details"), "explanation")
        if declined:
            self._parts.refusal(declined)

    def _count(self, usage: JsonObject) -> None:
        """Figures only grow; gateways that know them at one end of the stream say null or 0 at the other."""
        for name in _COUNTS:
            self._counts[name] = max(self._counts.get(name, 0), whole_number(usage.get(name)))
        rounds = [one for one in members(usage, "iterations") if one.get("type") == "compaction"]
        if rounds:
            # Paid for, and not in the figures above.
            self._compaction = {name: sum(whole_number(one.get(name)) for one in rounds) for name in _COUNTS}
        thinking = member(usage, "output_tokens_details").get("thinking_tokens")
        if thinking is not None:
            self._thinking_tokens = whole_number(thinking)

    def _make_id(self, number: int) -> str:
        return f"toolu_{self._context.turn}_{number}"
