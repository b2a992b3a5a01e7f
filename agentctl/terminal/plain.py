"""Plain lines on stderr and the answer on stdout: for pipes, logs and terminals that cannot move a cursor."""

from collections.abc import Iterator, Sequence

from agentctl.clock import Clock
from agentctl.protocol.events import (
    MessageAdded,
    ModelRetried,
    ModelSwitched,
    Published,
    ReasoningStreamed,
    TextStreamed,
)
from agentctl.protocol.messages import AssistantMessage
from agentctl.terminal.board import Board
from agentctl.terminal.closing import last_lines, write_answer
from agentctl.terminal.contract import Ending, Streams
from agentctl.terminal.outlet import Outlet, check_written
from agentctl.terminal.speech import Speech, Thoughts
from agentctl.terminal.story import call_words, tell
from agentctl.terminal.visible import prose

_STILL_S = 15.0
"""After so long without a line, one says what the run is doing."""


class PlainDrawing:
    """Lines, in the order things happened; with `quiet` only the answer and what a person must act on."""

    def __init__(self, streams: Streams, clock: Clock, *, quiet: bool = False) -> None:
        self._streams = streams
        self._clock = clock
        self._quiet = quiet
        self._board = Board()
        self._speech = Speech()
        self._thoughts = Thoughts(shown=streams.looks.reasoning)
        self._seen = ""
        """The reply that was streamed last, whole."""
        self._err = Outlet(streams.stderr)
        self._wrote_at = clock.monotonic()

    def draw(self, batch: Sequence[Published]) -> None:
        """Write the lines that the batch is worth."""
        lines: list[str] = []
        for published in batch:
            self._board.take(published)
            if not self._quiet:
                lines += self._lines(published)
        if not lines and not self._quiet and self._clock.monotonic() - self._wrote_at > _STILL_S:
            lines = [still] if (still := _still(self._board)) else []
        if lines:
            self._wrote_at = self._clock.monotonic()
            self._err.write("".join(f"{line}\n" for line in lines))

    def _lines(self, published: Published) -> Iterator[str]:
        mine = published.run_id == self._board.root
        match published.event:
            case ReasoningStreamed(text=text) if mine:
                yield from map(_thought, self._thoughts.add(text))
            case TextStreamed(text=text) if mine:
                yield from map(_thought, self._thoughts.end())
                yield from self._speech.add(text)
            case MessageAdded(message=AssistantMessage(text=text) as message) if mine:
                yield from map(_thought, self._thoughts.close(message))
                streamed = bool(self._speech.text)
                yield from self._speech.end()
                self._seen = text
                if text and not streamed:
                    yield from prose(text).rstrip("\n").split("\n")
            case ModelRetried() | ModelSwitched() if mine and any(
                (self._speech.void(), self._thoughts.void())
            ):
                yield "↻ the text above is void"
            case _:
                pass
        for line in tell(published, self._board):
            yield str(line)

    def _voided(self) -> bool:
        """Forget what was streamed; return whether some of it was shown."""
        return any((self._speech.void(), self._thoughts.void()))

    def clear(self) -> None:
        """Nothing is ever drawn over."""

    def finish(self, ending: Ending) -> None:
        """Write the answer and the last lines."""
        if not self._quiet:
            self._err.write("".join(f"{line}\n" for line in self._speech.end()))
        out = write_answer(self._board, self._streams, seen="" if self._quiet else self._seen)
        lines = last_lines(self._board, ending, quiet=self._quiet)
        self._err.write("".join(f"{line}\n" for line in lines))
        check_written(out)


def _thought(line: str) -> str:
    return f"  ┊ {line}"


def _still(board: Board) -> str:
    """Return what goes on, for a reader who has seen nothing for a while."""
    for row in board.agents.values():
        for call in row.calls.values():
            return f"… {call_words(call)} is running"
        if row.doing:
            return f"… {prose(row.doing)}"
    return ""
