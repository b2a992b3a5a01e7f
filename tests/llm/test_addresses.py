"""Addresses as people write them lead to one place; what leads nowhere is told before anything is sent."""

import pytest

from agentctl.errors import InvalidInput
from agentctl.llm.addresses import fault_of, host_name, joined, target_of, without_password
from agentctl.llm.base import ModelRequest
from agentctl.llm.catalogue import load_catalogue
from agentctl.llm.endpoints import ModelPlace, resolve
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings
from agentctl.llm.providers import Providers
from agentctl.protocol.messages import user_text
from agentctl.testing.replay_server import Answer, replay_server


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("https://h", "/v1/messages", "https://h/v1/messages"),
        ("https://h/", "/v1/messages", "https://h/v1/messages"),
        ("https://h/v1", "/v1/messages", "https://h/v1/messages"),
        ("https://h/anthropic/v1/", "/v1/messages", "https://h/anthropic/v1/messages"),
        ("https://h/v1/messages", "/v1/messages", "https://h/v1/messages"),
        ("https://h/v1", "/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/v1/chat/completions/", "/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/openai?v=1", "/responses", "https://h/openai/responses?v=1"),
        ("http://h:1/v1", "/api/chat", "http://h:1/api/chat"),
        ("http://[::1]:1", "/api/chat", "http://[::1]:1/api/chat"),
        ("https://g/v1beta", "/v1beta/models/m:g?alt=sse", "https://g/v1beta/models/m:g?alt=sse"),
        ("https://g?key=1", "/v1beta/models/m:g?alt=sse", "https://g/v1beta/models/m:g?key=1&alt=sse"),
    ],
)
def test_the_version_the_whole_path_and_a_query_may_stand_in_the_address(
    base: str, path: str, expected: str
) -> None:
    assert joined(base, path, {}) == expected


def test_a_query_is_written_so_that_it_stays_one_member() -> None:
    assert joined("https://h/x?a=1", "/p", {"api version": "2&3"}) == "https://h/x/p?a=1&api%20version=2%263"


@pytest.mark.parametrize(
    "address",
    ["http://h:99999", "http://h:abc", "http://h:0", "ftp://h", "h/v1", "http://", "http://[::1", ""],
)
def test_what_leads_nowhere_has_a_fault(address: str) -> None:
    assert fault_of(address)


@pytest.mark.parametrize("address", ["http://h", "https://h:443/v1", "http://[::1]:8080/v1", "http://h:/v1"])
def test_what_leads_somewhere_has_none(address: str) -> None:
    assert not fault_of(address)


def test_blanks_and_foreign_letters_are_written_by_their_numbers() -> None:
    assert target_of("/a b/ü%20", "q=ö c") == "/a%20b/%C3%BC%20?q=%C3%B6%20c"
    assert target_of("", "") == "/"
    assert host_name("bücher.example") == "xn--bcher-kva.example"
    with pytest.raises(ValueError, match="no name of a host"):
        host_name("ü" * 70)


def test_a_password_in_an_address_is_a_header_and_not_part_of_the_address() -> None:
    assert without_password("http://me:p%40ss@h:1/v1") == ("http://h:1/v1", "Basic bWU6cEBzcw==")
    assert without_password("http://h/v1") == ("http://h/v1", "")


def test_a_bad_address_is_told_without_its_password() -> None:
    settings = ProviderSettings(protocol="openai-chat", base_url="http://me:secret@h:abc")
    config = ProviderConfig(providers={"svc": settings})
    with pytest.raises(InvalidInput) as caught:
        resolve("svc:m", ModelPlace(), config, load_catalogue({}))
    assert "secret" not in str(caught.value)
    assert "h:abc" in str(caught.value)


@pytest.mark.anyio
async def test_a_server_behind_a_password_gets_it_and_the_version_once() -> None:
    body = b'{"message":{"role":"assistant","content":"hi"},"done":true}'
    async with replay_server([Answer(body=body)]) as server:
        address = server.url.replace("http://", "http://me:pass@") + "/v1"
        providers = Providers(ProviderConfig(environment={"OLLAMA_HOST": address}))
        message = await providers.open(["ollama:m"]).reply(
            ModelRequest(system="", messages=(user_text("go"),)), lambda _: None
        )
        await providers.aclose()
    assert message.text == "hi"
    (call,) = server.received
    assert call.path == "/api/chat"
    assert call.headers["authorization"] == "Basic bWU6cGFzcw=="
