"""Recordings served over real HTTP, in every manner in which services deliver: the reply is the same."""

from collections.abc import Callable
from pathlib import Path

import anyio
import naive_reading
import pytest
from cassettes import FOLDERS, Exchange, all_exchanges, catalogue, load, play, protocol, target_of
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.llm.http import Http, HttpOptions
from agentctl.llm.wire import Endpoint, WireModel
from agentctl.protocol.events import LiveEvent
from agentctl.protocol.messages import AssistantMessage, user_text
from agentctl.testing.replay_server import Answer, replay_server

pytestmark = pytest.mark.anyio
OWN = Path(__file__).resolve().parents[1] / "corpus" / "llm"
GO = ModelRequest(system="", messages=(user_text("go"),))
EXCHANGES = [one for one in all_exchanges(OWN) if one.status < 400]


async def ask(
    exchange: Exchange, url: str, http: Http, stall_s: float = 30.0
) -> tuple[AssistantMessage, list[LiveEvent]]:
    endpoint = Endpoint(base_url=url, key=lambda: "", options=HttpOptions(stall_timeout_s=stall_s))
    events: list[LiveEvent] = []
    model = WireModel(protocol(exchange), target_of(exchange), endpoint, http)
    return await model.reply(GO, events.append), events


async def replayed(
    exchange: Exchange, answer: Answer, stall_s: float = 30.0
) -> tuple[AssistantMessage, list[LiveEvent]]:
    http = Http()
    try:
        async with replay_server([answer]) as server:
            return await ask(exchange, server.url, http, stall_s)
    finally:
        await http.aclose()


def answer_of(exchange: Exchange, pieces: list[bytes] | None = None) -> Answer:
    return Answer(status=exchange.status, headers=exchange.headers, body=exchange.body, pieces=pieces)


def unpriced(message: AssistantMessage) -> tuple[object, ...]:
    usage = message.usage
    return message.parts, message.stop, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens


def cut_up(body: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({place % (len(body) + 1) for place in places})
    return [body[start:end] for start, end in zip([0, *marks], [*marks, len(body)], strict=True)]


MANNERS: dict[str, Callable[[bytes], bytes]] = {
    "as it was": lambda body: body,
    "with CRLF": lambda body: body.replace(b"\n", b"\r\n"),
    "with CR": lambda body: body.replace(b"\n", b"\r"),
    "with comments": lambda body: b": hello\n\n" + body.replace(b"data:", b": ping\ndata:"),
}


@settings(max_examples=80, deadline=None)
@given(
    exchange=st.sampled_from(EXCHANGES),
    manner=st.sampled_from(sorted(MANNERS)),
    places=st.lists(st.integers(min_value=0, max_value=100_000), max_size=25),
)
def test_every_manner_of_delivery_gives_the_same_reply(
    exchange: Exchange, manner: str, places: list[int]
) -> None:
    stream = exchange.streamed and exchange.wire != "ollama"
    body = MANNERS[manner](exchange.body) if stream else exchange.body

    message, events = anyio.run(replayed, exchange, answer_of(exchange, cut_up(body, places)))

    expected = anyio.run(play, exchange)
    assert unpriced(message) == unpriced(expected.message)
    assert events == expected.events


async def test_a_stream_byte_by_byte_gives_the_same_reply() -> None:
    for exchange in EXCHANGES:
        pieces = [exchange.body[at : at + 1] for at in range(len(exchange.body))]
        message, _ = await replayed(exchange, answer_of(exchange, pieces))
        assert unpriced(message) == unpriced((await play(exchange)).message), exchange.name


@pytest.mark.parametrize("exchange", [one for one in EXCHANGES if one.streamed], ids=lambda one: one.name)
async def test_a_stream_that_stalls_or_dies_in_the_middle_fails_and_may_be_tried_again(
    exchange: Exchange,
) -> None:
    half = exchange.body[: len(exchange.body) // 2]
    for answer, kind in [
        (Answer(headers=exchange.headers, pieces=[half], stall=True), "stalled"),
        (Answer(headers=exchange.headers, pieces=[half], cut=True), "transport"),
    ]:
        with pytest.raises(ModelCallFailed) as caught:
            await replayed(exchange, answer, stall_s=0.15)
        assert (caught.value.details.kind, caught.value.details.retryable) == (kind, True)


@pytest.mark.parametrize("folder", FOLDERS)
async def test_every_recording_replays_over_http(shared: Path, folder: str) -> None:
    exchanges = [
        one
        for path in sorted((shared / "cassettes" / folder).glob("*.json"))
        for one in load(path)
        if one.wire is not None and one.status < 400 and not naive_reading.failed(one)
    ]
    http = Http()
    waiting = iter(exchanges)
    async with replay_server(lambda _: answer_of(next(waiting))) as server:
        for exchange in exchanges:
            message, events = await ask(exchange, server.url, http)
            expected = await play(exchange)
            assert unpriced(message) == unpriced(expected.message), exchange.name
            assert events == expected.events
            facts = catalogue().facts(f"{exchange.provider}:{exchange.model}")
            assert (message.usage.cost_usd is not None) or facts.price is None, exchange.name
    await http.aclose()
    assert exchanges
