"""Real folders, and calls of real tools through the whole loop: decision, budgets, executor, result."""

import json
import os
import re
import resource
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from agentctl.blueprint.load import parse_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.locations import config_dir
from agentctl.protocol.events import LaunchFlags
from agentctl.protocol.messages import ToolMessage, ToolResult
from agentctl.run.resume import read_snapshot
from agentctl.run.runner import RunEnd
from agentctl.testing.play import Answering, Stage, Turn, open_stage

PATIENCE_S = 30
_ARROW = re.compile(r"(\S+) -> (\S+?)(?:[,;)]|\s|$)")
_BLUEPRINT = """
[agent]
name = "desk"
[model]
use = ["scripted:"]
{rules}
[stages.work]
prompt = "Work."
available_tools = ["read_file", "list_dir", "glob", "grep", "write_file", "edit_file", "shell"]
"""


def call(tool: str, call_id: str = "", **arguments: Any) -> dict[str, Any]:
    """Return a tool call as a script writes it."""
    return {"tool": tool, "arguments": arguments, **({"call_id": call_id} if call_id else {})}


def permissions(**entries: Any) -> str:
    """Return a table of permissions as TOML."""
    lines = []
    for tool, entry in entries.items():
        if isinstance(entry, str):
            lines.append(f"{tool} = {json.dumps(entry)}")
        else:
            inner = ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())
            lines.append(f"{tool} = {{ {inner} }}")
    return "\n".join(["[tool_permissions]", *lines])


@contextmanager
def no_file_beyond(count: int) -> Iterator[None]:
    """Let the kernel refuse to make any file of this process longer than `count` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run."""

    results: list[ToolResult]
    """What the model was told of each call that was made."""
    end: RunEnd
    spent: dict[str, float]


@dataclass(slots=True)
class Desk:
    """The folders that cases speak of, and hands to act in them."""

    folder: Path
    names: dict[str, Path] = field(default_factory=dict)
    """Places as cases write them → where they are here."""
    work: Path = Path()

    def __post_init__(self) -> None:
        """Lay out the folders."""
        self.work = self.folder / "repo" / "app"
        outside = self.folder / "outside"
        home = Path.home()
        for place in (self.work, outside):
            place.mkdir(parents=True)
        self.names = {
            "/repo/app": self.work,
            "/repo": self.work.parent,
            "/home/user/project": self.work,
            "/outside": outside,
            "../OUTSIDE": outside,
            "~": home,
        }

    def here(self, text: str) -> str:
        """Return a path of a case as it is here; relative ones stay as they are."""
        for name, place in self.names.items():
            if text == name or text.startswith((f"{name}/", f"{name}-")):
                return f"{place}{text[len(name) :]}"
        return text

    def at(self, text: str) -> Path:
        """Return where a path of a case is here; relative ones are of the workdir."""
        return self.work / self.here(text)

    def set_up(self, setup: str) -> None:
        """Make what the words of a setup say: links, hard links, pipes, sockets, contents."""
        for name, target in _ARROW.findall(setup):
            self._link(name, target, setup)
        if found := re.search(r"(\S+) is a hard link to (\S+)", setup):
            target = self.at(found[2])
            target.write_text("SECRET\n")
            self.at(found[1]).hardlink_to(target)
        if found := re.search(r"mkfifo (\S+)", setup):
            os.mkfifo(self.at(found[1]))
        if found := re.search(r"socket at (\S+)", setup):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self.at(found[1])))
            listener.close()

    def without_sandbox(self) -> None:
        """Let the user of this desk have no sandbox."""
        config = config_dir() / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text('[sandbox]\nkind = "none"\n')

    def blueprint(self, rules: str = "") -> Blueprint:
        """Return an agent with the tools for files and commands."""
        text = _BLUEPRINT.format(rules=rules)
        return parse_blueprint(text.encode(), path=self.folder / "desk.toml", found_by="path")

    def _link(self, name: str, target: str, setup: str) -> None:
        link, place = self.at(name), Path(self.here(target))
        led = link.parent / place
        another = any(target == other for other, _ in _ARROW.findall(setup))
        if not another and "missing" not in target and not led.exists() and led.is_relative_to(self.folder):
            if led.suffix:
                led.parent.mkdir(parents=True, exist_ok=True)
                led.write_text(f"{'TOPSECRET' if 'TOPSECRET' in setup else 'SECRET'}\n")
            else:
                led.mkdir(parents=True)
                (led / "inside.txt").write_text("SECRET\n")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place)

    async def calls(
        self,
        *calls: Mapping[str, Any],
        rules: str = "",
        allow: Sequence[str] = ("read_file", "write_file", "edit_file", "shell"),
        yolo: bool = False,
        workdir: Path | None = None,
        answers: Answering | None = None,
    ) -> list[ToolResult]:
        """Let a model make one call after the other; return what it was told of each."""
        ran = await self.run(*calls, rules=rules, allow=allow, yolo=yolo, workdir=workdir, answers=answers)
        assert len(ran.results) == len(calls), ran.end
        return ran.results

    async def run(
        self,
        *calls: Mapping[str, Any],
        rules: str = "",
        allow: Sequence[str] = ("read_file", "write_file", "edit_file", "shell"),
        yolo: bool = False,
        workdir: Path | None = None,
        answers: Answering | None = None,
    ) -> Ran:
        """Let a model make one call after the other until the run ends; return what came of it."""
        replies = [{"tool_calls": [dict(one)]} for one in calls]
        async with open_stage(self.blueprint(rules), workdir=workdir or self.work, answers=answers) as opened:
            stage: Stage = replace(opened, flags=LaunchFlags(allow=tuple(allow), yolo=yolo))
            with anyio.fail_after(PATIENCE_S):
                run_id, end = await stage.begin(Turn(text="go", replies=[*replies, {"text": "done"}]))
            added = [getattr(one.event, "message", None) for one in stage.published]
            results = [message.result for message in added if isinstance(message, ToolMessage)]
            snapshot = await read_snapshot(stage.journal, run_id)
            return Ran(results=results, end=end, spent=snapshot.spent)
