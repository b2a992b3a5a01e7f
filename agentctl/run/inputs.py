"""What a run is given, checked before it begins: its workdir and its inputs."""

from pathlib import Path

from agentctl.blueprint.model import Blueprint
from agentctl.errors import UsageError
from agentctl.toml.words import nearest


def checked_workdir(path: Path, *, otherwise: str = "make it, or name another one with --workdir") -> Path:
    """Return the workdir, absolute and resolved; `otherwise` is what to do where it is none.

    Raises:
        UsageError: it is missing or not a folder.
    """
    resolved = path.expanduser().resolve()
    if not resolved.exists():
        raise UsageError(f"The workdir {str(path)!r} does not exist.", hint=otherwise)
    if not resolved.is_dir():
        raise UsageError(f"The workdir {str(path)!r} is not a folder.", hint=otherwise)
    return resolved


def checked_inputs(blueprint: Blueprint, given: dict[str, str]) -> dict[str, str]:
    """Return a value for each of the blueprint's inputs.

    Raises:
        UsageError: one is unknown, missing, or not among its choices.
    """
    known = ", ".join(blueprint.inputs) or "none"
    for name in given:
        if name not in blueprint.inputs:
            near = nearest(name, blueprint.inputs)
            meant = f" Did you mean {near!r}?" if near else ""
            raise UsageError(f"{blueprint.name} has no input {name!r}; its inputs: {known}.{meant}")
    missing = [
        name
        for name, table in blueprint.inputs.items()
        if name not in given and table.default is None and table.required
    ]
    if missing:
        abouts = {name: blueprint.inputs[name].description for name in missing}
        words = ", ".join(f"{name!r}" + (f" ({about})" if about else "") for name, about in abouts.items())
        raise UsageError(
            f"{blueprint.name} needs the input{'s' if missing[1:] else ''} {words}.",
            hint=f"add {''.join(f'  -i {name}=VALUE' for name in missing)}",
        )
    values: dict[str, str] = {}
    for name, table in blueprint.inputs.items():
        value = given.get(name, table.default)
        if value is None:
            value = ""
        if table.choices and value not in table.choices:
            raise UsageError(f"Input {name}={value!r} is none of {', '.join(table.choices)}.")
        values[name] = value
    return values
