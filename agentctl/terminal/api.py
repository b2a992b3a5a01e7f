"""Open the view of a run: one factory for all modes, and the prompts on the terminal device."""

from functools import partial
from typing import assert_never

from agentctl.clock import Clock
from agentctl.terminal.contract import Ending, Mode, Streams, Terminal, Watcher, choose_mode
from agentctl.terminal.device import Device, open_device
from agentctl.terminal.json_views import JsonDrawing, JsonLinesDrawing
from agentctl.terminal.plain import PlainDrawing
from agentctl.terminal.prompts import serve_prompts
from agentctl.terminal.view import Drawing, Later, View

__all__ = [
    "Device",
    "Ending",
    "Mode",
    "Streams",
    "Terminal",
    "Watcher",
    "choose_mode",
    "open_device",
    "open_terminal",
    "serve_prompts",
]


def open_terminal(mode: Mode, *, streams: Streams, clock: Clock) -> Terminal:
    """Return the view of one run in `mode`. With `jsonl` the header is written at once.

    The first event without a parent run tells which run is the one that was asked for.
    """
    match mode:
        case "rich":
            return View(Later(partial(_rich, streams, clock)), gather_s=0.04, idle_s=0.5)
        case "plain":
            return View(PlainDrawing(streams, clock), gather_s=0.03, idle_s=5.0)
        case "quiet":
            return View(PlainDrawing(streams, clock, quiet=True), gather_s=0.1)
        case "json":
            return View(JsonDrawing(streams), gather_s=0.1)
        case "jsonl":
            return View(JsonLinesDrawing(streams), gather_s=0.02)
        case _:
            assert_never(mode)


def _rich(streams: Streams, clock: Clock) -> Drawing:
    from agentctl.terminal.rich_view import RichDrawing  # noqa: PLC0415 - rich, 41 ms, on the drawing thread

    return RichDrawing(streams, clock)
