"""`agentctl why`: which rule of which layer decides about a call, or decided about a past one."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import anyio
import typer
from typer import _click as click  # the click that typer carries; typer is pinned
from typer.core import TyperCommand

from agentctl.blueprint.catalogue import entries, load
from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.tool_rules import tool_names
from agentctl.cli.command_app import command_app
from agentctl.cli.judged import decision_lines, decision_record
from agentctl.cli.options import Allow, Ask, Deny, Yolo, launch_flags
from agentctl.cli.past import names_a_run, past_decision
from agentctl.clock import SystemClock
from agentctl.errors import ToolError, UsageError
from agentctl.executor.local import open_executor
from agentctl.policy.layers import Layers
from agentctl.protocol.decisions import Decision
from agentctl.protocol.events import LaunchFlags
from agentctl.protocol.tool_names import canonical_tool
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.run.agent_kind import launch_rules
from agentctl.run.hypothetical import Machine, judge_of
from agentctl.run.inputs import checked_workdir
from agentctl.settings.load import load_settings
from agentctl.terminal.visible import one_line

_LINE = "agentctl.line"


class _WithLine(TyperCommand):
    """Takes what stands behind `--` as a command line of its own, whatever it holds."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_LINE] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


app = command_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A decision and what is said around it."""

    tool: str
    decision: Decision
    facts: JsonObject
    """What was asked about: blueprint, stage and call, or run and call."""
    notes: tuple[str, ...] = ()
    """How a past call went."""
    refused: str = ""
    """Why the call is refused whatever the rules say."""
    layers: Layers | None = None
    """Those in force; None for a past call."""


@app.command(cls=_WithLine)
def why(  # noqa: PLR0913 - one parameter an option of the command line
    ctx: typer.Context,
    of: Annotated[
        str, typer.Argument(metavar="BLUEPRINT|RUN", help="A blueprint, or a run: its id, `last`, RUN/CHILD.")
    ],
    call: Annotated[
        str,
        typer.Argument(metavar="[CALL]", help="`TOOL(TEXT)` or a tool in a blueprint; a call's id in a run."),
    ] = "",
    *,
    stage: Annotated[
        str, typer.Option("--stage", metavar="STAGE", help="The stage; the entry stage where not given.")
    ] = "",
    workdir: Annotated[Path, typer.Option("--workdir", metavar="DIR", help="Where it would act.")] = Path(),
    yolo: Yolo = False,
    allow: Allow = None,
    ask: Ask = None,
    deny: Deny = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say which rule decides about a call: what each layer says, and what would change it.

    Behind -- stands a command line as the shell tool would get it. Nothing is run.

    Examples: agentctl why coder --stage build -- git push origin x · agentctl why coder 'write_file(src/x)' ·
    agentctl why last c-1m8
    """
    line: list[str] | None = ctx.meta.get(_LINE)
    if line is None and (names_a_run(of) or not call):
        _check_past(of, given=bool(stage or yolo or allow or ask or deny))
        past = anyio.run(past_decision, *((of, call) if names_a_run(of) else ("last", of)))
        facts: JsonObject = {"run": past.run_id, "call": past.call_id}
        told = Told(tool=past.tool, decision=past.decision, facts=facts, notes=past.notes)
    else:
        flags = launch_flags(yolo=yolo, allow=allow, ask=ask, deny=deny, on_ask="deny", limit=None)
        told = _hypothetical(
            load(of), _call_of(call, line), stage=stage, workdir=checked_workdir(workdir), flags=flags
        )
    _show(told, as_json=as_json)


def _check_past(of: str, *, given: bool) -> None:
    """Check that a past call is meant. `given`: an option was, that says something about one not made yet.

    Raises:
        UsageError: a blueprint is named, or such an option is given.
    """
    named = of.endswith(".toml") or any(entry.name == of for entry in entries())
    if named and not names_a_run(of):
        raise UsageError("Say which call.", hint=f"agentctl why {of} -- git push origin x")
    if given:
        raise UsageError(
            "--stage, --yolo, --allow, --ask and --deny are for a call that was not made yet.",
            hint="agentctl why BLUEPRINT … ; agentctl replay RUN judges a past run by today's rules",
        )


def _call_of(call: str, line: list[str] | None) -> str:
    if line is None:
        return call
    if call:
        raise UsageError("Give a call, or a command line behind --, not both.")
    if not line:
        raise UsageError("Nothing stands behind --.", hint="agentctl why coder -- git push origin x")
    return f"shell({line[0] if len(line) == 1 else shlex.join(line)})"


def _hypothetical(blueprint: Blueprint, call: str, *, stage: str, workdir: Path, flags: LaunchFlags) -> Told:
    """Judge a call that nobody makes.

    Raises:
        UsageError: an unknown stage or tool, or a call that cannot be prepared.
    """
    names = tool_names(blueprint)
    name, bracket, rest = call.partition("(")
    name = name.strip()
    if bracket and not rest.endswith(")"):
        raise UsageError(f"{call!r} is not TOOL(TEXT): the last bracket is missing.")
    if not names.accepts(name):
        near = names.nearest(name)
        raise UsageError(f"There is no tool {name!r}." + (f" Did you mean {near!r}?" if near else ""))
    if stage and stage not in blueprint.stages:
        raise UsageError(f"{blueprint.name} has no stage {stage!r}; it has: {', '.join(blueprint.stages)}.")
    settings, launch = load_settings(), launch_rules(flags, names)
    stage = stage or blueprint.entry.name

    async def judged() -> Told:
        executor = open_executor(environment=dict(os.environ), passed=())
        try:
            machine = Machine(
                workdir=workdir, home=Path.home().resolve(), executor=executor, clock=SystemClock()
            )
            judge = judge_of(settings, blueprint, machine, launch)
            decision = await judge.decision(call, stage)
        except ToolError as error:
            raise UsageError(f"{call} cannot be judged: {error}") from None
        finally:
            await executor.aclose()
        tool = canonical_tool(name)
        return Told(
            tool=tool,
            decision=decision,
            facts={"blueprint": blueprint.name, "stage": stage, "call": call},
            refused=judge.refused(tool, decision),
            layers=judge.stages[stage],
        )

    return anyio.run(judged)


def _show(told: Told, *, as_json: bool) -> None:
    if as_json:
        record = decision_record(told.tool, told.decision, told.layers, refused=told.refused)
        sys.stdout.write(json.dumps({**told.facts, **record, "notes": list(told.notes)}) + "\n")
        return
    for line in decision_lines(told.tool, told.decision, told.layers, refused=told.refused):
        sys.stdout.write(f"{line}\n")
    if told.notes:
        sys.stdout.write("\n" + "".join(f"{one_line(note, width=400)}\n" for note in told.notes))
