"""Faults of servers and clients that were reported elsewhere, tried on ours; docstrings say where."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from agentctl.errors import ToolError
from agentctl.protocol.values import JsonValue
from tests.tools.mcp.serving import plan, program, running

pytestmark = pytest.mark.anyio
PNG = "iVBORw0KGgoAAAANSUhEUg=="


def answering(result: str) -> tuple[str, ...]:
    """A server whose every call ends with one message: `m` is the call."""
    return program(f"def call(m):\n    {result}\nserve(call)")


def raw(members: str) -> str:
    """Python text that writes an answer whose members are given as JSON."""
    whole = f'{{"jsonrpc":"2.0","id":%d,{members}}}'
    return f"write(('{whole}\\n').replace('%d', str(m['id'])))"


@pytest.mark.parametrize(
    ("code", "words"), [(-32000, "rate limited"), (-32001, "too slow"), (-32603, "Session terminated")]
)
async def test_an_error_of_any_code_fails_its_call_and_leaves_the_server(
    tmp_path: Path, code: int, words: str
) -> None:
    """python-sdk: -32000 is both its "connection closed" and what servers use for anything."""
    command = program(f"""
        n = 0
        def call(m):
            global n
            n += 1
            if n == 1:
                send(id=m["id"], error={{"code": {code}, "message": "{words}"}})
            else:
                echo(m)
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        first = await run.call("srv__echo", text="a")
        second = await run.call("srv__echo", text="b")

    assert first.failed
    assert words in first.text
    assert second.text == "b"


async def test_a_refused_greeting_is_told_in_the_servers_words(tmp_path: Path) -> None:
    """claude-code#: "Failed to connect", and nothing of the licence that had run out."""
    body = """
        while True:
            m = read()
            if "id" in m:
                send(id=m["id"], error={"code": -32000, "message": "licence expired"})
    """
    async with running(tmp_path, plan(tmp_path, command=program(body))) as run:
        assert "licence expired" in run.notes()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (raw('"result":null'), "holds no result"),
        (raw('"error":{"code":"EBAD","message":"a code in words"}'), "a code in words"),
        (raw('"error":{"code":-32603}'), "-32603"),
        (raw('"error":"only words"'), "only words"),
        (raw('"result":\' + "[" * 5000 + "]" * 5000 + \''), "no JSON, or nested without end"),
        (
            raw('"result":{"content":[],"structuredContent":\' + "[" * 300 + "]" * 300 + \'}'),
            "nested more than 100 levels",
        ),
        (raw('"result":{"content":[}'), "no JSON"),
    ],
)
async def test_an_answer_that_cannot_be_read_fails_at_once_and_not_after_its_time(
    tmp_path: Path, answer: str, words: str
) -> None:
    """cursor, LibreChat: "Request timed out" after minutes for an answer that had come and was dropped."""
    async with running(tmp_path, plan(tmp_path, command=answering(answer), call_timeout_s=60.0)) as run:
        output = await run.call("srv__echo")

    assert output.failed
    assert words in output.text
    assert "call_timeout" not in output.text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (raw('"result":{"content":[{"type":"text","text":"half \\\\ud83d"}]}'), "half ?"),
        ("write(json.dumps({'id': m['id'], 'result': text('no version')}) + '\\n')", "no version"),
        ("send(id=str(m['id']), result=text('id as text'))", "id as text"),
        ("send(id=m['id'], result=text('both'), error=None)", "both"),
        ("send(id=m['id'], result={'content': 'bare text'})", "bare text"),
        ("send(id=m['id'], result={'content': None})", "(no output)"),
        ("send(id=m['id'], result={'content': [{'type': 'text', 'text': None}]})", "(no output)"),
        (
            "send(id=m['id'], result={'content': [{'type': 'hologram'}, {'type': 'text', 'text': 'kept'}]})",
            "[a part of the answer is left out: 'hologram' as it came is not of the protocol]\nkept",
        ),
    ],
)
async def test_what_is_almost_an_answer_is_taken_for_what_it_says(
    tmp_path: Path, answer: str, text: str
) -> None:
    """gemini-cli, opencode: one odd part, and the whole answer of the tool was lost."""
    async with running(tmp_path, plan(tmp_path, command=answering(answer))) as run:
        output = await run.call("srv__echo")

    assert not output.failed, output.text
    assert output.text == text


