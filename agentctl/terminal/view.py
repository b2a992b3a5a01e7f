"""One way to run every view: events wait in a queue, a thread draws them, a prompt can hold it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from agentctl.protocol.events import Published
from agentctl.terminal.contract import Ending
from agentctl.terminal.outlet import Pump


class Drawing(Protocol):
    """What a view draws. Called from one thread at a time."""

    def draw(self, batch: Sequence[Published]) -> None:
        """Show a batch of events, which is empty when some time went by without any."""

    def clear(self) -> None:
        """Take away what would be drawn over again, since a prompt takes the terminal."""

    def finish(self, ending: Ending) -> None:
        """Write what comes last. Called once."""


class Later:
    """A drawing that is made when there is something to draw, on the thread that draws."""

    def __init__(self, make: Callable[[], Drawing]) -> None:
        self._make = make
        self._made: Drawing | None = None

    def draw(self, batch: Sequence[Published]) -> None:
        """Draw, as the real one does."""
        self._real().draw(batch)

    def clear(self) -> None:
        """Clear what was drawn, if anything was."""
        if self._made is not None:
            self._made.clear()

    def finish(self, ending: Ending) -> None:
        """Finish, as the real one does."""
        self._real().finish(ending)

    def _real(self) -> Drawing:
        if self._made is None:
            self._made = self._make()
        return self._made


class View:
    """A `Terminal` around a `Drawing`."""

    def __init__(self, drawing: Drawing, *, gather_s: float, idle_s: float | None = None) -> None:
        self._drawing = drawing
        self._pump: Pump[Published] = Pump(drawing.draw, gather_s=gather_s, idle_s=idle_s)
        self._finished = False

    def on_event(self, published: Published) -> None:
        """Queue an event; it is drawn within a few hundredths of a second."""
        self._pump.put(published)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Draw nothing for a while; what comes is kept."""
        with self._pump.held():
            self._drawing.clear()
            yield

    def finish(self, ending: Ending) -> None:
        """Draw what is left, then what comes last. Idempotent."""
        if self._finished:
            return
        self._finished = True
        try:
            self._pump.close()
        finally:
            self._drawing.finish(ending)
