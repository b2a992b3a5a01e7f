"""Open the view of a run: one factory for all modes, and the prompts on the terminal device."""

from functools import partial
from typing import assert_never

import anyio

from agentctl.clock import Clock
from agentctl.interaction.hub import Hub
from agentctl.protocol.questions import Answer, Question
from agentctl.terminal.contract import Ending, Looks, Mode, Streams, Terminal, Watcher, choose_mode
from agentctl.terminal.device import Device, open_device
from agentctl.terminal.json_views import JsonDrawing, JsonLinesDrawing
from agentctl.terminal.plain import PlainDrawing
from agentctl.terminal.view import Drawing, Later, View

__all__ = [
    "Device",
    "Ending",
    "Looks",
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


async def serve_prompts(hub: Hub, device: Device, terminal: Terminal) -> None:
    """Show each waiting question on `device` and give the person's answer to the hub. Runs until cancelled.

    `terminal` is held while a prompt is shown; other agents go on meanwhile. The device's modes are restored
    whatever happens. Returns when the terminal hangs up, after answering all that waits as unattended.
    """
    await _first_question(hub)
    from agentctl.terminal.prompts import answer_prompts  # noqa: PLC0415 - not before somebody is asked

    await answer_prompts(hub, device, terminal)


async def _first_question(hub: Hub) -> None:
    asked = anyio.Event()

    class First:
        def on_asked(self, question: Question) -> None:
            del question
            asked.set()

        def on_settled(self, question: Question, answer: Answer | None) -> None:
            del question, answer

    stop = hub.watch(First())
    try:
        await asked.wait()
    finally:
        stop()


def _rich(streams: Streams, clock: Clock) -> Drawing:
    from agentctl.terminal.rich_view import RichDrawing  # noqa: PLC0415 - rich, 41 ms, on the drawing thread

    return RichDrawing(streams, clock)
