"""Lines that stay, and a few rows below them that are drawn over and over: the live part of a terminal."""

from collections.abc import Callable, Sequence

from agentctl.terminal.outlet import Outlet


class Painter:
    """Writes to a terminal that can move its cursor. Rows are given painted, none wider than the terminal."""

    def __init__(self, outlet: Outlet, size: Callable[[], tuple[int, int]]) -> None:
        self._outlet = outlet
        self._size = size
        self._rows: tuple[str, ...] = ()

    def paint(self, lines: str, rows: Sequence[str]) -> None:
        """Add `lines`, whole lines with their ends, above the live rows; show `rows` as the live ones.

        Where there are more rows than the terminal has, the last ones are shown.
        """
        _, height = self._size()
        shown = tuple(rows)[-max(height - 1, 1) :]
        if not lines and shown == self._rows:
            return
        self._outlet.write(self._erased() + lines + "\n".join(shown))
        self._rows = shown

    def clear(self) -> None:
        """Take the live rows away; the cursor stands where they began."""
        if self._rows:
            self._outlet.write(self._erased())
            self._rows = ()

    def _erased(self) -> str:
        if not self._rows:
            return ""
        up = f"\x1b[{len(self._rows) - 1}A" if len(self._rows) > 1 else ""
        return f"\r{up}\x1b[J"
