"""What a run is given, checked before it begins: its workdir and its inputs."""

from pathlib import Path

from agentctl.blueprint.model import Blueprint
from agentctl.errors import UsageError


def checked_workdir(path: Path) -> Path:
    """Return the workdir, absolute and resolved.

    Raises:
        UsageError: it is missing or not a folder.
    """
    resolved = path.expanduser().resolve()
    if not resolved.exists():
        raise UsageError(
            f"The workdir {str(path)!r} does not exist.", hint="make it, or name another one with --workdir"
        )
    if not resolved.is_dir():
        raise UsageError(f"The workdir {str(path)!r} is not a folder.", hint="name a folder with --workdir")
    return resolved


def checked_inputs(blueprint: Blueprint, given: dict[str, str]) -> dict[str, str]:
    """Return a value for each of the blueprint's inputs.

    Raises:
        UsageError: one is unknown, missing, or not among its choices.
    """
    known = ", ".join(blueprint.inputs) or "none"
    for name in given:
        if name not in blueprint.inputs:
            raise UsageError(f"{blueprint.name} has no input {name!r}; its inputs: {known}.")
    values: dict[str, str] = {}
    for name, table in blueprint.inputs.items():
        value = given.get(name, table.default)
        if value is None:
            if table.required:
                about = f" ({table.description})" if table.description else ""
                raise UsageError(
                    f"{blueprint.name} needs the input {name!r}{about}.", hint=f"add  -i {name}=VALUE"
                )
            value = ""
        if table.choices and value not in table.choices:
            raise UsageError(f"Input {name}={value!r} is none of {', '.join(table.choices)}.")
        values[name] = value
    return values
