"""Each reported fault of ../shared/cases/provider-*.jsonl runs by its id, and none is left out."""

import ast
import json
import re
from pathlib import Path

_IN_NAME = re.compile(r"_(p[as])_(\d{3})(?=_)")
_IN_TEXT = re.compile(r"\bP[AS]-\d{3}\b")
TESTS = Path(__file__).resolve().parents[1]


def cases_of(path: Path) -> set[str]:
    """The cases that a module's tests are named after, in their name, their parameters or their words."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            found |= {f"{area.upper()}-{number}" for area, number in _IN_NAME.findall(node.name)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(_IN_TEXT.findall(node.value))
    return found


def test_no_case_is_left_out(shared: Path) -> None:
    cases = {
        json.loads(line)["id"]
        for path in sorted((shared / "cases").glob("provider-*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    }
    run = cases_of(TESTS / "llm" / "test_reported_faults.py")
    run |= cases_of(TESTS / "end_to_end" / "test_provider_cases.py")
    run |= cases_of(TESTS / "tools" / "test_arguments.py")
    assert cases
    assert sorted(cases - run) == []
