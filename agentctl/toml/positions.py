"""Line and column of every key and value in a TOML text that `tomllib` has accepted.

The scan relies on the text being valid, which keeps it short, and it runs at the first question, so a file
about which nothing is asked costs nothing. bench/blueprint_load.py has the figures.
"""

import re
import tomllib
from bisect import bisect_right
from typing import TypeAlias

from agentctl.errors import Position

Key: TypeAlias = str | int
"""A table's key, or an array's index from 0."""

Path: TypeAlias = tuple[Key, ...]
"""Keys from the top of the file down."""

_BLANK = re.compile(r"(?:[ \t\n,]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


class Positions:
    """Where the keys and values of one TOML text stand. Lines and columns count from 1, in characters."""

    __slots__ = ("_keys", "_lines", "_values", "file", "text")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        """How messages name the file."""
        self.text = text
        """Valid TOML, lines ended by `\\n` alone."""
        self._keys: dict[Path, int] | None = None
        self._values: dict[Path, int] = {}
        self._lines: list[int] = []

    def of_key(self, path: Path) -> Position:
        """Return where the key at `path` stands, the nearest parent's where it has none, or the file."""
        keys = self._scanned()
        for length in range(len(path), 0, -1):
            if path[:length] in keys:
                return self.at(keys[path[:length]])
        return Position(file=self.file)

    def of_value(self, path: Path) -> Position:
        """Return where the value at `path` begins, the nearest parent's where it has none, or the file."""
        keys = self._scanned()
        for length in range(len(path), 0, -1):
            offset = self._values.get(path[:length], keys.get(path[:length]))
            if offset is not None:
                return self.at(offset)
        return Position(file=self.file)

    def has(self, path: Path) -> bool:
        """Tell whether a key or item stands at `path`."""
        return path in self._scanned()

    def paths(self) -> frozenset[Path]:
        """Return every path that has a position."""
        return frozenset(self._scanned())

    def at(self, offset: int) -> Position:
        """Return the position of the character at `offset` of the text."""
        if not self._lines:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect_right(self._lines, offset)
        return Position(file=self.file, line=line, column=offset - self._lines[line - 1] + 1)

    def _scanned(self) -> dict[Path, int]:
        if self._keys is None:
            scan = _Scan(self.text)
            scan.document()
            self._keys, self._values = scan.keys, scan.values
        return self._keys


class _Scan:
    """One pass over a valid text, recording offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.keys: dict[Path, int] = {}
        self.values: dict[Path, int] = {}
        self._newest: dict[Path, int] = {}  # arrays of tables → index of their last table

    def document(self) -> None:
        table: Path = ()
        self._skip(_BLANK)
        while self.place < len(self.text):
            if self.text.startswith("[", self.place):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.place)
        if match:
            self.place = match.end()

    def _header(self) -> Path:
        is_array = self.text.startswith("[[", self.place)
        self.place += 2 if is_array else 1
        parts = self._key()
        self.place += 2 if is_array else 1
        path: Path = ()
        for position, (name, offset) in enumerate(parts):
            path = (*path, name)
            self.keys.setdefault(path, offset)
            if is_array and position == len(parts) - 1:
                self._newest[path] = self._newest.get(path, -1) + 1
            if path in self._newest:
                path = (*path, self._newest[path])
                self.keys.setdefault(path, offset)
        return path

    def _key(self) -> list[tuple[str, int]]:
        parts = []
        while True:
            self._skip(_SPACE)
            offset = self.place
            parts.append((self._name(), offset))
            self._skip(_SPACE)
            if not self.text.startswith(".", self.place):
                return parts
            self.place += 1

    def _name(self) -> str:
        match = _BARE.match(self.text, self.place)
        if match:
            self.place = match.end()
            return match.group()
        start = self.place
        self._skip(_STRING)
        quoted = self.text[start : self.place]
        return str(tomllib.loads(f"name = {quoted}")["name"]) if "\\" in quoted else quoted[1:-1]

    def _pair(self, table: Path) -> None:
        path = table
        for name, offset in self._key():
            path = (*path, name)
            self.keys.setdefault(path, offset)
        self.place += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: Path) -> None:
        self.values[path] = self.place
        first = self.text[self.place]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        elif first in "\"'":
            self._skip(_STRING)
        else:
            self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self.place += 1
        index = 0
        self._skip(_BLANK)
        while not self.text.startswith("]", self.place):
            item = (*path, index)
            self.keys[item] = self.place
            self._value(item)
            self._skip(_BLANK)
            index += 1
        self.place += 1

    def _inline_table(self, path: Path) -> None:
        self.place += 1
        self._skip(_BLANK)
        while not self.text.startswith("}", self.place):
            self._pair(path)
            self._skip(_BLANK)
        self.place += 1
