"""Names for runs, threads, calls and questions: sortable by time, safe in paths and shell lines."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, lower case: no i, l, o, u


def _encode(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def new_id(kind: str) -> str:
    """Return `kind-` and 16 characters: 9 of the time in milliseconds, 7 random (35 bits).

    Ids of one kind sort by the time of their making, to the millisecond. Safe in file names and unquoted
    in a shell.
    """
    return f"{kind}-{_encode(int(time.time() * 1000), 9)}{_encode(secrets.randbits(35), 7)}"


def new_run_id() -> str:
    """Return a new run id, `r-…`."""
    return new_id("r")


def new_thread_id() -> str:
    """Return a new thread id, `t-…`."""
    return new_id("t")


def new_call_id() -> str:
    """Return a new tool call id, `c-…`, for models that give none."""
    return new_id("c")


def new_question_id() -> str:
    """Return a new question id, `q-…`."""
    return new_id("q")
