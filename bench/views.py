"""What a view of the state saves: a board is built, the conversation is cleared, and the board is extended.

A model by rule speaks through a loopback service: it looks up only the names that its request does not show.
With the board in view it extends it at once; without, it looks for the file and reads it first.
Writes bench/results/views.json. `--model PROVIDER:NAME` asks a live model instead; it is told the same.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex

from agentctl.protocol.values import JsonValue
from agentctl.testing.replay_server import Answer, Received, replay_server_in_thread
from bench.mock_server import reply_events

BLUEPRINT = """
[agent]
name = "boards"
[workspace]
initial = {{ boards = {{}} }}
owner = ["/boards"]
[[state_effects]]
tool = "write_file"
ops = [{{ op = "add", path = "/boards/{{input.path}}", value = "{{input.content}}" }}]
[stages.build]
prompt = "BUILD: write a board with one panel to boards/. Board and panel have names that nobody can guess."
available_tools = ["write_file"]
[stages.build.transitions.extend]
hint = "the board is written"
carry = "clear"
[stages.extend]
prompt = "EXTEND: write panels/panel-new.json, then add its name to the panels of the board, at the end."
available_tools = ["glob", "read_file", "write_file", "edit_file"]
{view}
"""
VIEW = 'workspace = ["/boards"]'
LOOKUPS = {"glob", "read_file", "list_dir", "grep"}


class Builder:
    """A model by rule. It keeps no state but the names that it made up."""

    def __init__(self) -> None:
        self.board, self.panel = f"board-{token_hex(4)}", f"panel-{token_hex(4)}"

    def answer(self, received: Received) -> Answer:
        """Answer one request."""
        request = received.json()
        assert isinstance(request, Mapping)
        messages = request["messages"]
        assert isinstance(messages, list)
        results = sum(isinstance(one, Mapping) and one["role"] == "tool" for one in messages)
        system, said = json.dumps(messages[0]), json.dumps(messages[1:])
        events = reply_events(results, 0, "none", self._call(system, said, results))
        data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
        return Answer(headers={"content-type": "text/event-stream"}, body=data + b"data: [DONE]\n\n")

    def _call(self, system: str, shown: str, results: int) -> tuple[str, dict[str, object]] | None:
        path = f"boards/{self.board}.json"
        if "BUILD" in system:
            content = json.dumps({"panels": [self.panel]})
            return None if results else ("write_file", {"path": path, "content": content})
        if self.board not in shown:
            return "glob", {"pattern": "boards/*.json"}
        if self.panel not in shown:
            return "read_file", {"path": path}
        if "panel-new" not in shown:
            return "write_file", {"path": "panels/panel-new.json", "content": "{}"}
        if "Edited" not in shown:
            old = f'"{self.panel}"'
            return "edit_file", {"path": path, "old": old, "new": f'{old}, "panel-new"'}
        return None


def extended(folder: Path, model: str, environ: Mapping[str, str], *, view: bool) -> list[str]:
    """Run the blueprint, and return the tools that were called to extend the board."""
    workdir = folder / ("with" if view else "without")
    workdir.mkdir()
    blueprint = folder / f"{workdir.name}.toml"
    blueprint.write_text(BLUEPRINT.format(view=VIEW if view else ""), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "agentctl", "run", str(blueprint), "--model", model, "--yolo", "--jsonl"],
        cwd=workdir,
        env={**os.environ, **environ, "AGENTCTL_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=True,
    )
    records: list[dict[str, JsonValue]] = [json.loads(line) for line in ran.stdout.splitlines()]
    tools = [
        str(event["tool"])
        for record in records
        if record["type"] == "event"
        and record["stage"] == "extend"
        and isinstance(event := record["event"], dict)
        and event["type"] == "CallStarted"
    ]
    (board,) = (workdir / "boards").glob("*.json")
    assert re.search("panel-new", board.read_text(encoding="utf-8")), "the board was not extended"
    return tools


def main() -> None:
    """Measure with and without the view."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="", help="a live model, opt-in")
    options = parser.parse_args()
    report: dict[str, object] = {"model": options.model or "by rule"}
    with tempfile.TemporaryDirectory() as name:
        for view in (True, False):
            with replay_server_in_thread(Builder().answer) as server:
                address = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
                environ = {} if options.model else address
                tools = extended(
                    Path(name).resolve(), options.model or "openai-chat:rule", environ, view=view
                )
            report["with a view" if view else "without"] = {
                "calls": len(tools),
                "lookups": sum(tool in LOOKUPS for tool in tools),
                "tools": tools,
            }
    sys.stdout.write(json.dumps(report) + "\n")
    if not options.model:
        target = Path(__file__).resolve().parent / "results" / "views.json"
        target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
