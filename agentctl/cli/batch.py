"""`agentctl batch`: one blueprint over many items, in one process, with one report and one exit code."""

import json as json_module
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agentctl.blueprint.catalogue import load
from agentctl.cli.command_app import command_app
from agentctl.cli.given import given_text
from agentctl.cli.launch import overrides
from agentctl.cli.launch_many import launch_many
from agentctl.cli.options import (
    Allow,
    Ask,
    BlueprintName,
    Deny,
    Json,
    Limit,
    Model,
    OnAsk,
    Quiet,
    Trust,
    Yolo,
    launch_flags,
    output_of,
)
from agentctl.cli.show import recorded
from agentctl.errors import InvalidInput, Position, Problem, UsageError
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.run.inputs import checked_workdir
from agentctl.run.start import Order
from agentctl.settings.load import load_settings

app = command_app()

_KEYS = ("task", "inputs", "context", "workdir", "thread")


@app.command()
def batch(  # noqa: PLR0913 - one parameter an option of the command line
    blueprint: BlueprintName,
    *,
    inputs: Annotated[
        str,
        typer.Option(
            "--inputs",
            metavar="FILE",
            help='Items, one JSON object a line: {"task": …, "inputs": {…}, "workdir": …}; - is stdin.',
        ),
    ],
    max_workers: Annotated[
        int, typer.Option("--max-workers", metavar="N", min=1, help="Runs at the same time.")
    ] = 8,
    workdir: Annotated[
        Path, typer.Option("--workdir", metavar="DIR", help="The folder of items that name none.")
    ] = Path(),
    model: Model = "",
    yolo: Yolo = False,
    allow: Allow = None,
    ask: Ask = None,
    deny: Deny = None,
    on_ask: OnAsk = "deny",
    limit: Limit = None,
    trust: Trust = "",
    json: Json = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="A JSON line for each run as it ends, and the report last.")
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Run a blueprint once for each line of a file. Exit 0 when all finished.

    Each line's run is a run like any other: `agentctl runs list` has it, `agentctl resume` goes on with it.
    """
    output = output_of(json=json, jsonl=jsonl, quiet=quiet)

    def work() -> int:
        flags = launch_flags(yolo=yolo, allow=allow, ask=ask, deny=deny, on_ask=on_ask, limit=limit)
        common = Order(workdir=checked_workdir(workdir), flags=flags)
        loaded = load(blueprint)
        orders = read_orders(inputs, common)
        settings = load_settings(overrides(flags.limits, model))
        return launch_many(settings, loaded, orders, max_workers=max_workers, trust=trust, output=output)

    return recorded(output, work)


def read_orders(source: str, common: Order) -> list[Order]:
    """Return one order for each line of the file; empty lines are skipped.

    Raises:
        UsageError: the file cannot be read, or has no item.
        InvalidInput: a line is not an object with these keys; all of them at once.
    """
    text = given_text(source, what="--inputs")
    orders: list[Order] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        order = _order(line, common)
        if isinstance(order, Order):
            orders.append(order)
        else:
            problems.append(Problem(position=Position(file=source, line=number, column=1), message=order))
    if problems:
        raise InvalidInput(tuple(problems), hint='a line is {"task": "…"}; keys: ' + ", ".join(_KEYS))
    if not orders:
        raise UsageError(f"--inputs: {source!r} has no items.", hint='one JSON object a line: {"task": "…"}')
    return orders


def _order(line: str, common: Order) -> Order | str:
    try:
        item: JsonValue = json_module.loads(line)
    except ValueError as error:
        return f"not JSON: {error}"
    if isinstance(item, str):
        return replace(common, task=item)
    if not isinstance(item, dict):
        return "expected an object or a text"
    unknown = [key for key in item if key not in _KEYS]
    if unknown:
        return f"unknown key {unknown[0]!r}"
    try:
        folder = _text(item, "workdir")
        return replace(
            common,
            task=_text(item, "task"),
            inputs=_texts(item, "inputs"),
            context=_texts(item, "context"),
            workdir=checked_workdir(Path(folder)) if folder else common.workdir,
            thread_id=_text(item, "thread"),
        )
    except UsageError as error:
        return error.message


def _text(item: JsonObject, key: str) -> str:
    value = item.get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"{key} is a text")
    return value


def _texts(item: JsonObject, key: str) -> dict[str, str]:
    values = item.get(key, {})
    if not isinstance(values, dict):
        raise UsageError(f"{key} is an object")
    wrong = next((name for name, value in values.items() if isinstance(value, dict | list | None)), None)
    if wrong is not None:
        raise UsageError(f"{key}.{wrong} is a text, a number or a truth value")
    return {
        name: value if isinstance(value, str) else json_module.dumps(value) for name, value in values.items()
    }
