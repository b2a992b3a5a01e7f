"""The state document as cells of its thread: how patches become commands, and how it is read."""

from agentctl.protocol.commands import Command, FoldValue, Merge, SetValue
from agentctl.protocol.events import StateChanged
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state.cells import Cells

DOCUMENT_KEY = "agentctl/document"
"""Thread scope; folds by `patch`."""
SEQUENCE_KEY = "agentctl/document-sequence"
"""Thread scope; the number of patches so far."""


def document_of(cells: Cells) -> JsonObject:
    """Return the document; empty where nothing was written. Shared with the cells: do not change it."""
    value = cells.get("thread", DOCUMENT_KEY)
    return value if isinstance(value, dict) else {}


def sequence_of(cells: Cells) -> int:
    """Return how many patches the document has taken."""
    value = cells.get("thread", SEQUENCE_KEY)
    return value if isinstance(value, int) else 0


def has_document(cells: Cells) -> bool:
    """Whether the thread's document was begun."""
    return cells.cell("thread", DOCUMENT_KEY) is not None


def patched(
    patch: tuple[JsonValue, ...], sequence: int, *, writer: str = "", source: str = ""
) -> tuple[tuple[Command, ...], StateChanged]:
    """Return the commands and the event of one patch; `sequence` is the document's number after it."""
    commands = (
        Command(
            scope="thread",
            key=DOCUMENT_KEY,
            action=FoldValue(value=list(patch), fold="patch"),
            merge=Merge.FOLD,
            writer=writer,
        ),
        Command(
            scope="thread",
            key=SEQUENCE_KEY,
            action=FoldValue(value=1, fold="sum"),
            merge=Merge.FOLD,
            writer=writer,
        ),
    )
    return commands, StateChanged(patch=patch, sequence=sequence, source=source)


def begun(initial: JsonObject) -> tuple[tuple[Command, ...], StateChanged]:
    """Return what begins a thread's document with `initial`."""
    commands = (
        Command(
            scope="thread",
            key=DOCUMENT_KEY,
            action=SetValue(value=initial),
            merge=Merge.FOLD,
            writer="workspace.initial",
        ),
    )
    patch: tuple[JsonValue, ...] = ({"op": "replace", "path": "", "value": initial},)
    return commands, StateChanged(patch=patch, sequence=0, source="workspace.initial")
