"""What the journal costs: a commit alone, a thousand runs at once, opening 100,000 events.

`python bench/journal.py [--folder DIR]` prints one JSON object; results are in bench/results/journal.json.
Beside each commit rate stands what the disk itself does: the same bytes, written and flushed without SQLite;
beside the time to open one the processor's, since other work on the machine lengthens the former alone.
"""

import argparse
import gc
import json
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import anyio

from agentctl.agent.agent_state import LiveState
from agentctl.journal.sqlite import SqliteJournal, open_journal
from agentctl.journal.states import load_cells
from agentctl.protocol.commands import Command, Commit, FoldValue, Merge
from agentctl.protocol.events import CallStarted, ContextCompacted, Event, MessageAdded, StepSettled
from agentctl.protocol.messages import (
    AssistantMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    user_text,
)
from agentctl.run import recorder
from agentctl.run.recorder import RunRecorder
from agentctl.run.resume import read_snapshot

TEXT = "x" * 600  # about 700 bytes as an event


def event(number: int) -> Event:
    return MessageAdded(message=user_text(f"{number} {TEXT}"), step=number)


def flush_alone_ms(folder: Path, count: int = 200) -> float:
    """Median milliseconds to append 700 bytes to a file and fdatasync it."""
    times = []
    with (folder / "plain").open("ab") as file:
        for _ in range(count):
            began = time.perf_counter()
            file.write(b"x" * 700)
            file.flush()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return round(statistics.median(times) * 1000, 3)


async def alone(journal: SqliteJournal, count: int = 300) -> dict[str, float]:
    await journal.acquire("t-alone")
    times = []
    for number in range(count):
        began = time.perf_counter()
        await journal.append(Commit(run_id="r-alone", thread_id="t-alone", events=(event(number),)))
        times.append(time.perf_counter() - began)
    times.sort()
    return {
        "median_ms": round(statistics.median(times) * 1000, 3),
        "p99_ms": round(times[int(count * 0.99)] * 1000, 3),
    }


async def together(journal: SqliteJournal, runs: int, commits: int) -> dict[str, float]:
    for number in range(runs):
        await journal.acquire(f"t-{number}")
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def one(number: int) -> None:
        for step in range(commits):
            await journal.append(Commit(run_id=f"r-{number}", thread_id=f"t-{number}", events=(event(step),)))

    began, cpu = time.perf_counter(), time.process_time()
    async with anyio.create_task_group() as group:
        for number in range(runs):
            group.start_soon(one, number)
    elapsed = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "runs": runs,
        "commits": runs * commits,
        "commits_per_s": round(runs * commits / elapsed),
        "cpu_us_per_commit": round((time.process_time() - cpu) / (runs * commits) * 1e6),
        "memory_kib_per_run": round((after - before) / runs, 1),
    }


async def long_run(journal: SqliteJournal, events: int, every: int) -> None:
    """A run as a real one is: replies, results, settled steps, cells, its window moved on now and then."""
    recorder.EVERY = every
    await journal.acquire("t-long")
    live = LiveState(thread_id="t-long")
    run = RunRecorder(journal=journal, run_id="r-long", thread_id="t-long", agent="bench", live=live)
    await run.commit(MessageAdded(message=user_text("go", source="task")))
    for step in range(events // 4):
        call = ToolCall(call_id=f"c-{step}", tool="read_file", arguments={"path": "a.txt"})
        result = ToolResult(call_id=call.call_id, tool=call.tool, outcome="ok", text=TEXT)
        count = Command(scope="run", key="n", action=FoldValue(value=1, fold="sum"), merge=Merge.FOLD)
        await run.commit(
            MessageAdded(message=AssistantMessage(parts=(TextPart(text=TEXT), call)), step=step),
            CallStarted(call_id=call.call_id, tool=call.tool, read_only=True),
            MessageAdded(message=ToolMessage(result=result), step=step),
            StepSettled(step=step, usage=Usage(), spent={"steps": float(step)}),
            commands=(count,),
        )
        if step % 100 == 99:  # a window holds about a hundred steps
            kept = len(run.snapshot.messages) - 20
            await run.commit(
                ContextCompacted(how="summary", kept_from=kept, tokens_before=1, tokens_after=1, summary="s")
            )


async def opened(path: Path) -> tuple[SqliteJournal, float, float]:
    """The journal, and the seconds that opening it took: by the clock, and of the processor."""
    began, cpu = time.perf_counter(), time.process_time()
    journal = await open_journal(path)
    await read_snapshot(journal, "r-long")
    await load_cells(journal, "t-long")
    return journal, time.perf_counter() - began, time.process_time() - cpu


async def opening(folder: Path, events: int) -> dict[str, float]:
    measured: dict[str, float] = {"events": events}
    for name, every in (("with_snapshot", 500), ("without_snapshot", 10**9)):
        path = folder / f"{name}.db"
        journal = await open_journal(path)
        await long_run(journal, events, every)
        await journal.aclose()
        journal, elapsed, cpu = await opened(path)
        measured[f"{name}_ms"] = round(elapsed * 1000, 1)
        measured[f"{name}_cpu_ms"] = round(cpu * 1000, 1)
        began = time.perf_counter()
        assert not await journal.verify("r-long")
        measured["verify_chain_ms"] = round((time.perf_counter() - began) * 1000, 1)
        await journal.aclose()
    return measured


async def measure(folder: Path, events: int) -> dict[str, object]:
    result: dict[str, object] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "flush_of_the_disk_ms": flush_alone_ms(folder),
    }
    journal = await open_journal(folder / "journal.db")
    result["one_run"] = await alone(journal)
    result["many_runs"] = await together(journal, 1000, 20)
    await journal.aclose()
    result["opening"] = await opening(folder, events)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--events", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        result = anyio.run(measure, Path(folder), options.events)
    json.dump(result, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
