"""Starts and ends the process of an embedded model. One a model and process; it dies with the run."""

import json
import os
import secrets
import sys
import tempfile
from dataclasses import field
from pathlib import Path
from subprocess import PIPE
from typing import IO

import anyio
from anyio.abc import Process

from agentctl.llm.base import FailureDetails, ModelCallFailed
from agentctl.records import dataclass

_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
_START_LIMIT_S = 180.0
_FAREWELL_S = 5.0
_LINE_BYTES = 65_536
_LOG_TAIL = 400
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a started server listens, and the key that only this process knows."""

    base_url: str
    key: str


@dataclass(slots=True, kw_only=True)
class LocalServer:
    """The server process of one model file. Started at the first use, again if it died."""

    path: Path
    alias: str
    context: int
    """Tokens that prompt and reply may have together."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _process: Process | None = None
    _address: ServerAddress | None = None

    async def address(self) -> ServerAddress:
        """Return where the server listens, starting it if it does not run. Safe to cancel.

        Raises:
            ModelCallFailed: the runtime could not load the file; the next model may be tried.
        """
        async with self._lock:
            if self._address is None or self._process is None or self._process.returncode is not None:
                await self._end()
                self._address = await self._start()
            return self._address

    @property
    def running(self) -> bool:
        """True while the process is there."""
        return self._process is not None and self._process.returncode is None

    async def aclose(self) -> None:
        """End the process. Idempotent."""
        async with self._lock:
            await self._end()

    async def _start(self) -> ServerAddress:
        key = secrets.token_urlsafe(24)
        with tempfile.TemporaryFile() as log:
            # SAFETY: our own interpreter and module; -P keeps the current directory out of the import path,
            # no credentials are passed on, and a session of its own keeps a Ctrl-C for the run away from it.
            self._process = await anyio.open_process(
                [sys.executable, "-P", "-m", "agentctl.llm.local_process"],
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                env=_environment(),
                cwd=self.path.parent,
                start_new_session=True,
            )
            try:
                answer = await self._introduce(self._process, key)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._end()
                raise
            if "address" not in answer:
                await self._end()
                raise cannot_run(self.alias, answer.get("error") or _tail(log))
        return ServerAddress(base_url=f"{answer['address']}/v1", key=key)

    async def _introduce(self, process: Process, key: str) -> dict[str, str]:
        """Tell the process what to serve; return its one line, empty when it ended or took too long."""
        settings = {
            "path": str(self.path),
            "alias": self.alias,
            "context": self.context,
            "threads": max(1, cores() - 1),
            "prompt_threads": cores(),
            "key": key,
        }
        if process.stdin is None or process.stdout is None:
            return {}
        with anyio.move_on_after(_START_LIMIT_S):
            try:
                await process.stdin.send(json.dumps(settings).encode() + b"\n")
                line = b""
                while not line.endswith(b"\n"):
                    line += await process.stdout.receive(_LINE_BYTES)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return {}
            return {str(name): str(value) for name, value in json.loads(line).items()}
        return {"error": f"it was not ready after {_START_LIMIT_S:g} s"}

    async def _end(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            if process.stdin is not None:
                await process.stdin.aclose()
            with anyio.move_on_after(_FAREWELL_S):
                await process.wait()
            if process.returncode is None:
                process.kill()
            await process.aclose()


def cores() -> int:
    """Return how many cores this process may use.

    All of them read a prompt, which is most of the work; one fewer writes, since threads that wait for each
    other on a busy machine write more slowly than one alone.
    """
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def cannot_run(name: str, reason: str) -> ModelCallFailed:
    """Return the failure that hands over to the next model of the list, or ends the run without one."""
    return ModelCallFailed(
        f"local:{name} cannot run here: {reason}",
        details=FailureDetails(kind="invalid", retryable=False, next_model=True),
    )


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {**passed, "PYTHONPATH": str(_PACKAGE_PARENT)}


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    text = log.read().decode(errors="replace").strip()
    return text[-_LOG_TAIL:] or "the llama.cpp process ended without a word"
