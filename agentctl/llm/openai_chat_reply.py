"""OpenAI Chat Completions: the reply, streamed or whole, in any of the dialects."""

import json
from dataclasses import replace
from hashlib import sha256

from agentctl.llm.assemble import (
    CallInProgress,
    PartList,
    amount_of,
    is_first,
    member,
    members,
    message_of,
    read_arguments,
    text_member,
    whole_number,
)
from agentctl.llm.base import FailureKind
from agentctl.llm.failures import in_band_failure, plain_failure
from agentctl.llm.wire import ReplyContext
from agentctl.protocol.messages import AssistantMessage, StopReason, Usage
from agentctl.protocol.values import JsonObject, JsonValue

_STOPS: dict[str, StopReason] = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "max_new_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "filtered",
    "safety": "filtered",
    "recitation": "filtered",
    "sensitive": "filtered",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "abort": "incomplete",
}
"""By their names in lower case; what is not here means that the model was done."""
_CUT = frozenset({"length", "max_output_tokens", "max_tokens", "MAX_TOKENS"})
_FAILED: dict[str, FailureKind] = {
    "error": "server",
    "network_error": "server",
    "malformed_function_call": "server",
    "insufficient_system_resource": "overloaded",
}


class ChatAssembler:
    """Builds one message from chunks of `chat.completion.chunk`, or from one `chat.completion`.

    The first choice alone is read. The terminator is `[DONE]`, or a finish reason.
    """

    def __init__(self, context: ReplyContext) -> None:
        self._context = context
        self._parts = PartList(context.emit)
        self._details: list[JsonValue] = []
        self._by_index: dict[int, CallInProgress] = {}
        self._twins: dict[int, CallInProgress] = {}
        self._current: CallInProgress | None = None
        self._stop: StopReason | None = None
        self._done = False
        self._seen = False
        self._response_id = ""
        self._usage = Usage()
        self._cumulative = 0

    def feed(self, event: JsonObject, name: str) -> None:
        """Take one chunk."""
        if name == "[DONE]":
            self._done = True
            return
        if not self._response_id:
            self._response_id = text_member(event, "id")
        self._count(event)
        choices = event.get("choices")
        if not isinstance(choices, list):
            return
        self._seen = True
        for choice in choices:
            if isinstance(choice, dict) and is_first(choice):
                self._choice(choice)

    def whole(self, body: JsonObject) -> None:
        """Take one completion; the first choice speaks."""
        self._response_id = text_member(body, "id")
        self._count(body)
        choices = members(body, "choices")
        if not choices:
            return
        self._seen = True
        choice = next((one for one in choices if is_first(one)), choices[0])
        self._delta(member(choice, "message"), whole=True)
        self._finish(choice)
        self._done = True

    def stopped(self) -> bool:
        """Return whether a finish reason was seen."""
        return self._stop is not None

    def done(self) -> bool:
        """Return whether `[DONE]`, or a whole completion, was seen."""
        return self._done

    def empty(self) -> bool:
        """Return whether no choice was seen."""
        return not self._seen

    def finish(self) -> AssistantMessage:
        """Return the message."""
        if self._details:
            self._parts.opaque("reasoning", None)["reasoning_details"] = _joined(self._details)
        default: StopReason = "end" if self._done else "incomplete"
        return message_of(
            self._parts.parts(self._make_id),
            stop=self._stop or default,
            usage=self._usage,
            model=self._context.target.name,
            response_id=self._response_id,
        )

    def _choice(self, choice: JsonObject) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta, whole=False)
            message = choice.get("message")
            if isinstance(message, dict) and not delta.get("content"):
                self._repeated(message)
        elif isinstance(choice.get("message"), dict):
            self._repeated(member(choice, "message"))
        self._finish(choice)

    def _repeated(self, message: JsonObject) -> None:
        """Perplexity repeats the whole text so far beside each delta: what the deltas left out is in it."""
        text = text_member(message, "content")
        if len(text) > self._cumulative:
            self._text(text[self._cumulative :])

    def _delta(self, delta: JsonObject, *, whole: bool) -> None:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str):
            self._parts.reasoning(thought)
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._details.extend(details)
            if not thought:
                self._unspoken(details)
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                self._text(content)
        elif isinstance(content, list):
            self._blocks(content)
        # What a model said aloud: its words are all that a thread of texts can hold.
        if spoken := text_member(member(delta, "audio"), "transcript"):
            self._text(spoken)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._parts.refusal(refusal)
        calls = delta.get("tool_calls")
        # Text Generation Inference streams its one call outside a list; the oldest servers know one function.
        for call in calls if isinstance(calls, list) else [calls]:
            if isinstance(call, dict):
                self._call(call, whole=whole)
        if isinstance(delta.get("function_call"), dict) and not calls:
            self._call({"index": 0, "function": delta["function_call"]}, whole=whole)

    def _text(self, piece: str) -> None:
        self._cumulative += len(piece)
        self._parts.text(piece)

    def _unspoken(self, details: list[JsonValue]) -> None:
        """Reasoning that stands in the blocks alone."""
        for block in details:
            piece = text_member(block, "text") or text_member(block, "summary")
            if piece:
                self._parts.reasoning(piece)

    def _blocks(self, content: list[JsonValue]) -> None:
        """Content as a list: Mistral's thinking models, and services that copy the request's form."""
        for block in content:
            if text_member(block, "type") in {"thinking", "reasoning"}:
                self._parts.reasoning(text_member(block, "thinking") or text_member(block, "text"))
                for inner in members(block, "thinking"):
                    self._parts.reasoning(text_member(inner, "text"))
            elif isinstance(block, str):
                self._text(block)
            elif text := text_member(block, "text"):
                self._text(text)

    def _call(self, piece: JsonObject, *, whole: bool) -> None:
        call = self._call_of(piece, whole=whole)
        function = member(piece, "function")
        call.call_id = call.call_id or text_member(piece, "id")
        call.tool = _grown_name(call, text_member(function, "name"))
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.pieces.append(arguments)
        elif isinstance(arguments, dict):
            # Some servers send the object itself.
            call.pieces.append(json.dumps(arguments, ensure_ascii=False))
        if piece.get("extra_content") is not None:
            call.opaque["extra_content"] = piece["extra_content"]

    def _call_of(self, piece: JsonObject, *, whole: bool) -> CallInProgress:
        """Find the call that a fragment belongs to.

        A new id with a name begins a call, whatever its index says. A new id or a name alone does so too,
        unless the call on that index is still without an end: some services repeat the name, or make up
        another id, with each fragment; others send a name in pieces. A fragment without either goes by its
        index, and without a known index to the call before it. One id on two indexes, with a name on each, is
        two calls.
        """
        index = piece.get("index")
        call_id = text_member(piece, "id")
        tool = text_member(member(piece, "function"), "name")
        known = self._by_index.get(index) if isinstance(index, int) else None
        if whole:
            known = None
        elif call_id:
            same = next((one for one in self._parts.calls if one.call_id == call_id), None)
            if isinstance(index, int) and index in self._twins:
                same = self._twins[index]
            elif same is not None and tool and isinstance(index, int) and self._is_another(same, index, tool):
                same = self._twins[index] = self._parts.call()
            known = same or (known if known is not None and not tool and _goes_on(known, tool) else None)
        elif tool:
            known = known if known is not None and (_goes_on(known, tool) or _name_goes_on(known)) else None
        else:
            known = known or self._current
        if known is None:
            known = self._parts.call()
        if isinstance(index, int):
            self._by_index[index] = known
        self._current = known
        return known

    def _is_another(self, same: CallInProgress, index: int, tool: str) -> bool:
        """Whether a fragment with the id of a call on another index is a call of its own."""
        return same is not self._by_index.get(index) and bool(same.tool) and not _goes_on(same, tool)

    def _finish(self, choice: JsonObject) -> None:
        reason = choice.get("finish_reason")
        if not isinstance(reason, str) or not reason:
            return
        if text_member(choice, "native_finish_reason") in _CUT:
            # OpenRouter says `tool_calls` of a turn that the service behind it cut inside the arguments.
            reason = "length"
        where = self._context.target.provider
        if choice.get("error"):
            raise in_band_failure(choice["error"], where=where)
        failed = _FAILED.get(reason.lower())
        if failed is not None:
            raise plain_failure(failed, f"{where}: the reply ended with {reason!r}", code=reason)
        stop = _STOPS.get(reason.lower(), "end")
        # The first reason that cuts the reply stays: a later plain `stop` does not make it whole.
        if self._stop not in {"length", "filtered"}:
            self._stop = stop

    def _count(self, body: JsonObject) -> None:
        usage = member(body, "usage") or member(member(body, "x_groq"), "usage")
        for choice in members(body, "choices") if not usage else []:
            # Moonshot's streams count there.
            usage = member(choice, "usage")
        if usage:
            self._usage = _usage(usage, body)
        elif body.get("cost") is not None:
            self._usage = _with_cost(self._usage, body)

    def _make_id(self, number: int) -> str:
        mark = sha256(self._response_id.encode()).hexdigest()[:8] if self._response_id else "0"
        return f"call_{self._context.turn}_{mark}_{number}"


