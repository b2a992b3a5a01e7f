"""What services say when they refuse, in their own forms: who can do something about it."""

import json

import pytest
from adapters import chunk, sse

from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.llm.failures import in_band_failure, read_error, status_failure
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings, RetryPolicy
from agentctl.llm.providers import Providers
from agentctl.protocol.messages import user_text
from agentctl.testing.hand_clock import HandClock
from agentctl.testing.replay_server import Answer, replay_server


def refused(status: int, body: object) -> ModelCallFailed:
    told = read_error(json.loads(json.dumps(body)))
    return status_failure(status, told.message, code=told.code, retry_after_s=told.retry_after_s)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "maximum context length is 128 tokens, your messages resulted in 130"),
        (400, "prompt is too long: 205 tokens > 200 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 190 + 20 > 200"),
        (400, "input token count (10) exceeds the maximum number of tokens allowed (9)"),
        (400, "this model's maximum prompt length is 13 but the request contains 15 tokens"),
        (400, "`inputs` tokens + `max_new_tokens` must be <= 8193"),
        (400, "your request exceeded model token limit: 131072"),
        (400, "Prompt exceeds max length"),
        (400, "too many tokens: total number of tokens in the prompt cannot exceed 128"),
        (400, "Input is too long for requested model."),
        (400, "range of input length should be [1, 30720]"),
        (400, "the decoder prompt (length 9) is longer than the maximum model length of 8"),
        (413, "request body too large"),
        (500, "prompt too long; exceeded max context length by 4 tokens"),
    ],
)
def test_a_thread_that_is_too_long_is_told_in_many_words(status: int, message: str) -> None:
    failure = refused(status, {"error": {"message": message, "type": "invalid_request_error"}}).details
    assert (failure.kind, failure.retryable, failure.next_model) == ("context_length", False, False)


def test_a_limit_on_the_reply_is_no_thread_that_is_too_long() -> None:
    message = "max_tokens is too large: 50000. This model supports at most 16384 completion tokens"
    assert refused(400, {"error": {"message": message}}).details.kind == "invalid"


@pytest.mark.parametrize(
    "error",
    [
        {"code": "insufficient_quota", "message": "check your plan"},
        {"code": "1113", "message": "Insufficient balance or no resource package. Please recharge."},
        {"type": "exceeded_current_quota_error", "message": "suspended"},
    ],
)
def test_a_429_for_want_of_money_is_not_waited_for(error: dict[str, object]) -> None:
    failure = refused(429, {"error": error}).details
    assert (failure.kind, failure.retryable, failure.next_model) == ("auth", False, True)


def test_a_quota_of_the_minute_is_waited_for_as_long_as_its_details_say() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    error = {"code": 429, "message": "quota exceeded, check billing", "status": "RESOURCE_EXHAUSTED"}
    failure = refused(429, {"error": {**error, "details": details}}).details
    assert (failure.kind, failure.retryable, failure.retry_after_s) == ("rate_limit", True, 34.5)


@pytest.mark.parametrize("details", [[{"retryDelay": "soon"}], [{"retryDelay": 3}], ["34s"], {}, "x", None])
def test_details_that_name_no_time_name_none(details: object) -> None:
    assert refused(429, {"error": {"message": "slow", "details": details}}).details.retry_after_s is None


def test_the_words_of_the_service_behind_a_router_are_told_and_decide() -> None:
    raw = json.dumps({"error": {"message": "maximum context length is 9 tokens"}})
    error = {"code": 400, "message": "Provider returned error", "metadata": {"raw": raw}}
    failure = refused(400, {"error": error})
    assert failure.message == "Provider returned error: maximum context length is 9 tokens"
    assert failure.details.kind == "context_length"


@pytest.mark.parametrize("raw", ["plain words", "{half", "", None, 7, {"message": "plain words"}])
def test_whatever_stands_there_instead_is_read(raw: object) -> None:
    told = read_error({"error": {"message": "Provider returned error", "metadata": {"raw": raw}}})
    assert told.message.startswith("Provider returned error")


@pytest.mark.parametrize("code", ["tool_use_failed", "json_validate_failed", "output_parse_failed"])
def test_what_the_model_wrote_wrong_is_tried_again_though_the_status_says_400(code: str) -> None:
    error = {"message": "Failed to call a function", "type": "invalid_request_error", "code": code}
    assert refused(400, {"error": error}).details.retryable
    assert in_band_failure({**error, "status_code": 400}, where="svc").details.retryable


@pytest.mark.parametrize("code", ["invalid_model", "model_not_supported"])
def test_a_model_that_is_not_there_sends_the_call_on_whatever_the_status(code: str) -> None:
    failure = refused(400, {"error": {"message": "no such model", "code": code}}).details
    assert (failure.retryable, failure.next_model) == (False, True)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("throttlingException: Too many tokens, please wait before trying again.", "rate_limit"),
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"code": 502, "message": "no capacity behind"}, "overloaded"),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limit"),
        ({"type": "api_error", "message": "Internal server error"}, "server"),
        ("prompt is too long", "context_length"),
    ],
)
def test_an_error_inside_a_stream_has_the_same_kinds(error: object, kind: str) -> None:
    assert in_band_failure(json.loads(json.dumps(error)), where="svc").details.kind == kind


@pytest.mark.parametrize("status", [498, 499, 520, 524, 529])
def test_statuses_of_gateways_are_tried_again(status: int) -> None:
    assert refused(status, {"error": {"message": "x"}}).details.retryable


@pytest.mark.anyio
async def test_a_wait_that_stands_in_the_body_alone_is_kept() -> None:
    details = [{"retryDelay": "7s"}]
    body = json.dumps({"error": {"code": 429, "message": "slow", "details": details}}).encode()
    clock = HandClock()
    answers = [Answer(status=429, body=body), Answer(body=sse(chunk(content="ok"), chunk("stop")))]
    async with replay_server(answers) as server:
        providers = Providers(
            ProviderConfig(
                providers={"svc": ProviderSettings(protocol="openai-chat", base_url=server.url)},
                retry=RetryPolicy(attempts=2),
                clock=clock,
            )
        )
        request = ModelRequest(system="", messages=(user_text("go"),))
        message = await providers.open(["svc:m"]).reply(request, lambda _: None)
        await providers.aclose()
    assert message.text == "ok"
    assert 7 <= clock.waits[0] < 8
