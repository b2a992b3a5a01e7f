"""Shows many runs as lines on stderr while they go, and one report on stdout at the end."""

from collections.abc import Iterator, Sequence

import anyio

from agentctl.blueprint.model import Blueprint
from agentctl.cli.drive import Stop, watch_signals
from agentctl.cli.options import Output
from agentctl.cli.show import streams_of
from agentctl.cli.trusting import trust_given
from agentctl.cli.wiring import open_house
from agentctl.interaction.unattended import refusal_lines
from agentctl.protocol.values import JsonObject
from agentctl.run.house import House
from agentctl.run.many import ManyResult, exit_code_of, run_many
from agentctl.run.open_files import make_room
from agentctl.run.start import Order
from agentctl.settings.settings import Settings
from agentctl.terminal.api import open_device, open_terminal, serve_prompts
from agentctl.terminal.outlet import Outlet, check_written
from agentctl.terminal.result import header, many_result, record_line
from agentctl.terminal.visible import exact, one_line, prose

_ANSWER_WIDTH = 100
_STANDING = frozenset({"cancelled", "waiting", "limited"})
"""Outcomes after which `resume` goes on."""


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
    streams = streams_of(house)
    out, err = Outlet(streams.stdout), Outlet(streams.stderr)
    if output == "jsonl":
        out.write(record_line(header()))

    def ended(result: ManyResult) -> None:
        told.append(result)
        if output == "jsonl":
            out.write(record_line({"type": "run", **result.as_json()}))
        elif not output:
            err.write(_line(result, len(told), len(orders)) + "\n")

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
    report = many_result(len(orders), sum(one.outcome == "finished" for one in results), code)
    match output:
        case "json":
            out.write(record_line({**report, "runs": [one.as_json() for one in results]}))
        case "jsonl":
            out.write(record_line(report))
        case _:
            visible = streams.is_terminal(streams.stdout)
            out.write("".join(f"{_answer(one, visible=visible)}\n" for one in results))
    err.write("".join(f"{line}\n" for line in _last_lines(results, report, output)))
    check_written(out)
    return code


def _line(result: ManyResult, count: int, total: int) -> str:
    mark = "✓" if result.outcome == "finished" else "✗"
    said = result.answer if result.outcome == "finished" else result.reason
    words = one_line(said, width=_ANSWER_WIDTH)
    return f"{mark} {count}/{total} {result.run_id or '-'} {result.outcome}: {words}"


def _answer(result: ManyResult, *, visible: bool) -> str:
    """Return a run's answer as one paragraph for stdout; on a terminal it is made visible."""
    return prose(result.answer).rstrip() if visible else result.answer.rstrip()


def _last_lines(results: Sequence[ManyResult], report: JsonObject, output: Output) -> Iterator[str]:
    """Yield what lets the refused asks of all runs through, each once, and how many runs finished."""
    refused = tuple(ask for one in results for ask in one.refused)
    yield from map(exact, refusal_lines(refused))
    if not output:
        yield f"{report['finished']} of {report['total']} finished."
    standing = [one.run_id for one in results if one.outcome in _STANDING]
    if standing:
        yield f"next: agentctl resume {standing[0]}" + (" … and the others alike" if standing[1:] else "")
