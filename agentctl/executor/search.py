"""Lines that match a pattern, searched so that a bad pattern can't hold up the run.

A regular expression with at most one open repeat is searched in this process: its time is bounded by the
length of a line. Any other is searched by a child (`python -m agentctl.executor.search`) that is killed when
its time is up, because Python's `re` can't be interrupted.
"""

import json
import os
import re
import resource
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, field
from itertools import pairwise
from pathlib import Path
from time import monotonic

from agentctl.errors import ToolError
from agentctl.executor.file_types import GrepRequest, GrepResult, Match, PathKind, ResolvedPath
from agentctl.executor.glob_pattern import GlobPattern, compile_glob
from agentctl.executor.pages import BLOCK, require_readable
from agentctl.executor.paths import explain, name_text, open_file, shown_name
from agentctl.executor.text import Encoding, show_text, sniff
from agentctl.executor.walk import Found, Walk, open_found
from agentctl.records import dataclass

_SPAN = 16_384
"""Characters of a line searched at once; a longer line is searched in overlapping spans."""
_OVERLAP = 1024
_FEW_OPTIONAL = 4
_SPARE_S = 5
_MAX_LINE = 1 << 22
"""Bytes of a line that are looked at at all."""


@dataclass(slots=True)
class _Search:
    pattern: re.Pattern[str]
    needle: bytes
    """A text that every match contains, in UTF-8, or empty."""
    request: GrepRequest
    deadline: float
    checkpoint: Callable[[], None]
    matches: list[Match] = field(default_factory=list)
    found: int = 0
    files: int = 0
    stopped: str = ""

    def over(self) -> bool:
        if not self.stopped and monotonic() > self.deadline:
            self.stopped = "time"
        return bool(self.stopped)


def search(base: ResolvedPath, request: GrepRequest, checkpoint: Callable[[], None]) -> GrepResult:
    """Return matching lines as `Files.grep` says. Blocks; time is bounded only for a `bounded` pattern.

    Raises:
        ToolError: the pattern is no regular expression, or the base can't be read.
    """
    require_readable(base)
    run = _Search(
        pattern=compile_pattern(request),
        needle=request.pattern.encode("utf-8", "replace")
        if request.literal and not request.ignore_case
        else b"",
        request=request,
        deadline=monotonic() + request.timeout_s,
        checkpoint=checkpoint,
    )
    if base.kind is PathKind.DIRECTORY:
        cut = _search_tree(base, run)
    else:
        cut = False
        try:
            _search_open(open_file(base.path, root=base.root), base.path.name, run)
        except OSError as error:
            raise explain(error, base) from error
    return GrepResult(
        matches=tuple(run.matches),
        files_searched=run.files,
        more=cut or run.stopped == "limit",
        timed_out=run.stopped == "time",
    )


def compile_pattern(request: GrepRequest) -> re.Pattern[str]:
    """Return the pattern of a request, ready.

    Raises:
        ToolError: it is empty or no regular expression.
    """
    if not request.pattern:
        raise ToolError("The pattern is empty.")
    text = re.escape(request.pattern) if request.literal else request.pattern
    try:
        with warnings.catch_warnings():
            # A pattern that Python may read differently one day is still a pattern today.
            warnings.simplefilter("ignore")
            return re.compile(text, re.IGNORECASE if request.ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            f"The pattern {request.pattern!r} is no regular expression ({error}); "
            "set literal to search for plain text."
        ) from error


def bounded(request: GrepRequest) -> bool:
    """Tell whether the time to match one line is bounded by the square of its length. Pure, total."""
    if request.literal:
        return True
    plain = re.sub(r"\[\^?\]?[^\]]*\]", "x", re.sub(r"\\.", "x", request.pattern, flags=re.DOTALL))
    plain = re.sub(r"\(\?[:=!<P#]", "(", plain)
    return len(re.findall(r"[*+{]", plain)) <= 1 and plain.count("?") <= _FEW_OPTIONAL and "\\" not in plain


def _search_tree(base: ResolvedPath, run: _Search) -> bool:
    include = compile_glob(run.request.include) if run.request.include else None
    anywhere = "/" not in run.request.include
    walk = Walk(base, ignored=run.request.ignored, checkpoint=run.checkpoint)
    for found in walk.names(lambda entry: entry.relative.rpartition("/")[2] != ".git"):
        if run.over():
            break
        if found.kind is not PathKind.FILE or (include and not _included(found, include, anywhere=anywhere)):
            continue
        try:
            held = open_found(base, found.relative)
        except OSError:
            continue
        _search_open(held, shown_name(os.fsencode(found.relative)), run)
    return walk.cut


def _included(found: Found, include: GlobPattern, *, anywhere: bool) -> bool:
    states = include.start
    parts = name_text(found.relative).split("/")
    for part in parts[-1:] if anywhere else parts:
        states = include.advance(states, part)
    return include.matches(states)


