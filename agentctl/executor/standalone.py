"""A sandbox that comes with the words of a command, for programs that no supervisor starts."""

import json
import os
import sys
from pathlib import Path

from agentctl.executor.prepare import Ready, open_new
from agentctl.executor.process_types import LaunchableCommand
from agentctl.executor.sandbox import Boxed

_FILTER_FD = "9"
# bubblewrap reads its filter from a descriptor, which the shell opens: words alone can't carry one.
_WITH_FILTER = f'filter=$1; shift; exec "$@" {_FILTER_FD}<"$filter"'


def standalone(boxed: Boxed, ready: Ready) -> LaunchableCommand:
    """Return a boxed command as words. May write a small file into the run's temp folder. Blocks."""
    argv = boxed.argv
    environment = ready.environment
    if boxed.wrapped:
        name = f"{ready.output_name}.filter"
        os.close(open_new(ready.output_directory, name, bytes.fromhex(boxed.filter_hex)))
        argv = ["/bin/sh", "-c", _WITH_FILTER, "sh", str(ready.output_directory / name), *_words(argv)]
    elif boxed.confinement is not None:
        program = f"import sys; sys.path.append({str(Path(__file__).resolve().parents[2])!r}); "
        program += "from agentctl.executor.confine import main; main()"
        argv = [sys.executable, "-I", "-S", "-c", program, json.dumps(boxed.confinement), *argv]
    return LaunchableCommand(argv=tuple(argv), environment=environment, cwd=ready.cwd, sandbox=boxed.kind)


def _words(argv: list[str]) -> list[str]:
    """Return bubblewrap's words with the filter's descriptor and no status; it ends with its parent."""
    end = argv.index("--")
    own = [_FILTER_FD if word == "{filter}" else word for word in argv[:end]]
    status = own.index("--json-status-fd")
    return [own[0], "--die-with-parent", *own[1:status], *own[status + 2 :], *argv[end:]]