def _goes_on(call: CallInProgress, tool: str) -> bool:
    """Whether a fragment that names this tool, or none, may belong to a call: its arguments have no end."""
    if tool and call.tool and tool != call.tool:
        return False
    return not any(call.pieces) or bool(read_arguments("".join(call.pieces))[1])


def _name_goes_on(call: CallInProgress) -> bool:
    """Whether a name without an id may be the rest of a call's name: it has an id, and no arguments yet."""
    return bool(call.call_id) and not any(call.pieces)


def _grown_name(call: CallInProgress, piece: str) -> str:
    """Return a call's name after one more piece, which may repeat what came before."""
    if not call.tool or not piece or any(call.pieces):
        return call.tool or piece
    return piece if piece.startswith(call.tool) else call.tool + piece


def _usage(usage: JsonObject, body: JsonObject) -> Usage:
    prompt = member(usage, "prompt_tokens_details")
    reply = member(usage, "completion_tokens_details")
    taken, given = whole_number(usage.get("prompt_tokens")), whole_number(usage.get("completion_tokens"))
    thoughts = whole_number(reply.get("reasoning_tokens") or usage.get("reasoning_tokens"))
    beside = whole_number(usage.get("total_tokens")) - taken - given
    if beside > 0 and (beside == thoughts or not (thoughts or prompt)):
        # xAI and Gemini's OpenAI door count thoughts beside the reply; the latter has no figure for them.
        given, thoughts = given + beside, beside
    read = max(
        whole_number(prompt.get("cached_tokens")),
        whole_number(usage.get("cached_tokens")),
        whole_number(usage.get("prompt_cache_hit_tokens")),
        whole_number(usage.get("cache_read_input_tokens")),
    )
    written = max(
        whole_number(prompt.get("cache_write_tokens")),
        whole_number(usage.get("cache_creation_input_tokens")),
    )
    counted = Usage(
        # More from the cache than the prompt has: such a gateway counts what was cached apart.
        input_tokens=taken if read + written <= taken else taken + read + written,
        output_tokens=given,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=thoughts,
    )
    return _with_cost(counted, {**body, "usage": usage})


