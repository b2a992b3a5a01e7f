"""The facts of the originals (`../shared/vectors/state.json`), held against ours or told in docs/state.md.

A vector is checked by its case's name, or it stands in the page's table of differences with a reason. One
that is in neither, or in both, fails.
"""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.state.vectors_played import PLAYED
from tests.state.vectors_run import HOOKS, MACHINES, STATE, WRITES
from tests.state.vectors_store import FILES, STORE

ROOT = Path(__file__).resolve().parents[2]
IN_A_FOLDER = {**FILES, **PLAYED}
CHECKS = {**STORE, **HOOKS, **WRITES, **STATE, **MACHINES}
_ROW = re.compile(r"^\| ((?:SV-\d{3}(?:…SV-\d{3})?(?:, )?)+) \|", re.MULTILINE)


def told() -> dict[str, str]:
    """Vector id → its row in the page's table of differences."""
    page = (ROOT / "docs" / "state.md").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for row in _ROW.finditer(page):
        for part in row[1].split(", "):
            first, _, last = part.partition("…")
            for number in range(int(first[3:]), int((last or first)[3:]) + 1):
                found[f"SV-{number:03}"] = page[row.start() : page.find("\n", row.start())]
    return found


def vectors(shared: Path) -> list[Any]:
    loaded: list[Any] = json.loads((shared / "vectors" / "state.json").read_text(encoding="utf-8"))
    return loaded


def test_every_vector_is_checked_or_told_as_a_difference(shared: Path) -> None:
    differences = told()
    checked = {v["id"] for v in vectors(shared) if v["case"] in CHECKS or v["case"] in IN_A_FOLDER}

    missing = [f"{v['id']} {v['case']}" for v in vectors(shared) if v["id"] not in checked | set(differences)]
    assert not missing, "\n".join(missing)
    assert not [v["id"] for v in vectors(shared) if v["id"] in checked and v["id"] in differences]


def test_what_the_originals_do_and_agentctl_too(shared: Path, tmp_path: Path) -> None:
    failed: list[str] = []
    for number, vector in enumerate(vectors(shared)):
        case = vector["case"]
        try:
            if case in CHECKS:
                anyio.run(CHECKS[case], vector)
            elif case in IN_A_FOLDER:
                anyio.run(IN_A_FOLDER[case], vector, tmp_path / str(number))
        except Exception as error:  # noqa: BLE001 - every vector is tried, whatever one does
            failed.append(f"{vector['id']} {case}: {type(error).__name__} {str(error)[:300]}")
    assert not failed, "\n".join(failed)


def test_each_difference_has_a_reason() -> None:
    if not (ROOT / "docs" / "state.md").exists():
        pytest.skip("the page is not part of this checkout")
    assert all(len(row.split("|")[3].strip()) > 10 for row in told().values())
