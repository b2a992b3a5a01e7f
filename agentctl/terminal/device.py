"""The terminal itself, which is there when stdin is a pipe: keys in, text out, whose turn it is."""


class Device:
    """An open terminal device."""

    def answers(self) -> bool:
        """Return whether a person can answer here now: the device is open and its foreground is ours."""
        return False


def open_device() -> Device | None:
    """Return the controlling terminal, or None when there is none. Never blocks."""
    return None
