"""Words for files: paths as resolved, pages, listings, matches, and writes that can be judged."""

from dataclasses import field
from enum import StrEnum
from pathlib import Path

from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Where an agent may look and write. All absolute; symlinks in them are resolved by the executor."""

    workdir: Path
    temp: Path
    """The run's own temp folder; counts as workdir."""
    read_paths: tuple[Path, ...] = ()
    """Files or directories outside that may be read."""
    home: Path = Path("/")
    """What `~` stands for."""
    kept: tuple[Path, ...] = ()
    """Files inside that no command in a sandbox can change: what runs outside of one."""


class PathKind(StrEnum):
    """What stands at a path; links are followed before this is said."""

    FILE = "file"
    DIRECTORY = "directory"
    MISSING = "missing"
    OTHER = "other"
    """A pipe, socket or device: never opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPath:
    """A path a model chose, as the kernel would see it."""

    path: Path
    """Absolute, no link and no `..` in it."""
    shown: str
    """How to name it to the model: relative to the workdir where inside, else absolute."""
    kind: PathKind
    inside: bool
    """In the workdir or the run's temp folder: may be written."""
    readable: bool
    """Inside, or in a granted read path."""
    root: Path
    """The root that contains it, resolved; the filesystem's root when none does."""
    through_link: bool = False
    """The text led through a symbolic link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which part of a text file to read."""

    offset_line: int = 1
    """First line wanted, from 1. Negative counts from the end: -20 is the last twenty lines."""
    limit_lines: int = 2000
    limit_bytes: int = 262_144
    """Upper bound of the page as UTF-8; a page is cut at a line, or in a line that alone is longer."""
    limit_line_chars: int = 4000
    """A longer line is cut, and the cut says how much is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Lines of a file with its true totals."""

    lines: tuple[str, ...]
    """Without line ends; bytes that are no text are shown as `\\xNN`."""
    first_line: int
    """Number of `lines[0]`, from 1."""
    total_lines: int
    """A last line without a line end counts."""
    total_bytes: int
    next_line: int | None
    """What to ask for next, or None at the end."""
    encoding: str
    """`utf-8`, `utf-8-sig`, `utf-16-le`, …, or `windows-1252` where the bytes are not UTF-8."""
    line_ends: str
    """`lf`, `crlf`, `mixed` or `none`, of this page."""
    cut_lines: tuple[int, ...] = ()
    """Numbers of the lines that are shown cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a directory."""

    name: str
    """Relative to the listed directory, `/` between parts; bytes that are no text shown as `\\xNN`."""
    kind: PathKind
    size_bytes: int
    link_to: str = ""
    """Where a symbolic link points, as written; links are listed, never entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Names under a directory, sorted, with whether there was more."""

    entries: tuple[Entry, ...]
    more: bool = False
    """The limit was reached; `entries` are then the first of those met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobRequest:
    """Which names to find. `*` stays in a component, `**` crosses."""

    pattern: str
    limit: int = 1000
    hidden: bool = True
    """Names that begin with a dot. `.git` is never entered unless the pattern names it."""
    ignored: bool = False
    """Also what `.gitignore` leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepRequest:
    """What to find in which files."""

    pattern: str
    """A Python regular expression on one line, or a plain text with `literal`."""
    literal: bool = False
    ignore_case: bool = False
    include: str = ""
    """Glob on the path relative to the base; empty means every file."""
    limit: int = 500
    """Matching lines in all."""
    context_lines: int = 0
    limit_line_chars: int = 500
    ignored: bool = False
    timeout_s: float = 20.0
    """After this the search stops with what it has; a pattern can't hang the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One line that matched, or one beside it."""

    path: str
    """Relative to the base."""
    line: int
    text: str
    context: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepResult:
    """Matches in order of path and line."""

    matches: tuple[Match, ...]
    files_searched: int
    more: bool = False
    """A limit was reached."""
    timed_out: bool = False


class WriteMode(StrEnum):
    """What a whole-file write may do to a file that is there."""

    CREATE = "create"
    """Refuse when the file exists."""
    REPLACE = "replace"
    APPEND = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace a text by another; the old text must stand there exactly once unless `every`."""

    old: str
    new: str
    every: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """Which file, and which content, a plan was made for."""

    device: int
    inode: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """A write that can be shown, judged and then made."""

    path: ResolvedPath
    new_bytes: bytes = field(repr=False)
    diff: str = field(repr=False)
    """Unified, whole, never a summary; empty when nothing changes."""
    old: FileIdentity | None
    """None: the file is to be made."""
    also: tuple[Path, ...] = ()
    """Its other names (hard links), which stay the same file: each is written with it."""
    edits: tuple[Edit, ...] = ()
    """Not empty for an edit, which is made again on what then stands there if it still fits once."""
    mode: WriteMode = WriteMode.REPLACE
    counted_bytes: int
    """What the write budget counts: a file made or written whole its size, a file edited its growth."""
    replacements: int = 0
    notes: tuple[str, ...] = ()
    """What was kept that the text did not say (`kept CRLF line ends`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a write came to, measured."""

    counted_bytes: int
    files: int
    size_bytes: int
    created: bool
    made_directories: tuple[str, ...] = ()
