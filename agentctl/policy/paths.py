"""Paths as policy sees them: patterns by component, containment, and what is always protected. No I/O.

Every path that comes in is absolute and resolved, symlinks included; the executor sees to that.
"""

import re
from functools import lru_cache

from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What relative patterns are relative to. Both absolute and resolved, without a final slash."""

    workdir: str
    home: str


def normal_path(path: str) -> str:
    """Return `path` without empty, `.` and `..` components, by text alone; `..` above the root is the root.

    A relative path that climbs keeps its leading `..`. Pure; follows no link.
    """
    absolute = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part in {"", "."}:
            continue
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part == ".." and absolute:
            continue
        else:
            parts.append(part)
    return ("/" if absolute else "") + "/".join(parts) or "."


def contains(folder: str, path: str) -> bool:
    """Return whether `path` is `folder` or lies under it, by component; both absolute and resolved."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def absolute_pattern(text: str, place: Place) -> str:
    """Return a path pattern as an absolute one: `~/` is home, relative is under the workdir.

    Raises:
        ValueError: empty, `~user`, or `..` after a wildcard.
    """
    if not text.strip():
        raise ValueError("the pattern is empty; write a path, or the tool without brackets")
    if "\0" in text:
        raise ValueError("a path cannot hold a NUL byte")
    if text == "~" or text.startswith("~/"):
        base, rest = place.home, text[1:]
    elif text.startswith("~"):
        raise ValueError("`~name` is not known here; write the absolute path")
    elif text.startswith("/"):
        base, rest = "", text
    else:
        base, rest = place.workdir, text
    fixed, wild = before_wildcard(rest)
    if ".." in wild.split("/"):
        raise ValueError("`..` after a wildcard has no single meaning; write the folder itself")
    front = normal_path(f"{base}/{fixed}")
    whole = f"{front.rstrip('/')}/{wild}" if wild else front
    # `folder/` is the folder and all in it, as a person means who writes the slash.
    return f"{whole.rstrip('/')}/**" if text.endswith("/") and whole != "/" else whole


def before_wildcard(text: str) -> tuple[str, str]:
    """Split at the last slash before the first `*`; all of it stands in front where there is none."""
    star = text.find("*")
    if star < 0:
        return text, ""
    slash = text.rfind("/", 0, star)
    return text[: slash + 1], text[slash + 1 :]


@lru_cache(maxsize=4096)
def path_regex(text: str, place: Place) -> str:
    """Return the regular expression, for `fullmatch` with DOTALL, of a path pattern.

    `*` stays in one component and matches none of its characters or more, `**` as a whole component crosses
    any number of them; `folder/**` is also the folder itself.

    Raises:
        ValueError: as `absolute_pattern`.
    """
    parts = [part for part in absolute_pattern(text, place).split("/") if part not in {"", "."}]
    if not parts:
        return "/"
    source = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            source += "(?:/.*)?" if last else "(?:/[^/]+)*"
        else:
            source += "/" + "[^/]*".join(re.escape(piece) for piece in re.split(r"\*+", part))
    return source if parts != ["**"] else "/.*"
