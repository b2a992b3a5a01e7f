"""How a long tool result is cut for the model, and how the rest is kept where it can be read back."""

from collections.abc import Callable

from agentctl.records import dataclass
from agentctl.state.shared_backend import SharedStateError
from agentctl.state.shared_state import STASH_PREFIX, SharedState

_MARKED_FROM = 5
"""With fewer lines than this there is no room for a marker with a line before and after it."""
_MARKER_LINES = 3
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A text within its bounds."""

    text: str
    marked: bool = False
    """It holds a marker that counts what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stashed:
    """A result as the model sees it, and where the whole of it is."""

    text: str
    key: str = ""
    """The key that the marker names; empty when nothing was stashed."""
    warning: str = ""
    """Why nothing was stashed although something was cut."""


def cut_text(text: str, *, max_lines: int, max_bytes: int, key: str = "") -> Cut:
    """Return `text`, or its first and last lines with a marker between, within both bounds. Pure, idempotent.

    With n lines over a cap of m, the result has exactly m lines: of m - 3 the first half, a marker between
    two empty lines, the rest from the end. Below 5 lines there is no marker. Over `max_bytes`, lines are left
    out until it fits, and a line that is too long alone is cut between characters. A cut text has plain line
    feeds and no last one. The marker names `key` where one is given.
    """
    unified = text.replace("\r\n", "\n")
    lines = unified.removesuffix("\n").split("\n")
    size = len(text.encode("utf-8", "surrogatepass"))
    if len(lines) <= max_lines and size <= max_bytes:
        return Cut(text=text)
    if max_lines < _MARKED_FROM:
        return Cut(text=_clip("\n".join(lines[:max_lines]), max_bytes))
    if len(lines) > max_lines:
        head, tail = _ends(lines, max_lines)
        marker = _marker(len(lines) - len(head) - len(tail), 0, key)
        whole = "\n".join((*head, "", marker, "", *tail))
        if _size(whole) <= max_bytes:
            return Cut(text=whole, marked=True)
        lines_for_bytes = max_lines
    else:
        lines_for_bytes = len(lines) + _MARKER_LINES
    return _cut_bytes(lines, min(lines_for_bytes, max_lines), max_bytes, key)


def stash_key(call_id: str, text: str) -> str:
    """Return the key under which a call's whole output is kept.

    The hash is there because some services count call ids anew in every turn.
    """
    value = _FNV_OFFSET
    for byte in text.encode("utf-8", "surrogatepass"):
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return f"{STASH_PREFIX}{call_id}-{value:016x}"


async def cut_and_stash(
    text: str, call_id: str, *, bounds: tuple[int, int], store: SharedState | None
) -> Stashed:
    """Return `text` cut to `bounds` (lines, bytes), the whole kept in `store` and named in the marker.

    Where it cannot be kept, the marker names no key, and the run goes on.
    """
    max_lines, max_bytes = bounds
    plain = cut_text(text, max_lines=max_lines, max_bytes=max_bytes)
    if not plain.marked or store is None:
        return Stashed(text=plain.text)
    key = stash_key(call_id, text) + "-b0"
    try:
        await store.set(key, text.encode("utf-8", "replace").decode("utf-8"))
        kept = await store.get(key)
    except SharedStateError as error:
        return Stashed(text=plain.text, warning=f"the whole output was not kept: {error}")
    if kept is None:
        return Stashed(text=plain.text, warning="the whole output was not kept: it was recycled at once")
    return Stashed(text=cut_text(text, max_lines=max_lines, max_bytes=max_bytes, key=key).text, key=key)


def _ends(lines: list[str], count: int) -> tuple[list[str], list[str]]:
    keep = count - _MARKER_LINES
    head = keep // 2
    return lines[:head], lines[len(lines) - (keep - head) :]


def _marker(missing_lines: int, missing_bytes: int, key: str) -> str:
    amount = f"{missing_lines} lines"
    if missing_bytes:
        amount += f", {missing_bytes} bytes"
    pointer = f' — full output: shared_state get "{key}"' if key else ""
    return f"[... {amount} truncated{pointer} ...]"


def _cut_bytes(lines: list[str], max_lines: int, max_bytes: int, key: str) -> Cut:
    total = _size("\n".join(lines))
    room = max_bytes - _size(_marker(len(lines), total, key)) - 4
    if room <= 0:
        return Cut(text=_clip("\n".join(lines), max_bytes))
    keep = max(max_lines - _MARKER_LINES, 2)
    head, rest, head_clipped = _fitting(lines, keep // 2, room // 2, _clip)
    mirrored, rest, tail_clipped = _fitting(rest[::-1], keep - keep // 2, room - room // 2, _clip_end)
    missing = max(len(rest) - head_clipped - tail_clipped, 0)
    marker = _marker(missing, max(_size("\n".join(rest)), 1), key)
    return Cut(text="\n".join((*head, "", marker, "", *mirrored[::-1])), marked=True)


def _fitting(
    lines: list[str], count: int, room: int, clip: Callable[[str, int], str]
) -> tuple[list[str], list[str], bool]:
    """Return the first lines that fit, what is left of all, and whether the first was cut inside."""
    taken: list[str] = []
    for line in lines[:count]:
        room -= _size(line) + 1
        if room < 0:
            break
        taken.append(line)
    if taken or not lines:
        return taken, lines[len(taken) :], False
    part = clip(lines[0], max(room + _size(lines[0]), 0))
    left = lines[0][len(part) :] if clip is _clip else lines[0][: len(lines[0]) - len(part)]
    return [part], [left, *lines[1:]], True


def _clip(text: str, max_bytes: int) -> str:
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def _clip_end(text: str, max_bytes: int) -> str:
    encoded = text.encode("utf-8", "replace")
    return encoded[max(len(encoded) - max_bytes, 0) :].decode("utf-8", "ignore")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
