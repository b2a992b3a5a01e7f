"""Words of a command that a file names: those that name files beside it mean these, in any workdir."""

from collections.abc import Sequence
from pathlib import Path


def beside(folder: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Return `command` with each word that names a file in `folder` as that file's path. May block.

    What was trusted is what lies there; a file of the same name in the workdir is another one, which the
    model may have written. The program itself is looked for in PATH, unless it is written as a path.
    """
    return tuple(_word(folder, place, word) for place, word in enumerate(command))


def _word(folder: Path, place: int, word: str) -> str:
    if not word or (place == 0 and "/" not in word):
        return word
    path = folder / word
    return str(path.resolve()) if path.is_file() else word
