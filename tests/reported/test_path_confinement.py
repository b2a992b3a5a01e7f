"""Paths that led out of the workdir elsewhere, or were refused though they did not."""

import contextlib
import json
import re
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import Roots, WriteMode
from agentctl.executor.local import LocalExecutor
from agentctl.policy.paths import Place
from agentctl.policy.protected import protected_paths
from agentctl.testing.play import approve
from tests.reported.cases import Case, each_case, nobody_reads
from tests.reported.desk import Desk, call, permissions

pytestmark = pytest.mark.anyio

PLENTY = {"yolo": True}
"""The most that a person can let through: containment holds all the same."""


@each_case("path-confinement")
async def test_a_reported_path(case: Case, desk: Desk) -> None:
    given = case.given
    match given:
        case {"root": str(root), "path": str(path)} if root.startswith("/alias"):
            await a_root_behind_a_link(desk, path)
        case {"setup": str(setup)} if "between check and write" in setup:
            await a_link_swapped_in(desk)
        case {"tool": "glob" | "grep" as tool, "pattern": str(pattern), "setup": str(setup)}:
            desk.set_up(setup)
            (found,) = await desk.calls(call(tool, pattern=pattern), **PLENTY)
            assert "no match" in found.text.lower() or "No file" in found.text, found.text
            assert "/outside" not in found.text
        case {"command": str(command)}:
            await a_command(case, desk, command)
        case {"rule": str(rule), "path": str(path)}:
            await a_rule(case, desk, rule, path)
        case {"deny": list(denied), "path": str(path)}:
            entry = {"default": "allow", "deny": denied}
            await paths(case, desk, [path], rules=permissions(write_file=entry, read_file=entry))
        case {"path": str(path)}:
            await paths(case, desk, [path])
        case {"paths": list(several)}:
            await paths(case, desk, [str(one) for one in several])
        case {"tool": "restore/rewind", "setup": str(setup)}:
            await a_hard_link(desk, setup)
        case _:
            nobody_reads(case)


async def paths(case: Case, desk: Desk, several: list[str], *, rules: str = "") -> None:
    """Read, search, write and edit each path with everything allowed, and look at what really happened."""
    desk.set_up(str(case.given.get("setup", "")))
    writing = case.given.get("tool") == "write"
    for path in several:
        shown, place = desk.here(path), desk.at(path)
        outside = leads_out(place, desk.work)
        with contextlib.suppress(OSError, ValueError):
            if not writing and not place.exists() and not place.is_symlink():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("SECRET\n" if outside else "plain\n")
        before = content(place)
        began = monotonic()
        read, listed, written, edited = await desk.calls(
            call("read_file", path=shown),
            call("grep", pattern="SECRET|root:", path=shown),
            call("write_file", path=shown, content="CHANGED\n", overwrite=True),
            call("edit_file", path=shown, old="SECRET", new="CHANGED"),
            rules=rules,
            **PLENTY,
        )
        if case.accepted:
            assert (read.outcome, written.outcome) == ("ok", "ok"), (read.text, written.text)
            assert content(place) == "CHANGED\n"
            continue
        assert monotonic() - began < 5
        assert {written.outcome, edited.outcome} <= {"failed", "denied"}, (path, written.text)
        assert content(place) == before
        if outside:
            assert {read.outcome, listed.outcome} <= {"failed", "denied"}, (path, read.text)
        assert not re.search(r"SECRET|root:", read.text + written.text + edited.text)
        if case.expected.startswith("error "):
            assert re.search("pipe|regular file", read.text)
        if "protected" in case.expected:
            assert protected_paths(Place(workdir=str(desk.work), home="/h")).why(str(desk.work / path))


def leads_out(place: Path, root: Path) -> bool:
    """Return whether a path leads out of the root, or nowhere at all."""
    try:
        return not place.resolve().is_relative_to(root)
    except (RuntimeError, ValueError):  # a loop of links; a NUL
        return True


def content(place: Path) -> str | None:
    """Return what stands in a regular file."""
    return place.read_text(encoding="utf-8") if place.is_file() else None


async def a_root_behind_a_link(desk: Desk, path: str) -> None:
    alias = desk.folder / "alias"
    alias.symlink_to(desk.work)
    desk.at(path).write_text("plain\n")

    by_name, by_alias = await desk.calls(
        call("read_file", path=desk.here(path)), call("read_file", path=f"{alias}/f.txt"), workdir=alias
    )

    assert (by_name.outcome, by_alias.outcome) == ("ok", "ok"), (by_name.text, by_alias.text)


async def a_link_swapped_in(desk: Desk) -> None:
    """Between plan and write the file becomes a link; the executor is the only one that could follow it."""
    file, target = desk.work / "f.txt", desk.at("/outside/f")
    file.write_text("plain\n")
    target.write_text("as it was\n")
    executor = LocalExecutor()
    roots = Roots(workdir=desk.work, temp=desk.folder / "temp")
    try:
        planned = await executor.plan_write(
            await executor.resolve("f.txt", roots), "CHANGED\n", WriteMode.REPLACE
        )
        file.unlink()
        file.symlink_to(target)
        with contextlib.suppress(ToolError):
            await executor.apply_write(planned)
    finally:
        await executor.aclose()
    assert target.read_text() == "as it was\n"


