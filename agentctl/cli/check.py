"""`agentctl check`: everything that can be told of a blueprint before a token is spent."""

import json as json_text
import os
from pathlib import Path
from typing import Annotated

import anyio
import typer

from agentctl.blueprint.catalogue import find
from agentctl.blueprint.graph import picture
from agentctl.blueprint.lints import Lint, lints_of
from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.trust import Trust, trust_needed
from agentctl.cli.command_app import command_app
from agentctl.cli.model_names import check_models
from agentctl.cli.policy_tests import PolicyTestResult, run_policy_tests
from agentctl.cli.providers import blueprint_script
from agentctl.clock import SystemClock
from agentctl.errors import ExitCode, InvalidInput, Problem
from agentctl.executor.local import open_executor
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.run.hypothetical import Machine, judge_of
from agentctl.settings.load import load_settings
from agentctl.settings.settings import Settings

app = command_app()

PathArgument = Annotated[str, typer.Argument(metavar="BLUEPRINT", help="A name, or the path of a TOML file.")]


@app.command()
def check(
    blueprint: PathArgument,
    *,
    workdir: Annotated[
        Path, typer.Option("--workdir", metavar="DIR", help="Where policy tests take place.")
    ] = Path(),
    deny_warnings: Annotated[
        bool, typer.Option("--deny-warnings", help="Exit with 3 on a warning, too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> int:
    """Validate a blueprint, lint it, run its policy tests and print its stage graph.

    Nothing of the blueprint is run or imported, and no model is called. Exit 0: usable. Exit 3:
    invalid, or a policy test failed. Exit 2: there is no such file.
    """
    entry = find(blueprint)
    try:
        loaded = load_blueprint(entry.path, found_by=entry.found_by)
        blueprint_script(loaded)
        settings = load_settings()
        check_models(loaded, settings)
    except InvalidInput as error:
        if not json:
            raise
        typer.echo(_json_text({"ok": False, "path": str(entry.path), "problems": _problems(error.problems)}))
        return int(ExitCode.INVALID)
    lints, trust = lints_of(loaded), trust_needed(loaded)
    results = anyio.run(
        _policy_tests, settings, loaded, workdir.expanduser().resolve(), Path.home().resolve()
    )
    failed = [result for result in results if not result.passed]
    warnings = [lint for lint in lints if lint.level == "warning"]
    ok = not failed and not trust.missing() and not (deny_warnings and warnings)
    if json:
        typer.echo(_json_text(_report(loaded, lints, results, trust, ok=ok)))
    else:
        _print(loaded, lints, results, trust)
    return int(ExitCode.FINISHED if ok else ExitCode.INVALID)


async def _policy_tests(
    settings: Settings, blueprint: Blueprint, workdir: Path, home: Path
) -> tuple[PolicyTestResult, ...]:
    tests = (*blueprint.policy_tests, *settings.config.policy_tests)
    if not tests:
        return ()
    executor = open_executor(environment=dict(os.environ), passed=())
    try:
        machine = Machine(workdir=workdir, home=home, executor=executor, clock=SystemClock())
        judge = judge_of(settings, blueprint, machine)
        own = await run_policy_tests(judge, blueprint.policy_tests, blueprint.source.table)
        return (*own, *await run_policy_tests(judge, settings.config.policy_tests, settings.table))
    finally:
        await executor.aclose()


def _print(
    blueprint: Blueprint, lints: tuple[Lint, ...], results: tuple[PolicyTestResult, ...], trust: Trust
) -> None:
    for lint in lints:
        typer.echo(str(lint), err=True)
    for result in results:
        if result.problem is not None:
            typer.echo(f"{result.problem} [policy-test]", err=True)
    for item in trust.items:
        note = f"{item.position}: note: {item.kind} {item.reference} needs trust"
        typer.echo(f"{item.problem() if item.is_missing else note} [code]", err=True)
    typer.echo(picture(blueprint))
    passed = sum(result.passed for result in results)
    warnings = sum(lint.level == "warning" for lint in lints)
    tests = f"{passed} of {len(results)} policy tests passed" if results else "no policy tests"
    typer.echo(
        f"\n{blueprint.name}: {_count(len(blueprint.stages), 'stage')}, "
        f"{_count(warnings, 'warning')}, {tests}."
    )
    if trust.items:
        typer.echo(f"It brings code; a run without a person needs  --trust {trust.sha256[:16]}")


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _report(
    blueprint: Blueprint,
    lints: tuple[Lint, ...],
    results: tuple[PolicyTestResult, ...],
    trust: Trust,
    *,
    ok: bool,
) -> JsonObject:
    return {
        "ok": ok,
        "path": str(blueprint.source.path),
        "name": blueprint.name,
        "sha256": blueprint.source.sha256,
        "problems": _problems(
            (*trust.missing(), *(result.problem for result in results if result.problem is not None))
        ),
        "lints": [{"level": lint.level, "code": lint.code, **_problem(lint.problem)} for lint in lints],
        "policy_tests": [
            {"call": result.call, "expect": result.expect, "got": result.got, "passed": result.passed}
            for result in results
        ],
        "stages": {
            stage.name: {
                "index": stage.index,
                "entry": stage is blueprint.entry,
                "transitions": {
                    edge.to: {"hint": edge.hint, "condition": edge.condition, "carry": edge.carry}
                    for edge in stage.transitions.values()
                },
            }
            for stage in blueprint.in_order
        },
        "trust": {
            "sha256": trust.sha256,
            "items": [
                {"kind": item.kind, "reference": item.reference, "sha256": item.sha256}
                for item in trust.items
            ],
        },
    }


def _problems(problems: tuple[Problem, ...]) -> list[JsonValue]:
    return [_problem(problem) for problem in problems]


def _problem(problem: Problem) -> JsonObject:
    position = problem.position
    return {
        "file": position.file,
        "line": position.line,
        "column": position.column,
        "key": problem.key,
        "message": problem.message,
        "suggestion": problem.suggestion,
    }


def _json_text(value: JsonObject) -> str:
    return json_text.dumps(value, indent=2, ensure_ascii=False)
