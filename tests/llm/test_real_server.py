"""A server that nobody here wrote, the genuine llama.cpp, in the three protocols that it speaks."""

from collections.abc import Iterator
from importlib.util import find_spec

import anyio
import pytest
from planned_model import call_text, planned_server, write_planned_model

from agentctl.errors import ProviderError
from agentctl.llm.base import ModelRequest
from agentctl.llm.endpoints import ModelPlace
from agentctl.llm.provider_config import ProviderConfig, RetryPolicy
from agentctl.llm.providers import Providers
from agentctl.protocol.events import LiveEvent, TextStreamed
from agentctl.protocol.messages import AssistantMessage, Message, ToolMessage, ToolResult, ToolSpec, user_text

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="no wheel of llama.cpp for this platform"),
]
KEY = "planned-key-0123456789"
PROVIDERS = ["llamacpp", "llamacpp-responses", "llamacpp-messages"]


def tool(name: str) -> ToolSpec:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return ToolSpec(name=name, description=f"{name} of a path.", parameters=schema)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("planned") / "planned.gguf"
    plan = [
        call_text("list_dir", {"path": "docs"}),
        call_text("read_file", {"path": "docs/a.md"}),
        "The title is Größe.",
    ]
    write_planned_model(path, plan)
    with planned_server(path, key=KEY) as address:
        yield address


def place(address: str, provider: str) -> ModelPlace:
    return ModelPlace(base_url=address if provider.endswith("messages") else f"{address}/v1")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_task_of_two_tools_is_done_over_real_http(server: str, provider: str) -> None:
    providers = Providers(ProviderConfig(environment={"LLAMACPP_API_KEY": KEY}))
    model = providers.open([f"{provider}:planned"], place(server, provider))
    thread: list[Message] = [user_text("What is the title?")]
    called, seen = [], list[LiveEvent]()
    reply = AssistantMessage(parts=())

    with anyio.fail_after(60):
        for _ in range(4):
            reply = await model.reply(
                ModelRequest(
                    system="Use the tools.",
                    messages=tuple(thread),
                    tools=(tool("list_dir"), tool("read_file")),
                    temperature=0.0,
                    max_output_tokens=100,
                ),
                seen.append,
            )
            thread.append(reply)
            for call in reply.tool_calls:
                called.append((call.tool, call.arguments))
                result = ToolResult(call_id=call.call_id, tool=call.tool, outcome="ok", text="a.md")
                thread.append(ToolMessage(result=result))
            if not reply.tool_calls:
                break
    await providers.aclose()

    assert called == [("list_dir", {"path": "docs"}), ("read_file", {"path": "docs/a.md"})]
    assert (reply.text.strip(), reply.stop) == ("The title is Größe.", "end")
    assert reply.usage.input_tokens > 50
    assert reply.usage.cost_usd == 0.0
    assert "Größe" in "".join(event.text for event in seen if isinstance(event, TextStreamed))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_wrong_key_is_told_as_such(server: str, provider: str) -> None:
    providers = Providers(
        ProviderConfig(environment={"LLAMACPP_API_KEY": "wrong-key-000"}, retry=RetryPolicy(attempts=1))
    )
    with pytest.raises(ProviderError, match="401"):
        await providers.open([f"{provider}:planned"], place(server, provider)).reply(
            ModelRequest(system="", messages=(user_text("hi"),)), lambda _: None
        )
    await providers.aclose()
