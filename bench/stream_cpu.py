"""CPU a streamed event: from the socket to the emitted piece, through our adapter, client included.

A service in another process streams `--events` events, each its own HTTP chunk, as fast as it can or with
a pause before each. Figures are microseconds of process CPU an event, the best of `--runs`; the adapter alone
is fed the same bytes from memory. Writes `bench/results/stream_cpu.json`.
"""

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from agentctl.llm.base import ModelRequest
from agentctl.llm.catalogue import ModelFacts, WireName
from agentctl.llm.endpoints import ModelPlace, protocol_of
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings
from agentctl.llm.providers import Providers
from agentctl.llm.wire import ReplyContext, Target, read_reply
from agentctl.protocol.events import LiveEvent
from agentctl.protocol.messages import user_text

RESULTS = Path(__file__).resolve().parent / "results"
REQUEST = ModelRequest(system="be brief", messages=(user_text("go"),))


def chat_events(count: int) -> list[bytes]:
    base = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "system_fingerprint": "fp",
    }
    choice = {"index": 0, "delta": {"content": "hello "}, "logprobs": None, "finish_reason": None}
    event = json.dumps({**base, "choices": [choice]}).encode()
    last = json.dumps({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).encode()
    return [*[b"data: " + event + b"\n\n"] * count, b"data: " + last + b"\n\n", b"data: [DONE]\n\n"]


def anthropic_events(count: int) -> list[bytes]:
    def event(body: dict[str, object]) -> bytes:
        return f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode()

    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello "}}
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return [
        event({"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 1}}}),
        event(start),
        *[event(delta)] * count,
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
        event({"type": "message_stop"}),
    ]


EVENTS = {"openai-chat": chat_events, "anthropic": anthropic_events}


def serve(wire: str, count: int, pause_s: float) -> None:
    """The service: one connection at a time, one HTTP chunk an event."""
    frames = [b"%x\r\n%b\r\n" % (len(event), event) for event in EVENTS[wire](count)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while b"}" not in connection.recv(65536):
                pass
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
            )
            if pause_s:
                for frame in frames:
                    connection.sendall(frame)
                    time.sleep(pause_s)
            else:
                connection.sendall(b"".join(frames))
            connection.sendall(b"0\r\n\r\n")
            connection.close()


@contextmanager
def service(wire: str, count: int, pause_s: float) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.stream_cpu", "--serve", wire, str(count), str(pause_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


async def over_http(wire: WireName, url: str, runs: int) -> float:
    """Seconds of CPU of the cheapest call."""
    providers = Providers(ProviderConfig(providers={"bench": ProviderSettings(protocol=wire, base_url=url)}))
    model = providers.open(["bench:m"], ModelPlace(base_url=url))
    best = float("inf")
    for _ in range(runs):
        seen: list[LiveEvent] = []
        before = time.process_time()
        reply = await model.reply(REQUEST, seen.append)
        best = min(best, time.process_time() - before)
        assert reply.stop == "end"
    await providers.aclose()
    return best


async def in_memory(wire: WireName, events: list[bytes], runs: int) -> float:
    target = Target(provider="bench", model="m", facts=ModelFacts())
    protocol = protocol_of(wire)

    class Origin:
        request_id, content_type = "", ""

        def __init__(self) -> None:
            self.target = target

    async def give() -> AsyncIterator[bytes]:
        for event in events:
            yield event

    best = float("inf")
    for _ in range(runs):
        seen: list[LiveEvent] = []
        before = time.process_time()
        assembler = protocol.assembler(ReplyContext(target=target, emit=seen.append, turn=1))
        await read_reply(give(), assembler, protocol, Origin())
        assembler.finish()
        best = min(best, time.process_time() - before)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--serve", nargs=3)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], int(options.serve[1]), float(options.serve[2]))
        return
    figures: dict[str, float] = {}
    wires: tuple[WireName, ...] = ("openai-chat", "anthropic")
    for wire in wires:
        count = options.events
        alone = anyio.run(in_memory, wire, EVENTS[wire](count), options.runs)
        figures[f"{wire}: adapter alone"] = alone / count * 1e6
        with service(wire, count, 0.0) as url:
            figures[f"{wire}: over HTTP"] = anyio.run(over_http, wire, url, options.runs) / count * 1e6
        slow = count // 5
        with service(wire, slow, 0.0005) as url:
            spent = anyio.run(over_http, wire, url, 3)
        figures[f"{wire}: over HTTP, each event awaited"] = spent / slow * 1e6
    for name, figure in figures.items():
        print(f"{name:55} {figure:6.1f} µs of CPU an event")
    rounded = {name: round(figure, 1) for name, figure in figures.items()}
    (RESULTS / "stream_cpu.json").write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
