"""The last gate before a terminal: nothing that comes from a model, tool or file moves the cursor."""

import sys
from typing import TextIO, cast

from agentctl.terminal.visible import prose


class _Visible:
    """A text stream that makes everything written to it visible."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text`, with everything that a terminal would obey written out."""
        self._stream.write(prose(text))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def guard_terminals() -> None:
    """Put the gate in front of stdout and stderr where they are terminals; pipes and files stay exact.

    Views, prompts and progress bars draw on the terminal itself and do not come through here.
    """
    if sys.stdout.isatty():
        sys.stdout = cast("TextIO", _Visible(sys.stdout))
    if sys.stderr.isatty():
        sys.stderr = cast("TextIO", _Visible(sys.stderr))
