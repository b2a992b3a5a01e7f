"""A model service on loopback in the user's config, and what it says."""

import json
from collections.abc import Mapping

from agentctl.locations import config_dir


def said(text: str, *, calls: tuple[Mapping[str, object], ...] = (), **usage: object) -> bytes:
    """Return the body of an answer of a chat service."""
    message: dict[str, object] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"c{at}",
                "type": "function",
                "function": {"name": one["tool"], "arguments": json.dumps(one["arguments"])},
            }
            for at, one in enumerate(calls)
        ]
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
    return json.dumps({"choices": [choice], **({"usage": usage} if usage else {})}).encode()


def config_of(url: str, *, headers: Mapping[str, str] | None = None, more: str = "") -> None:
    """Make the service at `url` the provider `mine` of the user."""
    table = ", ".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in (headers or {}).items())
    file = config_dir() / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'[providers.mine]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"\nheaders = {{ {table} }}\n{more}',
        encoding="utf-8",
    )
