"""OpenAI Responses: the reply, streamed or whole."""

from agentctl.llm.assemble import (
    CallInProgress,
    PartList,
    amount_of,
    member,
    members,
    message_of,
    text_member,
    whole_number,
)
from agentctl.llm.failures import in_band_failure
from agentctl.llm.wire import ReplyContext
from agentctl.protocol.messages import AssistantMessage, StopReason, Usage
from agentctl.protocol.values import JsonObject, JsonValue

_REASONING_MEMBERS = ("id", "summary", "encrypted_content", "content")


class ResponsesAssembler:
    """Builds one message from typed events; `response.completed`, `.incomplete` or `.failed` ends it.

    Items are taken from their own events. Those that were never announced are taken from the last event,
    whose list of items some services leave empty.
    """

    def __init__(self, context: ReplyContext) -> None:
        self._context = context
        self._parts = PartList(context.emit)
        self._calls: dict[str, CallInProgress] = {}
        self._items: set[str] = set()
        """The items whose own events gave them whole."""
        self._by_id: set[str] = set()
        """The keys of items whose events say no place."""
        self._stop: StopReason | None = None
        self._seen = False
        self._response_id = ""
        self._usage = Usage()

    def feed(self, event: JsonObject, name: str) -> None:
        """Take one event."""
        kind = text_member(event, "type") or name
        key = self._key(event)
        match kind:
            case "response.output_text.delta":
                self._parts.text(text_member(event, "delta"), key)
            case "response.function_call_arguments.delta" | "response.function_call_arguments.done":
                self._arguments(event, key)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._parts.reasoning(text_member(event, "delta"), key)
            case "response.reasoning_summary_part.added":
                if whole_number(event.get("summary_index")):
                    self._parts.reasoning("\n\n", key)
            case "response.refusal.delta":
                self._parts.refusal(text_member(event, "delta"), key)
            case "response.output_item.added" | "response.output_item.done":
                self._seen = True
                self._item(member(event, "item"), key, ended=kind.endswith("done"))
            case "response.created" | "response.in_progress":
                self._seen = True
                self._response_id = text_member(member(event, "response"), "id")
            case "error":
                raise in_band_failure(event, where=self._context.target.provider)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                self._ended(member(event, "response"), kind)
            case _:
                pass

    def whole(self, body: JsonObject) -> None:
        """Take one response."""
        if text_member(body, "object") != "response" and "output" not in body:
            return
        self._ended(body, f"response.{text_member(body, 'status') or 'completed'}")

    def done(self) -> bool:
        """Return whether the response has ended."""
        return self._stop is not None

    def stopped(self) -> bool:
        """Return the same as `done`."""
        return self.done()

    def empty(self) -> bool:
        """Return whether no response was seen."""
        return not self._seen

    def finish(self) -> AssistantMessage:
        """Return the message."""
        return message_of(
            self._parts.parts(self._make_id),
            stop=self._stop or "incomplete",
            usage=self._usage,
            model=self._context.target.name,
            response_id=self._response_id,
        )

    def _key(self, event: JsonObject) -> str:
        index = event.get("output_index")
        if isinstance(index, int):
            return str(index)
        by_id = text_member(event, "item_id") or text_member(member(event, "item"), "id")
        self._by_id.add(by_id)
        return by_id

    def _arguments(self, event: JsonObject, key: str) -> None:
        call = self._calls.get(key)
        if call is None:
            return
        call.pieces.append(text_member(event, "delta"))
        if whole := text_member(event, "arguments"):
            call.pieces = [whole]

    def _item(self, item: JsonObject, key: str, *, ended: bool) -> None:
        if ended:
            self._items.add(key)
        match text_member(item, "type"):
            case "function_call":
                self._function_call(item, key, ended=ended)
            case "message":
                if ended:
                    self._message(item, key)
            case "reasoning":
                if ended:
                    self._reasoning(item, key)
            case _:
                if ended:
                    # The service's own tools: kept, so that they can go back as they came.
                    self._parts.block({**item})

    def _function_call(self, item: JsonObject, key: str, *, ended: bool) -> None:
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = self._parts.call()
        call.call_id = text_member(item, "call_id") or call.call_id
        call.tool = text_member(item, "name") or call.tool
        if item_id := text_member(item, "id"):
            call.opaque["id"] = item_id
        if ended and isinstance(item.get("arguments"), str):
            call.pieces = [text_member(item, "arguments")]

    def _message(self, item: JsonObject, key: str) -> None:
        text = "".join(text_member(one, "text") for one in members(item, "content"))
        refusal = "".join(text_member(one, "refusal") for one in members(item, "content"))
        if text:
            self._parts.replace("text", key, text)
            opaque = self._parts.opaque("text", key)
            opaque.update({name: item[name] for name in ("id", "phase") if item.get(name)})
        if refusal:
            self._parts.replace("refusal", key, refusal)

    def _reasoning(self, item: JsonObject, key: str) -> None:
        words = [text_member(one, "text") for one in (*members(item, "summary"), *members(item, "content"))]
        text = "\n\n".join(word for word in words if word)
        if text:
            self._parts.replace("reasoning", key, text)
        opaque = self._parts.opaque("reasoning", key)
        opaque.update({name: item[name] for name in _REASONING_MEMBERS if item.get(name) is not None})
        opaque.setdefault("summary", [])
        if not opaque.get("content"):
            opaque.pop("content", None)

    def _ended(self, response: JsonObject, kind: str) -> None:
        self._seen = True
        self._response_id = text_member(response, "id") or self._response_id
        if kind in {"response.failed", "response.cancelled"}:
            raise in_band_failure(
                response.get("error") or "the response failed", where=self._context.target.provider
            )
        for index, item in enumerate(members(response, "output")):
            by_id = text_member(item, "id")
            if str(index) not in self._items and by_id not in self._items:
                self._item(item, by_id if by_id in self._by_id else str(index), ended=True)
        usage = member(response, "usage")
        if usage:
            self._usage = _usage(usage)
        if kind in {"response.queued", "response.in_progress"}:
            return
        self._stop = "end"
        if kind == "response.incomplete":
            reason: JsonValue = member(response, "incomplete_details").get("reason")
            self._stop = "filtered" if reason == "content_filter" else "length"

    def _make_id(self, number: int) -> str:
        return f"call_{self._context.turn}_{number}"


def _usage(usage: JsonObject) -> Usage:
    prompt = member(usage, "input_tokens_details")
    return Usage(
        input_tokens=whole_number(usage.get("input_tokens")),
        output_tokens=whole_number(usage.get("output_tokens")),
        cache_read_tokens=whole_number(prompt.get("cached_tokens")),
        cache_write_tokens=whole_number(prompt.get("cache_write_tokens")),
        reasoning_tokens=whole_number(member(usage, "output_tokens_details").get("reasoning_tokens")),
        cost_usd=amount_of(usage.get("cost")),
    )
