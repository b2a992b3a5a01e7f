"""`read_file`, `list_dir`, `glob` and `grep`: looking at files, in pages, with true totals."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from agentctl.executor.api import (
    Entry,
    Files,
    GlobRequest,
    GrepRequest,
    GrepResult,
    Listing,
    Match,
    Page,
    PageRequest,
    PathKind,
    ResolvedPath,
)
from agentctl.protocol.messages import ImagePart
from agentctl.protocol.values import JsonValue
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.places import existing_directory, existing_file, outside, reads, resolved, room, roots_of
from agentctl.tools.schema import Bounds, Says
from agentctl.tools.typed import typed_tool

PAGE_LINES = 350
"""Lines of a page at most: a page is never cut again on its way to the model."""
PAGE_BYTES = 28_000
_IMAGE_LIMIT_BYTES = 4 << 20
_IMAGES = {
    ".png": ("image/png", b"\x89PNG"),
    ".jpg": ("image/jpeg", b"\xff\xd8\xff"),
    ".jpeg": ("image/jpeg", b"\xff\xd8\xff"),
    ".gif": ("image/gif", b"GIF8"),
    ".webp": ("image/webp", b"RIFF"),
}
_PATH = "Relative to the workdir, or absolute."
_BASE = "Directory; default '.', the workdir."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFileArguments:
    """Arguments of `read_file`."""

    path: Annotated[str, Says(_PATH, Bounds(min_length=1))]
    offset: Annotated[int, Says("First line, from 1; negative counts from the end.")] = 1
    limit: Annotated[int, Says("Lines.", Bounds(minimum=1))] = PAGE_LINES


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDirArguments:
    """Arguments of `list_dir`."""

    path: Annotated[str, Says(_BASE)] = ""
    depth: Annotated[int, Says("Levels to show.", Bounds(minimum=1, maximum=5))] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobArguments:
    """Arguments of `glob`."""

    pattern: Annotated[str, Says("Such as 'src/**/*.py'; ** crosses directories.", Bounds(min_length=1))]
    path: Annotated[str, Says(_BASE)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepArguments:
    """Arguments of `grep`."""

    pattern: Annotated[str, Says("Regular expression.", Bounds(min_length=1))]
    path: Annotated[str, Says("File or directory; default '.', the workdir.")] = ""
    include: Annotated[str, Says("Only files that match this glob, such as '*.py'.")] = ""
    ignore_case: bool = False
    context: Annotated[int, Says("Lines to show around a match.", Bounds(minimum=0, maximum=20))] = 0


def look_tools(files: Files) -> tuple[Tool, ...]:
    """Return the four tools that look at files."""
    look = _Look(files=files)
    return (
        typed_tool("read_file", "Read a text file or an image.", ReadFileArguments, look.read_file),
        typed_tool("list_dir", "List a directory.", ListDirArguments, look.list_dir),
        typed_tool("glob", "Find files by name pattern.", GlobArguments, look.glob),
        typed_tool("grep", "Search file contents.", GrepArguments, look.grep),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    files: Files

    async def read_file(self, arguments: ReadFileArguments, place: ToolPlace) -> Prepared:
        path = await resolved(arguments.path, self.files, roots_of(place))
        if not path.readable:
            return outside(path, reads(path), place)
        await existing_file(path, self.files, roots_of(place))
        lines, size = room(place, lines=min(arguments.limit, PAGE_LINES), size_bytes=PAGE_BYTES)
        request = PageRequest(offset_line=arguments.offset or 1, limit_lines=lines, limit_bytes=size)

        async def act(context: ActContext) -> ToolOutput:
            del context
            image = _IMAGES.get(path.path.suffix.lower())
            if image is not None:
                return await self._image(path, image)
            return _page_output(path, await self.files.read_page(path, request))

        return Prepared(effects=(reads(path),), act=act, preview=f"read {path.path}", read_only=True)

    async def _image(self, path: ResolvedPath, image: tuple[str, bytes]) -> ToolOutput:
        media_type, magic = image
        content = await self.files.read_bytes(path, _IMAGE_LIMIT_BYTES)
        if not content.startswith(magic):
            return ToolOutput(text=f"{path.shown} is not a {media_type} file.", failed=True)
        part = ImagePart(media_type=media_type, data=b64encode(content).decode("ascii"), name=path.path.name)
        return ToolOutput(
            text=f"{path.shown}: {media_type}, {len(content):,} bytes",
            structured={"path": path.shown, "media_type": media_type, "total_bytes": len(content)},
            images=(part,),
        )

    async def list_dir(self, arguments: ListDirArguments, place: ToolPlace) -> Prepared:
        path = await self.files.resolve(arguments.path or ".", roots_of(place))
        if not path.readable:
            return outside(path, reads(path), place)
        await existing_directory(path, self.files, roots_of(place))

        async def act(context: ActContext) -> ToolOutput:
            del context
            listing = await self.files.list_dir(path, depth=arguments.depth, limit=PAGE_LINES)
            return _listing_output(path, listing)

        return Prepared(effects=(reads(path),), act=act, preview=f"list {path.path}", read_only=True)

    async def glob(self, arguments: GlobArguments, place: ToolPlace) -> Prepared:
        path = await self.files.resolve(arguments.path or ".", roots_of(place))
        if not path.readable:
            return outside(path, reads(path), place)
        await existing_directory(path, self.files, roots_of(place))
        pattern = arguments.pattern.removeprefix(f"{path.path}/")
        request = GlobRequest(pattern=pattern, limit=PAGE_LINES)

        async def act(context: ActContext) -> ToolOutput:
            del context
            listing = await self.files.glob(path, request)
            if not listing.entries:
                return ToolOutput(
                    text=f"No file under {path.shown} matches {arguments.pattern!r}. "
                    "Names in .gitignore are left out; ** crosses directories.",
                    structured={"path": path.shown, "files": [], "more": False},
                )
            return _found_output(path, listing)

        preview = f"find {arguments.pattern} in {path.path}"
        return Prepared(effects=(reads(path),), act=act, preview=preview, read_only=True)

    async def grep(self, arguments: GrepArguments, place: ToolPlace) -> Prepared:
        path = await self.files.resolve(arguments.path or ".", roots_of(place))
        if not path.readable:
            return outside(path, reads(path), place)
        if path.kind is not PathKind.FILE:
            await existing_directory(path, self.files, roots_of(place))
        request = GrepRequest(
            pattern=arguments.pattern,
            ignore_case=arguments.ignore_case,
            include=arguments.include,
            context_lines=arguments.context,
            limit=PAGE_LINES,
        )

        async def act(context: ActContext) -> ToolOutput:
            del context
            found = await self.files.grep(path, request)
            if path.kind is PathKind.FILE:
                return _grep_output(path, found)
            readable = place.readable_below(str(path.path))
            return _grep_output(path, *_without_kept(path, found, readable))

        preview = f"grep {arguments.pattern!r} in {path.path}"
        return Prepared(effects=(reads(path),), act=act, preview=preview, read_only=True)


def _page_output(path: ResolvedPath, page: Page) -> ToolOutput:
    last = page.first_line + len(page.lines) - 1
    numbered = [f"{number}\t{line}" for number, line in enumerate(page.lines, start=page.first_line)]
    notes = []
    if not page.total_lines:
        notes.append("empty file")
    elif not page.lines:
        notes.append(f"no line there: the file has {page.total_lines} lines")
    elif page.first_line > 1 or page.next_line is not None:
        notes.append(f"lines {page.first_line}-{last} of {page.total_lines}, {page.total_bytes:,} bytes")
    if page.next_line is not None:
        notes.append(f"go on with offset={page.next_line}")
    if page.line_ends in {"crlf", "mixed"}:
        notes.append(f"line ends: {page.line_ends}")
    if page.encoding not in {"utf-8", "ascii"}:
        notes.append(f"encoding: {page.encoding}")
    if page.cut_lines:
        notes.append(f"long lines are shown cut: {', '.join(map(str, page.cut_lines[:10]))}")
    if notes:
        numbered.append(f"[{'; '.join(notes)}]")
    return ToolOutput(
        text="\n".join(numbered),
        structured={
            "path": path.shown,
            "content": "\n".join(page.lines),
            "first_line": page.first_line,
            "lines": len(page.lines),
            "total_lines": page.total_lines,
            "total_bytes": page.total_bytes,
            "next_offset": page.next_line,
            "encoding": page.encoding,
            "line_ends": page.line_ends,
        },
    )


def _listing_output(path: ResolvedPath, listing: Listing) -> ToolOutput:
    lines = [_listed(entry) for entry in listing.entries]
    if not lines:
        lines.append(f"[{path.shown} is empty]")
    if listing.more:
        lines.append(f"[the first {len(listing.entries)}; list a directory in it, or use glob]")
    return ToolOutput(
        text="\n".join(lines),
        structured={
            "path": path.shown,
            "entries": [_entry(entry) for entry in listing.entries],
            "more": listing.more,
        },
    )


def _found_output(path: ResolvedPath, listing: Listing) -> ToolOutput:
    names = [_joined(path, entry.name) for entry in listing.entries]
    lines = [*names]
    if listing.more:
        lines.append(f"[the first {len(names)}; use a narrower pattern]")
    return ToolOutput(
        text="\n".join(lines), structured={"path": path.shown, "files": [*names], "more": listing.more}
    )


def _without_kept(
    base: ResolvedPath, result: GrepResult, readable: Callable[[str], bool]
) -> tuple[GrepResult, int]:
    """Return the matches in files that may be read, and in how many others there were some."""
    names = {match.path for match in result.matches}
    kept = {name for name in names if not readable(str(base.path / name))}
    matches = tuple(match for match in result.matches if match.path not in kept)
    return replace(result, matches=matches), len(kept)


def _grep_output(path: ResolvedPath, result: GrepResult, kept: int = 0) -> ToolOutput:
    lines: list[str] = []
    before: Match | None = None
    for match in result.matches:
        if before is not None and (match.context or before.context) and _is_gap(before, match):
            lines.append("--")
        mark = "-" if match.context else ":"
        lines.append(f"{_joined(path, match.path)}{mark}{match.line}{mark}{match.text}")
        before = match
    if not lines:
        lines.append(f"[no match in {result.files_searched - kept:,} files]")
    if kept:
        lines.append(f"[left out: matches in {kept} files that a rule keeps from being read like the rest]")
    if result.timed_out:
        lines.append("[stopped: the search took too long; name a directory or a simpler pattern]")
    elif result.more:
        lines.append("[there are more matches; narrow the pattern, the path or include]")
    matches: list[JsonValue] = [
        {"path": _joined(path, match.path), "line": match.line, "text": match.text}
        for match in result.matches
        if not match.context
    ]
    return ToolOutput(
        text="\n".join(lines),
        structured={
            "path": path.shown,
            "matches": matches,
            "files_searched": result.files_searched - kept,
            "more": result.more or result.timed_out,
        },
    )


def _is_gap(before: Match, match: Match) -> bool:
    return before.path != match.path or match.line > before.line + 1


def _joined(base: ResolvedPath, name: str) -> str:
    """Return a name under `base` as the model should write it."""
    if base.kind is PathKind.FILE or not name or name == ".":
        return base.shown
    return name if base.shown in {".", ""} else f"{base.shown.rstrip('/')}/{name}"


def _listed(entry: Entry) -> str:
    if entry.link_to:
        return f"{entry.name} -> {entry.link_to}"
    if entry.kind is PathKind.DIRECTORY:
        return f"{entry.name}/"
    return f"{entry.name}  ({entry.size_bytes:,} bytes)" if entry.kind is PathKind.FILE else entry.name


def _entry(entry: Entry) -> JsonValue:
    listed: dict[str, JsonValue] = {
        "name": entry.name, "kind": entry.kind.value, "size_bytes": entry.size_bytes
    }  # fmt: skip
    if entry.link_to:
        listed["link_to"] = entry.link_to
    return listed
