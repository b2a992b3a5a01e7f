"""Runs the real command in a process of its own, with a home and a workdir of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

TWO_STAGES = """
[agent]
name = "two"
[model]
use = ["scripted:"]
[stages.plan]
prompt = "Plan."
available_tools = ["current_time"]
[stages.plan.transitions.build]
hint = "the plan is ready"
[stages.build]
prompt = "Build."
available_tools = ["run_info"]
[script]
[[script.replies]]
stage = "plan"
text = "Let me look."
tool_calls = [{ tool = "current_time" }]
[[script.replies]]
stage = "plan"
text = "The plan is ready."
[[script.replies]]
stage = "build"
text = "All done."
"""


def environment() -> dict[str, str]:
    """The environment of a command: this checkout's code, compiled once and not at every start."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return inherited | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, object]:
        """The one JSON object of `--json`, or the last line of `--jsonl`."""
        last: dict[str, object] = json.loads(self.out.splitlines()[-1])
        return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A folder to work in, with blueprints beside it."""

    folder: Path
    workdir: Path

    def blueprint(self, text: str, name: str = "test") -> Path:
        """Write a blueprint and return its path."""
        path = self.folder / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *arguments: str | Path, **more: str) -> "subprocess.Popen[str]":
        """Start agentctl without a terminal: it gets a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "agentctl", *map(str, arguments)],
            cwd=self.workdir,
            env=environment() | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def environ(self, **more: str) -> dict[str, str]:
        """Return the environment that commands get."""
        return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **more}

    def agentctl(self, *arguments: str | Path, patience_s: float = 60, **more: str) -> Ran:
        """Run agentctl to its end, nobody at the terminal."""
        with self.start(*arguments, **more) as process:
            out, err = process.communicate(timeout=patience_s)
            return Ran(code=process.returncode, out=out, err=err)
