"""The scripted model: an ordinary provider whose replies stand in a file. Deterministic, strict both ways.

A call that no reply is left for, or that differs from what its reply expects, fails; replies that nobody
asked for are reported by `check_all_read`.
"""

import re
from collections.abc import Iterable, Sequence

from agentctl.clock import Clock, SystemClock
from agentctl.errors import ProviderError
from agentctl.llm.base import Emit, ModelCallFailed, ModelRequest
from agentctl.llm.failures import plain_failure, status_failure
from agentctl.llm.script import Expectation, Reply, Script, ScriptedError
from agentctl.protocol.events import ReasoningStreamed, TextStreamed
from agentctl.protocol.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    ReasoningPart,
    RefusalPart,
    StopReason,
    TextPart,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

_PIECE = 24
_CHARS_PER_TOKEN = 4
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadReply:
    """A reply that was never asked for."""

    source: str
    line: int
    left: int
    """How often it should still have answered."""


class ScriptedModel:
    """Answers from a script. All agents of a run share one place in it; another run has its own."""

    def __init__(self, script: Script, *, name: str = "", clock: Clock | None = None) -> None:
        self._script = script
        self._name = name or f"scripted:{script.source}"
        self._clock = clock or SystemClock()
        self._places: dict[str, list[int]] = {}
        """By run: how often each reply was given."""

    @property
    def name(self) -> str:
        """The `provider:model` name."""
        return self._name

    @property
    def context_window(self) -> int | None:
        """What the script's `context_window` says."""
        return self._script.context_window

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Return the next reply that is meant for this agent and stage.

        Raises:
            ModelCallFailed: the reply is an error, there is none left, or the request is not as expected.
        """
        index = self._next_for(request)
        reply = self._script.replies[index]
        used = self._used_of(request.run)
        use = used[index]
        newest = _newest(request.messages)
        captured = self._captured(reply, newest)
        problems = differences(reply.expect, request)
        if problems:
            raise self._strict(reply, "the request is not what it expects: " + "; ".join(problems))
        used[index] += 1
        if reply.pause_s:
            await self._clock.sleep(reply.pause_s)
        if reply.error is not None:
            raise _failure(reply.error)
        message = self._message(index, use, captured, request)
        _stream(message, emit)
        return message

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def already_answered(self, response_ids: Iterable[str], *, run: str = "") -> None:
        """Mark replies as read that an earlier process gave: how a resumed run finds its place.

        Error replies for the same agent and stage that stand before an answered one count as read too.
        """
        used = self._used_of(run)
        for response_id in response_ids:
            place = self._place(response_id)
            if place is None:
                continue
            index, use = place
            if used[index] > use:
                continue
            used[index] = use + 1
            answered = self._script.replies[index]
            for earlier, other in enumerate(self._script.replies[:index]):
                same = (other.agent, other.stage, other.when) == (
                    answered.agent,
                    answered.stage,
                    answered.when,
                )
                if other.error is not None and same:
                    used[earlier] = max(used[earlier], other.times)

    def unread(self) -> tuple[UnreadReply, ...]:
        """Return the replies that were not asked for, in script order."""
        return tuple(
            UnreadReply(source=self._script.source, line=reply.line, left=reply.times - used)
            for place in self._places.values() or [[0] * len(self._script.replies)]
            for reply, used in zip(self._script.replies, place, strict=True)
            if used < reply.times
        )

    def check_all_read(self) -> None:
        """Pass if every reply was asked for; called when a run has finished.

        Raises:
            ProviderError: some were not.
        """
        unread = self.unread()
        if unread:
            left = sum(one.left for one in unread)
            places = ", ".join(f"{one.source}:{one.line}" for one in unread[:5])
            raise ProviderError(
                f"The run ended with {left} unread replies of its script ({places}).",
                hint="take the replies out of the script, or see why the agent stopped asking",
            )

    def _used_of(self, run: str) -> list[int]:
        return self._places.setdefault(run, [0] * len(self._script.replies))

    def _place(self, response_id: str) -> tuple[int, int] | None:
        found = re.fullmatch(r"scripted-(\d+)-(\d+)", response_id)
        if found is None or int(found[1]) >= len(self._script.replies):
            return None
        return int(found[1]), int(found[2])

    def _next_for(self, request: ModelRequest) -> int:
        task = _text_of(request.messages[:1])
        used = self._used_of(request.run)
        for index, reply in enumerate(self._script.replies):
            left = reply.times == 0 or used[index] < reply.times
            mine = reply.agent in {"", request.agent} and reply.stage in {"", request.stage}
            if left and mine and (not reply.when or reply.when in task):
                return index
        who = f"agent {request.agent!r}, stage {request.stage!r}" if request.agent else "this request"
        raise plain_failure(
            "invalid",
            f"{self._script.source}: unexpected model call: the script has no reply left for {who}.",
            code="script_exhausted",
        )

    def _strict(self, reply: Reply, what: str) -> ModelCallFailed:
        return plain_failure("invalid", f"{self._script.source}:{reply.line}: {what}", code="script_mismatch")

    def _captured(self, reply: Reply, newest: str) -> dict[str, str]:
        captured = {}
        for name, pattern in reply.capture.items():
            found = re.search(pattern, newest, re.MULTILINE)
            if found is None:
                raise self._strict(reply, f"capture {name}: {pattern!r} is not in the newest messages")
            captured[name] = found[1] if found.re.groups else found[0]
        return captured

    def _message(
        self, index: int, use: int, captured: dict[str, str], request: ModelRequest
    ) -> AssistantMessage:
        reply = self._script.replies[index]
        parts: list[AssistantPart] = []
        if reply.reasoning:
            parts.append(ReasoningPart(text=_filled(reply.reasoning, captured)))
        if reply.text:
            parts.append(TextPart(text=_filled(reply.text, captured)))
        if reply.refusal:
            parts.append(RefusalPart(text=_filled(reply.refusal, captured)))
        for number, call in enumerate(reply.tool_calls):
            parts.append(
                ToolCall(
                    call_id=call.call_id or f"call-{index}-{use}-{number}",
                    tool=call.tool,
                    arguments=_filled_object(call.arguments, captured),
                    invalid_arguments=call.raw_arguments,
                )
            )
        default: StopReason = "tool_calls" if reply.tool_calls else "refusal" if reply.refusal else "end"
        return AssistantMessage(
            parts=tuple(parts),
            stop=reply.stop or default,
            usage=reply.usage or _counted(request, parts),
            model=self._name,
            response_id=f"scripted-{index}-{use}",
        )


def differences(expect: Expectation, request: ModelRequest) -> tuple[str, ...]:
    """Return in words where `request` is not as expected; empty when it is. Pure."""
    everything = "\n".join([request.system, _text_of(request.messages)])
    wanted = (
        ("the system prompt", expect.system, request.system),
        ("the newest messages", expect.last, _newest(request.messages)),
        ("the first message", expect.task, _text_of(request.messages[:1])),
        ("the request", expect.anywhere, everything),
    )
    found = [
        f"{where} lacks {text!r}" for where, texts, within in wanted for text in texts if text not in within
    ]
    found += [f"the request contains {text!r}" for text in expect.absent if text in everything]
    offered = sorted(tool.name for tool in request.tools)
    if expect.tools is not None and sorted(expect.tools) != offered:
        found.append(f"the tools on offer are {', '.join(offered) or 'none'}")
    found += [f"{name} is not on offer" for name in expect.offers if name not in offered]
    if expect.messages is not None and expect.messages != len(request.messages):
        found.append(f"there are {len(request.messages)} messages, not {expect.messages}")
    outcomes = [one.result.outcome for one in request.messages if isinstance(one, ToolMessage)]
    if expect.outcome and (not outcomes or outcomes[-1] != expect.outcome):
        found.append(f"the newest tool result is {outcomes[-1] if outcomes else 'missing'}")
    return tuple(found)


def _failure(error: ScriptedError) -> ModelCallFailed:
    if error.status is not None and not error.kind:
        return status_failure(error.status, error.message, code=error.code, retry_after_s=error.retry_after_s)
    return plain_failure(error.kind or "transport", error.message, code=error.code)


def _stream(message: AssistantMessage, emit: Emit) -> None:
    for part in message.parts:
        match part:
            case TextPart(text=text):
                for start in range(0, len(text), _PIECE):
                    emit(TextStreamed(text=text[start : start + _PIECE]))
            case ReasoningPart(text=text):
                emit(ReasoningStreamed(text=text))
            case RefusalPart() | ToolCall():
                pass


def _newest(messages: Sequence[Message]) -> str:
    last = max((at for at, one in enumerate(messages) if isinstance(one, AssistantMessage)), default=-1)
    return _text_of(messages[last + 1 :])


def _text_of(messages: Sequence[Message]) -> str:
    texts = []
    for message in messages:
        match message:
            case UserMessage(parts=parts):
                texts += [part.text for part in parts if isinstance(part, TextPart)]
            case AssistantMessage():
                texts.append(message.text)
            case ToolMessage(result=result):
                texts.append(result.text)
    return "\n".join(texts)


def _filled(text: str, captured: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: captured.get(found[1], found[0]), text) if captured else text


def _filled_object(value: JsonObject, captured: dict[str, str]) -> JsonObject:
    return {key: _filled_value(item, captured) for key, item in value.items()}


def _filled_value(value: JsonValue, captured: dict[str, str]) -> JsonValue:
    match value:
        case str():
            return _filled(value, captured)
        case list():
            return [_filled_value(item, captured) for item in value]
        case dict():
            return _filled_object(value, captured)
        case _:
            return value


def _counted(request: ModelRequest, parts: Sequence[AssistantPart]) -> Usage:
    """Four characters a token; the price of a script is known to be nothing."""
    sent = len(request.system) + len(_text_of(request.messages))
    sent += sum(len(tool.name) + len(tool.description) + len(str(tool.parameters)) for tool in request.tools)
    got = 0
    for part in parts:
        got += len(str(part.arguments)) + len(part.tool) if isinstance(part, ToolCall) else len(part.text)
    return Usage(
        input_tokens=-(-sent // _CHARS_PER_TOKEN), output_tokens=-(-got // _CHARS_PER_TOKEN), cost_usd=0.0
    )
