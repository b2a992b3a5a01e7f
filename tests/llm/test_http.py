"""The seam to the HTTP client does what users need, shown on loopback."""

import json
import resource
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
import trustme
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.tls import TLSListener

from agentctl.llm.base import ModelCallFailed
from agentctl.llm.http import Http, HttpCall, HttpOptions, is_loopback, origin_of
from agentctl.testing.replay_server import Answer, Received, ReplayServer, replay_server

pytestmark = pytest.mark.anyio
AUTHORITY = trustme.CA()
"""Made anew for each test process: no key lies in the repository."""


async def fetch(
    call: HttpCall, options: HttpOptions | None = None, environment: dict[str, str] | None = None
) -> tuple[int, bytes]:
    http = Http(environment)
    try:
        async with http.send(call, options or HttpOptions()) as response:
            return response.status, await response.read(1_000_000)
    finally:
        await http.aclose()


async def test_a_body_goes_out_and_the_answer_comes_back_in_pieces() -> None:
    answer = Answer(headers={"x-request-id": "r1"}, pieces=[b"one ", b"two"])
    async with replay_server([answer]) as server:
        call = HttpCall(
            url=server.url + "/v1/x?a=1", headers={"accept": "text/plain"}, secret_headers={"x-key": "k"}
        )

        assert await fetch(call) == (200, b"one two")

    received = server.received[0]
    assert (received.method, received.path) == ("POST", "/v1/x?a=1")
    assert received.headers["x-key"] == "k"
    assert received.headers["user-agent"] == "agentctl"


async def test_silence_between_chunks_is_a_stall() -> None:
    async with replay_server([Answer(pieces=[b"begin"], stall=True)]) as server:
        with pytest.raises(ModelCallFailed) as caught:
            await fetch(HttpCall(url=server.url), HttpOptions(stall_timeout_s=0.2))

    assert caught.value.details.kind == "stalled"
    assert caught.value.details.retryable


async def test_silence_before_the_headers_is_a_stall_and_not_a_failed_connection() -> None:
    async with replay_server([Answer(silent=True)]) as server:
        with pytest.raises(ModelCallFailed) as caught:
            await fetch(HttpCall(url=server.url), HttpOptions(stall_timeout_s=0.2))

    assert caught.value.details.kind == "stalled"


async def test_comments_that_keep_a_stream_alive_count_as_bytes() -> None:
    answer = Answer(pieces=[b": ping\n\n"] * 8 + [b"data: {}\n\n"], pause_s=0.06)
    async with replay_server([answer]) as server:
        status, body = await fetch(HttpCall(url=server.url), HttpOptions(stall_timeout_s=0.3))

    assert (status, body.count(b"ping")) == (200, 8)


@pytest.mark.parametrize("answer", [Answer(pieces=[b"begin"], stall=True), Answer(silent=True)])
async def test_cancelling_a_call_closes_its_connection(answer: Answer) -> None:
    http = Http()
    async with replay_server([answer]) as server:
        with anyio.move_on_after(0.2):
            async with http.send(HttpCall(url=server.url), HttpOptions()) as response:
                await response.read(100)

        with anyio.fail_after(5):
            await server.wait_hung_up()
    await http.aclose()


async def test_a_connection_that_dies_inside_the_body_is_a_transport_failure() -> None:
    async with replay_server([Answer(pieces=[b"begin"], cut=True)]) as server:
        with pytest.raises(ModelCallFailed) as caught:
            await fetch(HttpCall(url=server.url))

    assert (caught.value.details.kind, caught.value.details.code) == ("transport", "")


async def test_no_connection_at_all_is_told_apart() -> None:
    async with replay_server([]) as server:
        url = server.url
    with pytest.raises(ModelCallFailed, match="no connection to") as caught:
        await fetch(HttpCall(url=url + "/secret?key=abc"))

    assert caught.value.details.code == "connect"
    assert "abc" not in caught.value.message


async def test_a_redirect_inside_the_origin_is_followed_with_its_body() -> None:
    def answer(request: Received) -> Answer:
        if request.path == "/old":
            return Answer(status=308, headers={"location": "/new"})
        return Answer(body=request.body)

    async with replay_server(answer) as server:
        call = HttpCall(url=server.url + "/old", secret_headers={"authorization": "Bearer k"}, body=b"hello")
        assert await fetch(call) == (200, b"hello")


async def test_a_redirect_to_another_origin_with_a_key_is_refused() -> None:
    async with replay_server([Answer(body=b"stolen")]) as thief:
        moved = Answer(status=307, headers={"location": thief.url + "/x"})
        async with replay_server([moved]) as server:
            with pytest.raises(ModelCallFailed, match="the key is not sent to another origin") as caught:
                await fetch(HttpCall(url=server.url, secret_headers={"authorization": "Bearer k"}))

    assert thief.received == []
    assert not caught.value.details.retryable


async def test_a_redirect_that_drops_the_request_is_refused() -> None:
    async with replay_server([Answer(status=302, headers={"location": "/login"})]) as server:
        with pytest.raises(ModelCallFailed, match="302"):
            await fetch(HttpCall(url=server.url))


async def test_a_configured_proxy_is_used_and_told_the_target() -> None:
    async with replay_server([Answer(body=b"from proxy")]) as proxy:
        options = HttpOptions(proxy=proxy.url)
        assert await fetch(HttpCall(url="http://api.example.invalid/v1"), options) == (200, b"from proxy")

    assert proxy.received[0].path == "http://api.example.invalid/v1"


