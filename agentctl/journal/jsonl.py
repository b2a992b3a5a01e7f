"""Lines of JSON in a file: appended whole, and read back with what a crash or a bad writer left in them.

An export and a log, not a second truth: the journal is SQLite.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from agentctl.journal.body import Damaged, from_json, to_json
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLines:
    """What was read from a file of JSON lines."""

    records: tuple[JsonObject, ...]
    """The objects, in order; two on one line are two."""
    warnings: tuple[str, ...] = ()
    """What was left out, with its line."""


def append_line(path: Path, record: JsonObject) -> None:
    """Add one record at the end, on a line of its own, whatever stands there. Atomic between processes.

    May block. Raises OSError when the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # SAFETY: the path is a person's own, from config; never a model's. A link is refused.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        line = ("\n" if torn else "") + to_json(record) + "\n"
        data = line.encode("utf-8")
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def read_lines(text: str) -> JsonLines:
    """Return every record in `text`. Total: nothing in it can make a later line be lost.

    A torn last line, a line that is no JSON, and JSON that is no object are left out with a warning. Records
    that were glued together on one line are taken apart.
    """
    records: list[JsonObject] = []
    warnings: list[str] = []
    lines = text.removeprefix("\ufeff").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = list(_objects(line))
        for value in found:
            if isinstance(value, str):
                torn = number == len(lines)
                warnings.append(f"line {number}: {'torn at the end' if torn else value}; left out")
            else:
                records.append(value)
    return JsonLines(records=tuple(records), warnings=tuple(warnings))


def _objects(line: str) -> Iterator[JsonObject | str]:
    """Yield the objects of a line, and a sentence for each part that is none."""
    decoder = json.JSONDecoder(parse_constant=_no_number)
    position = 0
    while position < len(line):
        try:
            _, end = decoder.raw_decode(line, position)
            value = from_json(line[position:end])
        except (ValueError, RecursionError, Damaged) as error:
            yield f"not JSON ({error})"
            return
        yield value if isinstance(value, dict) else "not an object"
        position = end
        while position < len(line) and line[position].isspace():
            position += 1


def _no_number(word: str) -> JsonValue:
    raise ValueError(f"{word} is no JSON")
