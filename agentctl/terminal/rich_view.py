"""The view for a person at a terminal: what happened scrolls by, what goes on stands in the last rows.

This module owns the import of rich, and is loaded when the first thing is drawn.
"""

import os
from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console
from rich.text import Text

from agentctl.clock import Clock
from agentctl.protocol.events import (
    CallStarted,
    MessageAdded,
    ModelRetried,
    ModelSwitched,
    Published,
    QuestionAnswered,
    QuestionAsked,
    ReasoningStreamed,
    TextStreamed,
)
from agentctl.protocol.messages import AssistantMessage
from agentctl.terminal.board import AgentRow, Board
from agentctl.terminal.closing import last_lines, spent_words, write_answer
from agentctl.terminal.contract import Ending, Streams
from agentctl.terminal.outlet import Outlet, check_written
from agentctl.terminal.painter import Painter
from agentctl.terminal.speech import Speech, Thoughts
from agentctl.terminal.story import Line, LineKind, call_words, is_worker_of, tell
from agentctl.terminal.visible import cut, one_line, prose, wrap

_STYLES: dict[LineKind, str] = {
    "head": "bold", "stage": "bold cyan", "ok": "green", "failed": "red", "denied": "yellow",
    "added": "green", "removed": "red", "hunk": "dim", "note": "dim", "warning": "yellow",
    "retry": "yellow", "person": "magenta",
}  # fmt: skip
_WHOLE_LINE: frozenset[LineKind] = frozenset({"head", "stage", "added", "removed", "hunk", "note"})
_THOUGHT = "dim italic"
_PARTIAL_ROWS = 4
_CALL_ROWS = 6
_LEAST_TREE = 6


