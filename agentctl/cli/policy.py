"""`agentctl policy`: try it on recorded lines, show what a line would do, take over a peer's rules."""

import json as json_text
import sys
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, assert_never

import anyio
import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.given import given_text
from agentctl.cli.peer_claude import import_claude
from agentctl.cli.peer_codex import import_codex
from agentctl.cli.peer_gemini import import_gemini
from agentctl.cli.peer_rules import Imported
from agentctl.cli.policy_cases import CaseResult, read_cases, run_cases
from agentctl.errors import ExitCode, UsageError
from agentctl.policy.shell.analyse import LineAnalysis, analyse
from agentctl.protocol.effects import Effect, ReachHost, ReadPath, RunProgram, WritePath
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.toml.read import parse

app = command_app("Try the policy on recorded lines, show what a line would do, take over a peer's rules.")


@app.command("test")
def try_cases(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Cases, one JSON object a line.")],
    *,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> int:
    """Decide recorded command lines and compare with the decision that is right.

    Nothing is executed. Exit 0: all passed. Exit 1: some did not. Cases of an area that begins with
    shell-safe-list are judged with the shipped safe list, all others without. A contested case that is
    decided otherwise is told and counts as passed: docs/policy.md says why it is decided so.
    """
    cases = read_cases(file)
    results = anyio.run(run_cases, cases)
    failed = [result for result in results if result.failed]
    if json:
        typer.echo(json_text.dumps(_report(results)))
    else:
        _print(results)
    return int(ExitCode.FAILED if failed else ExitCode.FINISHED)


def _report(results: tuple[CaseResult, ...]) -> JsonObject:
    tried = [result for result in results if result.decision is not None]
    areas: JsonObject = {}
    for area, total in sorted(Counter(result.case.area for result in tried).items()):
        passed = sum(result.case.area == area and not result.failed for result in tried)
        areas[area] = {"total": total, "passed": passed}
    return {
        "total": len(tried),
        "passed": sum(not result.failed for result in tried),
        "failed": [result.case.id for result in tried if result.failed],
        "areas": areas,
        "contested": [
            {"id": result.case.id, "expected": result.case.expected, "got": result.decision.verdict.word}
            for result in results
            if result.differs and result.case.contested and result.decision is not None
        ],
        "skipped": [{"id": result.case.id, "reason": result.skipped} for result in results if result.skipped],
    }


def _print(results: tuple[CaseResult, ...]) -> None:
    for result in results:
        if result.skipped:
            typer.echo(f"{result.case.id}: skipped: {result.skipped}", err=True)
        elif result.differs and result.decision is not None:
            got = result.decision.verdict.word + (" (contested)" if result.case.contested else "")
            typer.echo(
                f"{result.case.id}: expected {result.case.expected}, got {got}:"
                f" {result.decision.reason}\n    {result.case.command!r}",
                err=True,
            )
    report = _report(results)
    areas = report["areas"]
    assert isinstance(areas, dict)  # noqa: S101 - built two lines above
    for area, numbers in areas.items():
        assert isinstance(numbers, dict)  # noqa: S101 - built above
        typer.echo(f"{area}: {numbers['passed']} of {numbers['total']} passed")
    typer.echo(f"{report['passed']} of {report['total']} cases passed")


@app.command("effects")
def show_effects(
    line: Annotated[str | None, typer.Argument(metavar="[LINE]", help="A command line.")] = None,
    *,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read one JSON string a line, print one JSON object each.")
    ] = False,
    workdir: Annotated[
        Path, typer.Option("--workdir", metavar="DIR", help="Where the line would run.")
    ] = Path(),
) -> int:
    """Show what a command line would run, read, write and reach, or why that cannot be told."""
    if (line is None) == (not stdin):
        raise UsageError(
            "policy effects takes a LINE or --stdin.", hint="agentctl policy effects 'git status'"
        )
    cwd, home = str(workdir.expanduser().absolute()), str(Path.home())
    for text in _given(line):
        sys.stdout.write(json_text.dumps(shown(text, analyse(text, cwd=cwd, home=home))) + "\n")
    return int(ExitCode.FINISHED)


def _given(line: str | None) -> Iterator[str]:
    if line is not None:
        yield line
        return
    for number, row in enumerate(sys.stdin, start=1):
        if not row.strip():
            continue
        try:
            text = json_text.loads(row)
        except ValueError as error:
            raise UsageError(f"line {number} of stdin is no JSON: {error}.") from error
        if not isinstance(text, str):
            raise UsageError(f"line {number} of stdin is no JSON string.")
        yield text


def shown(line: str, analysis: LineAnalysis) -> JsonObject:
    """Return the analysis of `line` in the form that DESIGN fixes for other programs."""
    return {
        "line": line,
        "opaque": bool(analysis.opaque_reason),
        "reason": analysis.opaque_reason,
        "effects": [shape for effect in analysis.effects if (shape := _shape(effect)) is not None],
    }


def _shape(effect: Effect) -> JsonObject | None:
    match effect:
        case RunProgram():
            shape: JsonObject = {"kind": "run", "argv": _list(effect.argv), "via": _list(effect.via)}
            if effect.unknown:
                shape["unknown"] = list(effect.unknown)
            if effect.spread:
                shape["spread"] = list(effect.spread)
            if effect.cwd:
                shape["cwd"] = _list(effect.cwd)
            return shape
        case WritePath():
            return {"kind": "write", "path": effect.path}
        case ReadPath():
            return {"kind": "read", "path": effect.path}
        case ReachHost():
            return {"kind": "host", "host": effect.host}
        case _:
            return None


def _list(words: tuple[str, ...]) -> list[JsonValue]:
    return list(words)


class Peer(StrEnum):
    """A tool whose rules can be taken over."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"


@app.command("import")
def import_rules(
    peer: Annotated[Peer, typer.Argument(metavar="claude|codex|gemini", help="Whose rules they are.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="settings.json, *.rules, or a policy's *.toml.")
    ],
    *,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object with the TOML and the notes.")
    ] = False,
) -> int:
    """Print another tool's rules as TOML for your config, with a note for each that differs.

    Nothing is written: look at it, then add it to the file that `agentctl config path` names.
    """
    text = given_text(file, what="rules")
    imported = _imported(peer, file, text)
    if imported.empty:
        sys.stderr.write(f"agentctl: {file} holds nothing that is read as a rule of {peer.value}.\n")
    toml = imported.toml(f"{peer.value}: {file.name}")
    if json:
        notes: list[JsonValue] = [
            {"rule": note.rule, "note": note.text, "carried": note.carried} for note in imported.notes
        ]
        typer.echo(json_text.dumps({"toml": toml, "notes": notes}))
    else:
        typer.echo(toml, nl=False)
    return int(ExitCode.FINISHED)


def _imported(peer: Peer, file: Path, text: str) -> Imported:
    match peer:
        case Peer.CODEX:
            return import_codex(text, name=str(file))
        case Peer.CLAUDE:
            return import_claude(_json_object(text, file))
        case Peer.GEMINI:
            if file.suffix == ".toml":
                return import_gemini(dict(parse(text.encode(), file=str(file)).values))
            return import_gemini(_json_object(text, file))
        case other:
            assert_never(other)


def _json_object(text: str, file: Path) -> dict[str, object]:
    try:
        value = json_text.loads(text)
    except ValueError as error:
        raise UsageError(f"{file} is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{file} holds no JSON object.")
    return value
