"""What differs between two versions of a document, a line a place: for models and people to read."""

from agentctl.protocol.values import JsonValue, compact_json
from agentctl.state.typed import same


def changed_lines(before: JsonValue, after: JsonValue, pointer: str = "") -> list[str]:
    """Return `+ place: value`, `- place` and `~ place: value` lines, in document order. Pure, total.

    Cheap for versions made by path copying: what they share is not looked into.
    """
    if before is after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        lines: list[str] = []
        for name in (*before, *(name for name in after if name not in before)):
            place = f"{pointer}/{_escaped(name)}"
            if name not in after:
                lines.append(f"- {place}")
            elif name not in before:
                lines.append(f"+ {place}: {compact_json(after[name])}")
            else:
                lines += changed_lines(before[name], after[name], place)
        return lines
    if isinstance(before, list) and isinstance(after, list):
        return _changed_items(before, after, pointer)
    return [] if same(before, after) else [f"~ {pointer}: {compact_json(after)}"]


def _changed_items(before: list[JsonValue], after: list[JsonValue], pointer: str) -> list[str]:
    shared = min(len(before), len(after))
    lines = [
        line
        for index in range(shared)
        for line in changed_lines(before[index], after[index], f"{pointer}/{index}")
    ]
    lines += [f"+ {pointer}/{index}: {compact_json(after[index])}" for index in range(shared, len(after))]
    lines += [f"- {pointer}/{index}" for index in range(len(before) - 1, shared - 1, -1)]
    return lines


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
