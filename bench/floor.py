"""The floor: the same job as a bare loop over httpx, without policy, journal, or anything else."""

import json
import subprocess
import sys

import httpx

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "shell",
            "description": "Run a shell command.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"],
            },
        },
    }
]


def main(base_url: str) -> None:
    """Loop until the model calls no tool."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Do the steps."}]
    with httpx.Client(timeout=60) as client:
        while True:
            body = {"model": "mock", "messages": messages, "tools": TOOLS, "stream": True}
            text, calls = "", {}
            with client.stream("POST", f"{base_url}/chat/completions", json=body) as response:
                for line in response.iter_lines():
                    if not line.startswith("data: ") or line == "data: [DONE]":
                        continue
                    choices = json.loads(line[6:])["choices"]
                    delta = choices[0]["delta"] if choices else {}
                    text += delta.get("content") or ""
                    for piece in delta.get("tool_calls") or ():
                        call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                        call["id"] += piece.get("id") or ""
                        call["name"] += piece["function"].get("name") or ""
                        call["arguments"] += piece["function"].get("arguments") or ""
            if not calls:
                sys.stdout.write(text + "\n")
                return
            made = [
                {
                    "id": c["id"],
                    "type": "function",
                    "function": {"name": c["name"], "arguments": c["arguments"]},
                }
                for c in calls.values()
            ]
            messages.append({"role": "assistant", "content": text or None, "tool_calls": made})
            for call in calls.values():
                command = json.loads(call["arguments"])["command"]
                done = subprocess.run(
                    ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
                )
                result = done.stdout + done.stderr
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


if __name__ == "__main__":
    main(sys.argv[1])
