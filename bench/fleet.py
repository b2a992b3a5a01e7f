"""A fleet of unlike agents in one process: the workload that the seed system published, rebuilt.

30 % wide (three workers each), 30 % deep (three stages), 20 % reviewers, 20 % analysts (two stages each).
Every stage visit is two model calls, the first of which appends a note of about 2 KB to shared state. The
mock runs in its own process and answers `--latency` seconds after each request; at most `--pool` requests
are under way. Drain is set against calls times latency over pool; memory is proportional (PSS).
Writes bench/results/fleet.json.
"""

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.cli.app import collect_from_now_on
from agentctl.cli.wiring import open_house
from agentctl.protocol.events import LaunchFlags, RunEnded
from agentctl.run.agent_kind import AgentKind, agent_kind
from agentctl.run.runner import run_to_end
from agentctl.run.start import Order, begun
from agentctl.settings.load import load_settings
from bench.agents import pss_mib
from bench.rig import mock_service

HEAD = '[agent]\nname = "{name}"\n[model]\nuse = ["openai-chat:mock"]\n[limits]\nsubagents = 100\n'
STAGE = '[stages.{name}]\nprompt = "Work."\navailable_tools = ["shared_state"]\n'
EDGE = '[stages.{name}.transitions.{to}]\nhint = "done"\n'


def chain(name: str, stages: int) -> str:
    """A blueprint of that many stages in a row."""
    text = HEAD.format(name=name)
    for index in range(stages):
        text += STAGE.format(name=f"s{index}")
        if index + 1 < stages:
            text += EDGE.format(name=f"s{index}", to=f"s{index + 1}")
    return text


WIDE = (
    HEAD.format(name="wide")
    + '[stages.split]\nprompt = "Split."\nmode = "fan_out"\n[stages.split.fan_out]\nworker = "worker"\n'
    + EDGE.format(name="split", to="report")
    + STAGE.format(name="worker").replace('"]\n', '"]\nallow_as_worker = true\n')
    + '[stages.report]\nprompt = "Report."\n'
)
FLEET = {
    "wide": (WIDE, 0.3, 1 + 3 * 2 + 1),
    "deep": (chain("deep", 3), 0.3, 6),
    "reviewer": (chain("reviewer", 2), 0.2, 4),
    "analyst": (chain("analyst", 2), 0.2, 4),
}
"""Name → blueprint, share, model calls a run."""


def shares(agents: int) -> list[str]:
    """One name an agent, in the fleet's shares, mixed."""
    names = list(FLEET)
    counts = {name: round(agents * FLEET[name][1]) for name in names}
    counts["wide"] += agents - sum(counts.values())
    return [name for index in range(agents) for name in names if index < counts[name]][:agents]


async def drain(agents: int, folder: Path) -> dict[str, float]:
    """Run the fleet and measure."""
    flags = LaunchFlags(allow=("spawn_agent", "fan_out"))
    kinds: dict[str, tuple[Blueprint, AgentKind]] = {}
    names = shares(agents)
    first = load_blueprint(folder / "wide.toml")
    async with open_house(load_settings(), first) as house:
        for name in FLEET:
            blueprint = load_blueprint(folder / f"{name}.toml")
            kinds[name] = blueprint, agent_kind(house, blueprint, folder, flags)
        before = peak = pss_mib()
        outcomes: list[str] = []

        async def one(name: str) -> None:
            blueprint, kind = kinds[name]
            async with begun(house, blueprint, Order(task="go", workdir=folder, flags=flags), kind) as parts:
                end = await run_to_end(parts)
            outcomes.append(end.outcome if isinstance(end, RunEnded) else end.reason)

        async def watch() -> None:
            nonlocal peak
            while True:
                peak = max(peak, pss_mib())
                await anyio.sleep(0.5)

        since, cpu = time.perf_counter(), time.process_time()
        async with anyio.create_task_group() as outer:
            outer.start_soon(watch)
            async with anyio.create_task_group() as group:
                for name in names:
                    group.start_soon(one, name)
            outer.cancel_scope.cancel()
        wall, cpu = time.perf_counter() - since, time.process_time() - cpu
    assert outcomes.count("finished") == agents, [one for one in outcomes if one != "finished"][:3]
    runs = agents + 3 * names.count("wide")
    return {
        "agents": agents,
        "runs": runs,
        "calls": sum(FLEET[name][2] for name in names),
        "drain_s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "mib_an_agent": round((peak - before) / runs, 3),
        "peak_pss_mib": round(peak, 1),
    }


def measure_here(agents: int, pool: int, latency: float) -> None:
    """Measure one fleet in this process."""
    gc.disable()
    collect_from_now_on()  # as every command does
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for kind, (text, _, _) in FLEET.items():
            (folder / f"{kind}.toml").write_text(text, encoding="utf-8")
        config = folder / "home" / "config"
        config.mkdir(parents=True)
        limit = f"[providers.openai-chat]\nmax_concurrency = {pool}\n"
        limit += "[limits]\nsubagents = 100\n[shared_state]\nmax_bytes = 67108864\n"
        (config / "config.toml").write_text(limit, encoding="utf-8")
        os.environ["AGENTCTL_HOME"] = str(folder / "home")
        with mock_service("--fleet", "--silent", "--latency", str(latency)) as (url, _):
            os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-none"}
            row = anyio.run(drain, agents, folder)
    row |= {"pool": pool, "latency_s": latency}
    row["ideal_s"] = round(row["calls"] * latency / pool, 2)
    longest = max(calls for _, _, calls in FLEET.values())
    row["longest_path_s"] = round(min(longest, 6) * latency, 2)
    sys.stdout.write(json.dumps(row) + "\n")


def main() -> None:
    """Measure each fleet in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--pool", type=int, nargs="+", default=[512])
    parser.add_argument("--latency", type=float, default=1.5)
    parser.add_argument("--child", action="store_true", help="measure here, for the one fleet given")
    options = parser.parse_args()
    if options.child:
        measure_here(options.agents[0], options.pool[0], options.latency)
        return
    target = Path(__file__).resolve().parent / "results" / "fleet.json"
    known = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {"runs": []}
    rows = {(row["agents"], row["pool"]): row for row in known["runs"]}
    for agents in options.agents:
        for pool in options.pool:
            command = [sys.executable, "-m", "bench.fleet", "--child", "--agents", str(agents)]
            command += ["--pool", str(pool), "--latency", str(options.latency)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            rows[agents, pool] = json.loads(done.stdout.splitlines()[-1])
            sys.stdout.write(json.dumps(rows[agents, pool]) + "\n")
    report = {"runs": [rows[key] for key in sorted(rows)]}
    target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
