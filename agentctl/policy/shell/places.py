"""Which directory a command of the line may run in, as `cd` succeeds, fails, or is skipped."""

import posixpath

UNKNOWN = ""
"""Stands for a directory that only the shell will know."""
_MAX_PLACES = 6

Dirs = tuple[str, ...]


class Places:
    """The possible current directories while a line is read.

    A list of commands is followed with the directories after success and after failure kept apart, so that
    `cd a && x` runs x in a, while `cd a; x` may run it in a or, where there is no a, in the old one.
    """

    __slots__ = ("failed", "now", "passed", "start")

    def __init__(self, start: str) -> None:
        self.start = start
        self.now: Dirs = (start,)
        self.passed: Dirs = self.now
        self.failed: Dirs = self.now

    def plain(self) -> None:
        """A command ran that leaves the directory alone."""
        self.passed = self.failed = self.now

    def moved(self, to: Dirs) -> None:
        """A `cd` ran: it leads to `to`, or fails and stays."""
        self.passed = to
        self.failed = self.now

    def gone(self) -> None:
        """The shell exits: nothing behind it runs in it."""
        self.passed = self.failed = ()

    def settle(self) -> None:
        """A list's end: whatever happened, the next command runs."""
        self.now = self.union(self.passed, self.failed)

    def at(self, dirs: Dirs) -> None:
        """Whatever ran was in a shell of its own, or starts afresh in `dirs`."""
        self.now = self.passed = self.failed = dirs

    def then(self, operator: str) -> tuple[Dirs, Dirs]:
        """Go on behind `&&` or `||`; returns what `joined` needs."""
        before = (self.passed, self.failed)
        self.now = self.passed if operator == "&&" else self.failed
        return before

    def joined(self, operator: str, before: tuple[Dirs, Dirs]) -> None:
        """The command behind `operator` has run, or was skipped."""
        passed, failed = before
        if operator == "&&":
            self.failed = self.union(failed, self.failed)
        else:
            self.passed = self.union(passed, self.passed)

    def negate(self) -> None:
        """`!` swaps success and failure."""
        self.passed, self.failed = self.failed, self.passed

    def merge(self, *others: Dirs) -> None:
        """One of several branches ran."""
        self.at(self.union(*others))

    def directories(self) -> Dirs:
        """Where a command may run now; never empty."""
        return self.now or (self.start,)

    def inside(self, path: str) -> bool:
        """Whether `path`, normal and absolute, is the line's first directory or below it."""
        return path == self.start or path.startswith(self.start.rstrip("/") + "/")

    def target(self, text: str) -> Dirs:
        """Where `cd text` may lead: links kept, `..` cut as the shell does."""
        if text.startswith("/"):
            return (_normal(text),)
        return self.union(
            tuple(UNKNOWN if base == UNKNOWN else _normal(f"{base}/{text}") for base in self.directories())
        )

    @staticmethod
    def union(*many: Dirs) -> Dirs:
        """All directories of `many`, or the unknown one where they are too many."""
        joined = tuple(dict.fromkeys(place for dirs in many for place in dirs))
        return joined if len(joined) <= _MAX_PLACES and UNKNOWN not in joined else (UNKNOWN,)


def _normal(path: str) -> str:
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal
