"""Recorded exchanges as Python values, and the adapters that replay them without a network."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from agentctl.llm.catalogue import Catalogue, WireName, load_catalogue
from agentctl.llm.endpoints import protocol_of
from agentctl.llm.wire import ReplyContext, Target, WireProtocol, read_reply
from agentctl.protocol.events import LiveEvent
from agentctl.protocol.messages import AssistantMessage
from agentctl.protocol.values import JsonObject

FOLDERS = ("anthropic-messages", "gemini", "ollama-chat", "openai-chat", "openai-responses")
_WIRES = {
    "/v1/messages": "anthropic",
    "/api/chat": "ollama",
    "/responses": "openai-responses",
    "/chat/completions": "openai-chat",
    "enerateContent": "gemini",
}
_NAMES = {
    # (service, protocol) → the provider that docs/models.md names for it
    ("openai", "openai-chat"): "openai-chat",
    ("copilot", "openai-responses"): "copilot-responses",
    ("openrouter", "openai-responses"): "openrouter-responses",
    ("llamacpp", "openai-responses"): "llamacpp-responses",
}


@dataclass(frozen=True)
class Exchange:
    name: str
    service: str
    path: str
    request: JsonObject
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def wire(self) -> str | None:
        return next((wire for end, wire in _WIRES.items() if end in self.path), None)

    @property
    def provider(self) -> str:
        assert self.wire is not None
        return _NAMES.get((self.service, self.wire), self.service)

    @property
    def streamed(self) -> bool:
        return self.request.get("stream") is True or "streamGenerateContent" in self.path

    @property
    def model(self) -> str:
        if self.wire == "gemini":
            return self.path.rpartition("/")[2].partition(":")[0]
        return str(self.request.get("model", ""))


def load(path: Path) -> list[Exchange]:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    found = []
    for number, one in enumerate(recorded["exchanges"]):
        body = one["response"]["body"]
        raw = body if isinstance(body, str) else json.dumps(body)
        request = one["request"]["body"]
        if isinstance(request, str) and request:
            request = json.loads(request)
        found.append(
            Exchange(
                name=f"{path.stem}#{number}",
                service=recorded["provider"],
                path=one["request"]["path"],
                request=request or {},
                status=one["response"]["status"],
                headers={name: value for name, value in one["response"]["headers"].items() if value},
                body=raw.encode(),
            )
        )
    return found


def all_exchanges(folder: Path) -> Iterator[Exchange]:
    for kind in FOLDERS:
        for path in sorted((folder / kind).glob("*.json")):
            for exchange in load(path):
                if exchange.wire is not None:
                    yield exchange


_CATALOGUE: list[Catalogue] = []


def catalogue() -> Catalogue:
    if not _CATALOGUE:
        _CATALOGUE.append(load_catalogue({}))
    return _CATALOGUE[0]


def target_of(exchange: Exchange) -> Target:
    service = catalogue().services.get(exchange.provider)
    # A service that does not ship is one that a user would name in the config: the plain protocol.
    dialect = {**service.dialect, **service.home_dialect} if service is not None else {}
    return Target(
        provider=exchange.provider,
        model=exchange.model,
        facts=catalogue().facts(f"{exchange.provider}:{exchange.model}"),
        dialect=dialect,
        stream=exchange.streamed,
    )


def protocol(exchange: Exchange) -> WireProtocol:
    wire = next(name for name in get_args(WireName) if name == exchange.wire)
    return protocol_of(wire)


@dataclass
class Source:
    """Whence a replayed body comes."""

    target: Target
    request_id: str = ""
    content_type: str = ""


@dataclass
class Played:
    message: AssistantMessage
    events: list[LiveEvent] = field(default_factory=list)


async def play(exchange: Exchange, chunks: Sequence[bytes] | None = None) -> Played:
    """Return what the adapter makes of the body, given in these chunks; no socket is involved."""
    events: list[LiveEvent] = []
    target, wire = target_of(exchange), protocol(exchange)
    assembler = wire.assembler(ReplyContext(target=target, emit=events.append, turn=1))

    async def give() -> AsyncIterator[bytes]:
        for chunk in [exchange.body] if chunks is None else chunks:
            yield chunk

    await read_reply(give(), assembler, wire, Source(target=target))
    return Played(message=assembler.finish(), events=events)
