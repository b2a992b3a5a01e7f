"""Replies as services have been seen to write them beside their protocol's letter."""

import json
from typing import Any

import pytest
from adapters import chunk, sse, target, told

from agentctl.llm.anthropic import AnthropicMessages
from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.protocol.messages import AssistantMessage, ReasoningPart, RefusalPart, user_text

pytestmark = pytest.mark.anyio


def calls(message: AssistantMessage) -> list[tuple[str, str, object]]:
    return [(one.call_id, one.tool, one.invalid_arguments or one.arguments) for one in message.tool_calls]


async def pieces(*deltas: dict[str, object]) -> list[tuple[str, str, object]]:
    return calls(await told(sse(*(chunk(tool_calls=[one]) for one in deltas), chunk("tool_calls"))))


async def test_another_id_with_each_fragment_is_still_one_call() -> None:
    assert await pieces(
        {"index": 0, "id": "r1", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "id": "r2", "function": {"arguments": '{"a":'}},
        {"index": 0, "id": "r3", "function": {"arguments": "1}"}},
    ) == [("r1", "f", {"a": 1})]


async def test_a_new_id_after_a_whole_call_on_its_index_is_another_call() -> None:
    assert await pieces(
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}},
    ) == [("a", "f", {}), ("b", "g", {})]


async def test_two_calls_without_arguments_on_one_index_are_two() -> None:
    assert await pieces(
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "id": "b", "function": {"name": "f", "arguments": ""}},
    ) == [("a", "f", {}), ("b", "f", {})]


async def test_a_name_that_is_repeated_with_each_fragment_is_one_call() -> None:
    ((_, tool, arguments),) = await pieces(
        {"index": 0, "function": {"name": "f", "arguments": '{"a":'}},
        {"index": 0, "function": {"name": "f", "arguments": "1}"}},
    )
    assert (tool, arguments) == ("f", {"a": 1})


async def test_a_call_outside_a_list_and_the_old_single_function_are_calls() -> None:
    call = {"index": 0, "id": "", "function": {"name": "f", "arguments": '{"a":1}'}}
    streamed = await told(sse(chunk(tool_calls=call), chunk("tool_calls")))
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}}
    whole = await told({"choices": [{"index": 0, "message": old, "finish_reason": "function_call"}]})
    for message in (streamed, whole):
        assert [(tool, arguments) for _, tool, arguments in calls(message)] == [("f", {"a": 1})]
        assert message.stop == "tool_calls"


async def test_a_fragmented_function_of_the_old_form_is_one_call() -> None:
    message = await told(
        sse(
            chunk(function_call={"name": "f", "arguments": ""}),
            chunk(function_call={"arguments": '{"a":'}),
            chunk(function_call={"arguments": "1}"}),
            chunk("function_call"),
        )
    )
    assert [arguments for _, _, arguments in calls(message)] == [{"a": 1}]


async def test_two_calls_of_one_id_get_two_ids() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": "", "tool_calls": [call, call]}
    told_twice = await told({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    first, second = (one.call_id for one in told_twice.tool_calls)
    assert first == "a"
    assert second not in {"", "a"}


async def test_of_several_answers_the_first_speaks_wherever_it_stands() -> None:
    def choice(index: int, text: str) -> dict[str, object]:
        return {"index": index, "message": {"content": text}, "finish_reason": "stop"}

    assert (await told({"choices": [choice(1, "b"), choice(0, "a")]})).text == "a"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end"),
        ("eos_token", "end"),
        ("LENGTH", "length"),
        ("max_new_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filter", "filtered"),
        ("SAFETY", "filtered"),
        ("sensitive", "filtered"),
        ("abort", "incomplete"),
    ],
)
async def test_reasons_are_read_in_any_case_and_of_any_service(reason: str, stop: str) -> None:
    assert (await told(sse(chunk(content="x"), chunk(reason)))).stop == stop


async def test_a_choice_that_carries_an_error_fails_with_its_words() -> None:
    error = {"code": 502, "message": "the service behind is gone"}
    choice = {"index": 0, "message": {"content": "half"}, "finish_reason": "error", "error": error}
    with pytest.raises(ModelCallFailed, match="the service behind is gone") as caught:
        await told({"choices": [choice]})
    assert caught.value.details.retryable


async def test_an_error_after_the_reason_does_not_take_the_reply_away() -> None:
    after = {
        "error": {"code": 400, "message": "Token limit reached"},
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 9},
    }
    message = await told(sse(chunk(content="so far"), chunk("length"), after))
    assert (message.text, message.stop, message.usage.output_tokens) == ("so far", "length", 9)


async def test_thinking_blocks_in_a_list_may_hold_plain_text_and_content_plain_strings() -> None:
    message = await told(
        sse(chunk(content=[{"type": "thinking", "thinking": "hm"}, "a", {"type": "text", "text": "b"}]))
    )
    assert message.text == "ab"
    assert [part.text for part in message.parts if isinstance(part, ReasoningPart)] == ["hm"]