def _with_cost(usage: Usage, body: JsonObject) -> Usage:
    """The money that OpenRouter, Perplexity and Venice tell goes before any price list."""
    told = member(body, "usage")
    candidates = (told.get("cost"), member(told, "cost").get("total_cost"), member(body, "cost").get("usd"))
    cost = next((amount for value in candidates if (amount := amount_of(value)) is not None), None)
    if cost is not None and told.get("is_byok") is True:
        # With a key of one's own OpenRouter takes its fee, and the model's maker the rest.
        cost += amount_of(member(told, "cost_details").get("upstream_inference_cost")) or 0.0
    return usage if cost is None else replace(usage, cost_usd=cost)


def _joined(details: list[JsonValue]) -> list[JsonValue]:
    """Streamed pieces of one block become one block: same type, same index."""
    found: list[JsonValue] = []
    for piece in details:
        last = found[-1] if found else None
        if isinstance(piece, dict) and isinstance(last, dict) and _same_block(last, piece):
            found[-1] = _grown(last, piece)
        else:
            found.append(piece)
    return found


def _same_block(last: JsonObject, piece: JsonObject) -> bool:
    same = last.get("type") == piece.get("type") and last.get("index") == piece.get("index")
    return same and last.get("id") in {piece.get("id"), None}


def _grown(last: JsonObject, piece: JsonObject) -> JsonObject:
    grown = dict(last)
    for name, value in piece.items():
        before = grown.get(name)
        if name in {"text", "summary", "data"} and isinstance(before, str) and isinstance(value, str):
            grown[name] = before + value
        elif value is not None:
            grown[name] = value
    return grown
