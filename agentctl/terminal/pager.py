"""Long questions from the top: rows on the terminal's second screen, moved through with keys."""

from collections.abc import Sequence

from agentctl.terminal.desk import Desk
from agentctl.terminal.sheet import Row, paint

_SECOND_SCREEN, _FIRST_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
_CLEAR = "\x1b[H\x1b[2J"


async def page(desk: Desk, rows: Sequence[Row]) -> None:
    """Show `rows` a screenful at a time until the person leaves. Answers nothing.

    Raises:
        TerminalGone: nobody can type any more.
    """
    if not desk.device.moves:
        return
    top = 0
    desk.show(_SECOND_SCREEN)
    try:
        while True:
            columns, height = desk.device.size()
            painted = paint(rows, columns=columns, colour=desk.device.colour)
            room = max(height - 1, 1)
            top = max(0, min(top, len(painted) - room))
            shown = painted[top : top + room]
            where = f"rows {top + 1} to {top + len(shown)} of {len(painted)} · space, arrows · q back"
            desk.show(_CLEAR + "\r\n".join((*shown, where[:columns])))
            key = await desk.one_key(lambda: desk.show(_CLEAR))
            if key.kind in ("escape", "enter") or key.text in ("q", "Q"):
                return
            top += _steps(key.text, room)
    finally:
        desk.show(_FIRST_SCREEN)


def _steps(name: str, room: int) -> int:
    match name:
        case " " | "pagedown" | "f":
            return room
        case "pageup" | "b":
            return -room
        case "down" | "j":
            return 1
        case "up" | "k":
            return -1
        case "home" | "g":
            return -(10**9)
        case "end" | "G":
            return 10**9
        case _:
            return 0
