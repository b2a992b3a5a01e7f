"""What turns one document into another, as a JSON Patch. Only for people and views: nothing is stored so."""

import jsonpatch

from agentctl.protocol.values import JsonValue
from agentctl.state.document import PatchError, apply_patch
from agentctl.state.typed import same


def diff(before: JsonValue, after: JsonValue) -> list[JsonValue]:
    """Return operations that turn `before` into `after`; empty when they are equal as JSON. Pure, total.

    `jsonpatch` finds a short patch. It takes true and 1 for equal in some places, so what it says is checked
    and replaced by one operation for the whole where it does not hold.
    """
    if same(before, after):
        return []
    whole: list[JsonValue] = [{"op": "replace", "path": "", "value": after}]
    if not isinstance(before, dict | list) or type(before) is not type(after):
        return whole
    operations: list[JsonValue] = list(jsonpatch.make_patch(before, after).patch)
    try:
        reached = apply_patch(before, operations)
    except PatchError:
        return whole
    return operations if same(reached, after) else whole
