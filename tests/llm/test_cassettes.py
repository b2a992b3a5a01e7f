"""Recorded traffic of real services: each reply is read right, for every split; each request is ours."""

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import naive_reading
import pytest
import recorded_requests
import request_forms
from cassettes import FOLDERS, Exchange, Played, all_exchanges, load, play, protocol, target_of
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.llm.wire import merged
from agentctl.protocol.codec import encode
from agentctl.protocol.events import TextStreamed
from agentctl.protocol.messages import AssistantMessage, TextPart, ToolCall

pytestmark = pytest.mark.anyio
OWN = Path(__file__).resolve().parents[1] / "corpus" / "llm"
_CUT = {"length", "max_tokens", "MAX_TOKENS", "incomplete", "max_output_tokens"}


def succeeded(folder: Path) -> list[Exchange]:
    return [one for one in all_exchanges(folder) if one.status < 400]


def calls_of(message: AssistantMessage) -> list[tuple[str, str]]:
    return [
        (call.tool, call.invalid_arguments or json.dumps(call.arguments, sort_keys=True))
        for call in message.tool_calls
    ]


async def check_reading(exchange: Exchange) -> Played:
    played = await play(exchange)
    expected = naive_reading.read(exchange)
    message = played.message
    assert message.text == expected.text, exchange.name
    assert calls_of(message) == [(n, naive_reading.canonical(a)) for n, a in expected.calls], exchange.name
    assert message.usage.output_tokens == expected.output_tokens, exchange.name
    assert message.usage.input_tokens == expected.input_tokens, exchange.name
    assert message.stop != "incomplete", exchange.name
    if expected.finish in _CUT:
        assert message.stop == "length", exchange.name
    elif message.tool_calls:
        assert message.stop in {"tool_calls", "length", "filtered", "refusal"}, exchange.name
    if exchange.streamed:
        streamed = "".join(event.text for event in played.events if isinstance(event, TextStreamed))
        assert streamed == message.text, exchange.name
    return played


def check_request(exchange: Exchange) -> bool:
    try:
        request = recorded_requests.read(exchange)
    except recorded_requests.Unsupported:
        return False
    target = target_of(exchange)
    body = merged(protocol(exchange).body(request, target), request.extra)
    ours = request_forms.comparable(exchange, body)
    theirs = request_forms.comparable(exchange, exchange.request)
    assert ours == theirs, exchange.name
    again = merged(protocol(exchange).body(request, target), request.extra)
    assert json.dumps(again) == json.dumps(body), "equal requests give byte-equal bodies"
    return True


@pytest.mark.parametrize("folder", FOLDERS)
async def test_every_recorded_reply_is_read_as_a_plain_reading_reads_it(shared: Path, folder: str) -> None:
    read = [await check_reading(one) for one in of_folder(shared / "cassettes", folder)]
    assert read


