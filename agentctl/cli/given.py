"""Text that the command line names: a file, or standard input."""

import sys
from pathlib import Path

from agentctl.errors import UsageError, file_fault


def given_text(source: str | Path, *, what: str, exact: bool = False) -> str:
    """Return the text of a file, or of standard input for `-`. May block.

    `what` names it in the message: `--inputs`, `the event`. A byte order mark is left out unless the text is
    wanted `exact`.

    Raises:
        UsageError: it cannot be read, or is not UTF-8.
    """
    name = str(source)
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8" if exact else "utf-8-sig")
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        shown = "standard input" if name == "-" else repr(name)
        raise UsageError(f"{what}: {shown} cannot be read: {file_fault(error)}.") from error
