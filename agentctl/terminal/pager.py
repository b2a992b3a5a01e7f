"""Long questions from the top: rows on the terminal's second screen, moved through with keys."""

from dataclasses import dataclass

import anyio.to_thread

from agentctl.terminal.desk import Desk, Rows
from agentctl.terminal.sheet import paint

_SECOND_SCREEN, _FIRST_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
_CLEAR = "\x1b[H\x1b[2J"
_FAR = 10**9


async def page(desk: Desk, rows: Rows) -> None:
    """Show `rows` a screenful at a time until the person leaves. Answers nothing.

    Raises:
        TerminalGone: nobody can type any more.
    """
    if not desk.device.moves:
        return
    shown = _Page(desk=desk, rows=rows)
    desk.show(_SECOND_SCREEN)
    try:
        await shown.draw()
        while True:
            key = await desk.one_key(shown.draw)
            if key.kind in ("escape", "enter") or key.text in ("q", "Q"):
                return
            shown.move(key.text)
            await shown.draw()
    finally:
        desk.show(_FIRST_SCREEN)


@dataclass(slots=True, kw_only=True)
class _Page:
    """What part of the rows is on the screen."""

    desk: Desk
    rows: Rows
    top: int = 0

    async def draw(self) -> None:
        """Show a screenful; the size may be another one each time."""
        await anyio.to_thread.run_sync(self._draw)

    def _draw(self) -> None:
        columns, height = self.desk.device.size()
        painted = paint(self.rows(), columns=columns, colour=self.desk.device.colour)
        room = max(height - 1, 1)
        self.top = max(0, min(self.top, len(painted) - room))
        shown = painted[self.top : self.top + room]
        last = self.top + len(shown)
        where = f"rows {self.top + 1} to {last} of {len(painted)} · space, arrows · q back"
        self.desk.show(_CLEAR + "\r\n".join((*shown, where[: columns - 1])))

    def move(self, name: str) -> None:
        """Go where a key's name says."""
        room = max(self.desk.device.size()[1] - 1, 1)
        match name:
            case " " | "pagedown" | "f":
                self.top += room
            case "pageup" | "b":
                self.top -= room
            case "down" | "j":
                self.top += 1
            case "up" | "k":
                self.top -= 1
            case "home" | "g":
                self.top = 0
            case "end" | "G":
                self.top = _FAR
            case _:
                pass
