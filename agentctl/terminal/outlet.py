"""Text on its way out: never in the run's way, in order, whole, and quiet when nobody reads."""

import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from agentctl.errors import RunFailed, file_fault

Item = TypeVar("Item")

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_HOLD_S = 1.0
"""Longest wait for a drawing to end before a prompt takes the terminal; it can be stuck behind Ctrl-S."""


class Outlet:
    """A file descriptor to write text to. May block; a reader that went away is not an error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.gone = False
        """True once nothing can be written any more; what is written from then on is dropped."""
        self.lost = ""
        """Why text was lost that somebody waits for, such as a full disk; empty where the reader left."""

    def write(self, text: str) -> None:
        """Write all of `text` as UTF-8; lone surrogates become `?`."""
        data = memoryview(text.encode("utf-8", errors="replace"))
        while data and not self.gone:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                # Another program with the same open file made it non-blocking.
                os.set_blocking(self._descriptor, True)
            except OSError as error:
                self.gone = True
                if error.errno in _FULL:
                    self.lost = file_fault(error)
                # Else a closed pipe or descriptor, or a terminal that hung up: nobody reads.


def check_written(out: Outlet) -> None:
    """Say so where what a person or a program asked for on stdout is not there.

    Raises:
        RunFailed: a part of it could not be written.
    """
    if out.lost:
        error = RunFailed(
            f"Standard output could not be written: {out.lost}.",
            hint="the run and its answer are in the journal: agentctl log last",
        )
        error.recorded = True
        raise error


class Pump(Generic[Item]):
    """Hands items to `drain` in batches, on a thread of its own that starts with the first item.

    What comes within `gather_s` of each other goes in one batch. With `idle_s`, `drain` also gets an empty
    batch when nothing came for so long.
    """

    def __init__(
        self,
        drain: Callable[[Sequence[Item]], None],
        *,
        gather_s: float = 0.02,
        idle_s: float | None = None,
    ) -> None:
        self._drain = drain
        self._gather_s = gather_s
        self._idle_s = idle_s
        self._items: deque[Item] = deque()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._drawing = threading.Lock()
        self._holds = 0
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def put(self, item: Item) -> None:
        """Queue `item`. Never blocks. From one thread only."""
        self._items.append(item)
        if self._thread is None and not self._ending.is_set():
            self._thread = threading.Thread(target=self._run, name="agentctl-view", daemon=True)
            self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Drain what is there, then keep `drain` from being called; later items are kept. May nest."""
        self._holds += 1
        taken = self._holds == 1 and self._drawing.acquire(timeout=_HOLD_S)
        try:
            if taken and self._items:
                self._drain(self._batch())
            yield
        finally:
            self._holds -= 1
            if taken:
                self._drawing.release()

    def close(self) -> None:
        """Wait until everything is drained. Idempotent.

        Raises what `drain` raised: a mistake in drawing surfaces here, and did not stop the run.
        """
        self._ending.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self) -> None:
        try:
            while not (self._ending.is_set() and not self._items):
                self._wake.wait(self._idle_s)
                self._ending.wait(self._gather_s)
                with self._drawing:
                    self._wake.clear()
                    batch = self._batch()
                    if batch or self._idle_s is not None:
                        self._drain(batch)
        except BaseException as failure:  # noqa: BLE001 - a thread has no caller; `close` raises it there
            self._failure = failure

    def _batch(self) -> list[Item]:
        return [self._items.popleft() for _ in range(len(self._items))]