@pytest.mark.parametrize(
    ("structured", "kept"),
    [("[1, 2]", [1, 2]), ('{"a": float("nan"), "b": float("inf")}', {"a": None, "b": None}), ("0", 0)],
)
async def test_structured_content_of_any_kind_arrives_as_json(
    tmp_path: Path, structured: str, kept: JsonValue
) -> None:
    """typescript-sdk: lists refused; NaN passed on, and what read the output as JSON broke."""
    command = answering(f"answer(m, content=[], structuredContent={structured})")
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        output = await run.call("srv__echo")

    assert output.structured == kept
    assert json.loads(output.text) == kept


async def test_structured_content_against_the_servers_own_schema_is_left_out_and_told(tmp_path: Path) -> None:
    """python-sdk: such an answer failed a call that had happened; others pass the wrong data on."""
    command = program("""
        number = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
        TOOLS[:] = [tool("echo", outputSchema=number), tool("broken", outputSchema={"type": "nonsense"})]
        serve(lambda m: answer(m, **text("three", structuredContent={"n": m["params"]["arguments"]["n"]})))
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        wrong = await run.call_with("srv__echo", {"n": "three"})
        right = await run.call_with("srv__echo", {"n": 3})
        unknown = await run.call_with("srv__broken", {"n": "x"})

    assert not wrong.failed
    assert wrong.structured is None
    assert wrong.text.startswith("three\n[the structured part is left out")
    assert (right.text, right.structured) == ("three", {"n": 3})
    assert unknown.structured == {"n": "x"}


async def test_images_go_on_only_as_what_they_are(tmp_path: Path) -> None:
    """claude-code: one image that was none, and the service refused every further request of the session."""
    command = answering(
        "answer(m, content=[{'type': 'image', 'data': d, 'mimeType': t} for d, t in ["
        f"('not base64!!', 'image/png'), ('{PNG}', 'image/jpeg'), ('PHN2Zz4=', 'image/svg+xml')]])"
    )
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        output = await run.call("srv__echo")

    assert [(image.media_type, image.data) for image in output.images] == [("image/png", PNG)]
    assert "its data is no base64" in output.text
    assert "image/svg+xml" in output.text


async def test_a_tool_with_a_schema_that_none_can_use_is_left_out_and_the_others_stay(tmp_path: Path) -> None:
    """oh-my-pi#2652, atlas-ui-3#727: one such schema, and every request was refused with 400."""
    command = program("""
        def shaped(name, a):
            return {"name": name, "inputSchema": {"type": "object", "properties": {"a": a}}}
        TOOLS += [
            shaped("ref", {"$ref": "#/$defs/Nowhere"}),
            shaped("far", {"$ref": "https://example.com/schema.json"}),
            shaped("typo", {"type": "strng"}),
            shaped("pattern", {"type": "string", "pattern": "(["}),
            shaped("long", {"type": "string", "enum": ["x" * 1000] * 101}),
        ]
        serve(echo)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert run.names == ["srv__echo"]
        notes = run.notes()

    for name in ("ref", "far", "typo", "pattern", "long"):
        assert f"its tool {name!r} is left out: its schema" in notes


async def test_schemas_of_every_odd_but_usable_form_are_offered_as_objects(tmp_path: Path) -> None:
    """Anthropic wants type = "object" and no dialect, whatever servers send."""
    command = program("""
        TOOLS[:] = [
            {"name": "none"}, {"name": "nul", "inputSchema": None},
            {"name": "text", "inputSchema": {"type": "string"}},
            {"name": "props", "inputSchema": {"type": "object", "properties": None}},
            {"name": "dialect", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}},
            {"name": "defs", "inputSchema": {
                "$defs": {"T": {"type": "string"}}, "properties": {"text": {"$ref": "#/$defs/T"}},
            }},
        ]
        serve(echo)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        shapes = [one.tool.spec.parameters for one in run.source.tools()]
        called = [(await run.call(name, text="x")).text for name in run.names]

    assert len(shapes) == 6
    assert all(shape["type"] == "object" and isinstance(shape["properties"], dict) for shape in shapes)
    assert not any("$schema" in shape for shape in shapes)
    assert called == ["x"] * 6


async def test_alternatives_at_the_top_of_a_schema_become_arguments_of_one_object(tmp_path: Path) -> None:
    """dodopayments#189: "input_schema does not support oneOf, allOf, or anyOf at the top level"."""
    command = program("""
        def part(name, *required):
            return {"properties": {name: {"type": "string"}}, "required": list(required)}
        TOOLS[:] = [
            {"name": "any", "inputSchema": {"anyOf": [part("a", "a", "id"), part("b", "b", "id")]}},
            {"name": "all", "inputSchema": {"allOf": [part("a", "a"), part("b")], "required": ["x"]}},
            {"name": "odd", "inputSchema": {"oneOf": [True, {"$ref": "#/$defs/T"}], "$defs": {"T": {}}}},
        ]
        serve(lambda m: answer(m, **text(json.dumps(m["params"]["arguments"]))))
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        shapes = {one.tool.spec.name: one.tool.spec.parameters for one in run.source.tools()}
        output = await run.call("srv__any", a="1", id="2")

    assert json.loads(output.text) == {"a": "1", "id": "2"}
    assert shapes["srv__any"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["id"],
    }
    assert shapes["srv__all"]["required"] == ["x", "a"]
    assert shapes["srv__odd"] == {"type": "object", "properties": {}, "$defs": {"T": {}}}


async def test_a_call_whose_time_is_up_tells_what_was_printed_in_place_of_an_answer(tmp_path: Path) -> None:
    """Servers that print their answer over several lines, or behind a word of their log."""
    command = answering("print('DEBUG', json.dumps(text('x'))); sys.stdout.flush()")
    async with running(tmp_path, plan(tmp_path, command=command, call_timeout_s=1.0)) as run:
        output = await run.call("srv__echo")

    assert "call_timeout" in output.text
    assert "It printed what is no message: 'DEBUG" in output.text


async def test_a_notification_that_breaks_the_protocol_is_passed_over_in_silence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The SDK writes its own stack traces on standard error, over the run's progress."""
    command = program("""
        def call(m):
            send(method="notifications/progress", params={"progressToken": None, "progress": "much"})
            send(method="notifications/nobody/knows", params={"x": 1})
            echo(m)
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert (await run.call("srv__echo", text="a")).text == "a"

    assert capfd.readouterr().err == ""


async def test_progress_after_the_answer_and_a_storm_of_changes_hold_nothing_up(tmp_path: Path) -> None:
    """gemini-cli, codex: list_changed without end, each with a list to be fetched."""
    command = program("""
        def storm():
            while True:
                send(method="notifications/tools/list_changed")
                time.sleep(0.002)
        threading.Thread(target=storm, daemon=True).start()
        def call(m):
            token = m["params"].get("_meta", {}).get("progressToken")
            echo(m)
            for step in range(20):
                send(method="notifications/progress", params={"progressToken": token, "progress": step})
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        answers = [(await run.call("srv__echo", text=str(number))).text for number in range(3)]

    assert answers == ["0", "1", "2"]


class Far(BaseHTTPRequestHandler):
    """A server over HTTP that refuses the first call in its own way."""

    protocol_version = "HTTP/1.1"
    refusal: tuple[int, str] = (500, "")
    calls = 0
    sessions = 0

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._send(405, "")

    do_DELETE = do_GET  # noqa: N815 - as above

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind, method = type(self), sent.get("method")
        results: dict[str, object] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": self.headers.get("mcp-session-id", "")}]},
        }
        if "id" not in sent:
            return self._send(202, "")
        kind.sessions += method == "initialize"
        kind.calls += method == "tools/call"
        if method == "tools/call" and kind.calls == 1:
            return self._send(*kind.refusal)
        known = (
            {"result": results[method]} if method in results else {"error": {"code": -32601, "message": "?"}}
        )
        return self._send(200, json.dumps({"jsonrpc": "2.0", "id": sent["id"], **known}))

    def _send(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", f"s{type(self).sessions}")
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.mark.parametrize(
    ("refusal", "words", "session"),
    [
        ((404, "{}"), "it did not happen. Make it again.", "s2"),
        ((401, "{}"), "HTTP status 401; it wants headers or [mcp_servers.oauth]", "s1"),
        ((429, "slow down"), "HTTP status 429", "s1"),
        ((500, "oops"), "HTTP status 500", "s1"),
        ((202, ""), "202", "s1"),
        ((200, "{not json"), "it is no message of the protocol", "s1"),
        ((200, '{"jsonrpc":"2.0","id":3,"result":null}'), "it is no message of the protocol", "s1"),
    ],
)
async def test_a_far_server_that_refuses_one_call_is_told_as_it_is_and_serves_the_next(
    tmp_path: Path, refusal: tuple[int, str], words: str, session: str
) -> None:
    """claude-code#83404: a refusal was told as a timeout, and the session never begun anew."""
    handler = type("Refusing", (Far,), {"refusal": refusal})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        async with running(tmp_path, plan(tmp_path, url=url)) as run:
            with pytest.raises(ToolError) as refused:
                await run.call("srv__echo")
            await run.ready()
            output = await run.call("srv__echo")
        server.shutdown()

    assert words in str(refused.value)
    assert output.text == session
