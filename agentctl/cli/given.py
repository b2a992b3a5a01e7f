"""Text that the command line names: a file, or standard input."""

import sys
from pathlib import Path

from agentctl.errors import UsageError, file_fault

_MAX_BYTES = 512 * 2**20


def given_text(source: str | Path, *, what: str, exact: bool = False) -> str:
    """Return the text of a file, or of standard input for `-`. May block.

    `what` names it in the message: `--inputs`, `the event`. A byte order mark is left out unless the text is
    wanted `exact`.

    Raises:
        UsageError: it cannot be read, or is not UTF-8.
    """
    name = str(source)
    try:
        return _read(name).decode("utf-8" if exact else "utf-8-sig")
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        shown = "standard input" if name == "-" else repr(name)
        raise UsageError(f"{what}: {shown} cannot be read: {file_fault(error)}.") from error


def _read(name: str) -> bytes:
    """Return all that is there. Pipes may be named, and devices, which never end."""
    if name == "-":
        data = sys.stdin.buffer.read(_MAX_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
    return data
