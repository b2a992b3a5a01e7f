"""A program for the tests: asks questions on its terminal and writes the answers to a file.

python -m tests.terminal.asking QUESTIONS ANSWERS

All at once; with STEPWISE in the environment one after the other, the next at SIGUSR1.
"""

import json
import os
import signal
import sys
from pathlib import Path

import anyio

from agentctl.clock import SystemClock
from agentctl.interaction.hub import Hub
from agentctl.protocol.codec import decode, encode
from agentctl.protocol.events import Noted, Published
from agentctl.protocol.questions import Question
from agentctl.terminal.api import Ending, Streams, choose_mode, open_device, open_terminal, serve_prompts


async def ask_all(questions: list[Question], place: Path) -> None:
    hub, streams = Hub(SystemClock()), Streams()
    terminal = open_terminal(
        choose_mode(json=False, jsonl=False, quiet=False, streams=streams),
        streams=streams,
        clock=SystemClock(),
    )
    device = open_device(streams.environ, streams.looks)
    answers: dict[str, object] = {}

    async def ask(question: Question) -> None:
        answers[question.question_id] = encode(await hub.ask(question))
        terminal.on_event(
            Published(
                run_id="r-root", agent="coder", stage="", event=Noted(level="info", text="went on meanwhile")
            )
        )

    async def interrupted() -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                answers["interrupted"] = True
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(interrupted)
        if device is not None:
            group.start_soon(serve_prompts, hub, device, terminal)
        if os.environ.get("STEPWISE"):
            with anyio.open_signal_receiver(signal.SIGUSR1) as steps:
                place.with_suffix(".ready").touch()
                for question in questions:
                    await anext(steps)
                    await ask(question)
        async with anyio.create_task_group() as asking:
            for question in questions if not answers else ():
                asking.start_soon(ask, question)
        group.cancel_scope.cancel()
    if device is not None:
        device.close()
    terminal.finish(Ending(exit_code=0))
    place.write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    if os.environ.get("IGNORE_HUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    asked = [decode(Question, one) for one in json.loads(Path(sys.argv[1]).read_text("utf-8"))]
    anyio.run(ask_all, asked, Path(sys.argv[2]))
