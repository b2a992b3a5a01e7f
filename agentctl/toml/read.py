"""A TOML file into a `Table`, with one clear error for everything that can be wrong with the file itself."""

import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentctl.errors import InvalidInput, Position, Problem, UsageError, file_fault
from agentctl.toml.positions import Positions
from agentctl.toml.table import Table, TomlValue
from agentctl.toml.words import nearest

MAX_BYTES: Final = 1024 * 1024
"""A larger file is refused."""

_MAX_DEPTH = 64
_FINDING = {"blueprint": "agentctl blueprints list  shows those with a name; agentctl new NAME  writes one"}
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_file(path: Path, *, what: str) -> bytes:
    """Return the bytes of the regular file at `path`. May block.

    `what` names the file in messages: `blueprint`, `config`.

    Raises:
        UsageError: it is missing, is not a regular file, or can't be read.
        InvalidInput: it is larger than `MAX_BYTES`.
    """
    try:
        # A pipe or device would block or never end, so the kind is looked at before anything is opened.
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            kind = "a directory" if stat.S_ISDIR(found.st_mode) else "not a regular file"
            raise UsageError(f"The {what} {str(path)!r} is {kind}.", hint=f"Name the {what}'s TOML file.")
        if found.st_size > MAX_BYTES:
            raise _too_large(path, found.st_size, what)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        beside = _nearest_beside(path)
        meant, hint = (f" Did you mean {beside!r}?" if beside else ""), _FINDING.get(what, "")
        if path.is_symlink():
            meant, hint = " It is a link to what is not there.", ""
        raise UsageError(f"There is no {what} at {str(path)!r}.{meant}", hint=hint) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"The {what} {str(path)!r} can't be read: {file_fault(error)}.") from None
    if len(data) > MAX_BYTES:
        raise _too_large(path, len(data), what)
    return data


def _nearest_beside(path: Path) -> str:
    """Return the TOML file in the same folder whose name is most like that of `path`; empty when none is."""
    with suppress(OSError):
        near = nearest(path.name, [one.name for one in path.parent.glob("*.toml") if one.is_file()])
        return str(path.parent / near) if near else ""
    return ""


def parse(data: bytes, *, file: str) -> Table:
    """Return the TOML in `data` as a table. `file` is how messages name it. Pure.

    A byte order mark and CRLF line ends are taken.

    Raises:
        InvalidInput: it is not UTF-8, not TOML, or nested deeper than 64 levels.
    """
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        raise _invalid(file, line, column, f"byte 0x{data[error.start]:02x} is not UTF-8") from None
    try:
        values = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, and integers of more digits than Python reads
        raise _syntax_error(file, text, str(error)) from None
    except RecursionError:
        raise _invalid(file, 0, 0, "values are nested too deeply") from None
    if any(depth > _MAX_DEPTH for depth in _depths(values)):
        raise _invalid(file, 0, 0, f"values are nested deeper than {_MAX_DEPTH} levels")
    return Table(values=values, positions=Positions(file, text))


def _too_large(path: Path, size: int, what: str) -> InvalidInput:
    message = f"the {what} has {size:,} bytes; at most {MAX_BYTES:,} (1 MiB) are taken"
    return _invalid(str(path), 0, 0, message)


def _invalid(file: str, line: int, column: int, message: str) -> InvalidInput:
    return InvalidInput((Problem(position=Position(file=file, line=line, column=column), message=message),))


def _syntax_error(file: str, text: str, message: str) -> InvalidInput:
    match = _PLACE.search(message)
    words = message[: match.start()] if match else message
    if match and match[1]:
        line, column = int(match[1]), int(match[2])
    else:
        line = text.count("\n") + 1
        column = len(text) - (text.rfind("\n") + 1) + 1
    return _invalid(file, line, column, f"not valid TOML: {words[:1].lower()}{words[1:]}")


def _depths(values: TomlValue) -> Iterator[int]:
    """Yield the depth of every container, without recursion."""
    waiting: list[tuple[int, TomlValue]] = [(0, values)]
    while waiting:
        depth, value = waiting.pop()
        yield depth
        if depth > _MAX_DEPTH:
            return
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting.extend((depth + 1, item) for item in items if isinstance(item, dict | list))
