"""Python code that a blueprint names, loaded from exactly the bytes that were trusted."""

import hashlib
import importlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from agentctl.blueprint.trust import Trust
from agentctl.errors import InvalidInput, Position, Problem, file_fault


class CodeLoader:
    """Loads `file.py:name` beside a blueprint, and `package.module:name` from what is installed.

    A file is compiled from bytes whose hash is the trusted one, so a change between the answer and the import
    is refused, and once for all names in it. Its folder is not on the import path: a file stands for itself.
    """

    def __init__(self, folder: Path, trust: Trust) -> None:
        """Take the folder of the file that names the code, and the trust as it was given.

        An empty trust is for what needs none: a shipped blueprint's code, and the user's own.
        """
        self._folder = folder
        self._trusted = {item.path: item.sha256 for item in trust.items if item.path is not None}
        self._references = {item.reference for item in trust.items}
        self._needed = bool(trust.items)
        self._modules: dict[str, ModuleType] = {}

    def load(self, reference: str, *, position: Position) -> object:
        """Return the object that `reference` names. Runs the module's code; may block.

        `position` is where the reference stands, for errors.

        Raises:
            InvalidInput: the file is missing, not trusted or changed since, fails while it is imported, or
                has no such name.
        """
        place, _, name = reference.rpartition(":")
        module = self._modules.get(place)
        if module is None:
            is_file = place.endswith(".py")
            module = (
                self._from_file(place, position) if is_file else self._installed(place, reference, position)
            )
            self._modules[place] = module
        found: object = module.__dict__.get(name)
        if found is None:
            raise _invalid(position, f"{place!r} has no {name!r}")
        return found

    def pinned(self, command: Iterable[str]) -> dict[Path, str]:
        """Return the trusted files among the words of a command, with the hash each must have. May block.

        The words are absolute, as `beside` gives them.
        """
        trusted = {str(path.resolve()): digest for path, digest in self._trusted.items()}
        return {Path(word): trusted[word] for word in command if word in trusted}

    def read(self, place: str, *, position: Position) -> bytes:
        """Return the bytes of a file beside the blueprint, which are those that were trusted. May block.

        Raises:
            InvalidInput: it can't be read, is not trusted, or changed since.
        """
        path = self._folder / place
        try:
            data = path.read_bytes()
        except OSError as error:
            raise _invalid(position, f"{place!r} can't be read: {file_fault(error)}") from None
        if self._needed and hashlib.sha256(data).hexdigest() != self._trusted.get(path):
            raise _invalid(position, f"{place!r} is not what was trusted")
        return data

    def _from_file(self, place: str, position: Position) -> ModuleType:
        path = self._folder / place
        data = self.read(place, position=position)
        module = ModuleType(f"agentctl_blueprint_{path.stem}")
        module.__file__ = str(path)
        _run(data, path, module, position)
        return module

    def _installed(self, place: str, reference: str, position: Position) -> ModuleType:
        if self._needed and reference not in self._references:
            raise _invalid(position, f"{reference!r} is not trusted")
        try:
            return importlib.import_module(place)
        except ImportError as error:
            beside = f"{place.replace('.', '/')}.py"
            hint = (
                f"; {beside}:… is the file beside the blueprint" if (self._folder / beside).is_file() else ""
            )
            raise _invalid(position, f"{place!r} can't be imported: {error}{hint}") from None


def _run(data: bytes, path: Path, module: ModuleType, position: Position) -> None:
    try:
        code = compile(data, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise _invalid(position, f"{path.name!r} is not Python: {error}") from None
    # SAFETY: these bytes have the hash that a person trusted, or ship with agentctl.
    try:
        exec(code, module.__dict__)  # noqa: S102
    except Exception as error:
        message = f"{path.name!r} fails while it is imported: {type(error).__name__}: {error}"
        raise _invalid(position, message) from error


def _invalid(position: Position, message: str) -> InvalidInput:
    return InvalidInput((Problem(position=position, message=message),))
