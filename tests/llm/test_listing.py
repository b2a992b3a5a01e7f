"""Which services are set up, and what those that can be asked serve."""

import json

import pytest

from agentctl.errors import InvalidInput
from agentctl.llm.catalogue import load_catalogue
from agentctl.llm.listing import list_providers
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings
from agentctl.testing.replay_server import Answer, Received, replay_server

pytestmark = pytest.mark.anyio
KEY = "sk-listing-0123456789"
ANSWERS = {
    "/api/tags": {"models": [{"name": "qwen3:4b"}, {"name": "llama3.2:3b"}]},
    "/v1/models": {
        "data": [{"id": "qwen", "meta": {"n_ctx_train": 40960}}, {"id": "big", "max_model_len": 8192}]
    },
}


def served(request: Received) -> Answer:
    return Answer(body=json.dumps(ANSWERS[request.path]).encode())


async def test_a_server_on_this_machine_is_asked_for_its_models_and_windows() -> None:
    async with replay_server(served) as server:
        config = ProviderConfig(
            environment={
                "OLLAMA_HOST": server.url.removeprefix("http://"),
                "VLLM_BASE_URL": f"{server.url}/v1",
            }
        )
        found = await list_providers(config, load_catalogue({}), ["ollama", "vllm"])

    assert [(one.name, one.ready) for one in found] == [("ollama", True), ("vllm", True)]
    assert [(model.name, model.context_window, model.served) for one in found for model in one.models] == [
        ("ollama:qwen3:4b", None, True),
        ("ollama:llama3.2:3b", None, True),
        ("vllm:qwen", 40960, True),
        ("vllm:big", 8192, True),
    ]
    assert {request.method for request in server.received} == {"GET"}


async def test_a_server_that_is_not_there_is_told_and_nothing_else_fails() -> None:
    async with replay_server([]) as server:
        url = server.url
    config = ProviderConfig(environment={"VLLM_BASE_URL": url, "GROQ_API_KEY": KEY})
    by_name = {one.name: one for one in await list_providers(config, load_catalogue({}), [])}

    assert not by_name["vllm"].ready
    assert "no connection" in by_name["vllm"].state
    assert (by_name["groq"].ready, by_name["groq"].state) == (True, "has a key")
    assert "set ANTHROPIC_API_KEY" in by_name["anthropic"].state
    assert "anthropic:claude-sonnet-4-6" in {model.name for model in by_name["anthropic"].models}


async def test_a_refusal_is_told_without_the_key() -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    async with replay_server([Answer(status=401, body=body)]) as server:
        settings = ProviderSettings(protocol="openai-chat", base_url=server.url, key_env=("MY_KEY",))
        config = ProviderConfig(environment={"MY_KEY": KEY}, providers={"mine": settings})
        (found,) = await list_providers(config, load_catalogue({}), ["mine"])

    assert (found.ready, found.state) == (False, "answers HTTP 401: bad key [key]")


async def test_an_unknown_service_is_an_input_error() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'groq'"):
        await list_providers(ProviderConfig(), load_catalogue({}), ["grok"])
