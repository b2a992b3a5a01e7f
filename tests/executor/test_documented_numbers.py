"""docs/sandbox.md quotes what was recorded of processes."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "sandbox.md").read_text("utf-8").split())
RECORDED = json.loads((ROOT / "bench" / "results" / "processes.json").read_text("utf-8"))


def test_the_page_tells_what_a_call_costs() -> None:
    rows = {
        "spawn itself (`bash -c true`)": "spawn itself",
        "a call without a sandbox, over the spawn": "over the spawn",
        "bubblewrap, over that": "bubblewrap over bare",
        "Landlock, over that": "landlock over bare",
    }

    for words, name in rows.items():
        times = RECORDED["calls"][name]
        assert f"| {words} | {times['least_ms']:.2f} ms | {times['median_ms']:.2f} ms |" in PAGE


def test_the_page_tells_what_a_gigabyte_of_output_costs() -> None:
    gigabyte = RECORDED["gigabyte_of_output"]

    assert f"takes {gigabyte['call_s']:.2f} s, {gigabyte['ratio']} times what reading it to nowhere" in PAGE
    assert f"{gigabyte['cpu_of_agentctl_s']:.2f} s of agentctl's own processor time" in PAGE
    assert f"{gigabyte['more_memory_mib']} MiB more memory" in PAGE
