"""Every dependency is explained in its page, and the page explains nothing else."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for group in project["optional-dependencies"].values() for one in group]
    return {re.split(r"[<>=!;\[ ]", line)[0] for line in (*project["dependencies"], *extras)}


def explained() -> set[str]:
    """Return the packages of the page's tables: the first column, or the second of the table of extras."""
    found: set[str] = set()
    column = 1
    for line in (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| package"):
            column = 1
        elif line.startswith("| extra"):
            column = 2
        elif line.startswith("| `"):
            found |= set(re.findall(r"`([\w-]+)`", line.split("|")[column]))
    return found


def test_every_dependency_is_explained_and_nothing_else_is() -> None:
    assert explained() == declared()
