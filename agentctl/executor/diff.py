"""A unified diff for the approval prompt: whole, never a summary, and quick on large files. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentctl.executor.text import show, sniff

_CONTEXT = 3
_SMALL = 400_000
"""Lines times lines compared pairwise; larger parts without a common unique line are shown as replaced."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Lines of the old that became lines of the new; counted from 0, half open."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def unified_diff(old: bytes | None, new: bytes, *, name: str) -> str:
    r"""Return a unified diff, empty when both are equal; None as the old is a file to be made.

    Bytes that are no text are shown as `\xNN`, a carriage return at a line's end as `\r`.
    """
    if old == new:
        return ""
    before, after = map(_lines, _texts(old or b"", new))
    changes = list(_changes(before, after, _Change(0, len(before), 0, len(after))))
    header = f"--- {'/dev/null' if old is None else name}\n+++ {name}\n"
    return header + "".join(_hunk(before, after, group) for group in _groups(changes))


def _texts(old: bytes, new: bytes) -> tuple[str, str]:
    """Return both as text in the encoding that they share, or as bytes are shown where they share none."""
    encoding, other = sniff(new or old), sniff(old or new)
    if encoding is None or encoding != other or encoding.name == "utf-8":
        return show(old), show(new)
    mark = encoding.mark
    try:
        return encoding.decode(old.removeprefix(mark)), encoding.decode(new.removeprefix(mark))
    except UnicodeDecodeError:
        return show(old), show(new)


def _lines(text: str) -> list[str]:
    if not text:
        return []
    lines = text.split("\n")
    last = lines.pop()
    shown = [f"{line[:-1]}\\r\n" if line.endswith("\r") else f"{line}\n" for line in lines]
    if last:
        shown.append(f"{last}\n\\ No newline at end of file\n")
    return shown


def _changes(before: list[str], after: list[str], span: _Change) -> Iterator[_Change]:
    """Yield the changes in a span, in order: equal ends cut off, then anchored on lines unique in both."""
    waiting = [span]
    while waiting:
        part = _trimmed(before, after, waiting.pop())
        if part.old_start == part.old_end or part.new_start == part.new_end:
            if part.old_start != part.old_end or part.new_start != part.new_end:
                yield part
            continue
        anchors = _anchors(before, after, part)
        if anchors:
            waiting.extend(reversed(_between(part, anchors)))
        elif (part.old_end - part.old_start) * (part.new_end - part.new_start) <= _SMALL:
            yield from _pairwise(before, after, part)
        else:
            yield part


def _trimmed(before: list[str], after: list[str], part: _Change) -> _Change:
    a, b, c, d = part.old_start, part.old_end, part.new_start, part.new_end
    while a < b and c < d and before[a] == after[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and before[b - 1] == after[d - 1]:
        b, d = b - 1, d - 1
    return _Change(a, b, c, d)


def _anchors(before: list[str], after: list[str], part: _Change) -> list[tuple[int, int]]:
    """Return pairs of equal lines that stand once in both sides, as many as keep their order (patience)."""
    counts = Counter(before[part.old_start : part.old_end])
    places: dict[str, list[int]] = {}
    for at in range(part.new_start, part.new_end):
        if counts.get(after[at]) == 1:
            places.setdefault(after[at], []).append(at)
    pairs = [
        (at, places[before[at]][0])
        for at in range(part.old_start, part.old_end)
        if len(places.get(before[at], ())) == 1
    ]
    return _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []
    top_at: list[int] = []
    back: list[int] = []
    for number, (_, new) in enumerate(pairs):
        pile = bisect_left(tops, new)
        back.append(top_at[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(new)
            top_at.append(number)
        else:
            tops[pile] = new
            top_at[pile] = number
    chain: list[tuple[int, int]] = []
    at = top_at[-1] if top_at else -1
    while at >= 0:
        chain.append(pairs[at])
        at = back[at]
    return chain[::-1]


def _between(part: _Change, anchors: list[tuple[int, int]]) -> list[_Change]:
    gaps: list[_Change] = []
    old, new = part.old_start, part.new_start
    for old_at, new_at in [*anchors, (part.old_end, part.new_end)]:
        if old < old_at or new < new_at:
            gaps.append(_Change(old, old_at, new, new_at))
        old, new = old_at + 1, new_at + 1
    return gaps


def _pairwise(before: list[str], after: list[str], part: _Change) -> Iterator[_Change]:
    matcher = SequenceMatcher(
        None, before[part.old_start : part.old_end], after[part.new_start : part.new_end], autojunk=False
    )
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            yield _Change(part.old_start + a, part.old_start + b, part.new_start + c, part.new_start + d)


def _groups(changes: list[_Change]) -> Iterator[list[_Change]]:
    """Yield changes whose context would touch together."""
    group: list[_Change] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(before: list[str], after: list[str], group: list[_Change]) -> str:
    start = max(group[0].old_start - _CONTEXT, 0)
    end = min(group[-1].old_end + _CONTEXT, len(before))
    new_start = group[0].new_start - (group[0].old_start - start)
    new_end = group[-1].new_end + (end - group[-1].old_end)
    lines: list[str] = []
    at = start
    for change in group:
        lines += [f" {line}" for line in before[at : change.old_start]]
        lines += [f"-{line}" for line in before[change.old_start : change.old_end]]
        lines += [f"+{line}" for line in after[change.new_start : change.new_end]]
        at = change.old_end
    lines += [f" {line}" for line in before[at:end]]
    return f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@\n{''.join(lines)}"


def _range(start: int, end: int) -> str:
    count = end - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"
