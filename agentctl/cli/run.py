"""`agentctl run`: start a blueprint."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.launch import LaunchOptions, start, start_many
from agentctl.cli.options import (
    Allow,
    Ask,
    BlueprintName,
    Deny,
    Json,
    Jsonl,
    Limit,
    Model,
    OnAsk,
    Quiet,
    Trust,
    Yolo,
    launch_flags,
    not_empty,
    output_of,
    pairs,
)
from agentctl.cli.show import recorded
from agentctl.errors import UsageError

app = command_app()


@app.command()
def run(  # noqa: PLR0913 - one parameter an option of the command line
    blueprint: BlueprintName,
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do; - reads it from stdin.")] = "",
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE|@FILE", help="A value for one of its [inputs]."),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="NAME=TEXT|@FILE", help="Text for hooks and views of the run."),
    ] = None,
    workdir: Annotated[
        Path, typer.Option("--workdir", metavar="DIR", help="The folder to work in.")
    ] = Path(),
    thread: Annotated[
        str, typer.Option("--thread", metavar="ID", help="Continue this conversation.", callback=not_empty)
    ] = "",
    model: Model = "",
    yolo: Yolo = False,
    allow: Allow = None,
    ask: Ask = None,
    deny: Deny = None,
    on_ask: OnAsk = "deny",
    limit: Limit = None,
    trust: Trust = "",
    count: Annotated[
        int,
        typer.Option("--count", metavar="N", min=1, help="Run it so often, side by side, with one report."),
    ] = 1,
    json: Json = False,
    jsonl: Jsonl = False,
    quiet: Quiet = False,
) -> int:
    """Run a blueprint and print its answer.

    Examples: agentctl run hello · agentctl run coder "fix the failing test" --allow 'shell(pytest *)'
    """
    output = output_of(json=json, jsonl=jsonl, quiet=quiet)

    def work() -> int:
        if thread and count > 1:
            raise UsageError("--thread is for one run.", hint="leave out --count or --thread")
        options = LaunchOptions(
            blueprint=blueprint,
            task=sys.stdin.read() if task == "-" else task,
            inputs=pairs(inputs, "-i"),
            context=pairs(context, "--context"),
            workdir=workdir,
            thread=thread,
            model=model,
            flags=launch_flags(yolo=yolo, allow=allow, ask=ask, deny=deny, on_ask=on_ask, limit=limit),
            trust=trust,
            output=output,
        )
        return start_many(options, count) if count > 1 else start(options)

    return recorded(output, work)
