"""Opening models by name: keys and origins, retry, fallback, and what all agents of a process share."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from cassettes import Exchange, all_exchanges

from agentctl.errors import InvalidInput, ProviderError
from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.llm.endpoints import ModelPlace
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings, RetryPolicy
from agentctl.llm.providers import ModelList, Providers
from agentctl.llm.script import parse_script
from agentctl.protocol.events import LiveEvent, ModelRetried, ModelSwitched
from agentctl.protocol.messages import user_text
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


def providers_of(settings: ProviderConfig) -> Providers:
    MADE.append(Providers(settings))
    return MADE[-1]


def open_models(names: list[str], settings: ProviderConfig) -> ModelList:
    return providers_of(settings).open(names, ModelPlace(origin="user"))


OWN = Path(__file__).resolve().parents[1] / "corpus" / "llm"
KEY = "sk-test-0123456789abcdef"


def ok(text: str = "ok", **more: object) -> Answer:
    body = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": text}}], **more}
    return Answer(body=json.dumps(body).encode())


def error(status: int, message: str = "no", **headers: str) -> Answer:
    body = json.dumps({"error": {"message": message}}).encode()
    return Answer(status=status, headers={"content-type": "application/json", **headers}, body=body)


def config(**more: object) -> ProviderConfig:
    return ProviderConfig(**{"clock": HandClock(), "retry": RetryPolicy(attempts=3), **more})  # type: ignore[arg-type]


def service(url: str, **more: object) -> ProviderSettings:
    return ProviderSettings(protocol="openai-chat", base_url=url, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gpt-4o", "openai:", "opnai:gpt-4o", "scripted:"])
def test_a_name_that_means_nothing_is_an_input_error(name: str) -> None:
    with pytest.raises(InvalidInput):
        open_models([name], config())


def test_a_misspelt_provider_is_told_the_nearest_one() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'anthropic'"):
        open_models(["antropic:claude-sonnet-4-6"], config())


def test_a_missing_key_is_told_before_anything_is_sent() -> None:
    with pytest.raises(ProviderError, match="set ANTHROPIC_API_KEY, or store one with `agentctl auth set"):
        open_models(["anthropic:claude-sonnet-4-6"], config())


def test_the_variables_name_where_the_service_is_and_its_key() -> None:
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    model = providers_of(config(environment=environment)).open(["openai-chat:qwen"])
    assert model.names == ("openai-chat:qwen",)


async def test_the_key_of_the_environment_is_sent_as_the_protocol_wants_it() -> None:
    async with replay_server([ok()] * 3) as server:
        for provider, variable in [("openai-chat", "OPENAI"), ("groq", "GROQ"), ("deepseek", "DEEPSEEK")]:
            environment = {f"{variable}_API_KEY": KEY, f"{variable}_BASE_URL": server.url}
            model = open_models([f"{provider}:m"], config(environment=environment))
            await model.reply(GO, lambda _: None)

    assert [one.headers["authorization"] for one in server.received] == [f"Bearer {KEY}"] * 3


async def test_the_keyring_is_asked_when_no_variable_is_set() -> None:
    async with replay_server([ok()]) as server:
        settings = config(
            environment={"GROQ_BASE_URL": server.url},
            key_store=lambda provider: KEY if provider == "groq" else "",
        )
        await open_models(["groq:m"], settings).reply(GO, lambda _: None)

    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
async def test_the_version_may_stand_in_the_address_or_not(ending: str) -> None:
    message = {"type": "message", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
    async with replay_server([Answer(body=json.dumps(message).encode())]) as server:
        environment = {"ANTHROPIC_BASE_URL": server.url + ending, "ANTHROPIC_API_KEY": KEY}
        await open_models(["anthropic:m"], config(environment=environment)).reply(GO, lambda _: None)

    assert server.received[0].path == "/v1/messages"
    assert server.received[0].headers["x-api-key"] == KEY
    assert server.received[0].headers["anthropic-version"]


async def test_an_address_can_stand_in_the_name() -> None:
    async with replay_server([ok()]) as server:
        await open_models([f"openai-chat:{server.url}/v1#qwen"], config()).reply(GO, lambda _: None)

    assert server.received[0].path == "/v1/chat/completions"
    assert json.loads(server.received[0].body)["model"] == "qwen"


async def test_an_address_in_a_name_that_a_blueprint_wrote_gets_no_key_either() -> None:
    async with replay_server([ok()]) as server:
        providers = providers_of(config(environment={"OPENAI_API_KEY": KEY}))
        await providers.open([f"openai-chat:{server.url}/v1#m"]).reply(GO, lambda _: None)

    assert "authorization" not in server.received[0].headers


async def test_an_address_that_a_blueprint_named_gets_no_key_and_no_header_of_the_users() -> None:
    async with replay_server([ok()]) as server:
        providers = providers_of(
            config(
                environment={"OPENAI_API_KEY": KEY, "TENANT": KEY},
                providers={"openai-chat": ProviderSettings(headers={"x-a": "${TENANT}", "x-b": "plain"})},
            )
        )
        place = ModelPlace(base_url=server.url, origin="blueprint")
        await providers.open(["openai-chat:m"], place).reply(GO, lambda _: None)

    received = server.received[0]
    assert KEY not in str(received)
    assert not {"authorization", "x-a", "x-b"} & received.headers.keys()


async def test_the_users_own_address_gets_key_and_headers() -> None:
    async with replay_server([ok()]) as server:
        settings = config(
            environment={"MY_KEY": KEY, "TENANT": "t1"},
            providers={"mine": service(server.url, key_env=("MY_KEY",), headers={"x-a": "${TENANT}"})},
        )
        await open_models(["mine:m"], settings).reply(GO, lambda _: None)

    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.received[0].headers["x-a"] == "t1"


async def test_a_key_that_the_service_repeats_stays_out_of_the_error() -> None:
    async with replay_server(
        [error(401, f"Incorrect API key provided: {KEY}", **{"x-request-id": "r7"})]
    ) as server:
        settings = config(
            environment={"MY_KEY": KEY}, providers={"mine": service(server.url, key_env=("MY_KEY",))}
        )
        with pytest.raises(ProviderError) as caught:
            await open_models(["mine:m"], settings).reply(GO, lambda _: None)

    assert KEY not in caught.value.message
    assert "Incorrect API key provided: [key]" in caught.value.message
    assert "request id r7" in caught.value.message


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_statuses_that_may_pass_are_tried_again(status: int) -> None:
    seen: list[LiveEvent] = []
    async with replay_server([error(status), error(status), ok("third")]) as server:
        model = open_models(["mine:m"], config(providers={"mine": service(server.url)}))
        message = await model.reply(GO, seen.append)

    assert message.text == "third"
    assert [event.attempt for event in seen if isinstance(event, ModelRetried)] == [1, 2]


@pytest.mark.parametrize("status", [400, 404, 413, 422])
async def test_statuses_that_stay_are_not(status: int) -> None:
    async with replay_server([error(status)] * 3) as server:
        with pytest.raises((ProviderError, ModelCallFailed)):
            await open_models(["mine:m"], config(providers={"mine": service(server.url)})).reply(
                GO, lambda _: None
            )

    assert len(server.received) == 1


@pytest.mark.parametrize("status", [401, 402, 403, 404])
async def test_a_refusal_goes_to_the_next_model_in_sight(status: int) -> None:
    seen: list[LiveEvent] = []
    async with replay_server([error(status)]) as bad, replay_server([ok("second")]) as good:
        settings = config(providers={"bad": service(bad.url), "good": service(good.url)})
        message = await open_models(["bad:m", "good:m"], settings).reply(GO, seen.append)

    assert (message.text, message.model) == ("second", "good:m")
    assert [(one.model, one.next_model) for one in seen if isinstance(one, ModelSwitched)] == [
        ("bad:m", "good:m")
    ]


async def test_a_model_without_its_key_is_passed_over() -> None:
    script = parse_script('[[replies]]\ntext = "from the script"', source="s.toml")
    model = open_models(["anthropic:claude-sonnet-4-6", "scripted:"], config(script=script))

    assert (await model.reply(GO, lambda _: None)).text == "from the script"


async def test_when_every_model_fails_the_error_tells_each() -> None:
    async with (
        replay_server([error(401, "first no")]) as one,
        replay_server([error(403, "second no")]) as two,
    ):
        settings = config(providers={"one": service(one.url), "two": service(two.url)})
        with pytest.raises(ProviderError, match=r"one:m: .*first no.*; two:m: .*second no") as caught:
            await open_models(["one:m", "two:m"], settings).reply(GO, lambda _: None)

    assert "auth set" in caught.value.hint


async def test_a_request_that_is_too_long_comes_back_to_the_caller() -> None:
    async with replay_server([error(400, "maximum context length is 8192 tokens")]) as server:
        with pytest.raises(ModelCallFailed) as caught:
            await open_models(["mine:m"], config(providers={"mine": service(server.url)})).reply(
                GO, lambda _: None
            )

    assert caught.value.details.kind == "context_length"


async def test_a_server_that_is_not_there_is_given_up_soon() -> None:
    async with replay_server([]) as server:
        url = server.url
    clock, seen = HandClock(), list[LiveEvent]()
    settings = config(clock=clock, providers={"mine": service(url)}, retry=RetryPolicy())
    with pytest.raises(ProviderError, match="no connection"):
        await open_models(["mine:m"], settings).reply(GO, seen.append)

    assert len(seen) == RetryPolicy().connect_attempts - 1
    assert sum(clock.waits) < 2


async def test_a_provider_that_keeps_failing_is_left_alone_for_a_while() -> None:
    clock = HandClock()
    policy = RetryPolicy(attempts=1, breaker_failures=3, breaker_rest_s=30)
    async with replay_server([error(500)] * 3 + [ok("well again")]) as server:
        providers = providers_of(config(clock=clock, retry=policy, providers={"mine": service(server.url)}))
        for _ in range(5):
            with pytest.raises(ProviderError):
                await providers.open(["mine:m"]).reply(GO, lambda _: None)
        assert len(server.received) == 3
        clock.advance(31)
        assert (await providers.open(["mine:m"]).reply(GO, lambda _: None)).text == "well again"


async def test_an_open_breaker_sends_the_call_to_the_next_model_at_once() -> None:
    clock = HandClock()
    policy = RetryPolicy(attempts=1, breaker_failures=1)
    async with replay_server([error(500)]) as bad, replay_server([ok(), ok()]) as good:
        settings = config(
            clock=clock, retry=policy, providers={"bad": service(bad.url), "good": service(good.url)}
        )
        model = providers_of(settings).open(["bad:m", "good:m"])
        for _ in range(2):
            await model.reply(GO, lambda _: None)

    assert (len(bad.received), len(good.received), clock.waits) == (1, 2, [])


async def test_a_wait_that_one_agent_was_told_holds_for_all_of_the_provider() -> None:
    clock = HandClock()
    async with replay_server([error(429, **{"retry-after": "20"}), ok(), ok()]) as server:
        settings = config(clock=clock, providers={"mine": service(server.url)}, retry=RetryPolicy(attempts=1))
        providers = providers_of(settings)
        with pytest.raises(ProviderError):
            await providers.open(["mine:a"]).reply(GO, lambda _: None)
        await providers.open(["mine:b"]).reply(GO, lambda _: None)

    assert clock.waits == [20.0]


async def test_no_more_calls_run_at_a_time_than_the_provider_allows() -> None:
    most = 0

    async with replay_server(lambda _: Answer(body=ok().body, late_s=0.02)) as server:
        providers = providers_of(config(providers={"mine": service(server.url, max_concurrency=2)}))

        async def one(number: int) -> None:
            model = providers.open([f"mine:m{number}"])
            await model.reply(GO, lambda _: None)

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, server.under_way)
                await anyio.sleep(0.002)

        async with anyio.create_task_group() as watcher:
            watcher.start_soon(watch)
            async with anyio.create_task_group() as group:
                for number in range(8):
                    group.start_soon(one, number)
            watcher.cancel_scope.cancel()

    assert most == 2


async def test_calls_a_minute_are_spread() -> None:
    clock = HandClock()
    async with replay_server([ok()] * 4) as server:
        providers = providers_of(
            config(clock=clock, providers={"mine": service(server.url, requests_per_minute=30)})
        )
        for _ in range(4):
            await providers.open(["mine:m"]).reply(GO, lambda _: None)

    assert clock.waits == [2.0, 2.0, 2.0]


async def test_a_reply_is_priced_by_the_users_entry_and_an_alias_by_its_base() -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}
    usage_with_cache = {**usage, "prompt_tokens_details": {"cached_tokens": 400_000}}
    models = {
        "mine:base": {"price": {"input": 2.0, "output": 10.0, "cache_read": 0.5}},
        "mine:internal-arn": {"same_as": "mine:base"},
    }
    async with replay_server([ok(usage=usage), ok(usage=usage_with_cache), ok(usage=usage)]) as server:
        providers = providers_of(config(providers={"mine": service(server.url)}, models=models))
        costs = [
            (await providers.open([name]).reply(GO, lambda _: None)).usage.cost_usd
            for name in ("mine:base", "mine:internal-arn", "mine:unknown")
        ]

    assert costs == [7.0, 1.2 + 0.2 + 5.0, None]


def test_a_list_tells_which_of_its_models_have_no_price() -> None:
    models = {"mine:a": {"price": {"input": 1.0, "output": 2.0}}}
    settings = config(providers={"mine": service("http://127.0.0.1:1")}, models=models)
    found = providers_of(settings).open(["mine:a", "mine:b"])

    assert found.unpriced == ("mine:b",)
    assert found.estimate_usd(1_000_000, 1_000_000) == 3.0


async def test_the_cost_that_a_service_tells_goes_before_any_price_list() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.125}
    models = {"mine:m": {"price": {"input": 100.0, "output": 100.0}}}
    async with replay_server([ok(usage=usage)]) as server:
        settings = config(providers={"mine": service(server.url)}, models=models)
        message = await open_models(["mine:m"], settings).reply(GO, lambda _: None)

    assert message.usage.cost_usd == 0.125


EXPECTED = {
    # our own recordings in tests/corpus/llm: kind, next model?, request id
    "openai--unknown_model#0": ("invalid", True, "req_1"),
    "mistral--unauthorised#0": ("auth", True, "corr_1"),
    "llamacpp--too_long#0": ("context_length", False, ""),
    "anthropic--overloaded#0": ("overloaded", False, "req_9"),
    "gemini--bad_key#0": ("auth", True, ""),
    "ollama--no_such_model#0": ("invalid", True, ""),
    "openai--bad_reference#0": ("invalid", False, "req_2"),
}


async def failure_of(exchange: Exchange) -> ModelCallFailed:
    answer = Answer(status=exchange.status, headers=exchange.headers, body=exchange.body)
    async with replay_server([answer]) as server:
        place = ModelPlace(base_url=server.url)
        model = providers_of(config(retry=RetryPolicy(attempts=1))).open([f"{exchange.provider}:m"], place)
        with pytest.raises(ModelCallFailed) as caught:
            await model.models[0].model.reply(GO, lambda _: None)
    return caught.value


async def test_our_own_refusals_become_the_failures_they_are() -> None:
    found = {}
    for exchange in all_exchanges(OWN):
        if exchange.status >= 400:
            details = (await failure_of(exchange)).details
            found[exchange.name] = (details.kind, details.next_model, details.request_id)

    assert found == EXPECTED


async def test_every_recorded_refusal_becomes_a_typed_failure(shared: Path) -> None:
    for exchange in all_exchanges(shared / "cassettes"):
        if exchange.status >= 400:
            failure = await failure_of(exchange)
            assert failure.details.status == exchange.status, exchange.name
            assert not failure.message.endswith(": "), exchange.name
            ids = [v for k, v in exchange.headers.items() if k in {"request-id", "x-request-id"}]
            assert not ids or failure.details.request_id in ids, exchange.name


@pytest.mark.parametrize(
    ("at_the_start", "at_the_end"),
    [
        ({"input_tokens": 70, "output_tokens": 1}, {"output_tokens": 9}),
        ({"input_tokens": 70, "output_tokens": 1}, {"input_tokens": 70, "output_tokens": 9}),
        ({"input_tokens": 70, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 9}),
        ({"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 70, "output_tokens": 9}),
        ({"input_tokens": None}, {"input_tokens": 70, "output_tokens": 9}),
    ],
)
async def test_the_figures_of_both_ends_of_a_stream_make_one(
    at_the_start: dict[str, object], at_the_end: dict[str, object]
) -> None:
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {"id": "m", "usage": at_the_start}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": at_the_end},
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
    answer = Answer(headers={"content-type": "text/event-stream"}, body=body)
    async with replay_server([answer]) as server:
        mine = ProviderSettings(protocol="anthropic", base_url=server.url)
        message = await open_models(["mine:m"], config(providers={"mine": mine})).reply(GO, lambda _: None)

    assert (message.usage.input_tokens, message.usage.output_tokens) == (70, 9)
