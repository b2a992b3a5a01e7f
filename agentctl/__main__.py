"""`python -m agentctl` and the console script. `--version` is answered before anything is imported."""

import gc
import io
import os
import sys

from agentctl import __version__


def main() -> None:
    """Run the command line and exit with its code."""
    _open_what_came_closed()
    if sys.argv[1:] == ["--version"]:
        sys.exit(_say_version())
    _speak_utf_8()
    _write_anything()
    gc.disable()  # nothing that start-up makes is garbage; cli/app.py turns it on again
    from agentctl.cli.app import run_app  # noqa: PLC0415 - start-up: nothing heavy before --version

    sys.exit(run_app())


def _say_version() -> int:
    try:
        os.write(1, f"agentctl {__version__}\n".encode())
    except BrokenPipeError:
        return 0
    except OSError as error:
        sys.stderr.write(f"agentctl: standard output: {error.strerror}\n")
        return 1
    return 0


def _speak_utf_8() -> None:
    """Start again in Python's UTF-8 mode where the locale would have file names and texts be ASCII."""
    if sys.getfilesystemencoding() == "utf-8" or sys.flags.utf8_mode:
        return
    # SAFETY: our own interpreter, module and arguments, in the same environment; -P keeps the current folder,
    # which may be anybody's, from bringing a module of our name.
    os.execv(sys.executable, [sys.executable, "-P", "-X", "utf8", "-m", "agentctl", *sys.argv[1:]])  # noqa: S606


def _write_anything() -> None:
    r"""Write as `\u1234` what the encoding of stdout or stderr does not have; an error otherwise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open_what_came_closed() -> None:
    """Lead a closed stdin, stdout or stderr to /dev/null.

    Else the next file that is opened, such as the journal, would get its number, and what is meant for a
    person would be written into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)  # dup2 makes it one that children inherit
    sys.stdin = sys.stdin or _null(0)
    sys.stdout = sys.stdout or _null(1)
    sys.stderr = sys.stderr or _null(2)


def _null(number: int) -> io.TextIOWrapper:
    return open(number, "w" if number else "r", encoding="utf-8", closefd=False)


if __name__ == "__main__":
    main()
