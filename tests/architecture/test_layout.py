"""The rules of DESIGN §3 that keep the house readable, each enforced here."""

import ast
import graphlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "agentctl"
TIERS = {
    "__init__": 0,
    "locations": 0, "errors": 0,
    "records": -1, "ids": 0, "clock": 0,
    "protocol": 1, "toml": 1,
    "policy": 2, "interaction": 2, "executor": 2, "llm": 2, "state": 2, "tables": 2,
    "tools": 3, "blueprint": 3, "journal": 3, "settings": 3, "terminal": 3,
    "agent": 4,
    "run": 5,
    "api": 6, "serve": 6, "engine": 6, "testing": 6,
    "cli": 7,
    "__main__": 8,
}  # fmt: skip
ON_DEMAND = {
    "agentctl.llm.http_connect": "certificate authorities for a Python that comes without any",
    # module → why it may import inside a function (DESIGN §3)
    "agentctl.__main__": "start-up: --version before typer",
    "agentctl.terminal.api": "start-up: rich when it draws, prompts when somebody is asked",
    "agentctl.policy.shell.second": "tree-sitter is needed only for lines that the strict grammar refused",
    "agentctl.cli.": "a sub-command's module is loaded when it is called",
    "agentctl.settings.edit": "start-up: tomlkit costs 30 ms and is needed only when something is changed",
    "agentctl.tools.mcp.opening": "start-up: the MCP SDK costs 700 ms and is needed when a server is started",
    "agentctl.tools.script.engine": "start-up: the sandbox for scripts costs 200 ms and is an extra",
    "agentctl.tables.outside_tools": "start-up: importlib.metadata costs 15 ms, and few blueprints need it",
}
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("agentctl")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agentctl"):
            found.add(node.module or "")
            found |= {
                f"{node.module}.{alias.name}"
                for alias in node.names
                if (PACKAGE.parent / Path(*(node.module or "").split(".")) / f"{alias.name}.py").exists()
            }
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_lower_tiers_and_its_own_package(path: Path) -> None:
    module = name_of(path)
    own = package_of(module)
    wrong = [
        imported
        for imported in imports_of(path)
        if package_of(imported) != own and TIERS[package_of(imported)] >= TIERS[own]
    ]
    assert not wrong, f"{module} (tier {TIERS[own]}) may not import {wrong}"


def test_there_are_no_import_cycles() -> None:
    graph = {
        name_of(path): {name for name in imports_of(path) if name != name_of(path) and name != "agentctl"}
        for path in MODULES
        if path.name != "__init__.py"
    }
    tuple(graphlib.TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_has_at_most_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_MODULE_LINES


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_function_has_at_most_60_lines_without_its_docstring(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if ast.get_docstring(node) is not None:
            lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
        assert lines <= MAX_FUNCTION_LINES, f"{node.name} has {lines} lines"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_stand_at_the_top_unless_the_module_is_listed_with_a_reason(path: Path) -> None:
    module = name_of(path)
    if any(module == listed or (listed.endswith(".") and module.startswith(listed)) for listed in ON_DEMAND):
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = [
        node.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not inner, f"{module} imports inside functions at lines {inner}; see ON_DEMAND"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_is_left_open_in_the_source(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", text)


def test_the_mcp_sdk_is_known_in_its_own_packages_alone() -> None:
    allowed = {PACKAGE / "tools" / "mcp" / "wire", PACKAGE / "serve" / "mcp"}
    outside = [
        name_of(path)
        for path in MODULES
        if re.search(
            r"^ *(from|import) (mcp|mcp_types|httpx2)\b", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        and not allowed & set(path.parents)
    ]
    assert not outside


def test_every_package_opens_with_its_promise() -> None:
    silent = [
        path
        for path in PACKAGE.rglob("__init__.py")
        if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert not silent


def test_no_package_has_a_name_that_says_nothing() -> None:
    banned = {"utils", "helpers", "common", "core", "base", "misc", "manager"}
    assert not [path for path in PACKAGE.rglob("*") if path.is_dir() and path.name in banned]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_frozen_dataclass_is_made_by_records(path: Path) -> None:
    """Start-up: the standard decorator takes ten times as long, and a start makes five hundred classes."""
    text = path.read_text(encoding="utf-8")
    if path.name == "records.py" or "@dataclass(frozen=True, slots=True, kw_only=True)" not in text:
        return
    assert "from agentctl.records import dataclass\n" in text, (
        f"{name_of(path)}: take `dataclass` from agentctl.records, `field` and `replace` from dataclasses"
    )
