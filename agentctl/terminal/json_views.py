"""Records for programs on stdout: one object at the end, or every event as it happens."""

from collections.abc import Sequence
from typing import get_args

from agentctl.protocol.codec import encode
from agentctl.protocol.events import LiveEvent, Published
from agentctl.protocol.values import JsonObject
from agentctl.terminal.board import Board
from agentctl.terminal.closing import last_lines
from agentctl.terminal.contract import Ending, Streams
from agentctl.terminal.outlet import Outlet, check_written
from agentctl.terminal.result import header, record_line, result

_LIVE: tuple[type, ...] = get_args(LiveEvent)


class JsonDrawing:
    """One JSON object on stdout when the command ends, and a few words on stderr."""

    def __init__(self, streams: Streams) -> None:
        self._board = Board()
        self._out = Outlet(streams.stdout)
        self._err = Outlet(streams.stderr)

    def draw(self, batch: Sequence[Published]) -> None:
        """Take note."""
        for published in batch:
            self._board.take(published)

    def clear(self) -> None:
        """Nothing is ever drawn over."""

    def finish(self, ending: Ending) -> None:
        """Write the result."""
        self._out.write(record_line(result(self._board, ending)))
        lines = last_lines(self._board, ending, quiet=True)
        self._err.write("".join(f"{line}\n" for line in lines))
        check_written(self._out)


class JsonLinesDrawing(JsonDrawing):
    """A header, every event, and the result last, one JSON object a line."""

    def __init__(self, streams: Streams) -> None:
        super().__init__(streams)
        self._out.write(record_line(header()))

    def draw(self, batch: Sequence[Published]) -> None:
        """Write a record for each event."""
        super().draw(batch)
        self._out.write("".join(record_line(event_record(published)) for published in batch))


def event_record(published: Published) -> JsonObject:
    """Return the record of an event: `type` is `event` when it is in the journal, `live` when it is not."""
    record: JsonObject = {
        "type": "live" if isinstance(published.event, _LIVE) else "event",
        "run": published.run_id,
        "agent": published.agent,
        "stage": published.stage,
        "event": encode(published.event),
    }
    if published.parent_run:
        record["parent"] = published.parent_run
    if published.sequence:
        record["sequence"] = published.sequence
    if published.at:
        record["at"] = published.at
    return record
