"""Reported failures of other harnesses as cases: one a line, ours and, where it is there, the shared set."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "tests" / "corpus" / "reported"
SHARED = ROOT.parent / "shared" / "cases"
AREAS = ("path-confinement", "file-edit", "subprocess", "truncation", "encoding", "write-budget", "cost")


@dataclass(frozen=True, slots=True)
class Case:
    """One reported failure: what was given, and what is right."""

    id: str
    symptom: str
    given: dict[str, Any]
    expected: str

    @property
    def refused(self) -> bool:
        """Whether a refusal is right."""
        words = ("rejected", "denied", "all denied", "not allowed", "not matched", "no match", "no matches")
        return self.expected.startswith(words)

    @property
    def accepted(self) -> bool:
        """Whether a refusal is wrong."""
        return self.expected.startswith(("accepted", "both accepted", "all accepted"))


def read_cases(file: Path) -> Iterator[Case]:
    """Return the cases of a file."""
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        yield Case(case["id"], case["symptom"], case["input"], case["expected"])


def cases(area: str) -> list[Case]:
    """Return all cases of an area: our own, then the shared ones."""
    files = [file for folder in (OWN, SHARED) if (file := folder / f"{area}.jsonl").is_file()]
    return [case for file in files for case in read_cases(file)]


def each_case(area: str) -> pytest.MarkDecorator:
    """Run a test once for each case of an area, under the case's id."""
    return pytest.mark.parametrize("case", cases(area), ids=lambda case: case.id)


def nobody_reads(case: Case) -> None:
    """Fail: the case is of a kind that no test knows."""
    pytest.fail(f"{case.id} is of a kind that no test here tries: {case.given}")
