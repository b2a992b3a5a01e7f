"""The document that a checkpoint shows: a file of the workdir, or a part of the state document."""

import json
import os
import stat
from pathlib import Path

import anyio.to_thread

from agentctl.agent.context import AgentContext
from agentctl.errors import UsageError

_MAX_BYTES = 4 * 2**20
"""More than that nobody reviews at a prompt."""


async def read_document(context: AgentContext, where: str) -> str:
    """Return the document's text: of the state document for a pointer (`/plan`), else of a file.

    A file that is not there yet reads as empty.

    Raises:
        UsageError: the file lies outside the workdir, is no regular file, too large, or not text.
    """
    if where.startswith("/"):
        value = context.tools.fold.document_at(where)
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    path = _inside(context, where)
    try:
        return await anyio.to_thread.run_sync(_read, path)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise UsageError(f"checkpoint document {where!r}: {error}") from error


def _inside(context: AgentContext, where: str) -> Path:
    workdir = context.tools.place.workdir
    path = (workdir / where).resolve()
    if not path.is_relative_to(workdir):
        raise UsageError(f"checkpoint document {where!r} lies outside the workdir {workdir}.")
    return path


async def write_document(context: AgentContext, where: str, text: str) -> None:
    """Put a person's edit where the document came from.

    Raises:
        UsageError: the file lies outside the workdir, is no regular file, or cannot be written.
    """
    if where.startswith("/"):
        async with context.tools.fold.settling():
            edit = context.tools.fold.replace_document(where, text)
            await context.recorder.commit(*edit.events, commands=edit.commands)
        return
    path = _inside(context, where)
    try:
        await anyio.to_thread.run_sync(_write, path, text)
    except (OSError, ValueError) as error:
        raise UsageError(f"checkpoint document {where!r}: {error}") from error


def _read(path: Path) -> str:
    held = _opened(path, os.O_RDONLY)
    with os.fdopen(held, "rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
    return data.decode("utf-8")


def _write(path: Path, text: str) -> None:
    held = _opened(path, os.O_WRONLY | os.O_CREAT)
    with os.fdopen(held, "wb") as file:
        file.truncate()
        file.write(text.encode("utf-8"))


def _opened(path: Path, flags: int) -> int:
    """Open a regular file; the model may have put a pipe in its place, which nobody is to wait for."""
    # SAFETY: a path below the workdir with its links resolved; one that appeared since is not followed.
    held = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    if stat.S_ISREG(os.fstat(held).st_mode):
        return held
    os.close(held)
    raise ValueError("it is no regular file")
