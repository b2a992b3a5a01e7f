"""Script tools that are written while a run lasts: `tools/NAME.py` in its workdir, sought before each step.

Whoever wrote one, nobody has trusted it: its first call shows the whole source, and so does the first call
after any change.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field

from agentctl.errors import InvalidInput, ToolError
from agentctl.executor.api import Executor, PathKind, ResolvedPath, Roots
from agentctl.records import dataclass
from agentctl.tables.script_header import MAX_SCRIPT_BYTES, Script, has_header, parse_script
from agentctl.tools.outside import Note, OutsideTool, Wanted
from agentctl.tools.script.tool import ScriptTool
from agentctl.tools.script.workshop import Workshop

FOLDER = "tools"
_MOST_FILES = 64


@dataclass(slots=True, kw_only=True)
class WrittenTools:
    """The script tools in a run's workdir; see `ToolSource`. Nothing of them runs here."""

    executor: Executor
    roots: Roots
    workshop: Workshop
    taken: frozenset[str] = frozenset()
    """Names of other tools: a file can't stand for one."""
    _scripts: dict[str, Script] = field(default_factory=dict)
    _faults: dict[str, str] = field(default_factory=dict)
    _tools: tuple[OutsideTool, ...] = ()
    _notes: list[Note] = field(default_factory=list)

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Nothing has to be begun."""
        yield

    async def ready(self, wanted: Wanted) -> None:
        """Look at the folder and take in what is new or changed."""
        del wanted
        found: dict[str, Script] = {}
        faults: dict[str, str] = {}
        for name in await self._files():
            stem = name.removesuffix(".py")
            try:
                script = await self._read(name)
            except InvalidInput as error:
                faults[stem] = error.message
            except ToolError as error:
                faults[stem] = str(error)
            else:
                if script is not None:
                    found[stem] = script
        self._tell(found, faults)
        if found != self._scripts:
            self._scripts = found
            self._tools = tuple(OutsideTool(tool=self._tool(script)) for script in found.values())
        self._faults = faults

    def _tool(self, script: Script) -> ScriptTool:
        workshop = self.workshop
        return ScriptTool(
            script=script, origin="workdir", engine=workshop.engine, environment=workshop.environment
        )

    async def _files(self) -> list[str]:
        try:
            folder = await self.executor.resolve(FOLDER, self.roots)
            if folder.kind is not PathKind.DIRECTORY or not folder.inside:
                return []
            listing = await self.executor.list_dir(folder, limit=_MOST_FILES * 4)
        except ToolError:
            return []  # the workdir is gone or the folder cannot be read: then there are no tools
        names = [entry.name for entry in listing.entries if entry.kind is PathKind.FILE]
        return sorted(name for name in names if name.endswith(".py") and name[0] not in "_.")[:_MOST_FILES]

    async def _read(self, name: str) -> Script | None:
        """Return the script in a file; None for a file that does not mean to be one.

        Raises:
            InvalidInput, ToolError: it does, and is none.
        """
        # SAFETY: a name in the workdir; resolved, and opened without following a link that leads out of it.
        path: ResolvedPath = await self.executor.resolve(f"{FOLDER}/{name}", self.roots)
        if path.kind is not PathKind.FILE or not path.inside:
            return None
        data = await self.executor.read_bytes(path, 4 * MAX_SCRIPT_BYTES)
        if not has_header(data):
            return None
        if name.removesuffix(".py") in self.taken:
            raise ToolError(f"{name.removesuffix('.py')} is the name of another tool.")
        return parse_script(data, file=path.shown)

    def _tell(self, found: dict[str, Script], faults: dict[str, str]) -> None:
        for name, script in found.items():
            before = self._scripts.get(name)
            if before is None or before.sha256 != script.sha256:
                what = "is a tool from here on" if before is None else "has changed"
                text = f"{script.file} {what} (sha256 {script.sha256[:16]})"
                self._notes.append(Note(level="info", text=text))
        for name, fault in faults.items():
            if self._faults.get(name) != fault:
                self._notes.append(Note(level="warning", text=f"{name} is no tool: {fault}"))

    def tools(self) -> tuple[OutsideTool, ...]:
        """Return the tools as the files were at the last look."""
        return self._tools

    def why_missing(self, tool: str) -> str:
        """Return what is wrong with the file of that name."""
        fault = self._faults.get(tool)
        return f"{FOLDER}/{tool}.py is no tool yet:\n{fault}\n" if fault else ""

    def take_notes(self) -> tuple[Note, ...]:
        """Return what came or changed since the last time."""
        notes, self._notes = self._notes, []
        return tuple(notes)
