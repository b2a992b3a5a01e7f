"""How much of each prompt a service can take from its cache: a run of 30 steps, request by request.

The run is a real one, against a service on loopback that keeps what it is sent. A prompt is what the service
caches in its order: tools, system, messages, without cache markers, which are no part of it. Its cached share
is the part that is byte-equal to the beginning of the request before. Writes `results/prompt_cache.json`.
"""

import argparse
import json
import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio

from agentctl.blueprint.load import load_blueprint
from agentctl.cli.wiring import open_house
from agentctl.protocol.events import LaunchFlags
from agentctl.run.agent_kind import agent_kind
from agentctl.run.runner import run_to_end
from agentctl.run.start import Order, begun
from agentctl.settings.load import load_settings
from agentctl.testing.replay_server import Answer, Received, replay_server

BLUEPRINT = """
[agent]
name = "bench"
[model]
use = ["{provider}:m"]
[tool_permissions]
read_file = "allow"
[stages.work]
prompt = "Read the files one after another and say what they have in common. Work through all of them."
available_tools = ["read_file", "list_dir", "glob", "grep", "write_file", "edit_file", "shell"]
"""


def chat_answer(step: int, steps: int) -> Answer:
    message: dict[str, Any] = {"role": "assistant", "content": f"Reading file {step}."}
    if step < steps:
        arguments = json.dumps({"path": f"notes/{step}.txt"})
        call = {"id": f"call_{step}", "type": "function"}
        message["tool_calls"] = [{**call, "function": {"name": "read_file", "arguments": arguments}}]
    choice = {"index": 0, "finish_reason": "tool_calls" if step < steps else "stop", "message": message}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return Answer(body=json.dumps({"id": f"r{step}", "choices": [choice], "usage": usage}).encode())


def messages_answer(step: int, steps: int) -> Answer:
    content: list[dict[str, Any]] = [{"type": "text", "text": f"Reading file {step}."}]
    if step < steps:
        given = {"path": f"notes/{step}.txt"}
        content.append({"type": "tool_use", "id": f"toolu_{step}", "name": "read_file", "input": given})
    stop = "tool_use" if step < steps else "end_turn"
    usage = {"input_tokens": 100, "output_tokens": 10}
    body = {"id": f"m{step}", "type": "message", "content": content, "stop_reason": stop, "usage": usage}
    return Answer(body=json.dumps(body).encode())


ANSWERS = {"openai-chat": chat_answer, "anthropic": messages_answer}


def prompt_of(body: dict[str, Any]) -> str:
    parts = [body.get("tools", []), body.get("system", ""), body["messages"]]
    return "".join(json.dumps(without_markers(part), ensure_ascii=False)[:-1] for part in parts)


def without_markers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_markers(one) for name, one in value.items() if name != "cache_control"}
    return [without_markers(one) for one in value] if isinstance(value, list) else value


async def prompts(provider: str, steps: int, folder: Path) -> list[str]:
    found: list[str] = []

    def answer(request: Received) -> Answer:
        body: Any = request.json()
        found.append(prompt_of(body))
        return ANSWERS[provider](len(found), steps)

    (folder / "bench.toml").write_text(BLUEPRINT.format(provider=provider), encoding="utf-8")
    async with replay_server(answer) as server:
        os.environ["OPENAI_BASE_URL"] = f"{server.url}/v1"
        os.environ["ANTHROPIC_BASE_URL"] = server.url
        blueprint = load_blueprint(folder / "bench.toml")
        async with open_house(load_settings(), blueprint) as house:
            kind = agent_kind(house, blueprint, folder, LaunchFlags())
            async with begun(house, blueprint, Order(task="go", workdir=folder), kind) as parts:
                await run_to_end(parts)
    return found


def common(before: str, after: str) -> int:
    pairs = zip(before, after, strict=False)
    shorter = min(len(before), len(after))
    return next((at for at, (ours, theirs) in enumerate(pairs) if ours != theirs), shorter)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    report = {}
    for provider in ANSWERS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            os.environ["AGENTCTL_HOME"] = str(folder / "home")
            (folder / "notes").mkdir()
            for number in range(1, options.steps + 1):
                (folder / "notes" / f"{number}.txt").write_text(f"Note {number}.\n" * 8, encoding="utf-8")
            sent = anyio.run(prompts, provider, options.steps, folder)
        pairs = list(pairwise(sent))
        kept = sum(common(before, after) for before, after in pairs)
        report[provider] = {
            "requests": len(sent),
            "of_the_prompt_before": round(kept / sum(len(before) for before, _ in pairs), 4),
            "of_the_prompt": round(kept / sum(len(after) for _, after in pairs), 4),
            "worst_of_the_prompt_before": round(min(common(a, b) / len(a) for a, b in pairs), 4),
        }
        sys.stdout.write(f"{provider}: {json.dumps(report[provider])}\n")
    target = Path(__file__).resolve().parent / "results" / "prompt_cache.json"
    target.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