class RichDrawing:
    """Colours and a live part: streamed text, running calls, agents at work, steps, tokens, cost, time."""

    def __init__(self, streams: Streams, clock: Clock) -> None:
        self._streams = streams
        self._clock = clock
        self._began = clock.monotonic()
        self._board = Board()
        self._speech = Speech()
        self._thoughts = Thoughts(shown=streams.looks.reasoning)
        self._seen = ""
        """The reply that was streamed last, whole."""
        self._since: dict[str, float] = {}
        """When each running call began, by the steady clock."""
        self._painter = Painter(Outlet(streams.stderr), self._size)
        self._page = StringIO()
        """Where rich writes: colours are made here, and written by the painter."""
        self._console = Console(
            file=self._page,
            force_terminal=True,
            no_color=not streams.colour,
            highlight=False,
            emoji=False,
            markup=False,
        )

    def draw(self, batch: Sequence[Published]) -> None:
        """Let the batch scroll in, and draw the live rows again."""
        lines: list[Text] = []
        for published in batch:
            self._board.take(published)
            lines += self._lines(published)
        self._painter.paint(self._painted(lines), self._live())

    def clear(self) -> None:
        """Take the live rows away."""
        self._painter.clear()

    def finish(self, ending: Ending) -> None:
        """Take the live rows away; write the answer and the last lines."""
        lines = [Text(line) for line in self._speech.end()]
        self._painter.paint(self._painted(lines), ())
        out = write_answer(self._board, self._streams, seen=self._seen)
        self._painter.paint(self._painted([Text(one, "dim") for one in last_lines(self._board, ending)]), ())
        check_written(out)

    def _lines(self, published: Published) -> Iterator[Text]:
        mine = published.run_id == self._board.root
        match published.event:
            case ReasoningStreamed(text=text) if mine:
                yield from (Text(line, _THOUGHT) for line in self._thoughts.add(text))
                return
            case TextStreamed(text=text) if mine:
                yield from (Text(line, _THOUGHT) for line in self._thoughts.end())
                yield from (Text(line) for line in self._speech.add(text))
            case MessageAdded(message=AssistantMessage(text=text) as message) if mine:
                yield from (Text(line, _THOUGHT) for line in self._thoughts.close(message))
                streamed = bool(self._speech.text)
                rest = (
                    self._speech.end() if streamed else prose(text).rstrip("\n").split("\n") if text else ()
                )
                yield from (Text(line) for line in rest)
                self._seen = text
            case ModelRetried() | ModelSwitched() if mine and any(
                (self._speech.void(), self._thoughts.void())
            ):
                yield Text("↻ the text above is void", _STYLES["retry"])
            case CallStarted(call_id=call_id):
                self._since[call_id] = self._clock.monotonic()
            case QuestionAsked():
                return  # the prompt shows all of it
            case QuestionAnswered(answer=answer) if answer.by == "terminal":
                return
            case _:
                pass
        yield from map(_styled, tell(published, self._board))

    def _voided(self) -> bool:
        """Forget what was streamed; return whether some of it was shown."""
        return any((self._speech.void(), self._thoughts.void()))

    def _live(self) -> tuple[str, ...]:
        """Return the live rows, painted, none wider than the terminal less one column."""
        columns = max(self._size()[0] - 1, 1)
        rows = [Text(row) for row in wrap(self._speech.partial, columns)[-_PARTIAL_ROWS:] if row]
        if len(self._board.agents) > 1:
            rows += [Text(cut(text, columns), "dim") for text in self._agents()]
        else:
            rows += [Text(cut(text, columns), "cyan") for text in self._calls()]
        if self._board.root:
            rows.append(Text(cut(self._status(), columns), "dim"))
        return tuple(self._painted(rows).splitlines())

    def _calls(self) -> Iterator[str]:
        """Yield what the only agent at work does."""
        for row in self._board.agents.values():
            for call_id, call in list(row.calls.items())[:_CALL_ROWS]:
                yield f"… {call_words(call)} · {self._age(call_id):.0f} s"
            if row.calls and (last := _last_line(row.tail)):
                yield f"    {last}"

    def _age(self, call_id: str) -> float:
        now = self._clock.monotonic()
        return now - self._since.get(call_id, now)

    def _agents(self) -> Iterator[str]:
        """Yield the tree of agents, each with what it does: at most half of the rows, the rest counted."""
        agents = self._board.agents
        most = max(self._size()[1] // 2, _LEAST_TREE)
        shown = len(agents) if len(agents) <= most else most - 1
        for row in list(agents.values())[:shown]:
            depth = 0
            above = row
            while above.parent_run in agents and depth < len(agents):
                above, depth = agents[above.parent_run], depth + 1
            yield "  " * max(depth - 1, 0) + ("└ " if depth else "") + self._agent_words(row)
        if shown < len(agents):
            yield f"  … and {len(agents) - shown} more at work"

    def _agent_words(self, row: AgentRow) -> str:
        calls = [f"{call_words(call, width=40)} {self._age(one):.0f} s" for one, call in row.calls.items()]
        stage = "" if is_worker_of(row.agent, row.stage) else row.stage
        words = (
            row.agent,
            stage,
            f"step {row.step}" if row.step else "",
            ", ".join(calls) or row.doing,
            _last_line(row.tail) if row.calls else "",
        )
        return " · ".join(one_line(word) for word in words if word)

    def _status(self) -> str:
        board = self._board
        root = board.agents.get(board.root)
        seconds = self._clock.monotonic() - self._began
        words = [root.stage if root else "", root.doing if root else "", spent_words(board)]
        if board.waiting:
            words.append(f"{len(board.waiting)} waiting for you")
        return " · ".join(one_line(word) for word in (*words, f"{seconds:.0f} s", board.model) if word)

    def _painted(self, lines: Sequence[Text]) -> str:
        """Return whole lines with their ends and colours; long ones are wrapped by the terminal."""
        if not lines:
            return ""
        for line in lines:
            self._console.print(line, soft_wrap=True)
        painted = self._page.getvalue()
        self._page.seek(0)
        self._page.truncate()
        return painted

    def _size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(self._streams.stderr)
        except OSError:
            return 80, 24
        return columns or 80, rows or 24


def _styled(line: Line) -> Text:
    style = _STYLES[line.kind]
    if line.kind in _WHOLE_LINE:
        return Text(str(line), style)
    glyph, _, rest = str(line).partition(" ")
    return Text.assemble((glyph, style), " ", rest)


def _last_line(tail: str) -> str:
    lines = [line for line in tail.splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else ""