async def test_usage_inside_the_last_choice_counts() -> None:
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    last["usage"] = {"prompt_tokens": 8, "completion_tokens": 3, "total_tokens": 11, "cached_tokens": 6}
    usage = (await told(sse(chunk(content="x"), {"choices": [last]}))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (8, 3, 6)


@pytest.mark.parametrize(
    ("details", "total", "output", "thoughts"),
    [
        ({"reasoning_tokens": 94}, 135, 103, 94),  # xAI: beside the reply
        ({"reasoning_tokens": 4}, 41, 9, 4),  # OpenAI: within
        (None, 126, 94, 85),  # Gemini's OpenAI door: in the sum alone
        (None, 41, 9, 0),
    ],
)
async def test_thoughts_beside_the_reply_are_output(
    details: object, total: int, output: int, thoughts: int
) -> None:
    usage = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": total}
    if details:
        usage["completion_tokens_details"] = details
    counted = (await told(sse(chunk(content="x"), {**chunk("stop"), "usage": usage}))).usage
    assert (counted.input_tokens, counted.output_tokens, counted.reasoning_tokens) == (32, output, thoughts)


async def test_a_total_that_holds_something_else_is_not_output() -> None:
    details = {"cached_tokens": 90}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 105}
    usage["prompt_tokens_details"] = details  # a gateway that leaves what the cache held out of the prompt
    assert (await told(sse(chunk("stop"), {"choices": [], "usage": usage}))).usage.output_tokens == 5


async def test_an_unreadable_event_before_others_fails_the_try() -> None:
    body = sse(chunk(content="a"), '{"choices": [{"index"', chunk(content="c"), chunk("stop"))
    with pytest.raises(ModelCallFailed, match="no JSON") as caught:
        await told(body)
    assert caught.value.details.retryable


async def test_words_between_events_that_claim_to_be_no_json_are_passed_over() -> None:
    assert (await told(sse(chunk(content="a"), "ping", "", chunk("stop")))).text == "a"


async def test_bytes_that_are_no_utf8_lose_one_character_and_not_the_event() -> None:
    body = sse(chunk(content="a?b"), chunk("stop")).replace(b"?", b"\xff")
    assert (await told(body)).text == "a\ufffdb"


async def test_a_bare_tab_inside_a_string_is_read() -> None:
    assert (await told(sse(chunk(content="a?b"), chunk("stop")).replace(b"?", b"\t"))).text == "a\tb"


async def test_lines_of_json_where_events_were_asked_for_are_read() -> None:
    lines = "\n".join(json.dumps(one) for one in (chunk(content="a"), chunk(content="b"), chunk("stop")))
    assert (await told(lines.encode())).text == "ab"


def candidate(*parts: dict[str, object], reason: str | None = None) -> dict[str, object]:
    found: dict[str, object] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [found | ({"finishReason": reason} if reason else {})]}


async def test_gemini_a_whole_answer_without_a_reason_is_whole_and_a_stream_is_not() -> None:
    answer = candidate({"text": "hi"})
    assert (await told(answer, of="gemini:m")).stop == "end"
    assert (await told(sse(answer, done=False), of="gemini:m")).stop == "incomplete"


@pytest.mark.parametrize("reason", ["MODEL_ARMOR", "NO_IMAGE", "SOMETHING_NEW"])
async def test_gemini_a_reason_that_is_not_the_models_own_end_is_no_end(reason: str) -> None:
    assert (await told(candidate(reason=reason), of="gemini:m")).stop == "filtered"


async def test_gemini_an_error_after_a_first_finish_is_an_error() -> None:
    error = {"error": {"code": 503, "message": "gone", "status": "UNAVAILABLE"}}
    with pytest.raises(ModelCallFailed, match="gone"):
        await told(sse(candidate({"text": "a"}, reason="STOP"), error, done=False), of="gemini:m")


async def test_gemini_a_figure_that_the_last_event_leaves_out_stays() -> None:
    first = candidate({"text": "a"}) | {"usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 7}}
    last = candidate({"text": "b"}, reason="STOP") | {"usageMetadata": {"candidatesTokenCount": 2}}
    usage = (await told(sse(first, last, done=False), of="gemini:m")).usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (5, 9, 7)


def anthropic_events(*events: dict[str, object], **usage: object) -> bytes:
    start = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    return sse(start, *events, delta, {"type": "message_stop"}, done=False)


async def test_anthropic_a_compaction_is_kept_with_its_words_and_its_cost() -> None:
    begun = {"type": "compaction", "content": None}
    rounds = [
        {"type": "compaction", "input_tokens": 100, "output_tokens": 80, "cache_read_input_tokens": 50},
        {"type": "message", "input_tokens": 20, "output_tokens": 8, "cache_read_input_tokens": 0},
    ]
    message = await told(
        anthropic_events(
            {"type": "content_block_start", "index": 0, "content_block": begun},
            *(
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "compaction_delta", "content": one},
                }
                for one in ("so ", "far")
            ),
            {"type": "content_block_stop", "index": 0},
            input_tokens=20,
            output_tokens=8,
            iterations=rounds,
        ),
        of="anthropic:m",
    )
    assert message.parts == (ReasoningPart(opaque={"type": "compaction", "content": "so far"}),)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (170, 88)
    assert message.usage.cache_read_tokens == 50


