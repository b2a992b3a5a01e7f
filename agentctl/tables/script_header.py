"""The header of a script tool: name, description and parameters, as TOML in comments at its top.

    # /// tool
    # description = "Count the words of a text file."
    # [parameters.path]
    # type = "string"
    # ///

The form is that of inline script metadata (PEP 723) under a name of its own. Nothing is run or imported here.
"""

import hashlib
import re
from dataclasses import field
from pathlib import PurePath
from typing import Final

import jsonschema_rs

from agentctl.errors import InvalidInput, Position, Problem
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.toml.read import parse
from agentctl.toml.shapes import Name
from agentctl.toml.table import Table
from agentctl.toml.validate import Reader

MAX_SCRIPT_BYTES: Final = 64 * 1024
"""A larger script is refused: a person has to read it before it runs."""

_BEGIN = re.compile(r"# /// tool[ \t]*")
_END = re.compile(r"# ///[ \t]*")
_COMMENT = re.compile(r"#( .*)?")
_RUN = re.compile(r"^def run[ \t]*\(", re.MULTILINE)
_HINT = "docs/tools.md shows a whole script tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderTable:
    """What stands between `# /// tool` and `# ///`."""

    description: str
    """What the tool does, for the model."""
    name: str = ""
    """The tool's name; the file's name without `.py`, which is also what stands for an empty one."""
    optional: bool = False
    """Whether a blueprint that lists the tool runs without it where the engine for scripts is missing."""
    parameters: dict[Name, JsonObject] = field(default_factory=dict)
    """JSON Schema of each parameter; one without a `default` must be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script tool as its file has it."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments."""
    source: str = field(repr=False)
    sha256: str
    """Of the file's bytes."""
    file: str
    """How messages name it."""
    optional: bool = False
    """Whether a run goes on without it where no script can run."""

    def filled(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments with the defaults of those that were not given. Pure."""
        properties = self.parameters["properties"]
        assert isinstance(properties, dict), "made so below"  # noqa: S101
        defaults = {
            name: shape["default"]
            for name, shape in properties.items()
            if isinstance(shape, dict) and "default" in shape
        }
        return {**defaults, **arguments}


def has_header(data: bytes) -> bool:
    """Tell whether a file means to be a script tool: a line of it begins a header. Pure."""
    return any(_BEGIN.fullmatch(line) for line in data.decode("utf-8", "replace").splitlines())


def parse_script(data: bytes, *, file: str) -> Script:
    """Return the script tool in `data`; `file` is how messages name it, its stem the tool's name. Pure.

    Raises:
        InvalidInput: no header, no function `run`, or a header that is wrong; holds every problem.
    """
    if len(data) > MAX_SCRIPT_BYTES:
        size = f"{len(data):,} bytes; a script tool has at most {MAX_SCRIPT_BYTES:,}"
        raise _invalid(file, 0, size)
    table = parse(_header(data, file), file=file)
    source = _text(data)
    reader = Reader(table, {})
    header = reader.read(HeaderTable, {})
    stem = PurePath(file).stem
    problems = [*reader.problems(), *_further(header, table, stem)]
    if not _RUN.search(source):
        problems.append(Problem(position=Position(file=file), message="there is no function `def run(...)`"))
    if problems:
        raise InvalidInput(tuple(problems), hint=_HINT)
    properties: JsonObject = {**header.parameters}
    required: list[JsonValue] = [name for name, shape in header.parameters.items() if "default" not in shape]
    parameters: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        parameters["required"] = required
    return Script(
        name=stem,
        description="\n".join(line.strip() for line in header.description.strip().splitlines()),
        parameters=parameters,
        source=source,
        sha256=hashlib.sha256(data).hexdigest(),
        file=file,
        optional=header.optional,
    )


def _text(data: bytes) -> str:
    """Return a script's text with line ends of one kind."""
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _header(data: bytes, file: str) -> bytes:
    """Return the header's TOML with every character at the line and column where it stands in the file."""
    try:
        lines = _text(data).split("\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _invalid(file, line, f"byte 0x{data[error.start]:02x} is not UTF-8") from None
    begin = next((at for at, line in enumerate(lines) if _BEGIN.fullmatch(line)), None)
    if begin is None:
        raise _invalid(file, 0, "it has no header: a line `# /// tool`, TOML in comments, a line `# ///`")
    kept = [""] * (begin + 1)
    for number, comment in enumerate(lines[begin + 1 :], start=begin + 2):
        if _END.fullmatch(comment):
            return "\n".join(kept).encode()
        if not _COMMENT.fullmatch(comment):
            raise _invalid(file, number, "the header has not ended: expected `# ///`, or a comment `# …`")
        kept.append(f"  {comment[2:]}")
    raise _invalid(file, begin + 1, "the header that begins here does not end: `# ///` is missing")


def _further(header: HeaderTable, table: Table, stem: str) -> list[Problem]:
    """What the form alone does not tell."""
    problems: list[Problem] = []
    if table.has("description") and not header.description.strip():
        problems.append(_problem(table, "the model chooses by it: it may not be empty", "description"))
    if header.name and header.name != stem:
        problems.append(_problem(table, f"the file's name makes the tool {stem!r}", "name"))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", stem) or "__" in stem:
        message = f"{stem!r} is no name for a tool: a letter, then letters, digits, `-` or single `_`"
        problems.append(Problem(position=Position(file=table.positions.file), message=message))
    for name, shape in header.parameters.items():
        if not name.isidentifier():
            problems.append(_problem(table, "a parameter's name is a Python name", "parameters", name))
        try:
            # SAFETY: the script may be a model's; offline, so that a `$ref` in it reaches no host.
            validator = jsonschema_rs.validator_for(shape, offline=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            first = str(error).partition("\n")[0][:200]
            problems.append(_problem(table, f"not a JSON Schema: {first}", "parameters", name))
            continue
        if "default" in shape and not validator.is_valid(shape["default"]):
            problems.append(
                _problem(table, "the default is none of its own values", "parameters", name, "default")
            )
    return problems


def _problem(table: Table, message: str, *path: str) -> Problem:
    return Problem(position=table.position(*path), key=table.key(*path), message=message)


def _invalid(file: str, line: int, message: str) -> InvalidInput:
    position = Position(file=file, line=line, column=1 if line else 0)
    return InvalidInput((Problem(position=position, message=message),), hint=_HINT)
