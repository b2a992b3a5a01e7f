"""`researcher` answers a question about 500 files with a tree of agents, killed again and again."""

import random
import time
from pathlib import Path

import pytest

from agentctl.locations import data_dir
from tests.end_to_end.command import Bench, Ran

QUESTION = "How does the cache decide what to drop, and how large may it grow?"
ANSWER = (
    "The entry that was read longest ago is dropped first (docs/cache/eviction.md:7); "
    "it may hold 4096 entries (src/cache/limits.py:12)."
)
SCRIPT = r"""
[[replies]]
stage = "split"
tool_calls = [
  { tool = "glob", arguments = { pattern = "**/*" } },
  { tool = "grep", arguments = { pattern = "cache", include = "**/*.md" } },
]
[[replies]]
stage = "split"
expect = { last = ["docs/cache/eviction.md"] }
[[replies.tool_calls]]
tool = "submit_output"
[replies.tool_calls.arguments]
items = ["Which entry is dropped first? Begin in docs/cache.", "How large may it grow? Begin in src/cache."]

[[replies]]
agent = "reader"
when = "Which entry"
pause_s = 0.05
tool_calls = [{ tool = "grep", arguments = { pattern = "dropped first", path = "docs" } }]
[[replies]]
agent = "reader"
when = "Which entry"
pause_s = 0.05
tool_calls = [{ tool = "read_file", arguments = { path = "${found}" } }]
capture = { found = "docs/[a-z/]+\\.md" }
[[replies]]
agent = "reader"
when = "Which entry"
expect = { last = ["read longest ago"] }
text = "The entry that was read longest ago is dropped first (docs/cache/eviction.md:7)."

[[replies]]
agent = "reader"
when = "How large"
pause_s = 0.05
tool_calls = [
  { tool = "grep", arguments = { pattern = "MOST_ENTRIES = ", path = "src" } },
  { tool = "list_dir", arguments = { path = "src/cache" } },
]
[[replies]]
agent = "reader"
when = "How large"
pause_s = 0.05
expect = { last = ["MOST_ENTRIES = 4096"] }
text = "It may hold 4096 entries (src/cache/limits.py:12)."

[[replies]]
stage = "answer"
expect = { anywhere = ["2 of 2 finished.", "(docs/cache/eviction.md:7)", "(src/cache/limits.py:12)"] }
tool_calls = [{ tool = "read_file", arguments = { path = "docs/cache/eviction.md" } }]
[[replies]]
stage = "answer"
text = "ANSWER"
"""


@pytest.fixture
def script(bench: Bench) -> Path:
    """A workdir of 500 files, two of which tell; and what a model would say."""
    for number in range(498):
        kind, ending = ("docs", "md") if number % 2 else ("src", "py")
        path = bench.workdir / kind / f"part{number % 25}" / f"file{number}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Part {number}\n\nThe queue hands item {number} on.\n" * 5, encoding="utf-8")
    told = {
        "docs/cache/eviction.md": "# The cache\n\nWhat it drops.\n\n\n\n"
        "The entry that was read longest ago is dropped first.\n",
        "src/cache/limits.py": "\n" * 11 + "MOST_ENTRIES = 4096\n",
    }
    for name, text in told.items():
        path = bench.workdir / name
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    path = bench.folder / "researcher.script.toml"
    path.write_text(SCRIPT.replace("ANSWER", ANSWER), encoding="utf-8")
    return path


def flags(script: Path) -> tuple[str, ...]:
    return "--allow", "spawn_agent(reader)", "--model", f"scripted:{script}"


def test_researcher_answers_from_a_tree_of_500_files(bench: Bench, script: Path) -> None:
    ran = bench.agentctl("run", "researcher", QUESTION, *flags(script))

    assert ran.code == 0, ran.err
    assert ran.out.strip() == ANSWER


def _killed_and_resumed(bench: Bench, script: Path, dice: random.Random, whole_s: float) -> tuple[Ran, int]:
    """Kill the run, and each resume of it, at random moments; give the last resume its time."""
    kills = 0
    with bench.start("run", "researcher", QUESTION, *flags(script)) as process:
        time.sleep(dice.uniform(0.0, whole_s))  # any moment is the point: there is no state to wait for
        process.kill()
        kills += 1
    while dice.random() < 0.4:
        with bench.start("resume", "last", *flags(script)) as process:
            time.sleep(dice.uniform(0.0, whole_s))
            process.kill()
            kills += 1
    return bench.agentctl("resume", "last", *flags(script)), kills


def _try_points(bench: Bench, script: Path, points: int) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")  # noqa: T201 - shown when it fails
    dice = random.Random(seed)  # noqa: S311 - a test's own dice
    begun = time.monotonic()
    assert bench.agentctl("run", "researcher", QUESTION, *flags(script)).code == 0
    whole_s = time.monotonic() - begun
    kills = 0
    while kills < points:
        for path in data_dir().iterdir() if data_dir().exists() else ():
            path.unlink() if path.is_file() else None
        ran, more = _killed_and_resumed(bench, script, dice, whole_s)
        kills += more
        before_it_began = ran.code == 2 and "no run" in ran.err.lower()
        over_already = ran.code == 2 and "has ended (finished)" in ran.err
        assert before_it_began or over_already or ran.out.strip() == ANSWER, f"seed {seed}: {ran}"


def test_a_tree_killed_at_random_moments_still_answers(bench: Bench, script: Path) -> None:
    _try_points(bench, script, 5)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_tree_killed_at_fifty_random_moments_still_answers(bench: Bench, script: Path) -> None:
    _try_points(bench, script, 50)
