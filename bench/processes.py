"""What a command costs over the spawn itself, bare and in each sandbox, and what a gigabyte of output costs.

`python bench/processes.py [--calls N]` prints one JSON object and writes `bench/results/processes.json`.
Calls of all kinds are interleaved, so that a busy machine slows all of them alike; figures are milliseconds,
the least and the median. The spawn itself is `posix_spawn` of `bash -c true` and the wait for it.
"""

import argparse
import fcntl
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from agentctl.executor.api import (
    CommandRequest,
    Edit,
    GrepRequest,
    PageRequest,
    Roots,
    SandboxKind,
    SandboxPolicy,
    WriteMode,
)
from agentctl.executor.local import LocalExecutor

RESULTS = Path(__file__).resolve().parent / "results" / "processes.json"
GIGABYTE = 1_000_000_000
KINDS = (SandboxKind.NONE, SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK)


def spawn_ms() -> float:
    """The least that any caller pays."""
    began = time.perf_counter()
    pid = os.posix_spawnp("bash", ["bash", "-c", "true"], os.environ)
    os.waitpid(pid, 0)
    return (time.perf_counter() - began) * 1000


async def anyio_ms() -> float:
    """What the async library's own way costs."""
    began = time.perf_counter()
    await anyio.run_process(["bash", "-c", "true"])
    return (time.perf_counter() - began) * 1000


async def call_ms(executor: LocalExecutor, roots: Roots, kind: SandboxKind) -> float:
    """One whole call, from the request to the result with nothing left behind."""
    request = CommandRequest(command="true", roots=roots, sandbox=SandboxPolicy(kind=kind))
    began = time.perf_counter()
    await executor.run(request)
    return (time.perf_counter() - began) * 1000


def summary(times: list[float]) -> dict[str, float]:
    """The least and the median."""
    return {"least_ms": round(min(times), 2), "median_ms": round(statistics.median(times), 2)}


async def calls(executor: LocalExecutor, roots: Roots, count: int) -> dict[str, object]:
    """Interleaved calls of every kind that this machine has."""
    kinds = [kind for kind in KINDS if await executor.sandbox_in_force(SandboxPolicy(kind=kind)) is kind]
    times: dict[str, list[float]] = {"spawn itself": [], "anyio.run_process": []}
    for kind in kinds:
        times[f"call, {kind.value}"] = []
        await call_ms(executor, roots, kind)
    for _ in range(count):
        times["spawn itself"].append(spawn_ms())
        times["anyio.run_process"].append(await anyio_ms())
        for kind in kinds:
            times[f"call, {kind.value}"].append(await call_ms(executor, roots, kind))
    least = {name: min(values) for name, values in times.items()}
    median = {name: statistics.median(values) for name, values in times.items()}
    result: dict[str, object] = {name: summary(values) for name, values in times.items()}
    bare = f"call, {SandboxKind.NONE.value}"
    result["over the spawn"] = {
        "least_ms": round(least[bare] - least["spawn itself"], 2),
        "median_ms": round(median[bare] - median["spawn itself"], 2),
    }
    for kind in kinds[1:]:
        name = f"call, {kind.value}"
        result[f"{kind.value} over bare"] = {
            "least_ms": round(least[name] - least[bare], 2),
            "median_ms": round(median[name] - median[bare], 2),
        }
    return result