async def a_hard_link(desk: Desk, setup: str) -> None:
    """agentctl restores no files; what writes whole files is refused where another name is outside."""
    desk.set_up(setup)
    written, edited, read = await desk.calls(
        call("write_file", path="f", content="CHANGED\n", overwrite=True),
        call("edit_file", path="f", old="SECRET", new="CHANGED"),
        call("read_file", path="f"),
        **PLENTY,
    )
    assert {written.outcome, edited.outcome} == {"failed"}
    assert "hard link" in written.text
    assert read.outcome == "ok"
    assert desk.at("/outside/f").read_text() == "SECRET\n"


async def a_command(case: Case, desk: Desk, command: str) -> None:
    """A shell line under write rules of its own."""
    root = desk.at(str(case.given["root"]))
    entry = {"default": "ask"}
    for verdict in ("allow", "deny"):
        texts = [str(one).removeprefix("write ") for one in case.given.get(verdict, ())]
        entry[verdict] = [desk.here(text) if text.startswith("/") else text for text in texts]  # type: ignore[assignment]
    (told,) = await desk.calls(
        call("shell", command=command),
        rules=permissions(shell="allow", write_file=entry),  # noqa: S604 - a permission
        allow=(),
        workdir=root,
    )
    assert told.outcome == "denied", told.text
    assert not list(root.rglob("pwn.txt"))


async def a_rule(case: Case, desk: Desk, rule: str, path: str) -> None:
    """A rule in the words of another tool, as a permission of ours; the call is made with nobody there."""
    tool, verdict, pattern = read_rule(rule)
    place = desk.at(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("SECRET\n")
    made = (
        call("read_file", path=str(place))
        if tool == "read_file"
        else call("write_file", path=path, content="CHANGED\n", overwrite=True)
    )
    entry = {"default": "allow" if verdict == "deny" else "ask", verdict: [pattern]}

    (told,) = await desk.calls(made, rules=permissions(**{tool: entry}), allow=())

    assert told.outcome in {"denied", "failed"}, told.text
    assert place.read_text() == "SECRET\n"
    assert "SECRET" not in json.dumps(told.text)


def read_rule(text: str) -> tuple[str, str, str]:
    """Return tool, verdict and pattern of `Edit(PATTERN)` (an allow) or `deny read PATTERN`."""
    if found := re.fullmatch(r"(Edit|Write|Read)\((.*)\)", text):
        return ("read_file" if found[1] == "Read" else "write_file"), "allow", found[2]
    verdict, kind, pattern = text.split(" ", 2)
    return f"{kind}_file", verdict, pattern


async def test_a_place_where_no_file_can_be_is_told_and_ends_no_run(desk: Desk) -> None:
    (desk.work / "file").write_text("plain\n")

    told = await desk.calls(
        call("write_file", path="file/below", content="x"),
        call("write_file", path="n" * 300, content="x"),
        call("shell", command="echo x > file/below"),
        call("read_file", path="file/below"),
        **PLENTY,
    )

    assert [one.outcome for one in told] == ["failed"] * 4
    assert content(desk.work / "file") == "plain\n"


@pytest.mark.parametrize("rule", [{"deny": ["secrets/**", ".env"]}, {"ask": ["secrets/**", ".env"]}])
async def test_a_search_shows_nothing_of_files_that_a_rule_keeps(desk: Desk, rule: dict[str, Any]) -> None:
    (desk.work / "secrets").mkdir()
    for name in ("secrets/key", ".env", "open.txt"):
        (desk.work / name).write_text(f"word in {name}\n")
    (desk.work / "link").symlink_to("secrets")

    told = await desk.calls(
        call("grep", pattern="word"),
        call("grep", pattern="word", path=str(desk.work), context=2),
        call("grep", pattern="word", path="secrets"),
        call("grep", pattern="word", path=".env"),
        call("grep", pattern="word", path="link"),
        rules=permissions(read_file={"default": "allow", **rule}),
        allow=(),
    )

    assert [one.outcome for one in told] == ["ok", "ok", "denied", "denied", "denied"]
    for found in told[:2]:
        assert "word in open.txt" in found.text
        assert "left out: matches in 2 files" in found.text
        assert not re.search("word in (secrets|.env)", f"{found.text}{found.structured}")


async def test_what_a_person_let_be_read_is_searched(desk: Desk) -> None:
    (desk.work / "secrets").mkdir()
    (desk.work / "secrets" / "key").write_text("a word\n")

    (found,) = await desk.calls(
        call("grep", pattern="word", path="secrets"),
        rules=permissions(read_file={"default": "allow", "ask": ["secrets/**"]}),
        allow=(),
        answers=approve,
    )

    assert "a word" in found.text
