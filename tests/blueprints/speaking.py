"""A model service on loopback that says what a test planned, in the recorded form of two wire protocols."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Wire = Literal["openai-chat", "anthropic"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply: text, and calls as (tool, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(slots=True)
class Service:
    """What was asked, and what is said next."""

    wire: Wire
    turns: list[Turn]
    asked: list[dict[str, Any]] = field(default_factory=list)
    address: str = ""

    def next_body(self, request: dict[str, Any]) -> bytes:
        number = len(self.asked)
        self.asked.append(request)
        turn = self.turns[number] if number < len(self.turns) else Turn("The plan of this test is used up.")
        return openai_events(turn, number) if self.wire == "openai-chat" else anthropic_events(turn, number)


@contextmanager
def speaking(wire: Wire, turns: list[Turn]) -> Iterator[Service]:
    """Serve the turns in order, whatever is asked."""
    service = Service(wire, turns)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = service.next_body(json.loads(body))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def openai_events(turn: Turn, number: int) -> bytes:
    """Write a reply as chunks of Chat Completions: arguments come in two pieces."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if turn.text:
        deltas.append({"content": turn.text})
    for index, (tool, arguments) in enumerate(turn.calls):
        written = json.dumps(arguments)
        half = len(written) // 2
        function = {"name": tool, "arguments": written[:half]}
        call_id = f"call_{number}_{index}"
        deltas.append(
            {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        )
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": written[half:]}}]})
    chunks: list[dict[str, Any]] = [
        {"id": f"chatcmpl-{number}", "model": "planned", "choices": [{"index": 0, "delta": delta}]}
        for delta in deltas
    ]
    finish = "tool_calls" if turn.calls else "stop"
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def anthropic_events(turn: Turn, number: int) -> bytes:
    """Write a reply as events of Messages: arguments come in two pieces."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "planned",
    }
    events: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"message": {**message, "content": [], "stop_reason": None, "usage": usage}})
    ]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if turn.text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": turn.text}]))
    for index, (tool, arguments) in enumerate(turn.calls):
        written = json.dumps(arguments)
        half = len(written) // 2
        blocks.append(
            (
                {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": tool, "input": {}},
                [
                    {"type": "input_json_delta", "partial_json": piece}
                    for piece in ("", written[:half], written[half:])
                ],
            )
        )
    for index, (start, deltas) in enumerate(blocks):
        events.append(("content_block_start", {"index": index, "content_block": start}))
        events += [("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        events.append(("content_block_stop", {"index": index}))
    reason = "tool_use" if turn.calls else "end_turn"
    events.append(("message_delta", {"delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}))
    events.append(("message_stop", {}))
    return "".join(
        f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events
    ).encode()
