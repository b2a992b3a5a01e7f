"""Suggestions and lists of words for messages."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_LONGEST = 64  # comparing longer texts costs more than the suggestion is worth


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word most like `word`, or empty when none is close."""
    if len(word) > _LONGEST:
        return ""
    lowered = {one.lower(): one for one in known}
    found = get_close_matches(word.lower().replace("-", "_"), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else ""


def one_of(words: Sequence[object]) -> str:
    """Return `"a", "b" or "c"`."""
    quoted = [f'"{word}"' for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
