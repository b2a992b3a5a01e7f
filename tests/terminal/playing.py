"""A program for the tests: shows a recorded run on its terminal, some events for each line it is sent.

python -m tests.terminal.playing EVENTS COUNT...
"""

import json
import sys
import termios
from pathlib import Path

from agentctl.clock import SystemClock
from agentctl.protocol.codec import decode
from agentctl.protocol.events import Published
from agentctl.terminal.api import Ending, Streams, choose_mode, open_terminal


def play(events: list[Published], counts: list[int]) -> None:
    modes = termios.tcgetattr(0)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, modes)
    streams = Streams()
    mode = choose_mode(json=False, jsonl=False, quiet=False, streams=streams)
    terminal = open_terminal(mode, streams=streams, clock=SystemClock())
    for count in counts:
        for one in events[:count]:
            terminal.on_event(one)
        del events[:count]
        sys.stdin.readline()
    for one in events:
        terminal.on_event(one)
    terminal.finish(Ending(exit_code=0))


if __name__ == "__main__":
    recorded = [decode(Published, one) for one in json.loads(Path(sys.argv[1]).read_text("utf-8"))]
    play(recorded, [int(count) for count in sys.argv[2:]])
