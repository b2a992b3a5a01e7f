"""Runs a script tool in a `monty` worker: a process without files, network, environment or other programs."""

from collections.abc import Awaitable, Callable
from dataclasses import field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from agentctl.errors import ToolError
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty

MAX_COMPUTE_S = 5.0
"""Seconds a script may compute; while a host function works, nothing is counted."""
MAX_MEMORY_BYTES = 64 * 2**20
MAX_STEPS = 200
"""Host functions one call may use."""
_MAX_DEPTH = 200
_MAX_SUSPENSIONS = 10 * MAX_STEPS  # names and imports that are looked up count as well
_MAX_PRINTED = 16_000
_MAX_TRACE = 2000
_PROCESSES = 4

HostError: TypeAlias = Literal["PermissionError", "OSError", "TypeError", "NameError"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A script and what its `run` is given."""

    file: str
    """How tracebacks name it."""
    source: str
    arguments: JsonObject
    seed: str
    """Makes its random numbers the same when the call is run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """A function of the host that the script calls."""

    name: str
    positional: tuple[object, ...]
    named: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """What it gets: a value, or an exception that it may catch."""

    value: object = None
    error: HostError | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a script ended by itself or by a limit."""

    value: object = None
    printed: str = ""
    failure: str = ""
    """Why it failed, for the model; empty when it returned `value`."""


Answering: TypeAlias = Callable[[HostCall], Awaitable[HostAnswer]]


def engine_missing() -> str:
    """Return why no script can run on this machine, or empty."""
    if find_spec("pydantic_monty") is not None:
        return ""
    return "script tools need the extra `script`: pip install 'agentctl[script]'"


@dataclass(slots=True, kw_only=True)
class Engine:
    """A pool of workers, started at the first script; each runs one call and ends."""

    _pool: "AsyncMonty | None" = None
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def run(self, program: Program, answer: Answering, show: Callable[[str], None]) -> Finished:
        """Run a script to its end. Safe to cancel: its worker is ended.

        What `answer` raises ends the script and passes through; `show` gets what it prints. Limits: computing
        time, memory, recursion, number of host calls, printed text.

        Raises:
            ToolError: the engine is not installed.
        """
        pool = await self._opened()
        from pydantic_monty import MontyError  # noqa: PLC0415 - 200 ms that only scripts need

        printed = _Printed(show)
        try:
            value = await _fed(pool, program, answer, printed)
        except MontyError as error:
            return Finished(printed=printed.text, failure=_told(error, program))
        return Finished(value=value, printed=printed.text)

    async def _opened(self) -> "AsyncMonty":
        async with self._lock:
            if self._pool is None:
                if why := engine_missing():
                    raise ToolError(f"This tool cannot run here: {why}.")
                from pydantic_monty import AsyncMonty  # noqa: PLC0415 - see `run`

                # SAFETY: starts the worker program of the installed package, with an empty environment.
                self._pool = await AsyncMonty(
                    min_processes=0,
                    max_processes=_PROCESSES,
                    max_checkouts_per_worker=1,
                    request_timeout=MAX_COMPUTE_S * 2,
                ).__aenter__()
            return self._pool

    async def aclose(self) -> None:
        """End the workers. Idempotent."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)


class _Printed:
    """The beginning of what a script prints; the rest is shown and not kept."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._kept: list[str] = []
        self._size = 0

    def __call__(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        del stream
        if self._size < _MAX_PRINTED:
            self._show(text[: _MAX_PRINTED - self._size])
            self._kept.append(text[: _MAX_PRINTED - self._size])
        self._size += len(text)

    @property
    def text(self) -> str:
        more = f"\n[{self._size - _MAX_PRINTED:,} characters more]" if self._size > _MAX_PRINTED else ""
        return "".join(self._kept).rstrip() + more


async def _fed(pool: "AsyncMonty", program: Program, answer: Answering, printed: _Printed) -> object:
    from pydantic_monty import (  # noqa: PLC0415 - see `Engine.run`
        AsyncFunctionSnapshot,
        AsyncNameLookupSnapshot,
        MontyComplete,
    )

    # SAFETY: nothing of the machine is mounted and no `os=` is given: files, imports from outside, clock
    # apart, every system call of the script is answered with the engine's refusal.
    session = pool.checkout(
        script_name=program.file,
        limits={
            "max_feed_duration_secs": MAX_COMPUTE_S,
            "max_memory": MAX_MEMORY_BYTES,
            "max_recursion_depth": _MAX_DEPTH,
            "max_suspensions": _MAX_SUSPENSIONS,
        },
        os_policy={"sleep": "zero", "random_start": {"seed": program.seed}},
    )
    steps = 0
    async with session as worker:
        code = f"{program.source}\nrun(**_given_arguments)\n"
        inputs = {"_given_arguments": program.arguments}
        standing = await worker.feed_start(code, inputs=inputs, print_callback=printed)
        while not isinstance(standing, MontyComplete):
            if isinstance(standing, AsyncNameLookupSnapshot):
                standing = await standing.resume()
            elif not isinstance(standing, AsyncFunctionSnapshot):
                raise ToolError(f"{program.file} waits for something that never comes.")
            elif standing.is_os_function:
                standing = await standing.resume_not_handled()
            else:
                steps += 1
                if steps > MAX_STEPS:
                    raise ToolError(f"{program.file} was stopped: more than {MAX_STEPS} host calls.")
                call = HostCall(
                    name=str(standing.function_name), positional=standing.args, named=standing.kwargs
                )
                given = await answer(call)
                if given.error is None:
                    standing = await standing.resume({"return_value": given.value})
                else:
                    standing = await standing.resume({"exc_type": given.error, "message": given.message})
        value: object = standing.output
        return value


def _told(error: Exception, program: Program) -> str:
    """Say for the model what ended a script."""
    words = str(error)
    if "time limit exceeded" in words or getattr(error, "timed_out", False):
        return f"{program.file} was stopped: it computed for more than {MAX_COMPUTE_S:g} s."
    if "memory limit" in words:
        return f"{program.file} was stopped: it needed more than {MAX_MEMORY_BYTES >> 20} MiB."
    from pydantic_monty import MontyRuntimeError, MontySyntaxError  # noqa: PLC0415 - see `Engine.run`

    if isinstance(error, MontyRuntimeError | MontySyntaxError):
        words = error.display("traceback")
    trace = words.replace("<python-input-0>", program.file)
    return f"{program.file} failed:\n{trace[-_MAX_TRACE:]}"
