"""Faults that were reported of other harnesses' adapters, by the ids of ../shared/cases/provider-*.jsonl."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.llm.catalogue import WireName
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings, RetryPolicy
from agentctl.llm.providers import ModelList, Providers
from agentctl.llm.retry_after import retry_after_s
from agentctl.llm.stream import SseDecoder
from agentctl.protocol.events import LiveEvent, ModelRetried
from agentctl.protocol.messages import AssistantMessage, ToolCall, user_text
from agentctl.testing.hand_clock import HandClock
from agentctl.testing.replay_server import Answer, replay_server

pytestmark = pytest.mark.anyio
GO = ModelRequest(system="", messages=(user_text("go"),))
MADE: list[Providers] = []


@pytest.fixture(autouse=True)
async def _all_closed(anyio_backend: str) -> AsyncIterator[None]:
    yield
    while MADE:
        await MADE.pop().aclose()


def opened(url: str, clock: HandClock, wire: WireName = "openai-chat", attempts: int = 4) -> ModelList:
    MADE.append(
        Providers(
            ProviderConfig(
                providers={"svc": ProviderSettings(protocol=wire, base_url=url)},
                retry=RetryPolicy(attempts=attempts),
                clock=clock,
            )
        )
    )
    return MADE[-1].open(["svc:m"])


def sse(*events: object, done: bool = True) -> Answer:
    data = [json.dumps(event) for event in events] + (["[DONE]"] if done else [])
    return Answer(body="".join(f"data: {one}\n\n" for one in data).encode())


def chunk(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def told(answers: Sequence[Answer], wire: WireName = "openai-chat") -> AssistantMessage:
    async with replay_server(answers) as server:
        return await opened(server.url, HandClock(), wire, attempts=1).reply(GO, lambda _: None)


def arguments(message: AssistantMessage) -> list[tuple[str, object]]:
    return [(call.call_id, call.invalid_arguments or call.arguments) for call in message.tool_calls]


def sse_events(*chunks: bytes) -> list[tuple[str, bytes]]:
    decoder = SseDecoder()
    found = [event for one in chunks for event in decoder.feed(one)]
    return [(event.name, event.data) for event in [*found, *decoder.end()]]


def test_ps_001_a_character_split_over_chunks_is_whole() -> None:
    events = sse_events(b'data: {"content":"', b"\xd0", b"\xb8\xd0\xb7\xd0", b"\xb2", b'"}\n', b"\n")
    assert [json.loads(data) for _, data in events] == [{"content": "изв"}]


def test_ps_002_a_line_separator_character_ends_no_line() -> None:
    events = sse_events('data: {"content":" \u2028"}\n\n'.encode())
    assert [json.loads(data) for _, data in events] == [{"content": " \u2028"}]


def test_ps_003_data_lines_of_one_event_are_joined() -> None:
    events = sse_events(b'event: ping\ndata: {\ndata: "foo":\ndata: \ndata:\ndata: true}\n\n\n')
    assert [(name, json.loads(data)) for name, data in events] == [("ping", {"foo": True})]


def test_ps_004_an_event_without_data_is_none() -> None:
    assert sse_events(b"event: ping\n\n") == []


def test_ps_007_cr_and_lf_in_different_chunks_end_one_line() -> None:
    assert sse_events(b'data: {"a":1}\r', b"\n\r", b'\ndata: {"a":2}\r\n\r\n') == [
        ("", b'{"a":1}'),
        ("", b'{"a":2}'),
    ]


async def test_ps_008_comments_that_keep_a_stream_alive_are_no_silence() -> None:
    events = sse(chunk(content="ok"), chunk("stop"))
    slow = replace(events, pieces=[*[b": ping\n\n"] * 8, events.body], pause_s=0.05)
    settings = ProviderSettings(protocol="openai-chat", base_url="", stall_timeout_s=0.25)
    async with replay_server([slow]) as server:
        config = ProviderConfig(
            providers={"svc": replace(settings, base_url=server.url)}, retry=RetryPolicy(attempts=1)
        )
        MADE.append(Providers(config))
        message = await MADE[-1].open(["svc:m"]).reply(GO, lambda _: None)

    assert (message.text, message.stop) == ("ok", "end")


async def test_ps_010_an_end_without_the_terminator_is_no_finished_answer() -> None:
    start = {"type": "message_start", "message": {"id": "m", "usage": {}}}
    piece = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "partial"},
    }
    message = await told([sse(start, piece, done=False)], "anthropic")
    assert (message.text, message.stop) == ("partial", "incomplete")


async def test_ps_010_an_incomplete_reply_is_tried_again_in_sight() -> None:
    cut, whole = sse(chunk(content="part"), done=False), sse(chunk(content="all"), chunk("stop"))
    seen: list[LiveEvent] = []
    async with replay_server([cut, whole]) as server:
        message = await opened(server.url, HandClock()).reply(GO, seen.append)

    assert message.text == "all"
    assert [type(event).__name__ for event in seen] == ["TextStreamed", "ModelRetried", "TextStreamed"]


async def test_ps_013_an_error_event_after_half_a_call_fails_the_try() -> None:
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "write", "input": {}},
    }
    piece = {"type": "input_json_delta", "partial_json": '{"path":"a","content":"x'}
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": {}}},
        block,
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ]
    async with replay_server([sse(*events, done=False)]) as server:
        model = opened(server.url, HandClock(), "anthropic", attempts=1).models[0].model
        with pytest.raises(ModelCallFailed) as caught:
            await model.reply(GO, lambda _: None)

    assert (caught.value.details.kind, caught.value.details.retryable) == ("overloaded", True)


async def test_ps_014_a_complete_looking_call_of_a_cut_turn_is_marked_by_its_stop() -> None:
    call = {
        "index": 0,
        "id": "a",
        "function": {"name": "write", "arguments": '{"path":"R.md","content":"cut"}'},
    }
    assert (await told([sse(chunk(tool_calls=[call]), chunk("length"))])).stop == "length"


async def test_ps_016_a_second_finish_reason_does_not_drop_the_calls() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    message = await told(
        [sse(chunk(content="x"), chunk(tool_calls=[call]), chunk("tool_calls"), chunk("stop"))]
    )
    assert (message.stop, arguments(message)) == ("tool_calls", [("a", {})])


async def test_ps_017_calls_are_there_though_the_reason_says_stop() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    assert (await told([sse(chunk(tool_calls=[call]), chunk("stop"))])).stop == "tool_calls"


def piece(index: int, name: str = "", text: str = "", call_id: str = "") -> dict[str, object]:
    function = {key: value for key, value in (("name", name), ("arguments", text)) if value}
    return {"index": index, "function": function} | ({"id": call_id} if call_id else {})


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "wri", call_id="a"), piece(0, "te"), piece(0, text='{"k":1}')],
        [piece(0, "wri", call_id="a"), piece(0, "te", '{"k":', call_id="a"), piece(0, text="1}")],
        [piece(0, "wri", call_id="a"), piece(0, "write", '{"k":1}', call_id="a")],
        [piece(0, "write", '{"k":', call_id="a"), piece(0, "write", "1}", call_id="a")],
    ],
    ids=["rest of the name alone", "with the id again", "whole name again", "name with each piece"],
)
async def test_a_name_in_pieces_or_repeated_is_one_name(pieces: list[dict[str, object]]) -> None:
    message = await told([sse(*(chunk(tool_calls=[one]) for one in pieces), chunk("tool_calls"))])

    assert [(call.tool, call.arguments) for call in message.tool_calls] == [("write", {"k": 1})]


async def test_one_id_on_two_indexes_is_two_calls_with_an_id_each() -> None:
    pieces = [
        piece(0, "f", '{"k":1}', "a"),
        piece(1, "f", '{"k":', "a"),
        piece(1, text="2", call_id="a"),
        piece(1, text="}"),
    ]
    message = await told([sse(*(chunk(tool_calls=[one]) for one in pieces), chunk("tool_calls"))])

    assert [call.arguments for call in message.tool_calls] == [{"k": 1}, {"k": 2}]
    assert len({call.call_id for call in message.tool_calls}) == len(pieces) // 2


async def test_ps_019_ps_020_missing_and_null_members_are_nothing() -> None:
    message = await told(
        [
            sse(
                {"choices": None},
                {"choices": [{"index": 0, "delta": None}]},
                {"choices": [{"index": 0, "delta": {"content": "a"}}]},
                chunk("stop"),
            )
        ]
    )
    assert (message.text, message.stop) == ("a", "end")


async def test_ps_024_an_end_without_any_reason_is_taken() -> None:
    message = await told([sse(chunk(content="ok"))])
    assert (message.text, message.stop) == ("ok", "end")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("20", 20.0),
        ("0.2", 0.2),
        ("0", None),
        ("-10", None),
        ("Fri, 29 Sep 2023 16:26:57 GMT", 30.0),
        ("Fri, 29 Sep 2023 16:26:00 GMT", None),
        ("Zun, 29 Sep 2023 16:26:27 GMT", None),
        ("Fri, 31 Feb 2023 16:26:27 GMT", None),
        ("99999999999999999999999999999999999", None),
        ("1e400", None),
        ("nan", None),
        ("", None),
    ],
)
def test_ps_025_only_a_sane_wait_is_read(value: str, expected: float | None) -> None:
    now = datetime(2023, 9, 29, 16, 26, 27, tzinfo=UTC)
    assert retry_after_s({"retry-after": value, "retry-after-ms": ""}.__getitem__, now=now) == expected


def slow_down(seconds: str) -> Answer:
    headers = {"content-type": "application/json", "retry-after": seconds}
    return Answer(status=429, headers=headers, body=b'{"error":{"message":"slow down"}}')


@pytest.mark.parametrize(("asked", "least", "most"), [("3", 3, 3), ("61", 0.5, 0.625), ("0", 0.5, 0.625)])
async def test_ps_025_waits_are_those_asked_for_or_our_own(asked: str, least: float, most: float) -> None:
    clock = HandClock()
    async with replay_server([slow_down(asked), sse(chunk(content="ok"), chunk("stop"))]) as server:
        await opened(server.url, clock).reply(GO, lambda _: None)

    assert least <= sum(clock.waits[:1]) <= most


async def test_ps_026_a_tiny_wait_does_not_burn_the_tries() -> None:
    clock, seen = HandClock(), list[LiveEvent]()
    async with replay_server([slow_down("0")] * 10) as server:
        with pytest.raises(Exception, match="slow down"):
            await opened(server.url, clock, attempts=6).reply(GO, seen.append)

    waits = [event.wait_s for event in seen if isinstance(event, ModelRetried)]
    assert len(waits) == 5
    assert all(wait >= 0.5 * 2**at for at, wait in enumerate(waits))


async def test_ps_027_a_hopeless_wait_is_told_at_once() -> None:
    clock = HandClock()
    async with replay_server([slow_down("7200")] * 5) as server:
        with pytest.raises(Exception, match="7200 s"):
            await opened(server.url, clock).reply(GO, lambda _: None)

    assert (len(server.received), clock.waits) == (1, [])


async def test_ps_029_a_gateways_page_is_told_by_status_type_and_excerpt_and_tried_again() -> None:
    page = Answer(
        status=502, headers={"content-type": "text/html"}, body=b"<html><h1>502 Bad Gateway</h1></html>"
    )
    async with replay_server([page] * 2) as server:
        with pytest.raises(Exception, match=r"502.*text/html.*Bad Gateway"):
            await opened(server.url, HandClock(), attempts=2).reply(GO, lambda _: None)

    assert len(server.received) == 2


async def test_ps_030_a_plain_text_error_with_status_200_is_told() -> None:
    with pytest.raises(Exception, match="unsupported model: x"):
        await told([Answer(body=b"unsupported model: x", headers={"content-type": "text/plain"})])


async def test_ps_031_an_empty_body_is_readable_and_tried_again() -> None:
    async with replay_server([Answer(), sse(chunk(content="ok"), chunk("stop"))]) as server:
        seen: list[LiveEvent] = []
        message = await opened(server.url, HandClock()).reply(GO, seen.append)

    assert message.text == "ok"
    assert any("an empty response" in event.reason for event in seen if isinstance(event, ModelRetried))


async def test_ps_032_a_stream_without_a_content_type_is_read_once() -> None:
    answer = replace(sse(chunk(content="ok"), chunk("stop")), headers={})
    async with replay_server([answer]) as server:
        message = await opened(server.url, HandClock()).reply(GO, lambda _: None)

    assert (message.text, len(server.received)) == ("ok", 1)


async def test_ps_034_usage_replaces_and_never_adds() -> None:
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    usage = (await told([sse(*events, done=False)], "anthropic")).usage
    assert (usage.input_tokens, usage.output_tokens) == (3, 9)


async def calls_from(*pieces: dict[str, object]) -> list[tuple[str, object]]:
    return arguments(await told([sse(*(chunk(tool_calls=[piece]) for piece in pieces), chunk("tool_calls"))]))


async def test_pa_001_an_empty_text_of_arguments_is_no_arguments() -> None:
    assert await calls_from({"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}) == [
        ("a", {})
    ]


async def test_pa_005_a_tail_with_the_wrong_index_belongs_to_the_call_before_it() -> None:
    assert await calls_from(
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "f", "arguments": '{"k":'}},
        {"index": 1, "function": {"arguments": "1}"}},
    ) == [("a", {}), ("b", {"k": 1})]


async def test_pa_007_a_null_index_is_the_current_call() -> None:
    assert await calls_from(
        {"index": None, "id": "a", "function": {"name": "f", "arguments": '{"a"'}},
        {"index": None, "function": {"arguments": ":1}"}},
    ) == [("a", {"a": 1})]


async def test_pa_008_a_missing_id_is_made_and_stays_the_same() -> None:
    piece = {"index": 0, "function": {"name": "f", "arguments": "{}"}}
    (first, _), (second, _) = (await calls_from(piece))[0], (await calls_from(piece))[0]
    assert first
    assert first == second


async def test_two_whole_calls_on_one_index_without_ids_are_two_calls() -> None:
    made = await calls_from(
        {"index": 0, "function": {"name": "f", "arguments": '{"n":1}'}},
        {"index": 0, "function": {"name": "f", "arguments": '{"n":2}'}},
    )
    assert [one for _, one in made] == [{"n": 1}, {"n": 2}]
    assert len({call_id for call_id, _ in made}) == 2


async def test_pa_010_only_empty_pieces_are_no_arguments() -> None:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": ""},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    assert (await told([sse(*events, done=False)], "anthropic")).parts == (ToolCall(call_id="t", tool="f"),)


async def test_pa_014_arguments_that_are_no_json_stay_with_their_own_call() -> None:
    assert await calls_from(
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"a":'}},
        {"index": 1, "id": "b", "function": {"name": "f", "arguments": '{"b":2}'}},
    ) == [("a", '{"a":'), ("b", {"b": 2})]
