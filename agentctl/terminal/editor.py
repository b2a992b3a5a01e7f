"""A text in the person's own editor, on the terminal that asked."""

import shlex
import shutil
from collections.abc import Mapping
from subprocess import CalledProcessError

import anyio

from agentctl.records import dataclass
from agentctl.terminal.device import Device

_USUAL = ("sensible-editor", "nano", "vi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What came back: the text, or why there is none."""

    text: str = ""
    problem: str = ""


def editor_command(environ: Mapping[str, str], configured: str = "") -> tuple[str, ...]:
    """Return the words of the first that is there: `configured`, `VISUAL`, `EDITOR`, a usual one."""
    for line in (configured, environ.get("VISUAL", ""), environ.get("EDITOR", "")):
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if words and shutil.which(words[0]):
            return tuple(words)
    return next(((name,) for name in _USUAL if shutil.which(name)), ())


async def edit_text(text: str, *, suffix: str, device: Device, environ: Mapping[str, str]) -> Edited:
    """Let the person edit `text`. The file is private and gone afterwards; a cancelled editor is killed."""
    command = editor_command(environ, device.looks.editor)
    if not command:
        return Edited(problem="no editor: set EDITOR to one")
    async with anyio.TemporaryDirectory(prefix="agentctl-edit-") as folder:  # mode 0700
        path = anyio.Path(folder) / f"edit{suffix}"
        await path.write_bytes(text.encode("utf-8", errors="replace"))
        try:
            with device.lent():
                # SAFETY: the command is the person's own, from their config or environment, run without a
                # shell; the one word we add is a path we made, so nothing that a model wrote reaches the
                # command line.
                await anyio.run_process(
                    [*command, str(path)],
                    stdin=device.descriptor,
                    stdout=device.descriptor,
                    stderr=device.descriptor,
                )
        except OSError as error:
            return Edited(problem=f"{command[0]} did not start: {error.strerror}")
        except CalledProcessError as error:
            return Edited(problem=f"{command[0]} ended with {error.returncode}; nothing was taken over")
        return Edited(text=(await path.read_bytes()).decode("utf-8", errors="replace"))
