"""What a wire protocol is, and the one path on which a request goes out and a reply comes in."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from typing import Protocol

import anyio

from agentctl.llm.addresses import joined
from agentctl.llm.assemble import Assembler
from agentctl.llm.base import Emit, FailureKind, ModelCallFailed, ModelRequest
from agentctl.llm.catalogue import ModelFacts, cost_of, free
from agentctl.llm.failures import (
    REQUEST_ID_HEADERS,
    in_band_failure,
    plain_failure,
    read_error,
    status_failure,
    unreadable,
)
from agentctl.llm.http import Http, HttpCall, HttpOptions, HttpResponse
from agentctl.llm.pictures import without_pictures
from agentctl.llm.retry_after import retry_after_s
from agentctl.llm.stream import BodyDecoder, ServerEvent, parse_json
from agentctl.protocol.messages import AssistantMessage, Usage
from agentctl.protocol.values import JsonObject, compact_json
from agentctl.records import dataclass

_DONE = b"[DONE]"
_BAD = 400
_ERROR_BYTES = 64 * 1024
_RISING = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_GRACE_S = 1.0
"""How long a finished stream may stay open before it is closed from here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom a request is built for."""

    provider: str
    model: str
    """The model's name as the service knows it."""
    facts: ModelFacts
    dialect: Mapping[str, object] = field(default_factory=dict)
    stream: bool = True

    @property
    def name(self) -> str:
        """The `provider:model` name."""
        return f"{self.provider}:{self.model}"

    def says(self, option: str) -> bool:
        """Return whether the dialect sets this flag."""
        return self.dialect.get(option) is True

    def word(self, option: str) -> str:
        """Return the dialect's word for this option, or empty."""
        value = self.dialect.get(option)
        return value if isinstance(value, str) else ""

    def effort(self, wanted: str) -> str:
        """Return the model's word for an effort: the next above, or the highest, where it lacks this one."""
        taken = self.facts.efforts
        if not taken or wanted in taken:
            return wanted
        above = [word for word in taken if word in _RISING and _RISING.index(word) > _RISING.index(wanted)]
        return above[0] if above else taken[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyContext:
    """What an assembler needs besides the events."""

    target: Target
    emit: Emit
    turn: int
    """The number of messages in the request: makes ids of calls that have none."""


class WireProtocol(Protocol):
    """A service's protocol as pure functions; no implementation touches the network."""

    @property
    def lines(self) -> bool:
        """Whether streams are lines of JSON rather than server-sent events."""

    def path(self, target: Target) -> str:
        """Return what follows the base URL."""

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry the key."""

    def fixed_headers(self, target: Target) -> dict[str, str]:
        """Return the headers that every request to this model carries, key or not."""

    def body(self, request: ModelRequest, target: Target) -> JsonObject:
        """Return the request's body. Pure: equal requests give equal bodies, in equal order."""

    def assembler(self, context: ReplyContext) -> Assembler:
        """Return an assembler for one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a target is reached."""

    base_url: str
    key: Callable[[], str] = field(repr=False)
    """Returns the key, or empty where the service needs none. Asked at each call."""
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers taken from the environment: treated as a key."""
    query: Mapping[str, str] = field(default_factory=dict)
    options: HttpOptions = field(default_factory=HttpOptions)


class WireModel:
    """One model of one service."""

    def __init__(self, protocol: WireProtocol, target: Target, endpoint: Endpoint, http: Http) -> None:
        self._protocol = protocol
        self._target = target
        self._endpoint = endpoint
        self._http = http

    @property
    def name(self) -> str:
        """The `provider:model` name."""
        return self._target.name

    @property
    def context_window(self) -> int | None:
        """As the catalogue says."""
        return self._target.facts.context_window

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Send the request once and return the reply, priced.

        Raises:
            ModelCallFailed: any failure; its message holds no key.
        """
        key = self._endpoint.key()
        secrets = [key, *self._endpoint.secret_headers.values()]
        context = ReplyContext(target=self._target, emit=emit, turn=len(request.messages))
        assembler = self._protocol.assembler(context)
        try:
            async with self._http.send(self._call(request, key), self._endpoint.options) as response:
                if response.status >= _BAD:
                    raise await _refusal(response, self._target.provider)
                await read_reply(
                    response.chunks(), assembler, self._protocol, _Source(response, self._target)
                )
        except ModelCallFailed as failure:
            raise _without(failure, secrets, used=self._used(assembler)) from None
        message = assembler.finish()
        return replace(message, usage=self._priced(message.usage))

    def _used(self, assembler: Assembler) -> Usage | None:
        """Return what a reply that broke off had used by its own word: it will be billed."""
        if assembler.empty():
            return None
        usage = assembler.finish().usage
        return self._priced(usage) if usage.input_tokens or usage.output_tokens else None

    def _priced(self, usage: Usage) -> Usage:
        if usage.cost_usd is not None:
            return usage
        cost = cost_of(usage, self._target.facts)
        if not usage.input_tokens and not usage.output_tokens and not free(self._target.facts):
            # The service told no figures: what it costs is not known, and not nothing.
            cost = None
        return replace(usage, cost_usd=cost)

    async def aclose(self) -> None:
        """Do nothing: connections belong to the process."""

    def _call(self, request: ModelRequest, key: str) -> HttpCall:
        if self._target.facts.images is False:
            request = without_pictures(request)
        body = merged(self._protocol.body(request, self._target), request.extra)
        path = self._protocol.path(self._target)
        url = joined(self._endpoint.base_url, path, self._endpoint.query)
        accept = (
            "text/event-stream" if self._target.stream and not self._protocol.lines else "application/json"
        )
        return HttpCall(
            url=url,
            headers={
                "content-type": "application/json",
                "accept": accept,
                **with_lists(self._protocol.fixed_headers(self._target), self._endpoint.headers),
            },
            secret_headers={
                **(self._protocol.key_headers(key) if key else {}),
                **self._endpoint.secret_headers,
            },
            body=compact_json(body).encode(),
        )


@dataclass(frozen=True, slots=True)
class _Source:
    """Whence a body comes, for messages about it."""

    response: HttpResponse
    target: Target

    @property
    def request_id(self) -> str:
        return _request_id(self.response)

    @property
    def content_type(self) -> str:
        return self.response.header("content-type")


class BodySource(Protocol):
    """What an error about a body tells of its origin."""

    @property
    def request_id(self) -> str:
        """The service's id of the request."""

    @property
    def content_type(self) -> str:
        """The body's declared type."""

    @property
    def target(self) -> Target:
        """Whom it was asked of."""


async def read_reply(
    chunks: AsyncIterator[bytes], assembler: Assembler, protocol: WireProtocol, source: BodySource
) -> None:
    """Feed a body's chunks to `assembler`, whatever form the body has. The same for every split.

    Raises:
        ModelCallFailed: an error inside the body, a body that is no reply, or the chunks' own failure.
    """
    decoder = BodyDecoder(lines=protocol.lines)
    reader = _Reader(assembler, source)
    async for chunk in chunks:
        for event in decoder.feed(chunk):
            reader.take(event)
        if assembler.done():
            break
    if assembler.done():
        # Reading to the end lets the connection be used again; a service that never closes is cut off.
        with anyio.move_on_after(_GRACE_S), suppress(ModelCallFailed):
            async for _ in chunks:
                pass
        return
    for event in decoder.end():
        reader.take(event)
    if assembler.empty() and not assembler.done():
        said = unreadable(decoder.head, content_type=source.content_type)
        kind: FailureKind = "invalid" if decoder.head.strip() else "server"
        raise plain_failure(
            kind, f"{source.target.provider}: no reply in the body: {said}", request_id=source.request_id
        )


class _Reader:
    __slots__ = ("_assembler", "_broken", "_source")

    def __init__(self, assembler: Assembler, source: BodySource) -> None:
        self._assembler = assembler
        self._source = source
        self._broken = False

    def take(self, event: ServerEvent) -> None:
        if self._assembler.done():
            return
        if self._broken:
            # A piece of the reply is lost, and what follows would be put in its place.
            where = self._source.target.provider
            raise plain_failure("server", f"{where}: an event is no JSON", request_id=self._source.request_id)
        if event.data.strip() == _DONE:
            self._assembler.feed({}, "[DONE]")
            return
        try:
            value = parse_json(event.data)
        except (ValueError, RecursionError):
            self._unreadable(event)
            return
        if isinstance(value, list) and event.name == "whole":
            for one in value:
                if isinstance(one, dict):
                    self._object(one, "")
        elif isinstance(value, dict):
            self._object(value, event.name)

    def _unreadable(self, event: ServerEvent) -> None:
        """Lines of JSON where one document was asked for; or half an event, as at the end of a cut stream.

        In the latter case the missing terminator tells the rest, unless more events follow.
        """
        lines = event.data.strip().split(b"\n")
        if event.name == "whole" and len(lines) > 1 and _is_json(lines[0]):
            for line in lines:
                self.take(ServerEvent("", line))
        elif event.data.lstrip().startswith(b"{"):
            self._broken = True

    def _object(self, value: JsonObject, name: str) -> None:
        error = value.get("error")
        if (error or name == "error") and not self._assembler.stopped():
            raise in_band_failure(
                error or value, where=self._source.target.provider, request_id=self._source.request_id
            )
        if name == "whole":
            self._assembler.whole(value)
        else:
            self._assembler.feed(value, name)


def _is_json(data: bytes) -> bool:
    try:
        parse_json(data)
    except (ValueError, RecursionError):
        return False
    return True


def with_lists(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Return our headers with the user's over them; names of a beta stand beside each other. Pure."""
    found = {name.lower(): value for name, value in ours.items()}
    for name, value in theirs.items():
        before = found.get(name.lower())
        found[name.lower()] = f"{before},{value}" if before and name.lower() == "anthropic-beta" else value
    return found


def merged(body: JsonObject, extra: JsonObject) -> JsonObject:
    """Return `body` with the members of `extra` over it; objects on both sides are joined. Pure."""
    result = dict(body)
    for name, value in extra.items():
        ours = result.get(name)
        result[name] = merged(ours, value) if isinstance(ours, dict) and isinstance(value, dict) else value
    return result


async def _refusal(response: HttpResponse, provider: str) -> ModelCallFailed:
    raw = await response.read(_ERROR_BYTES)
    content_type = response.header("content-type")
    status = response.status
    request_id = _request_id(response)
    waits = retry_after_s(response.header)
    try:
        told = read_error(parse_json(raw.removeprefix(b"data:").strip()))
    except (ValueError, RecursionError):
        said = unreadable(raw, content_type=content_type)
        message, code = f"{provider} answers HTTP {status}: {said}", ""
    else:
        message, code = f"{provider} answers HTTP {status}: {told.message}", told.code
        request_id = request_id or told.request_id
        waits = told.retry_after_s if waits is None else waits
    failure = status_failure(
        status,
        message,
        code=code,
        request_id=request_id,
        retry_after_s=waits,
    )
    advised = response.header("x-should-retry").lower()
    if advised not in {"true", "false"} or failure.details.next_model:
        return failure
    return ModelCallFailed(message, details=replace(failure.details, retryable=advised == "true"))


def _request_id(response: HttpResponse) -> str:
    return next((value for name in REQUEST_ID_HEADERS if (value := response.header(name))), "")


def _without(failure: ModelCallFailed, secrets: list[str], *, used: Usage | None) -> ModelCallFailed:
    """Some services repeat the key they were sent."""
    shortest = 8
    message = failure.message
    for secret in secrets:
        if len(secret) >= shortest:
            message = message.replace(secret, "[key]")
    return ModelCallFailed(message, details=replace(failure.details, usage=used))