def to_nowhere_s() -> float:
    """Read a gigabyte from a pipe and keep nothing."""
    with subprocess.Popen(["bash", "-c", f"head -c {GIGABYTE} /dev/zero"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
        began = time.perf_counter()
        while os.read(pipe, 1 << 20):
            pass
        return time.perf_counter() - began


async def gigabyte(executor: LocalExecutor, roots: Roots, rounds: int) -> dict[str, object]:
    """The same gigabyte through a call, whole in its spill file; memory is this process's peak."""
    nowhere, ours = [], []
    own_cpu = []
    load = os.getloadavg()[0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(rounds):
        nowhere.append(to_nowhere_s())
        request = CommandRequest(
            command=f"head -c {GIGABYTE} /dev/zero",
            roots=roots,
            sandbox=SandboxPolicy(kind=SandboxKind.NONE),
            on_output=lambda _: None,
        )
        began, cpu = time.perf_counter(), time.process_time()
        result = await executor.run(request)
        ours.append(time.perf_counter() - began)
        own_cpu.append(time.process_time() - cpu)
        assert result.output.total_bytes == GIGABYTE
        assert result.output.spill is not None
        assert result.output.spill_bytes == GIGABYTE
        result.output.spill.unlink()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "load_before": round(load, 1),
        "to_nowhere_s": round(min(nowhere), 3),
        "call_s": round(min(ours), 3),
        "ratio": round(min(ours) / min(nowhere), 2),
        "cpu_of_agentctl_s": round(min(own_cpu), 3),
        "more_memory_mib": round(grown / 1024, 1),
    }


async def files(executor: LocalExecutor, roots: Roots) -> dict[str, object]:
    """Reading, writing, searching and measuring a tree of 10,000 files."""
    for number in range(100):
        (roots.workdir / f"d{number}").mkdir()
        for inner in range(100):
            (roots.workdir / f"d{number}" / f"f{inner}").write_text(f"line {number}\nneedle {inner}\n" * 20)
    result: dict[str, object] = {"files": 10_000}

    async def timed(name: str, times: int, work: object) -> None:
        spent = []
        for _ in range(times):
            began = time.perf_counter()
            await work()  # type: ignore[operator]
            spent.append((time.perf_counter() - began) * 1000)
        result[name] = summary(spent)

    base = await executor.resolve(".", roots)
    path = await executor.resolve("d1/f1", roots)
    await timed("resolve", 50, lambda: executor.resolve("d1/f1", roots))
    await timed("read a page", 50, lambda: executor.read_page(path, PageRequest()))
    await timed(
        "search, literal", 3, lambda: executor.grep(base, GrepRequest(pattern="needle 99", literal=True))
    )
    await timed("search, pattern", 3, lambda: executor.grep(base, GrepRequest(pattern="needle 9+")))

    async def edit() -> None:
        planned = await executor.plan_edit(path, (Edit(old="line 1\nneedle 1\nline 1", new="x"),))
        await executor.apply_write(planned)

    async def write() -> None:
        await executor.apply_write(
            await executor.plan_write(path, "line 1\nneedle 1\n" * 20, WriteMode.REPLACE)
        )

    await timed("write, durable", 20, write)
    first = time.perf_counter()
    before = await executor.measure(roots)
    result["first measure"] = {"ms": round((time.perf_counter() - first) * 1000, 1)}
    await timed("measure, later", 10, lambda: executor.measure(roots))

    async def quiet() -> None:
        state = await executor.measure(roots)
        await executor.run(
            CommandRequest(command="true", roots=roots, sandbox=SandboxPolicy(kind=SandboxKind.NONE))
        )
        await executor.changed_since(state, roots)

    await timed("call that writes nothing, measured", 10, quiet)
    assert before.complete
    return result


async def main(count: int) -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "work").mkdir()
        roots = Roots(workdir=place / "work", temp=place / "temp")
        executor = LocalExecutor()
        result: dict[str, object] = {
            "python": platform.python_version(),
            "kernel": platform.release(),
            "processors": os.cpu_count(),
            "load_before": round(os.getloadavg()[0], 1),
            "calls": await calls(executor, roots, count),
            "gigabyte_of_output": await gigabyte(executor, roots, 3),
            "files": await files(executor, roots),
        }
        await executor.aclose()
    text = json.dumps(result, indent=2)
    RESULTS.write_text(f"{text}\n", "utf-8")
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100)
    anyio.run(main, parser.parse_args().calls)
