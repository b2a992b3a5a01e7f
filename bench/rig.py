"""Ours beside the floor in one run: 50 shell steps against a mock service without latency.

Figures: process start to first model request, wall and CPU of all steps, peak memory, size of the first
request. CPU counts the process and the programs it ran. Ratios are ours over the floor, medians of `--runs`.
Writes `bench/results/rig.json`.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"

BLUEPRINT = """
[agent]
name = "bench"

[model]
use = ["openai-chat:mock"]

[limits]
steps = 1000

[stages.work]
prompt = "Do the steps."
available_tools = ["shell", "read_file", "write_file", "edit_file"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One whole run."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    first_request_s: float
    cpu_before_s: float
    """CPU of the same command when the service has one reply and no step."""
    first_request_bytes: int
    steps: int


@contextmanager
def mock_service(*arguments: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A mock service in its own process; gives its base URL."""
    command = [sys.executable, str(HERE / "mock_server.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        try:
            yield f"http://127.0.0.1:{port}/v1", process
        finally:
            process.kill()


def as_installed() -> dict[str, str]:
    """The environment without what would make Python compile every module anew at each start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measure(command: list[str], environ: dict[str, str], steps: int) -> Figures:
    """Run `command` once against a fresh mock, with its address in place of {url}."""
    start = measure_once(command, environ, 0, 0.0)
    return measure_once(command, environ, steps, start.cpu_s)


def measure_once(command: list[str], environ: dict[str, str], steps: int, cpu_before_s: float) -> Figures:
    """Run `command` once and return its figures."""
    with mock_service("--steps", str(steps)) as (url, process):
        filled = [part.replace("{url}", url) for part in command]
        env = as_installed() | {name: value.replace("{url}", url) for name, value in environ.items()}
        begun, started = time.perf_counter(), time.time()
        child = subprocess.Popen(filled, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert child.stderr is not None
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{filled} exited with {child.returncode}:\n{errors.decode()}")
        process.kill()
        assert process.stdout is not None
        requests = [json.loads(line) for line in process.stdout.read().splitlines() if line.strip()]
    return Figures(
        wall_s=wall,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mib=usage.ru_maxrss / 1024,
        first_request_s=requests[0]["at"] - started,
        cpu_before_s=cpu_before_s,
        first_request_bytes=requests[0]["bytes"],
        steps=len(requests) - 1,
    )


def median_of(runs: list[Figures]) -> dict[str, float]:
    """The median of each figure."""
    return {name: statistics.median(asdict(run)[name] for run in runs) for name in asdict(runs[0])}


def per_step(figures: dict[str, float]) -> dict[str, float]:
    """Milliseconds a step: all steps between the first request and the end; CPU without that of the start."""
    steps = figures["steps"]
    wall = (figures["wall_s"] - figures["first_request_s"]) / steps
    cpu = max(0.0, figures["cpu_s"] - figures["cpu_before_s"]) / steps
    return {"wall_ms": wall * 1000, "cpu_ms": cpu * 1000}


def bare_python_s(arguments: list[str], runs: int) -> float:
    """Median wall seconds of a whole Python process."""
    walls = []
    for _ in range(runs):
        begun = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=as_installed())
        walls.append(time.perf_counter() - begun)
    return statistics.median(walls)


def main() -> None:
    """Measure, print a table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        blueprint = Path(folder) / "bench.toml"
        blueprint.write_text(BLUEPRINT, encoding="utf-8")
        workdir = Path(folder) / "work"
        workdir.mkdir()
        ours = [sys.executable, "-m", "agentctl", "run", str(blueprint), "Do the steps."]
        ours += ["--workdir", str(workdir), "--allow", "shell"]
        environ = {
            "OPENAI_BASE_URL": "{url}",
            "OPENAI_API_KEY": "sk-none",
            "AGENTCTL_HOME": str(Path(folder) / "home"),
            "AGENTCTL_MODEL": "",
        }
        config = Path(folder) / "home" / "config"
        config.mkdir(parents=True)
        (config / "config.toml").write_text('[sandbox]\nkind = "none"\n', encoding="utf-8")
        boxed = {**environ, "AGENTCTL_HOME": str(Path(folder) / "boxed")}
        floor = [sys.executable, str(HERE / "floor.py"), "{url}"]
        rounds = [
            (
                measure(floor, environ, options.steps),
                measure(ours, environ, options.steps),
                measure(ours, boxed, options.steps),
            )
            for _ in range(options.runs + 1)
        ][1:]  # the first round warms the caches
    lowest, own, sandboxed = (median_of(list(runs)) for runs in zip(*rounds, strict=True))
    bare = bare_python_s(["-c", "pass"], 15)
    version = bare_python_s(["-m", "agentctl", "--version"], 15)
    named = {"floor": lowest, "agentctl": own, "agentctl_in_sandbox": sandboxed}
    report = {
        "python": sys.version.split()[0],
        "steps": options.steps,
        "runs": options.runs,
        "floor": lowest,
        "agentctl": own,
        "agentctl_in_sandbox": sandboxed,
        "step": {name: per_step(figures) for name, figures in named.items()},
        "ratio": {
            "first_request": own["first_request_s"] / lowest["first_request_s"],
            "wall_a_step": per_step(own)["wall_ms"] / per_step(lowest)["wall_ms"],
            "cpu_a_step": per_step(own)["cpu_ms"] / per_step(lowest)["cpu_ms"],
        },
        "version_over_bare_python": version / bare,
        "max_rss_unit": "MiB",
        "page_size": resource.getpagesize(),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "rig.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for name in own:
        columns = "".join(f"  {key} {figures[name]:10.3f}" for key, figures in named.items())
        sys.stdout.write(f"{name:20}{columns}\n")
    sys.stdout.write(json.dumps(report["ratio"]) + "\n")
    sys.stdout.write(f"--version over bare python: {version / bare:.2f}\n")


if __name__ == "__main__":
    main()
