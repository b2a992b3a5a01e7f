"""Reading a person's keys while everything else goes on: one key at a time, or a line of text."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeAlias

import anyio
import anyio.to_thread

from agentctl.terminal.device import Device
from agentctl.terminal.keys import Key, KeyDecoder
from agentctl.terminal.sheet import Row, paint, styled
from agentctl.terminal.visible import cells, exact, wrap

Rows: TypeAlias = Callable[[], Iterable[Row]]

_WAIT_S = 0.15
"""Longest stay in one read; a cancelled prompt is gone after so long."""
_QUIET_S = 0.04
"""Keys closer together than this were not typed by hand: a paste, or a key that is held down."""

_PASTE_S = 1.0
"""A paste whose end did not come within this was cut off; what is typed next is typed."""

_SLOW_S = 0.05
"""A terminal that took longer to show a question than this let a person type before the end of it."""

_SPARE = 2
_LONG = Row(style="warning", text="longer than the screen: v views it from the top")
_STOP = Key(kind="control", text="z")
_INTERRUPT = Key(kind="control", text="c")
"""Ctrl-C is a signal, and comes as a key only from a terminal that writes keys as codes."""


class TerminalGone(Exception):
    """The terminal hung up while a person was asked."""


@dataclass(slots=True)
class Desk:
    """A person at a terminal device."""

    device: Device
    _size: tuple[int, int] = (0, 0)
    """The terminal's size when the question was shown last."""
    _decoder: KeyDecoder = field(default_factory=KeyDecoder)
    _one: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))

    def show(self, text: str) -> None:
        """Show text that is visible already."""
        self.device.write(text)

    async def present(self, rows: Rows, keys: Sequence[Row], marker: str) -> None:
        """Show a question and what can be pressed; no key that was typed before is an answer to it.

        `rows` is called on another thread: a long document takes its time to be made and to be written.
        """
        await anyio.to_thread.run_sync(self._present, rows, keys, marker, limiter=self._one)

    def _present(self, rows: Rows, keys: Sequence[Row], marker: str) -> None:
        columns, height = self._size = self.device.size()
        colour = self.device.colour
        shown, offered = (list(paint(part, columns=columns, colour=colour)) for part in (rows(), keys))
        if len(shown) + len(offered) > height - _SPARE and self.device.moves:
            shown += paint((_LONG,), columns=columns, colour=colour)
        text = "".join(f"\r\n{row}" for row in (*shown, *offered))
        self.begin()
        began = monotonic()
        bell = "\a" if self.device.looks.bell else ""
        self.device.write(f"{bell}{text}\r\n{styled(marker, 'head', colour=colour)} ")
        if monotonic() - began > _SLOW_S:
            self.begin()

    def begin(self) -> None:
        """Throw away what was typed and not read yet."""
        self.device.drop_typed()
        self._decoder.forget()

    async def one_key(
        self, redraw: Callable[[], Awaitable[None]], *, stale: Callable[[], bool] = bool
    ) -> Key:
        """Return the next key that was typed alone; pastes and bursts are returned as one `paste`.

        `redraw` is called when the terminal has got another size or was given back by a shell, and when what
        is shown is `stale`.

        Raises:
            TerminalGone: nobody can type any more.
        """
        seen = self._size
        while True:
            keys = await self._burst()
            if self.device.lost_modes() and self.device.answers():
                self.device.enter()
                self._size = (0, 0)
            size = self.device.size()
            # While a window is dragged its size changes all the time; each redraw would stay above for good.
            settled, seen = size == seen or self._size == (0, 0), size
            if not keys and ((size != self._size and settled) or stale()):
                self._size = size
                await redraw()
            keys = tuple(key for key in keys if key.kind != "other")
            if len(keys) == 1 and keys[0] == _STOP:
                self.device.stop_job()
                await redraw()
            elif len(keys) == 1:
                return keys[0]
            elif keys:
                return Key(kind="paste", text="".join(key.text for key in keys))

    async def _burst(self) -> tuple[Key, ...]:
        """Return the keys of one burst; empty when nothing was typed for a while."""
        keys = self._decoder.feed(await self._read(_WAIT_S))
        still = 0
        while keys or self._decoder.unfinished:
            data = await self._read(_QUIET_S)
            if data:
                keys, still = keys + self._decoder.feed(data), 0
                continue
            keys += self._decoder.settle()
            still += 1
            if keys or still * _QUIET_S > _PASTE_S:
                self._decoder.forget()
                break
        if _INTERRUPT in keys:
            self.device.interrupt()
            return ()
        return keys

    async def _read(self, wait_s: float) -> bytes:
        if self.device.gone:
            raise TerminalGone
        if not self.device.answers():
            await anyio.sleep(wait_s)
            return b""
        return await anyio.to_thread.run_sync(self.device.read, wait_s, limiter=self._one)

    async def line(self, prompt: str) -> str | None:
        """Return a line of text, or None for Escape. Pasted line ends are kept; Enter alone ends it.

        Raises:
            TerminalGone: nobody can type any more.
        """
        entry = _Entry(self.device, prompt)
        entry.draw()
        while True:
            keys = await self._burst()
            if self.device.lost_modes() and self.device.answers():  # a shell gave the terminal back
                self.device.enter()
                entry.draw()
            for position, key in enumerate(keys):
                if key == _STOP:
                    self.device.stop_job()
                if key.kind == "enter" and position == len(keys) - 1:
                    entry.end()
                    return entry.text
                if key.kind == "escape" or (key == Key(kind="control", text="d") and not entry.text):
                    entry.end()
                    return None
                entry.take(key)
            if keys:
                entry.draw()


@dataclass(slots=True)
class _Entry:
    """A line as it is typed; the cursor stays at its end."""

    device: Device
    prompt: str
    text: str = ""
    _drawn: str = ""

    def take(self, key: Key) -> None:
        """Change the text as the key says."""
        match key.kind:
            case "char" | "paste":
                self.text += key.text
            case "enter":
                self.text += "\n"
            case "backspace":
                self.text = self.text[:-1]
            case "control" if key.text == "u":
                self.text = ""
            case "control" if key.text == "w":
                self.text = self.text.rstrip()[: self.text.rstrip().rfind(" ") + 1]
            case _:
                pass

    def draw(self) -> None:
        """Show the end of the line, as much as fits in one row."""
        shown = exact(self.text).replace("\n", "⏎")
        if not self.device.moves:
            fresh = shown.removeprefix(self._drawn) if self._drawn else self.prompt + shown
            self.device.write(fresh if shown.startswith(self._drawn) else f"\n{self.prompt}{shown}")
            self._drawn = shown
            return
        columns, _ = self.device.size()
        room = max(columns - cells(self.prompt) - 1, 1)
        tail = wrap(shown[::-1], room)[0][::-1] if shown else ""
        self.device.write(f"\r\x1b[K{self.prompt if room > 1 else ''}{tail}")

    def end(self) -> None:
        """Leave the row."""
        self.device.write("\r\n")
