"""Many agents in one process: wall time, CPU and memory an agent, with the journal on disk as in every run.

Each takes `--steps` steps against a mock service with `--latency` seconds before each reply, and calls a
tool that does nothing. Memory is proportional (PSS), before the agents are built and at its peak.
Writes `bench/results/agents.json`.
"""

import argparse
import gc
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import anyio

from agentctl.blueprint.load import load_blueprint
from agentctl.cli.app import collect_from_now_on
from agentctl.cli.wiring import open_house
from agentctl.protocol.events import LaunchFlags, RunEnded
from agentctl.run.agent_kind import agent_kind
from agentctl.run.runner import run_to_end
from agentctl.run.start import Order, begun
from agentctl.settings.load import load_settings
from bench.rig import mock_service

BLUEPRINT = """
[agent]
name = "bench"
[model]
use = ["openai-chat:mock"]
[stages.work]
prompt = "Do the steps."
available_tools = ["current_time"]
"""


def pss_mib() -> float:
    """This process's proportional memory."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no Pss in smaps_rollup")


async def drain(agents: int, folder: Path) -> dict[str, float]:
    """Run that many agents at once and measure."""
    blueprint = load_blueprint(folder / "bench.toml")
    async with open_house(load_settings(), blueprint) as house:
        kind = agent_kind(house, blueprint, folder, LaunchFlags())
        peak = before = pss_mib()
        outcomes: list[str] = []

        async def one() -> None:
            async with begun(house, blueprint, Order(task="go", workdir=folder), kind) as parts:
                end = await run_to_end(parts)
            outcomes.append(end.outcome if isinstance(end, RunEnded) else end.reason)

        async def watch() -> None:
            nonlocal peak
            while True:
                peak = max(peak, pss_mib())
                await anyio.sleep(0.25)

        since, cpu = time.perf_counter(), time.process_time()
        async with anyio.create_task_group() as outer:
            outer.start_soon(watch)
            async with anyio.create_task_group() as group:
                for _ in range(agents):
                    group.start_soon(one)
            outer.cancel_scope.cancel()
        wall, cpu = time.perf_counter() - since, time.process_time() - cpu
    assert outcomes.count("finished") == agents, outcomes[:3]
    return {
        "agents": agents,
        "wall_s": round(wall, 3),
        "cpu_s": round(cpu, 3),
        "kib_an_agent": round((peak - before) * 1024 / agents, 1),
        "peak_pss_mib": round(peak, 1),
    }


def main() -> None:
    """Measure each number of agents in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--child", action="store_true", help="measure here, for the one number given")
    options = parser.parse_args()
    if options.child:
        gc.disable()
        collect_from_now_on()  # as every command does
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard) if soft < hard else (soft, hard))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            (folder / "bench.toml").write_text(BLUEPRINT, encoding="utf-8")
            os.environ["AGENTCTL_HOME"] = str(folder / "home")
            with mock_service(
                "--steps", str(options.steps), "--latency", str(options.latency),
                "--tool", "current_time", "--silent",
            ) as (url, _):  # fmt: skip
                os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-none"}
                sys.stdout.write(json.dumps(anyio.run(drain, options.agents[0], folder)) + "\n")
        return
    import subprocess  # noqa: PLC0415 - the measured process has no use for it

    rows = []
    for agents in options.agents:
        command = [sys.executable, "-m", "bench.agents", "--child", "--agents", str(agents)]
        command += ["--steps", str(options.steps), "--latency", str(options.latency)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        sys.stdout.write(json.dumps(rows[-1]) + "\n")
    ideal = (options.steps + 1) * options.latency
    report = {"steps": options.steps, "latency_s": options.latency, "ideal_wall_s": ideal, "runs": rows}
    target = Path(__file__).resolve().parent / "results" / "agents.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
