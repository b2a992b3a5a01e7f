"""The document that a checkpoint shows: a file of the workdir, or a part of the state document."""

import json
from pathlib import Path

import anyio

from agentctl.agent.context import AgentContext
from agentctl.errors import UsageError


async def read_document(context: AgentContext, where: str) -> str:
    """Return the document's text: of the state document for a pointer (`/plan`), else of a file.

    A file that is not there yet reads as empty.

    Raises:
        UsageError: the file lies outside the workdir, or is not text.
    """
    if where.startswith("/"):
        value = context.tools.fold.document_at(where)
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    path = _inside(context, where)
    try:
        return await anyio.Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
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
        UsageError: the file lies outside the workdir, or cannot be written.
    """
    if where.startswith("/"):
        async with context.tools.fold.settling():
            edit = context.tools.fold.replace_document(where, text)
            await context.recorder.commit(*edit.events, commands=edit.commands)
        return
    path = _inside(context, where)
    try:
        await anyio.Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"checkpoint document {where!r}: {error}") from error
