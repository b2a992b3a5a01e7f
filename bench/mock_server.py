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


NOTE = "A finding, and where it stands. " * 64
"""About 2 KB."""


def fleet_call(request: dict[str, object]) -> tuple[str, dict[str, object]] | None:
    """What an agent of the fleet calls next: items for workers, one note a stage; None ends the stage."""
    tools = request.get("tools")
    names = {tool["function"]["name"] for tool in tools} if isinstance(tools, list) else set()
    messages = request.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    if last.get("role") == "tool":
        return None
    if "submit_output" in names:
        return "submit_output", {"items": ["north", "south", "west"]}
    if "shared_state" in names:
        return "shared_state", {"action": "append", "key": "notes", "value": NOTE}
    return None


def reply_events(
    step: int, steps: int, tool: str, call: tuple[str, dict[str, object]] | None = None
) -> list[dict[str, object]]:
    """The stream of one reply, as decoded events."""
    deltas: list[dict[str, object]]
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        whole = {"index": 0, "id": f"call_{step}", "type": "function", "function": function}
        deltas, finish = [{"tool_calls": [whole]}], "tool_calls"
    elif step >= steps:
        words = ["All ", "steps ", "are ", "done."]
        deltas = [{"content": word} for word in words]
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
    base: dict[str, object] = {"id": "mock", "object": "chat.completion.chunk", "created": 0, "model": "mock"}
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
                call = fleet_call(request) if options.fleet else None
                steps = 0 if options.fleet else options.steps
                events = reply_events(step, steps, options.tool, call)
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
    parser.add_argument("--fleet", action="store_true", help="answer the agents of bench/fleet.py")
    parser.add_argument("--silent", action="store_true", help="log no requests")
    serve(parser.parse_args())
