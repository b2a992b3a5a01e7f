"""Kill the process at any moment: `resume` goes on, nothing is lost, no side effect happens twice."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.end_to_end.command import Bench

STEPS = 6
APPENDING = """
[agent]
name = "appender"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Append."
available_tools = ["shell"]
[script]
""" + "".join(
    f"""
[[script.replies]]
tool_calls = [{{ tool = "shell", arguments = {{ command = "echo step-{step} >> log.txt" }} }}]
"""
    for step in range(STEPS)
) + """
[[script.replies]]
text = "done"
"""  # fmt: skip


def lines_of(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_run_goes_on_and_repeats_no_side_effect(bench: Bench, seed: int) -> None:
    path = bench.blueprint(APPENDING)
    log = bench.workdir / "log.txt"
    kill_at = random.Random(seed).uniform(1.0, STEPS)  # noqa: S311 - a test's own dice
    with bench.start("run", path, "go", "--yolo") as process:
        deadline = time.monotonic() + 30
        while len(lines_of(log)) < int(kill_at) and process.poll() is None and time.monotonic() < deadline:
            os.sched_yield()
        time.sleep((kill_at % 1) / 50)  # a point inside the step; no state to wait for is the point
        process.kill()

    for _ in range(3):
        resumed = bench.agentctl("resume", "last", "--yolo")
        if resumed.code != 2:
            break

    written = lines_of(log)
    assert resumed.code in {0, 2}, resumed.err
    assert len(written) == len(set(written)), f"seed {seed}: {written}"
    assert set(written) <= {f"step-{step}" for step in range(STEPS)}
    assert len(written) >= STEPS - 1, f"seed {seed}: {written}"


def test_ctrl_c_keeps_the_run_and_names_the_resume(bench: Bench) -> None:
    path = bench.blueprint(APPENDING.replace("echo step-2 >> log.txt", "echo step-2 >> log.txt; sleep 30"))
    log = bench.workdir / "log.txt"
    with bench.start("run", path, "go", "--yolo", "--jsonl") as process:
        while len(lines_of(log)) < 3 and process.poll() is None:
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)

    assert process.returncode == 130, err
    assert "agentctl resume" in err
    assert '"type":"result"' in out.splitlines()[-1]
    resumed = bench.agentctl("resume", "last", "--yolo")
    assert resumed.code == 0, resumed.err
    assert lines_of(log).count("step-2") == 1


def test_sigterm_stops_without_another_act_and_leaves_no_process(bench: Bench) -> None:
    path = bench.blueprint(
        APPENDING.replace("echo step-1 >>", "sleep 987 & echo $! > child.pid; wait; echo step-1 >>")
    )
    child = bench.workdir / "child.pid"
    with bench.start("run", path, "go", "--yolo") as process:
        while not (child.exists() and child.read_text()) and process.poll() is None:
            os.sched_yield()
        pid = int(child.read_text())
        process.terminate()
        err = process.communicate(timeout=20)[1]

    assert process.returncode == 143, err
    cmdline = Path(f"/proc/{pid}/cmdline")
    assert not cmdline.exists() or "987" not in cmdline.read_text(encoding="utf-8")
