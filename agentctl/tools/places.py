"""Paths that a model chose: resolved once, said as effects, and errors that tell what exists."""

from difflib import get_close_matches
from unicodedata import normalize

from agentctl.errors import ToolError
from agentctl.executor.api import Files, PathKind, ResolvedPath, Roots
from agentctl.protocol.effects import ReadPath, WritePath
from agentctl.tools.definition import ActContext, Prepared, ToolOutput, ToolPlace

_MOST_NAMES = 30
_NOTICE_LINES = 10
_NOTICE_BYTES = 2_000
_LEAST_BYTES = 200
_MOST_LOOKED_AT = 5000


def room(place: ToolPlace, *, lines: int, size_bytes: int) -> tuple[int, int]:
    """Return how many lines and bytes a tool may show beside its notices, so that nobody cuts it again."""
    return (
        max(1, min(lines, place.shown_lines - _NOTICE_LINES)),
        max(_LEAST_BYTES, min(size_bytes, place.shown_bytes - _NOTICE_BYTES)),
    )


def roots_of(place: ToolPlace) -> Roots:
    """Return where calls of this place may look and write."""
    return Roots(
        workdir=place.workdir,
        temp=place.temp,
        read_paths=place.read_paths,
        home=place.home,
        kept=place.kept,
    )


def reads(path: ResolvedPath) -> ReadPath:
    """Return the effect of reading `path`."""
    return ReadPath(path=str(path.path), outside=not path.readable)


def writes(path: ResolvedPath, place: ToolPlace) -> WritePath:
    """Return the effect of writing `path`."""
    return WritePath(path=str(path.path), protected=place.why_protected(str(path.path)))


def outside(path: ResolvedPath, effect: ReadPath | WritePath, place: ToolPlace) -> Prepared:
    """Return a call that is judged by its effect and cannot act: file tools stay where they may.

    Whether anything is there is not told.
    """
    text = f"{path.shown} is outside. {allowed_places(place, writing=isinstance(effect, WritePath))}"

    async def act(context: ActContext) -> ToolOutput:
        del context
        raise ToolError(text)

    return Prepared(effects=(effect,), act=act, preview=str(path.path), read_only=True)


def allowed_places(place: ToolPlace, *, writing: bool) -> str:
    """Return a sentence for the model that names where it may read or write."""
    verb = "write" if writing else "read"
    more = "" if writing else "".join(f", {path}" for path in place.read_paths)
    return f"You can {verb} in the workdir {place.workdir} and in {place.temp}{more}."


async def existing_file(path: ResolvedPath, files: Files, roots: Roots) -> ResolvedPath:
    """Return `path` when it is a file.

    Raises:
        ToolError: it is not; the text names what exists there.
    """
    match path.kind:
        case PathKind.FILE:
            return path
        case PathKind.DIRECTORY:
            raise ToolError(f"{path.shown} is a directory. {await _names_in(path, files)}")
        case PathKind.OTHER:
            raise ToolError(f"{path.shown} is a pipe, socket or device and is never opened.")
        case PathKind.MISSING:
            raise ToolError(f"There is no file {path.shown}. {await what_exists(path, files, roots)}")


async def existing_directory(path: ResolvedPath, files: Files, roots: Roots) -> ResolvedPath:
    """Return `path` when it is a directory.

    Raises:
        ToolError: it is not; the text names what exists there.
    """
    match path.kind:
        case PathKind.DIRECTORY:
            return path
        case PathKind.MISSING:
            raise ToolError(f"There is no directory {path.shown}. {await what_exists(path, files, roots)}")
        case PathKind.FILE | PathKind.OTHER:
            raise ToolError(f"{path.shown} is not a directory. {await what_exists(path, files, roots)}")


async def what_exists(path: ResolvedPath, files: Files, roots: Roots) -> str:
    """Return a sentence on the nearest directory above `path` that is there, and the closest name in it."""
    above = path
    while above.path != path.root:
        wanted = above.path.name
        above = await files.resolve(str(above.path.parent), roots)
        if above.kind is PathKind.DIRECTORY and above.readable:
            return await _names_in(above, files, wanted=wanted)
    return ""


def _nearest(wanted: str, names: list[str]) -> str:
    """Return the name that comes closest, in another case before any other; empty if none does."""
    if not wanted:
        return ""
    for name in names:
        if name.rstrip("/").casefold() == wanted.casefold():
            return name
    return next(iter(get_close_matches(wanted, names, n=1)), "")


async def resolved(text: str, files: Files, roots: Roots) -> ResolvedPath:
    """Return where a text leads; a name that is there in another normal form is the one that is meant.

    Accented letters come composed or with marks of their own, which nobody can tell apart by looking.
    """
    path = await files.resolve(text, roots)
    if path.kind is not PathKind.MISSING or not path.readable or text.isascii():
        return path
    above = path
    while above.kind is PathKind.MISSING and above.path != path.root:
        above = await files.resolve(str(above.path.parent), roots)
    while above.kind is PathKind.DIRECTORY and above.path != path.path:
        wanted, *rest = path.path.relative_to(above.path).parts
        listing = await files.list_dir(above, limit=_MOST_LOOKED_AT)
        alike = [entry.name for entry in listing.entries if _composed(entry.name) == _composed(wanted)]
        if len(alike) != 1:
            break
        path = await files.resolve(str(above.path.joinpath(alike[0], *rest)), roots)
        above = await files.resolve(str(above.path / alike[0]), roots)
    return path


def _composed(name: str) -> str:
    return normalize("NFC", name)


async def _names_in(directory: ResolvedPath, files: Files, *, wanted: str = "") -> str:
    listing = await files.list_dir(directory, limit=500)
    names = [
        f"{entry.name}/" if entry.kind is PathKind.DIRECTORY else entry.name for entry in listing.entries
    ]
    if not names:
        return f"{directory.shown} is empty."
    near = _nearest(wanted, names)
    guess = f"Did you mean {near}? " if near and near != wanted else ""
    if near == wanted and "\\x" in near:
        guess = "Its name holds bytes that are no text: reach it with a wildcard in a shell command. "
    listed = ", ".join(names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{guess}Existing in {directory.shown}: {listed}{more}."
