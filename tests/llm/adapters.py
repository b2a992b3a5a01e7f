"""The adapters without a network: a message out of a body that a service might send."""

import json
from collections.abc import AsyncIterator, Mapping

from cassettes import Source

from agentctl.llm.catalogue import ModelFacts
from agentctl.llm.endpoints import protocol_of
from agentctl.llm.wire import ReplyContext, Target, read_reply
from agentctl.protocol.messages import AssistantMessage

WIRES = {
    "openai": "openai-responses", "anthropic": "anthropic", "gemini": "gemini", "ollama": "ollama",
}  # fmt: skip


def target(
    name: str = "svc:m", facts: ModelFacts | None = None, dialect: Mapping[str, object] | None = None
) -> Target:
    provider, _, model = name.partition(":")
    return Target(provider=provider, model=model, facts=facts or ModelFacts(), dialect=dialect or {})


def sse(*events: object, done: bool = True) -> bytes:
    data = [one if isinstance(one, str) else json.dumps(one) for one in events] + (["[DONE]"] if done else [])
    return "".join(f"data: {one}\n\n" for one in data).encode()


def chunk(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def told(body: bytes | object, *, of: str = "svc:m") -> AssistantMessage:
    """What the adapter makes of a body; `of` names a provider, an unknown one speaks Chat Completions."""
    aim = target(of)
    wire = protocol_of(WIRES.get(aim.provider, "openai-chat"))
    assembler = wire.assembler(ReplyContext(target=aim, emit=lambda _: None, turn=1))

    async def give() -> AsyncIterator[bytes]:
        yield body if isinstance(body, bytes) else json.dumps(body).encode()

    await read_reply(give(), assembler, wire, Source(target=aim))
    return assembler.finish()
