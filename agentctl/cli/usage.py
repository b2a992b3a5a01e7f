"""What is told about a command line that typer could not take: our words, and what to type instead."""

import re
from typing import TextIO

from typer import _click as click  # the click that typer carries; typer is pinned

_KINDS = (
    ("is not a valid int range", "is not a whole number"),
    ("is not a valid int", "is not a whole number"),
    ("is not a valid float", "is not a number"),
)


def show_usage_error(error: click.exceptions.ClickException, stream: TextIO) -> None:
    """Write what was wrong, and a hint where the right command line can be guessed."""
    for theirs, ours in _KINDS:
        error.message = error.message.replace(theirs, ours)
    error.show(stream)
    if hint := _hint(error):
        stream.write(f"  hint: {hint}\n")


def _hint(error: click.exceptions.ClickException) -> str:
    context = error.ctx if isinstance(error, click.exceptions.UsageError) else None
    command = context.command_path if context is not None else "agentctl"
    if isinstance(error, click.exceptions.NoSuchOption) and not error.possibilities:
        # A task, a value or a file that begins with a dash looks like an option.
        if re.match(r"-[^-]", error.option_name):
            return f"what begins with - and is no option stands behind --: {command} … -- {error.option_name}"
        return f"{command} -h"
    if error.message.startswith("Got unexpected extra argument"):
        return f"put quotes around a text of several words: {command} … 'several words'"
    return ""
