"""Which files a `.gitignore` leaves out, so that searches do not drown in what nobody wrote.

Source: https://git-scm.com/docs/gitignore (read 2026-01)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_MAX_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of a `.gitignore`."""

    pattern: re.Pattern[str]
    """Matches a path relative to the file's directory."""
    keeps: bool
    """The line began with `!`."""
    only_directories: bool


def parse_ignore(data: bytes) -> tuple[IgnoreRule, ...]:
    """Return the rules of an ignore file, in order; what is no pattern is passed over. Pure, total."""
    rules = (_rule(line) for line in data[:_MAX_FILE].decode("utf-8", "replace").splitlines())
    return tuple(rule for rule in rules if rule is not None)


def is_ignored(path: str, rules: Sequence[tuple[str, tuple[IgnoreRule, ...]]], *, directory: bool) -> bool:
    """Tell whether the last rule that matches leaves the path out.

    `rules` are pairs of a directory (relative, `` or ending in `/`) and its rules, outermost first. That a
    directory above is left out is for the caller to know: git never looks into it. Pure, total.
    """
    for base, own in reversed(rules):
        below = path[len(base) :]
        for rule in reversed(own):
            if (directory or not rule.only_directories) and rule.pattern.fullmatch(below):
                return not rule.keeps
    return False


def _rule(line: str) -> IgnoreRule | None:
    text = re.sub(r"(?<!\\)[ \t]+\Z", "", line.rstrip("\r"))
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    text = text[1:] if keeps else text
    only_directories = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    anchored = "/" in text
    body = translate(text.lstrip("/"))
    try:
        return IgnoreRule(re.compile(body if anchored else f"(?:.*/)?{body}"), keeps, only_directories)
    except re.error:
        return None


def translate(glob: str) -> str:
    """Return a glob as a regular expression on a whole relative path: `*` stays in a component, `**` crosses.

    Pure, total; a bracket that does not close stands for itself.
    """
    pieces: list[str] = []
    position = 0
    while position < len(glob):
        piece, position = _piece(glob, position)
        pieces.append(piece)
    return "".join(pieces)


def _piece(glob: str, position: int) -> tuple[str, int]:
    character = glob[position]
    at_start = position == 0 or glob[position - 1] == "/"
    match character:
        case "*" if at_start and glob.startswith("**/", position):
            return "(?:[^/]+/)*", position + 3
        case "*" if at_start and glob[position:] == "**":
            return ".+", position + 2
        case "*":
            end = position
            while end < len(glob) and glob[end] == "*":
                end += 1
            return "[^/]*", end
        case "?":
            return "[^/]", position + 1
        case "[":
            return _bracket(glob, position)
        case "\\" if position + 1 < len(glob):
            return re.escape(glob[position + 1]), position + 2
        case _:
            return re.escape(character), position + 1


def _bracket(glob: str, position: int) -> tuple[str, int]:
    body_start = position + 1
    negated = glob[body_start : body_start + 1] in {"!", "^"}
    body_start += negated
    # A closing bracket right at the start is a member of the set.
    end = glob.find("]", body_start + 1)
    if end < 0:
        return re.escape("["), position + 1
    body = glob[body_start:end].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    body = body.replace("&&", "&\\&").replace("||", "|\\|").replace("~~", "~\\~").replace("^", "\\^")
    return f"(?!/)[{'^' if negated else ''}{body}]", end + 1
