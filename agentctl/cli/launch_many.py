"""Shows many runs as lines on stderr while they go, and one report on stdout at the end."""

import json
import sys
from collections.abc import Sequence

import anyio

from agentctl.blueprint.model import Blueprint
from agentctl.cli.drive import Stop, watch_signals
from agentctl.cli.options import Output
from agentctl.cli.show import streams_of
from agentctl.cli.trusting import trust_given
from agentctl.cli.wiring import open_house
from agentctl.protocol.values import JsonObject
from agentctl.run.house import House
from agentctl.run.many import ManyResult, exit_code_of, run_many
from agentctl.run.open_files import make_room
from agentctl.run.start import Order
from agentctl.settings.settings import Settings
from agentctl.terminal.api import open_device, open_terminal, serve_prompts
from agentctl.terminal.visible import one_line

_ANSWER_WIDTH = 100


def launch_many(
    settings: Settings,
    blueprint: Blueprint,
    orders: Sequence[Order],
    *,
    max_workers: int,
    trust: str,
    output: Output,
) -> int:
    """Run all orders in this process and return one exit code.

    Raises:
        UsageError: this process may not open as many files as so many runs need.
    """
    make_room(min(max_workers, len(orders)))
    trusted = trust_given(blueprint, trust)

    async def main() -> int:
        async with open_house(settings, blueprint) as house:
            house.trust = trusted
            return await _launch(house, blueprint, orders, max_workers, output)

    return anyio.run(main)


async def _launch(
    house: House, blueprint: Blueprint, orders: Sequence[Order], max_workers: int, output: Output
) -> int:
    told: list[ManyResult] = []

    def ended(result: ManyResult) -> None:
        told.append(result)
        if output == "jsonl":
            sys.stdout.write(json.dumps({"type": "run", **result.as_json()}) + "\n")
            sys.stdout.flush()
        elif not output:
            sys.stderr.write(_line(result, len(told), len(orders)) + "\n")

    streams = streams_of(house)
    device = open_device(streams.environ, streams.looks)
    stop = Stop(leave=device.leave if device is not None else lambda: None)
    async with anyio.create_task_group() as group:
        if device is not None:
            house.someone_there = device.answers
            quiet = open_terminal("quiet", streams=streams, clock=house.clock)
            group.start_soon(serve_prompts, house.hub, device, quiet)
        await group.start(watch_signals, stop)
        with stop.scope:
            await run_many(house, blueprint, orders, max_workers=max_workers, ended=ended)
        group.cancel_scope.cancel()
    if device is not None:
        device.close()
    results = tuple(sorted(told, key=lambda result: result.index))
    code = stop.exit_code or exit_code_of(results)
    _report(results, len(orders), code, output)
    return code


def _line(result: ManyResult, count: int, total: int) -> str:
    mark = "✓" if result.outcome == "finished" else "✗"
    said = result.answer if result.outcome == "finished" else result.reason
    words = one_line(said, width=_ANSWER_WIDTH)
    return f"{mark} {count}/{total} {result.run_id or '-'} {result.outcome}: {words}"


def _report(results: tuple[ManyResult, ...], total: int, code: int, output: Output) -> None:
    finished = sum(result.outcome == "finished" for result in results)
    summary: JsonObject = {"type": "result", "total": total, "finished": finished, "exit_code": code}
    match output:
        case "json":
            rows = [result.as_json() for result in results]
            sys.stdout.write(json.dumps({**summary, "runs": rows}) + "\n")
        case "jsonl":
            sys.stdout.write(json.dumps(summary) + "\n")
        case _:
            for result in results:
                sys.stdout.write(f"{result.answer.rstrip()}\n")
            if not output:
                sys.stderr.write(f"{finished} of {total} finished.\n")
