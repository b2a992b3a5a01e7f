"""Gemini's `generateContent`: the reply, streamed or whole; both have one form."""

from agentctl.llm.assemble import PartList, is_first, member, members, message_of, text_member, whole_number
from agentctl.llm.failures import plain_failure
from agentctl.llm.wire import ReplyContext
from agentctl.protocol.messages import AssistantMessage, StopReason, Usage
from agentctl.protocol.values import JsonObject

_STOPS: dict[str, StopReason] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "LANGUAGE": "filtered",
    "IMAGE_SAFETY": "filtered",
    "FINISH_REASON_UNSPECIFIED": "end",
}
_FAILED = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS"}
)


class GeminiAssembler:
    """Builds one message from responses. The first candidate alone is read; its finish reason ends it."""

    def __init__(self, context: ReplyContext) -> None:
        self._context = context
        self._parts = PartList(context.emit)
        self._stop: StopReason | None = None
        self._seen = self._whole = False
        self._response_id = ""
        self._counts: JsonObject = {}

    def feed(self, event: JsonObject, name: str) -> None:
        """Take one response or a streamed part of one."""
        del name
        self._response_id = self._response_id or text_member(event, "responseId")
        # A later figure replaces an earlier one; one that is left out changes nothing.
        self._counts.update(member(event, "usageMetadata"))
        if text_member(member(event, "promptFeedback"), "blockReason"):
            self._seen = True
            self._stop = "filtered"
        for candidate in members(event, "candidates"):
            if is_first(candidate):
                self._seen = True
                self._candidate(candidate)

    def whole(self, body: JsonObject) -> None:
        """Take one response. It is all there is, even if it names no reason for its end."""
        self._whole = True
        self.feed(body, "")

    def done(self) -> bool:
        """Return False: usage may follow the finish reason, and the stream ends soon after."""
        return False

    def stopped(self) -> bool:
        """Return False: more of the reply may follow a finish reason, where the service ran code itself."""
        return False

    def empty(self) -> bool:
        """Return whether no candidate was seen."""
        return not self._seen

    def finish(self) -> AssistantMessage:
        """Return the message."""
        return message_of(
            self._parts.parts(self._make_id),
            stop=self._stop or ("end" if self._whole else "incomplete"),
            usage=_usage(self._counts),
            model=self._context.target.name,
            response_id=self._response_id,
        )

    def _candidate(self, candidate: JsonObject) -> None:
        for part in members(member(candidate, "content"), "parts"):
            self._part(part)
        reason = text_member(candidate, "finishReason")
        if reason in _FAILED:
            said = text_member(candidate, "finishMessage") or reason
            raise plain_failure("server", f"{self._context.target.provider}: {said}", code=reason)
        if reason:
            # Whatever else it names is something that stood in the way: Model Armor, a kind of safety.
            self._stop = _STOPS.get(reason, "filtered")

    def _part(self, part: JsonObject) -> None:
        signature = part.get("thoughtSignature")
        if "functionCall" in part:
            call = self._parts.call()
            told = member(part, "functionCall")
            call.tool, call.arguments = text_member(told, "name"), member(told, "args")
            call.call_id = text_member(told, "id")
            if call.call_id:
                call.opaque["id"] = True
            if signature:
                call.opaque["thoughtSignature"] = signature
        elif part.get("thought") is True:
            self._parts.reasoning(text_member(part, "text"))
            if signature:
                self._parts.opaque("reasoning").update({"thought": True, "thoughtSignature": signature})
        elif "text" in part:
            self._parts.text(text_member(part, "text"))
            if signature:
                self._parts.opaque("text")["thoughtSignature"] = signature
        else:
            # Code that the service ran, and its outcome: sent back as it came.
            self._parts.block({**part})

    def _make_id(self, number: int) -> str:
        return f"call_{self._context.turn}_{number}"


def _usage(usage: JsonObject) -> Usage:
    thoughts = whole_number(usage.get("thoughtsTokenCount"))
    return Usage(
        # Tokens that the service's own tools brought into the prompt are counted apart.
        input_tokens=whole_number(usage.get("promptTokenCount"))
        + whole_number(usage.get("toolUsePromptTokenCount")),
        output_tokens=whole_number(usage.get("candidatesTokenCount")) + thoughts,
        cache_read_tokens=whole_number(usage.get("cachedContentTokenCount")),
        reasoning_tokens=thoughts,
    )
