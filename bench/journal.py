"""What the journal costs: a commit alone, a thousand runs at once, opening 100,000 events.

`python bench/journal.py [--folder DIR]` prints one JSON object; results are in bench/results/journal.json.
Beside each commit rate stands what the disk itself does: the same bytes, written and flushed without SQLite.
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

from agentctl.journal.sqlite import SqliteJournal, open_journal
from agentctl.protocol.commands import Commit
from agentctl.protocol.events import Event, MessageAdded
from agentctl.protocol.messages import user_text

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


async def opening(folder: Path, events: int) -> dict[str, float]:
    path = folder / "long.db"
    journal = await open_journal(path)
    await journal.acquire("t-long")
    for start in range(0, events, 10):
        await journal.append(
            Commit(
                run_id="r-long",
                thread_id="t-long",
                events=tuple(event(number) for number in range(start, start + 10)),
            )
        )
    await journal.aclose()
    began = time.perf_counter()
    journal = await open_journal(path)
    opened = time.perf_counter() - began
    records = await journal.read("r-long")
    read = time.perf_counter() - began
    began = time.perf_counter()
    faults = await journal.verify("r-long")
    verified = time.perf_counter() - began
    assert not faults
    assert sum(len(record.events) for record in records) == events
    await journal.aclose()
    return {
        "events": events,
        "open_ms": round(opened * 1000, 1),
        "read_all_s": round(read, 2),
        "verify_s": round(verified, 2),
    }


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
