"""docs/policy.md quotes what the corpora and the comparison with bash hold."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = " ".join((ROOT / "docs" / "policy.md").read_text("utf-8").split())


def test_the_page_tells_how_many_lines_were_compared_with_bash() -> None:
    report = json.loads((ROOT / "bench" / "shell_fuzz.json").read_text("utf-8"))
    kinds = [part for part in report.values() if isinstance(part, dict)]
    lines, clear, ran = (
        sum(part[name] for part in kinds) for name in ("lines", "clear", "programs_run_by_clear_lines")
    )

    assert sum(part["holes"] for part in kinds) == 0
    assert f"of {lines:,} lines {clear:,} were clear and ran {ran:,} programs" in PAGE


def test_the_page_tells_how_many_cases_our_own_corpus_has() -> None:
    harmless = kept = 0
    for file in sorted((ROOT / "tests" / "corpus" / "shell").glob("*.jsonl")):
        decisions = [json.loads(line)["decision"] for line in file.read_text("utf-8").splitlines()]
        harmless += decisions.count("allow")
        kept += len(decisions) - decisions.count("allow")

    assert f"| our own, `tests/corpus/shell` | {kept:,} | 0 | {harmless:,} | 0 |" in PAGE
