"""The effects of a shell line with its paths resolved on this machine.

The analysis says what a line would do by its text alone. Here each path is resolved, symlinks included, and
marked when it is protected or outside; wildcards are followed far enough to see links that lead elsewhere.
"""

import fnmatch
import re
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

from agentctl.errors import ToolError
from agentctl.executor.api import Executor, PathKind, ResolvedPath, Roots
from agentctl.protocol.effects import Effect, OpaqueCommand, ReadPath, RunProgram, WritePath
from agentctl.records import dataclass
from agentctl.tools.definition import ToolPlace
from agentctl.tools.places import roots_of

_WILDCARD = re.compile(r"[*?\[]")
_MOST_DIRECTORIES = 64
_MOST_NAMES = 2000


@dataclass(slots=True, kw_only=True)
class _TooMuch(Exception):
    """The wildcards of a path match more than is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locator:
    """Resolves the effects of one line; asks the machine about each place once."""

    executor: Executor
    place: ToolPlace
    _distrust: dict[Path, str] = field(default_factory=dict)

    @property
    def _roots(self) -> Roots:
        return roots_of(self.place)

    async def located(self, effects: tuple[Effect, ...], line: str) -> tuple[Effect, ...]:
        """Return `effects` with resolved paths, in the same order; links found by wildcards are added.

        A path that cannot be resolved makes the line opaque. Touches nothing.
        """
        found: list[Effect] = []
        for effect in effects:
            try:
                found += await self._locate(effect)
            except ToolError as error:
                found += [effect, OpaqueCommand(line=line, reason=f"a path in it cannot be told: {error}")]
            except _TooMuch:
                reason = "its wildcards match more than can be looked at"
                found += [effect, OpaqueCommand(line=line, reason=reason)]
        return tuple(dict.fromkeys(found))

    async def _locate(self, effect: Effect) -> list[Effect]:
        match effect:
            case WritePath(unresolved=True):
                return [effect]
            case WritePath(glob=True) | ReadPath(glob=True):
                return await self._globbed(effect)
            case WritePath() | ReadPath():
                path = await self.executor.resolve(effect.path, self._roots)
                if isinstance(effect, WritePath) and effect.into and path.kind is PathKind.DIRECTORY:
                    return await self._inside(effect, path)
                return [self._at(effect, path)]
            case RunProgram(argv=argv) if PurePosixPath(argv[0]).name == "git":
                return [replace(effect, distrust=await self._git_distrust(effect))]
            case _:
                return [effect]

    async def _inside(self, effect: WritePath, directory: ResolvedPath) -> list[Effect]:
        """Return the writes of the names that a command makes in a directory it was given as a target."""
        found: list[Effect] = []
        for name in effect.into:
            inner = replace(
                effect, path=f"{directory.path}/{name}", into=(), glob=bool(_WILDCARD.search(name))
            )
            found += await self._locate(inner)
        return found

    def _at(self, effect: WritePath | ReadPath, path: ResolvedPath, rest: str = "") -> WritePath | ReadPath:
        """Return `effect` at `path`, or at what the wildcards of `rest` match under it."""
        where = str(path.path / rest) if rest else str(path.path)
        match effect:
            case WritePath():
                why = self.place.why_protected(where)
                if effect.tree and not why and self.place.workdir.is_relative_to(where):
                    why = "the whole workdir is in it"
                return replace(effect, path=where, glob=bool(rest), protected=why)
            case ReadPath():
                return replace(effect, path=where, glob=bool(rest), outside=not path.readable)

    async def _globbed(self, effect: WritePath | ReadPath) -> list[Effect]:
        base, parts = _split(effect.path)
        start = await self.executor.resolve(base, self._roots)
        found: list[Effect] = [self._at(effect, start, "/".join(parts))]
        if not start.readable:
            return found
        pending = [(start, parts)]
        looked_at = 0
        while pending:
            directory, rest = pending.pop()
            looked_at += 1
            if looked_at > _MOST_DIRECTORIES:
                raise _TooMuch
            for path, is_link in await self._matching(directory, rest[0]):
                if is_link:
                    # bash opens what a link leads to, and what is under it.
                    found.append(self._at(effect, path, "/".join(rest[1:])))
                elif len(rest) == 1:
                    if isinstance(effect, WritePath) and self.place.why_protected(str(path.path)):
                        found.append(self._at(effect, path))
                elif path.kind is PathKind.DIRECTORY:
                    pending.append((path, rest[1:]))
        return found

    async def _matching(self, directory: ResolvedPath, pattern: str) -> list[tuple[ResolvedPath, bool]]:
        """Return what matches one component in a directory, links resolved, and whether each was a link."""
        if not _WILDCARD.search(pattern):
            path = await self.executor.resolve(str(directory.path / pattern), self._roots)
            return [] if path.kind is PathKind.MISSING else [(path, path.path != directory.path / pattern)]
        if directory.kind is not PathKind.DIRECTORY:
            return []
        listing = await self.executor.list_dir(directory, limit=_MOST_NAMES)
        if listing.more:
            raise _TooMuch
        names = [entry.name for entry in listing.entries if fnmatch.fnmatchcase(entry.name, pattern)]
        found = []
        for name in names:
            path = await self.executor.resolve(str(directory.path / name), self._roots)
            found.append((path, path.path != directory.path / name))
        return found

    async def _git_distrust(self, effect: RunProgram) -> str:
        places = [Path(where) for where in effect.cwd] or [self.place.workdir]
        for place in places:
            for where in _git_directories(place, effect.argv):
                if where not in self._distrust:
                    facts = await self.executor.git_facts(where)
                    why = "; ".join(facts.runs_programs)
                    self._distrust[where] = why or await self._elsewhere(where, facts.repository)
                if self._distrust[where]:
                    return self._distrust[where]
        return ""

    async def _elsewhere(self, where: Path, repository: Path | None) -> str:
        """Return why git in `where` is not git in the workdir's own repository, or empty."""
        if where == self.place.workdir:
            return ""
        if (await self.executor.resolve(str(where), self._roots)).kind is not PathKind.DIRECTORY:
            return "git would run in a directory that is not there yet"
        own = (await self.executor.git_facts(self.place.workdir)).repository
        return "" if own == repository else "git would run in another repository"


def leaving_sandbox(line: str, why: str) -> tuple[Effect, ...]:
    """Return what running `line` outside the sandbox means besides its own effects.

    It can read everything, which no flag, rule or sandbox lifts: a person is asked each time, and sees why.
    """
    asked = OpaqueCommand(line=line, reason=f"it asks to run outside the sandbox: {why}")
    return ReadPath(path="/", outside=True), asked


def _split(path: str) -> tuple[str, list[str]]:
    """Split a path at its first component with a wildcard."""
    parts = path.split("/")
    first = next((index for index, part in enumerate(parts) if _WILDCARD.search(part)), len(parts) - 1)
    return "/".join(parts[:first]) or "/", [part for part in parts[first:] if part not in {"", "."}]


def _git_directories(start: Path, argv: tuple[str, ...]) -> list[Path]:
    """Return where git would look for its repository: where it starts, and where `-C` leads."""
    found = [start]
    for flag, value in pairwise(argv[1:]):
        if flag == "-C":
            found.append(found[-1] / value)
    return found
