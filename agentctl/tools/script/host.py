"""What a script tool can call: its arguments as a tool call, and that call's result as a value.

`read_file` gives a whole file here and not a page; it is judged as the tool of that name is.
"""

from collections.abc import Mapping
from typing import Annotated

from agentctl.errors import ToolError
from agentctl.executor.api import Files
from agentctl.executor.environment import withheld
from agentctl.protocol.messages import ToolResult
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.places import existing_file, outside, reads, roots_of
from agentctl.tools.schema import Bounds, Says
from agentctl.tools.script.engine import HostAnswer
from agentctl.tools.typed import typed_tool

_MOST_READ = 512 * 1024
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "read_file": ("path",),
    "write_file": ("path", "content", "overwrite"),
    "shell": ("command", "timeout_s"),
    "http_get": ("url", "headers"),
    "http_post": ("url", "body", "headers"),
    "env": ("name",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWholeArguments:
    """Arguments of a script's `read_file`."""

    path: Annotated[str, Says("Relative to the workdir, or absolute.", Bounds(min_length=1))]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvArguments:
    """Arguments of `env`."""

    name: Annotated[str, Says("A variable of the environment.", Bounds(min_length=1))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment that scripts may ask about."""

    values: Mapping[str, str]
    passed: tuple[str, ...] = ()
    """Credential-shaped names that the user lets through (`[environment] pass`)."""

    def value(self, name: str) -> str | None:
        """Return a variable's value, or None where it is not set.

        Raises:
            ToolError: its name, or an address with a password in it, says that it is a credential.
        """
        found = self.values.get(name)
        passed = {one.upper() for one in self.passed}
        if withheld(name, found or "") and name.upper() not in passed:
            raise ToolError(
                f"{name} may hold a credential and is kept from scripts. "
                'The user can let it through: [environment] pass = ["NAME"] in config.toml.'
            )
        return found


def arguments_of(
    function: str, positional: tuple[object, ...], named: Mapping[str, object]
) -> JsonObject | HostAnswer:
    """Return a script's arguments as those of the tool, or the exception that the script gets. Pure."""
    parameters = _PARAMETERS.get(function)
    if parameters is None:
        known = ", ".join(_PARAMETERS)
        return HostAnswer(error="NameError", message=f"name {function!r} is not defined; there are: {known}")
    given = dict(zip(parameters, positional, strict=False))
    unknown = [name for name in named if name not in parameters or name in given]
    if unknown or len(positional) > len(parameters):
        return HostAnswer(error="TypeError", message=f"{function}({', '.join(parameters)})")
    arguments: JsonObject = {}
    for name, value in (given | dict(named)).items():
        if value is None:
            continue
        plain = json_value(value)
        if plain is None:
            return HostAnswer(error="TypeError", message=f"{function}: {name} is not text or JSON")
        arguments[name] = plain
    return arguments


def json_value(value: object, depth: int = 0) -> JsonValue:
    """Return a value of a script as JSON, or None where it is none. Pure, total."""
    match value:
        case bool() | int() | str():
            return value
        case float() if value == value and abs(value) != float("inf"):  # noqa: PLR0124 - not a number
            return value
        case list() | tuple() if depth < 64:  # noqa: PLR2004
            return [None if one is None else json_value(one, depth + 1) for one in value]
        case dict() if depth < 64:  # noqa: PLR2004
            return {
                str(name): None if one is None else json_value(one, depth + 1) for name, one in value.items()
            }
        case _:
            return None


def answer_of(function: str, result: ToolResult) -> HostAnswer:
    """Return what a script gets for a call's result: a value, or an exception it may catch. Pure."""
    structured = result.structured if isinstance(result.structured, dict) else {}
    if result.outcome == "denied":
        return HostAnswer(error="PermissionError", message=result.text)
    if function == "shell" and "exit_code" in structured:
        return HostAnswer(value=structured)
    if result.outcome != "ok":
        return HostAnswer(error="OSError", message=result.text)
    return HostAnswer(value=structured.get("content") if function == "read_file" else structured)


def read_whole_tool(files: Files) -> Tool:
    """Return `read_file` as scripts have it: the whole text of a file of at most 512 KiB."""

    async def plan(arguments: ReadWholeArguments, place: ToolPlace) -> Prepared:
        path = await files.resolve(arguments.path, roots_of(place))
        if not path.readable:
            return outside(path, reads(path), place)
        await existing_file(path, files, roots_of(place))

        async def act(context: ActContext) -> ToolOutput:
            del context
            data = await files.read_bytes(path, _MOST_READ)
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                raise ToolError(f"{path.shown} is not UTF-8 text.") from None
            return ToolOutput(text=text, structured={"path": path.shown, "content": text})

        return Prepared(effects=(reads(path),), act=act, preview=f"read {path.path}", read_only=True)

    return typed_tool("read_file", "Read a whole text file.", ReadWholeArguments, plan)


def env_tool(environment: Environment) -> Tool:
    """Return `env`. Its result says that the script may know; the value itself stays out of the journal."""

    async def plan(arguments: EnvArguments, place: ToolPlace) -> Prepared:
        del place
        environment.value(arguments.name)

        async def act(context: ActContext) -> ToolOutput:
            del context
            return ToolOutput(text=f"The script read {arguments.name}.")

        preview = f"read the environment variable {arguments.name}"
        return Prepared(effects=(), act=act, preview=preview, read_only=True)

    return typed_tool("env", "Read a variable of the environment.", EnvArguments, plan)
