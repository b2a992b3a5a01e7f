"""Reads a sed script for what it writes, reads and runs."""

import re
from dataclasses import dataclass, field


@dataclass(slots=True)
class SedScript:
    """What a script does besides printing."""

    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    """Commands for a shell, where they stand in the script."""
    runs: bool = False
    """It runs a program, or cannot be read to the end, which has to count as that."""


_SPACE = re.compile(r"[\s;]*")
_DEVICES = {"/dev/stdout", "/dev/stderr", "/dev/stdin"}


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.found = SedScript()

    def read(self) -> SedScript:
        while self.pos < len(self.text):
            self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr] # matches empty text too
            if self.pos >= len(self.text):
                break
            if self.text[self.pos] in "{}!,":
                self.pos += 1
                continue
            if not self._address() and not self._command():
                self.found.runs = True
                break
        return self.found

    def _address(self) -> bool:
        """Read one address; False where none stands here."""
        text, pos = self.text, self.pos
        match = re.compile(r"(?:\d+(?:~\d+)?|\$|[+~]\d+)[ \t]*").match(text, pos)
        if match:
            self.pos = match.end()
            return True
        if text[pos] == "/":
            self.pos += 1
        elif text[pos] == "\\" and pos + 1 < len(text):
            self.pos += 2
        else:
            return False
        self._until(text[self.pos - 1])
        self.pos = re.compile(r"[IM \t]*").match(text, self.pos).end()  # type: ignore[union-attr] # as above
        return True

    def _until(self, delimiter: str) -> bool:
        """Skip behind the next `delimiter` that is not escaped or in brackets."""
        text = self.text
        while self.pos < len(text):
            char = text[self.pos]
            if char == "\\":
                self.pos += 2
                continue
            self.pos += 1
            if char == delimiter:
                return True
        return False

    def _line(self) -> str:
        """Take the rest of the line, which a file name or a text reaches to."""
        end = self.text.find("\n", self.pos)
        end = len(self.text) if end < 0 else end
        rest = self.text[self.pos : end]
        self.pos = end
        return rest.strip()

    def _command(self) -> bool:
        char = self.text[self.pos]
        self.pos += 1
        if char in "=dDgGhHnNpPxzlF":
            self.pos = re.compile(r"[ \t]*\d*").match(self.text, self.pos).end() if char == "l" else self.pos  # type: ignore[union-attr]
            return True
        if char in "qQ":
            self.pos = re.compile(r"[ \t]*\d*").match(self.text, self.pos).end()  # type: ignore[union-attr] # as above
            return True
        if char in ":btTv":
            end = re.compile(r"[^\n;}]*").match(self.text, self.pos)
            self.pos = end.end() if end else self.pos
            return True
        if char == "#":
            self._line()
            return True
        if char in "aic":
            self._text()
            return True
        return self._file_or_run(char)

    def _text(self) -> None:
        """The text of `a`, `i` or `c`: to the end of the line, longer where the line ends in a backslash."""
        while self._line().endswith("\\") and self.pos < len(self.text):
            self.pos += 1

    def _file_or_run(self, char: str) -> bool:
        if char in "rR":
            self._name(self.found.reads)
        elif char in "wW":
            self._name(self.found.writes)
        elif char == "e":
            self.found.runs = True
            text = self._line()
            if text:
                self.found.commands.append(text)
        elif char in "sy":
            return self._substitution(char)
        else:
            return False
        return True

    def _name(self, into: list[str]) -> None:
        name = self._line()
        if name and name not in _DEVICES:
            into.append(name)

    def _substitution(self, char: str) -> bool:
        if self.pos >= len(self.text):
            return False
        delimiter = self.text[self.pos]
        self.pos += 1
        if not self._until(delimiter):
            return False
        start = self.pos
        if not self._until(delimiter):
            return False
        replacement = self.text[start : self.pos - 1]
        while char == "s" and self.pos < len(self.text) and self.text[self.pos] in "gpiIemMw0123456789":
            flag = self.text[self.pos]
            self.pos += 1
            if flag == "e":
                self.found.runs = True
                self.found.commands.append(replacement.replace("\\" + delimiter, delimiter))
            elif flag == "w":
                self._name(self.found.writes)
        return True


def read_sed(script: str) -> SedScript:
    """Return what `script` writes, reads and runs. Total; what cannot be read counts as running something."""
    reader = _Reader(script)
    return reader.read()
