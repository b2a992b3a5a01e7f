"""`http_get` and `http_post` reach the host that was judged, and no other."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agentctl.errors import ToolError
from agentctl.llm.http import Http
from agentctl.protocol.effects import ReachHost
from agentctl.protocol.questions import PersonAnswer
from agentctl.protocol.values import JsonObject
from agentctl.tools.definition import ActContext, ToolOutput
from agentctl.tools.script.web import web_tools
from tests.tools.script.scripts import PLACE

pytestmark = pytest.mark.anyio


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        port = self.server.server_address[1]
        ways = {
            "/there": "/json",
            "/elsewhere": f"http://localhost:{port}/json",
            "/port": "http://127.0.0.1:1/json",
            "/file": "file:///etc/passwd",
            "/again": "/again",
        }
        if self.path in ways:
            self._answer(302, b"", location=ways[self.path])
        elif self.path == "/large":
            self._answer(200, b"x" * (1 << 20))
        else:
            self._answer(200, json.dumps({"path": self.path}).encode())

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["content-length"])).decode()
        self._answer(201, json.dumps({"sent": sent, "kind": self.headers.get("x-kind")}).encode())

    def _answer(self, status: int, body: bytes, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("location", location)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


async def fetch(tool: str, arguments: JsonObject) -> ToolOutput:
    async def nobody(_: object) -> PersonAnswer:
        raise AssertionError

    http = Http()
    found = {one.spec.name: one for one in web_tools(http)}
    try:
        prepared = await found[tool].prepare(arguments, PLACE)
        context = ActContext(call_id="c", emit_output=lambda _: None, ask_person=nobody)
        return await prepared.act(context)
    finally:
        await http.aclose()


async def test_the_host_is_the_effect_that_is_judged() -> None:
    tool = web_tools(Http())[0]

    prepared = await tool.prepare({"url": "https://API.Example.com:8443/x?y"}, PLACE)

    assert prepared.effects == (ReachHost(host="api.example.com"),)


async def test_json_comes_as_json(origin: str) -> None:
    output = await fetch("http_get", {"url": f"{origin}/json"})

    assert isinstance(output.structured, dict)
    assert (output.structured["status"], output.structured["json"]) == (200, {"path": "/json"})


async def test_a_post_carries_its_body_and_headers(origin: str) -> None:
    output = await fetch("http_post", {"url": origin, "body": "hello", "headers": {"X-Kind": "a"}})

    assert isinstance(output.structured, dict)
    assert output.structured["json"] == {"sent": "hello", "kind": "a"}


async def test_a_redirect_within_the_host_is_followed(origin: str) -> None:
    output = await fetch("http_get", {"url": f"{origin}/there"})

    assert isinstance(output.structured, dict)
    assert output.structured["json"] == {"path": "/json"}


@pytest.mark.parametrize("path", ["/elsewhere", "/port"])
async def test_a_redirect_to_another_host_is_told_and_not_followed(origin: str, path: str) -> None:
    with pytest.raises(ToolError, match="which is another host or way: it was not followed"):
        await fetch("http_get", {"url": f"{origin}{path}"})


async def test_redirects_to_files_and_without_end_are_refused(origin: str) -> None:
    with pytest.raises(ToolError, match="no http or https address"):
        await fetch("http_get", {"url": f"{origin}/file"})
    with pytest.raises(ToolError, match="redirects more than 5 times"):
        await fetch("http_get", {"url": f"{origin}/again"})


async def test_a_large_answer_is_cut_and_says_so(origin: str) -> None:
    output = await fetch("http_get", {"url": f"{origin}/large"})

    assert isinstance(output.structured, dict)
    assert (output.structured["cut"], len(str(output.structured["text"]))) == (True, 512 * 1024)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://x/y", "x", "http://", "http://u:p@h/", "http://h/\nx", "http://h:99999/"],
)
async def test_other_addresses_are_refused_before_anything_is_judged(url: str) -> None:
    with pytest.raises(ToolError):
        await web_tools(Http())[0].prepare({"url": url}, PLACE)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "other"},
        {"Content-Length": "5"},
        {"Transfer-Encoding": "chunked"},
        {"a": "b\r\nc: d"},
        {"a b": "c"},
        {"a": 1},
    ],
)
async def test_headers_that_could_ask_another_host_are_refused(headers: JsonObject) -> None:
    with pytest.raises(ToolError, match="header"):
        await web_tools(Http())[0].prepare({"url": "http://h/", "headers": headers}, PLACE)