async def test_the_environments_proxy_is_used_but_never_for_loopback() -> None:
    async with (
        replay_server([Answer(body=b"from proxy")]) as proxy,
        replay_server([Answer(body=b"direct")]) as local,
    ):
        environment = {"HTTP_PROXY": proxy.url}
        call = HttpCall(url="http://api.example.invalid/v1")
        assert await fetch(call, environment=environment) == (200, b"from proxy")
        assert await fetch(HttpCall(url=local.url), environment=environment) == (200, b"direct")


@asynccontextmanager
async def tls_server() -> AsyncIterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("127.0.0.1", "localhost", "service.example.invalid").configure_cert(context)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - anyio, not a query
    server = ReplayServer([Answer(body=b"over TLS")], port)

    async def serve(stream: SocketStream) -> None:
        await server.serve(stream)

    tls = TLSListener(listener, context, standard_compatible=False)
    async with tls, anyio.create_task_group() as group:
        group.start_soon(tls.serve, serve)
        yield f"https://localhost:{port}/"
        group.cancel_scope.cancel()


@pytest.fixture
def authority_file(tmp_path: Path) -> Path:
    """The authority's certificate as a person would name it."""
    path = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(str(path))
    return path


async def test_an_own_certificate_authority_is_trusted_when_named(authority_file: Path) -> None:
    async with tls_server() as url:
        assert await fetch(HttpCall(url=url), HttpOptions(ca_file=authority_file)) == (200, b"over TLS")


async def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    async with tls_server() as url:
        with pytest.raises(ModelCallFailed) as caught:
            await fetch(HttpCall(url=url))

    assert caught.value.details.kind == "transport"


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of a thousand connections are in this process."""
    needed = 2500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_thousand_calls_at_a_time_share_the_seam(many_files: None) -> None:
    body = b"".join(b"data: %d\n\n" % number for number in range(20))
    http, sizes = Http(), []
    options = HttpOptions()

    async with replay_server(lambda _: Answer(body=body)) as server:

        async def one() -> None:
            async with http.send(HttpCall(url=server.url, body=json.dumps({}).encode()), options) as response:
                sizes.append(len(await response.read(10_000)))

        async with anyio.create_task_group() as group:
            for _ in range(1000):
                group.start_soon(one)
    await http.aclose()

    assert sizes == [len(body)] * 1000


async def test_a_connection_is_used_again_and_one_that_died_meanwhile_is_replaced() -> None:
    http, bodies = Http(), []
    async with replay_server(lambda request: Answer(body=request.body)) as server:

        async def ask(text: bytes) -> None:
            async with http.send(HttpCall(url=server.url, body=text), HttpOptions()) as response:
                bodies.append(await response.read(100))

        await ask(b"one")
        await ask(b"two")
        assert server.connections == 1
        await server.hang_up()
        await ask(b"three")
        assert server.connections == 2
    await http.aclose()

    assert bodies == [b"one", b"two", b"three"]


async def test_a_secure_service_is_reached_through_a_proxys_tunnel(authority_file: Path) -> None:
    async with tls_server() as url, tunnel_proxy() as (proxy, asked):
        options = HttpOptions(proxy=f"http://me:secret@{proxy}", ca_file=authority_file)
        # The name is looked up by the proxy alone.
        port = url.rsplit(":", 1)[1].rstrip("/")
        assert await fetch(HttpCall(url=f"https://service.example.invalid:{port}/"), options) == (
            200,
            b"over TLS",
        )

    head = asked[0].decode()
    assert head.startswith(f"CONNECT service.example.invalid:{port} HTTP/1.1\r\n")
    assert "proxy-authorization: Basic bWU6c2VjcmV0" in head


@asynccontextmanager
async def tunnel_proxy() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that leads every tunnel to the same port of this machine."""
    asked: list[bytes] = []
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)

    async def pump(source: SocketStream, target: SocketStream) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                await target.send(await source.receive())
        with suppress(anyio.BrokenResourceError):
            await target.aclose()

    async def serve(client: SocketStream) -> None:
        asked.append(await client.receive())
        port = int(asked[-1].split(b" ")[1].rpartition(b":")[2])
        async with client, await anyio.connect_tcp("127.0.0.1", port) as service:
            await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with anyio.create_task_group() as group:
                group.start_soon(pump, client, service)
                group.start_soon(pump, service, client)

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield f"127.0.0.1:{listener.extra(SocketAttribute.local_port)}", asked  # noqa: S610 - anyio, no query
        group.cancel_scope.cancel()


async def test_a_header_cannot_smuggle_another() -> None:
    with pytest.raises(ModelCallFailed, match="line end"):
        await fetch(HttpCall(url="http://127.0.0.1:1/", headers={"x-a": "1\r\nx-b: 2"}))


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_the_seam_works_on_either_event_loop(anyio_backend: str) -> None:
    async with replay_server([Answer(pieces=[b"on ", anyio_backend.encode()])]) as server:
        assert await fetch(HttpCall(url=server.url)) == (200, f"on {anyio_backend}".encode())


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin_of("https://api.example.com/v1") == "https://api.example.com:443"
    assert origin_of("http://user:pw@h:81/x") == "http://h:81"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:80/", True),
        ("http://localhost/", True),
        ("http://[::1]:8080/", True),
        ("http://127.0.0.1.example.com/", False),
        ("https://example.com/", False),
        ("http://10.0.0.1/", False),
    ],
)
def test_loopback_is_told_by_the_address(url: str, *, expected: bool) -> None:
    assert is_loopback(url) is expected