@pytest.mark.parametrize("folder", FOLDERS)
async def test_a_stream_split_into_single_bytes_gives_the_same_reply(shared: Path, folder: str) -> None:
    for exchange in of_folder(shared / "cassettes", folder):
        if exchange.streamed:
            whole = await play(exchange)
            assert await play(exchange, single_bytes(exchange.body)) == whole, exchange.name


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_we_send_is_what_the_service_took(shared: Path, folder: str) -> None:
    checked = [check_request(one) for one in of_folder(shared / "cassettes", folder)]
    # Threads that agentctl never makes are passed over: tools of the service's own, a late system message.
    assert checked.count(False) <= max(8, len(checked) // 20)
    assert any(checked)


async def test_an_error_inside_a_reply_is_a_failure_and_no_reply(shared: Path) -> None:
    for exchange in all_exchanges(shared / "cassettes"):
        if exchange.status < 400 and naive_reading.failed(exchange):
            with pytest.raises(ModelCallFailed):
                await play(exchange)


def of_folder(cassettes: Path, folder: str) -> Iterator[Exchange]:
    for path in sorted((cassettes / folder).glob("*.json")):
        for one in load(path):
            if one.wire is not None and one.status < 400 and not naive_reading.failed(one):
                yield one


def single_bytes(body: bytes) -> list[bytes]:
    """Single bytes; of a long body pieces of seven, which is enough to split every character and line end."""
    size = 1 if len(body) < 8000 else 7
    return [body[at : at + size] for at in range(0, len(body), size)]


OWN_EXCHANGES = succeeded(OWN)


@pytest.mark.parametrize("exchange", OWN_EXCHANGES, ids=lambda one: one.name)
async def test_our_own_recordings_are_read_right_and_sent_alike(exchange: Exchange) -> None:
    played = await check_reading(exchange)
    check_request(exchange)
    assert await play(exchange, single_bytes(exchange.body)) == played


def cut_up(body: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({place % (len(body) + 1) for place in places})
    return [body[start:end] for start, end in zip([0, *marks], [*marks, len(body)], strict=True)]


STREAMED = [one for one in OWN_EXCHANGES if one.streamed]


@settings(max_examples=150, deadline=None)
@given(
    exchange=st.sampled_from(STREAMED),
    line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    comments=st.booleans(),
    mark=st.booleans(),
    places=st.lists(st.integers(min_value=0, max_value=100_000), max_size=40),
)
def test_no_split_no_line_ending_and_no_comment_changes_a_reply(
    exchange: Exchange, line_end: bytes, places: list[int], *, comments: bool, mark: bool
) -> None:
    body = exchange.body
    if exchange.wire != "ollama":
        body = body.replace(b"\n", line_end)
        if comments:
            body = b": ping\n\n" + body.replace(b"data:", b": still here\ndata:")
        if mark:
            body = b"\xef\xbb\xbf" + body

    played = anyio.run(play, exchange, cut_up(body, places))

    assert played == anyio.run(play, exchange)


@settings(max_examples=150, deadline=None)
@given(exchange=st.sampled_from(STREAMED), place=st.integers(min_value=0, max_value=100_000))
def test_a_stream_that_is_cut_anywhere_never_claims_to_be_whole(exchange: Exchange, place: int) -> None:
    expected = anyio.run(play, exchange).message
    cut = exchange.body[: place % len(exchange.body)]

    try:
        message = anyio.run(play, exchange, [cut]).message
    except ModelCallFailed:
        return  # nothing of a reply came: tried again as a failed call

    if message.stop != "incomplete":
        same = [one for one in message.parts if isinstance(one, TextPart | ToolCall)]
        assert same == [one for one in expected.parts if isinstance(one, TextPart | ToolCall)]


ODD = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "\ud800", [], {}, [None], [{}], {"a": 1}, ["x"], 10**30, "null"]
)


def places_in(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        found += places_in(one, (*path, key))
    return found


def spoilt(text: str, place: int, odd: object) -> str:
    """The JSON text with another value at one place."""
    document = json.loads(text)
    paths = places_in(document)
    path = paths[place % len(paths)]
    at = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    return json.dumps(document)


@settings(max_examples=300, deadline=None)
@given(
    exchange=st.sampled_from(OWN_EXCHANGES),
    line=st.integers(min_value=0, max_value=1000),
    place=st.integers(min_value=0, max_value=1000),
    odd=ODD,
)
def test_whatever_a_service_sends_is_a_reply_or_a_typed_failure(
    exchange: Exchange, line: int, place: int, odd: object
) -> None:
    lines = exchange.body.decode().split("\n")
    at = [number for number, one in enumerate(lines) if one.startswith(("data: {", "{"))]
    number = at[line % len(at)]
    mark = "data: " if lines[number].startswith("data: ") else ""
    lines[number] = mark + spoilt(lines[number].removeprefix(mark), place, odd)

    try:
        message = anyio.run(play, exchange, ["\n".join(lines).encode()]).message
    except ModelCallFailed:
        return

    json.dumps(encode(message), ensure_ascii=False).encode()
    again = ModelRequest(system="", messages=(message,))
    json.dumps(protocol(exchange).body(again, target_of(exchange)), ensure_ascii=False).encode()
