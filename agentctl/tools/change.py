"""`write_file` and `edit_file`: planned and shown as a diff, judged, then made exactly as planned."""

from typing import Annotated

from agentctl.errors import ToolError
from agentctl.executor.api import Edit, Files, PathKind, PlannedWrite, WriteMode
from agentctl.protocol.effects import WritePath
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.places import existing_file, outside, resolved, roots_of, writes
from agentctl.tools.schema import Bounds, Says
from agentctl.tools.typed import typed_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFileArguments:
    """Arguments of `write_file`."""

    path: Annotated[str, Says("Relative to the workdir, or absolute.", Bounds(min_length=1))]
    content: Annotated[str, Says("The whole file.")]
    overwrite: Annotated[bool, Says("Needed to replace an existing file.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFileArguments:
    """Arguments of `edit_file`."""

    path: Annotated[str, Says("", Bounds(min_length=1))]
    old: Annotated[str, Says("Exact text to replace; must be unique in the file.", Bounds(min_length=1))]
    new: Annotated[str, Says("What to put there.")]
    replace_all: Annotated[bool, Says("Replace every occurrence.")] = False


def change_tools(files: Files) -> tuple[Tool, ...]:
    """Return the two tools that change files."""
    change = _Change(files=files)
    return (
        typed_tool(
            "write_file", "Create a file with the given content.", WriteFileArguments, change.write_file
        ),
        typed_tool("edit_file", "Replace text in a file.", EditFileArguments, change.edit_file),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    files: Files

    async def write_file(self, arguments: WriteFileArguments, place: ToolPlace) -> Prepared:
        path = await resolved(arguments.path, self.files, roots_of(place))
        if not path.inside:
            return outside(path, writes(path, place), place)
        if arguments.path.endswith("/") and path.kind is PathKind.MISSING:
            raise ToolError(f"{arguments.path} names a directory; give the path of the file to write.")
        if path.kind is PathKind.FILE and not arguments.overwrite:
            raise ToolError(
                f"{path.shown} exists and was left as it is. Use edit_file to change it, "
                "or overwrite=true to replace all of it."
            )
        mode = WriteMode.REPLACE if arguments.overwrite else WriteMode.CREATE
        planned = await self.files.plan_write(path, arguments.content, mode)
        return self._prepared(planned, place)

    async def edit_file(self, arguments: EditFileArguments, place: ToolPlace) -> Prepared:
        path = await resolved(arguments.path, self.files, roots_of(place))
        if not path.inside:
            return outside(path, writes(path, place), place)
        await existing_file(path, self.files, roots_of(place))
        if arguments.old == arguments.new:
            raise ToolError("old and new are the same text: nothing to change.")
        edit = Edit(old=arguments.old, new=arguments.new, every=arguments.replace_all)
        planned = await self.files.plan_edit(path, (edit,))
        return self._prepared(planned, place)

    def _prepared(self, planned: PlannedWrite, place: ToolPlace) -> Prepared:
        async def act(context: ActContext) -> ToolOutput:
            del context
            return await self._apply(planned)

        return Prepared(
            effects=(
                writes(planned.path, place),
                *(
                    WritePath(path=str(name), protected=place.why_protected(str(name)))
                    for name in planned.also
                ),
            ),
            act=act,
            preview=planned.diff or f"{planned.path.path} stays as it is",
            declared_bytes=planned.counted_bytes,
            declared_files=1,
        )

    async def _apply(self, planned: PlannedWrite) -> ToolOutput:
        written = await self.files.apply_write(planned)
        shown = planned.path.shown
        if written.created:
            said = f"Created {shown} ({written.size_bytes:,} bytes)."
        elif planned.edits:
            times = f"{planned.replacements} replacements" if planned.replacements > 1 else "1 replacement"
            said = f"Edited {shown} ({times})."
        else:
            said = f"Replaced {shown} ({written.size_bytes:,} bytes)."
        notes = f" Note: {'; '.join(planned.notes)}." if planned.notes else ""
        structured: JsonObject = {
            "path": shown,
            "created": written.created,
            "size_bytes": written.size_bytes,
            "replacements": planned.replacements,
            "diff": planned.diff,
        }
        # A new file's diff is its content, which the model has just written.
        diff = "" if written.created else f"\n{planned.diff}"
        return ToolOutput(
            text=f"{said}{notes}{diff}".rstrip(),
            structured=structured,
            bytes_written=written.counted_bytes,
            files_written=written.files,
        )
