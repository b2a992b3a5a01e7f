"""A scripted model service on loopback: OpenAI Chat Completions, streamed, with a latency of our choice.

Answers with one `shell` call a step until the thread holds `steps` tool results, then with text. It keeps no
state: what comes next follows from the request alone, so any number of agents may use it at once.
Writes one line of JSON to stdout for each request: arrival time, body size, agent's step.
"""

import argparse
import json
import sys
import time

import anyio
from anyio.abc import ByteStream

CHUNKS_PER_REPLY = 8


def reply_events(step: int, steps: int, tool: str) -> list[dict[str, object]]:
    """The stream of one reply, as decoded events."""
    if step >= steps:
        words = ["All ", "steps ", "are ", "done."]
        deltas: list[dict[str, object]] = [{"content": word} for word in words]
        finish = "stop"
    else:
        given = {"command": f"echo step {step}"} if tool == "shell" else {"timezone": f"Etc/GMT+{step % 12}"}
        arguments = json.dumps(given)
        size = max(1, len(arguments) // CHUNKS_PER_REPLY)
        head = {
            "index": 0,
            "id": f"call_{step}",
            "type": "function",
            "function": {"name": tool, "arguments": ""},
        }
        deltas = [{"tool_calls": [head]}]
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": arguments[i : i + size]}}]}
            for i in range(0, len(arguments), size)
        ]
        finish = "tool_calls"
    base = {"id": "mock", "object": "chat.completion.chunk", "created": 0, "model": "mock"}
    events: list[dict[str, object]] = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    usage = {"prompt_tokens": 100 + step, "completion_tokens": 10, "total_tokens": 110 + step}
    events.append({**base, "choices": [], "usage": usage})
    return events


async def read_request(stream: ByteStream, buffer: bytearray) -> bytes | None:
    """One request's body, or None when the client is gone."""
    while b"\r\n\r\n" not in buffer:
        try:
            buffer += await stream.receive(262144)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return None
    head, _, rest = bytes(buffer).partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    body = bytearray(rest)
    while len(body) < length:
        body += await stream.receive(262144)
    buffer[:] = body[length:]
    return bytes(body[:length])


def serve(options: argparse.Namespace) -> None:
    """Serve until killed; prints `{"port": N}` first."""
    log = sys.stdout

    async def handle(stream: ByteStream) -> None:
        buffer = bytearray()
        async with stream:
            while (body := await read_request(stream, buffer)) is not None:
                arrived = time.time()
                request = json.loads(body) if body else {}
                messages = request.get("messages", [])
                step = sum(message.get("role") == "tool" for message in messages)
                if not options.silent:
                    record = {"at": arrived, "bytes": len(body), "step": step}
                    if step == 0:
                        record["body"] = request
                    log.write(json.dumps(record) + "\n")
                    log.flush()
                if options.latency:
                    await anyio.sleep(options.latency)
                events = reply_events(step, options.steps, options.tool)
                data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
                data += b"data: [DONE]\n\n"
                head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
                try:
                    await stream.send(head % len(data) + data)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    async def main() -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0, backlog=4096)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no database here
        log.write(json.dumps({"port": port}) + "\n")
        log.flush()
        await listener.serve(handle)

    anyio.run(main)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before the reply's first byte")
    parser.add_argument("--tool", default="shell")
    parser.add_argument("--silent", action="store_true", help="log no requests")
    serve(parser.parse_args())