async def test_anthropic_arguments_as_text_are_read() -> None:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": '{"a": 1}'}
    body = {"type": "message", "content": [block], "stop_reason": "tool_use"}
    assert calls(await told(body, of="anthropic:m")) == [("t", "f", {"a": 1})]


def item(kind: str, **members: object) -> dict[str, object]:
    return {"type": kind, "id": f"{kind}_1", **members}


async def test_responses_items_without_an_end_of_their_own_are_taken_from_the_last_event() -> None:
    call = item("function_call", call_id="c", name="f", arguments="")
    said = item("message", role="assistant", content=[])
    whole = [
        {**said, "content": [{"type": "output_text", "text": "hello"}]},
        {**call, "arguments": '{"a":1}'},
    ]
    message = await told(
        sse(
            {"type": "response.output_item.added", "output_index": 0, "item": said},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "hel"},
            {"type": "response.output_item.added", "output_index": 1, "item": call},
            {"type": "response.completed", "response": {"id": "r", "output": whole}},
            done=False,
        ),
        of="openai:m",
    )
    assert message.text == "hello"
    assert calls(message) == [("c", "f", {"a": 1})]


async def test_responses_arguments_told_only_at_their_end_are_read() -> None:
    call = item("function_call", call_id="c", name="f")
    message = await told(
        sse(
            {"type": "response.output_item.added", "output_index": 0, "item": call},
            {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a":1}'},
            {"type": "response.completed", "response": {"id": "r", "output": []}},
            done=False,
        ),
        of="openai:m",
    )
    assert calls(message) == [("c", "f", {"a": 1})]


async def test_responses_an_answer_that_is_still_being_made_is_not_whole() -> None:
    body = {"object": "response", "id": "r", "status": "in_progress", "output": []}
    assert (await told(body, of="openai:m")).stop == "incomplete"


async def test_anthropic_a_stream_may_open_with_all_that_it_has() -> None:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    start = {
        "type": "message_start",
        "message": {"id": "m", "content": [block], "stop_reason": "tool_use", "usage": {"output_tokens": 4}},
    }
    message = await told(sse(start, start, {"type": "message_stop"}, done=False), of="anthropic:m")
    assert calls(message) == [("t", "f", {"a": 1})]
    assert (message.stop, message.usage.output_tokens) == ("tool_calls", 4)


@pytest.mark.parametrize("streamed", [True, False])
async def test_anthropic_a_model_that_declines_says_why(*, streamed: bool) -> None:
    end = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "not that"}}
    body: object = {"type": "message", "content": [], **end}
    if streamed:
        start = {"type": "message_start", "message": {"id": "m", "content": [], "stop_reason": None}}
        body = sse(start, {"type": "message_delta", "delta": end}, {"type": "message_stop"}, done=False)
    message = await told(body, of="anthropic:m")
    assert (message.parts, message.stop) == ((RefusalPart(text="not that"),), "refusal")


@pytest.mark.parametrize(("kind", "kept"), [("direct", False), ("code_execution_20260120", True)])
async def test_anthropic_who_called_is_kept_where_it_was_not_the_model(kind: str, *, kept: bool) -> None:
    caller = {"type": kind, "tool_id": "srv"}
    own = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}, "caller": caller}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": caller}
    body = {"type": "message", "content": [own, call], "stop_reason": "tool_use"}
    message = await told(body, of="anthropic:m")
    request = ModelRequest(system="", messages=(user_text("go"), message))
    turns: Any = AnthropicMessages().body(request, target("anthropic:m"))["messages"]
    assert [block.get("caller") for block in turns[1]["content"]] == [caller if kept else None] * 2


async def test_what_a_model_said_aloud_is_its_text() -> None:
    audio = [{"id": "a", "transcript": "hel"}, {"transcript": "lo"}, {"data": "AA"}, {"expires_at": 1}]
    streamed = await told(sse(*(chunk(audio=one) for one in audio), chunk("stop")))
    spoken = {"content": None, "audio": {"id": "a", "data": "AA", "transcript": "hello"}}
    whole = await told({"choices": [{"message": spoken, "finish_reason": "stop"}]})
    assert (streamed.text, whole.text) == ("hello", "hello")