def _search_open(held: int, name: str, run: _Search) -> None:
    """Search one open file and close it; binary files are passed over."""
    try:
        beginning = os.pread(held, BLOCK, 0)
        encoding = sniff(beginning)
        if encoding is None:
            return
        run.files += 1
        if run.needle and encoding.name == "utf-8" and len(beginning) < BLOCK and run.needle not in beginning:
            return
        _search_lines(_lines(held, encoding), name, run)
    except (OSError, UnicodeError):
        # It shrank, or can't be decoded: what was found so far stands.
        return
    finally:
        os.close(held)


def _lines(held: int, encoding: Encoding) -> Iterator[str]:
    position = len(encoding.mark)
    unit = "\n".encode(encoding.name if encoding.wide else "ascii")
    rest = b""
    while block := os.pread(held, BLOCK, position):
        position += len(block)
        *whole, rest = _split(rest + block, unit)
        for line in whole:
            yield _shown(line, encoding)
        rest = rest[:_MAX_LINE]
    if rest:
        yield _shown(rest, encoding)


def _split(data: bytes, unit: bytes) -> list[bytes]:
    if len(unit) == 1:
        return data.split(unit)
    # Wide text: a line feed counts only where a character begins.
    width = len(unit)
    cuts = [at for at in range(0, len(data) - width + 1, width) if data[at : at + width] == unit]
    starts = [0, *(cut + width for cut in cuts), len(data) + width]
    return [data[start : after - width] for start, after in pairwise(starts)]


def _shown(line: bytes, encoding: Encoding) -> str:
    text = show_text(encoding.decode(line)) if encoding.wide or not line.isascii() else line.decode("ascii")
    return text.removesuffix("\r")


def _search_lines(lines: Iterator[str], name: str, run: _Search) -> None:
    before: deque[Match] = deque(maxlen=run.request.context_lines or None)
    after = 0
    for number, line in enumerate(lines, 1):
        if number % 1024 == 0:
            run.checkpoint()
            if run.over():
                return
        if _matches(run.pattern, line):
            if run.found == run.request.limit:
                run.stopped = "limit"
                return
            run.found += 1
            run.matches.extend(before)
            before.clear()
            run.matches.append(Match(path=name, line=number, text=_cut(line, run)))
            after = run.request.context_lines
        elif after:
            run.matches.append(Match(path=name, line=number, text=_cut(line, run), context=True))
            after -= 1
        elif run.request.context_lines:
            before.append(Match(path=name, line=number, text=_cut(line, run), context=True))


def _matches(pattern: re.Pattern[str], line: str) -> bool:
    if len(line) <= _SPAN:
        return pattern.search(line) is not None
    starts = range(0, len(line), _SPAN - _OVERLAP)
    return any(pattern.search(line, start, min(start + _SPAN, len(line))) for start in starts)


def _cut(line: str, run: _Search) -> str:
    limit = run.request.limit_line_chars
    return line if len(line) <= limit else f"{line[:limit]} [… {len(line) - limit} more characters]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSearch:
    """A search as it goes to the child and comes back: JSON on standard input and output."""

    base: ResolvedPath
    request: GrepRequest

    def encode(self) -> bytes:
        """Return what the child reads."""
        return json.dumps({"base": asdict(self.base), "request": asdict(self.request)}, default=str).encode()

    @staticmethod
    def argv() -> tuple[str, ...]:
        """Return the words that start the child."""
        return (sys.executable, "-P", "-s", "-m", "agentctl.executor.search")

    @staticmethod
    def environment() -> dict[str, str]:
        """Return the child's environment: where it finds this package, and nothing else."""
        return {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PYTHONUTF8": "1"}

    @staticmethod
    def decode(answer: bytes) -> GrepResult:
        """Return the result that the child wrote.

        Raises:
            ToolError: what the child's search raised.
        """
        said = json.loads(answer)
        if "error" in said:
            raise ToolError(said["error"])
        matches = tuple(Match(**match) for match in said.pop("matches"))
        return GrepResult(matches=matches, **said)


def main() -> None:
    """Search as the JSON on standard input says, and print the result as JSON."""
    asked = json.load(sys.stdin)
    # Whoever waits for this kills it in time; should they be gone, the kernel does.
    seconds = int(asked["request"]["timeout_s"]) + _SPARE_S
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    base = asked["base"]
    place = ResolvedPath(
        path=Path(base["path"]),
        root=Path(base["root"]),
        shown=base["shown"],
        kind=PathKind(base["kind"]),
        inside=base["inside"],
        readable=base["readable"],
    )
    try:
        answer = asdict(search(place, GrepRequest(**asked["request"]), lambda: None))
    except ToolError as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
