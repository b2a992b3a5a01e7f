"""The settings of one invocation: built-in < the user's config.toml < environment < flags."""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agentctl.errors import InvalidInput, UsageError
from agentctl.locations import config_dir
from agentctl.settings.built_in import BUILT_IN, ENVIRONMENT
from agentctl.settings.model import ConfigTable
from agentctl.settings.rules import findings_of, problems_of_rules
from agentctl.settings.settings import Override, Settings
from agentctl.tables.declared import LimitsTable, WriteBudgetTable
from agentctl.toml.fields import fields_of
from agentctl.toml.positions import Positions
from agentctl.toml.read import parse, read_file
from agentctl.toml.table import Table, TomlValue
from agentctl.toml.validate import Reader
from agentctl.toml.words import nearest

ELSEWHERE: Final = {
    "stages": "stages stand in a blueprint, not in the user's config",
    "agent": "[agent] stands in a blueprint; what the user says about an agent is [agents.NAME]",
    "inputs": "inputs stand in a blueprint",
}
"""Keys that people look for here and that live in another file."""


def config_file() -> Path:
    """Return where the user's config is, whether or not it exists."""
    return config_dir() / "config.toml"


def load_settings(
    overrides: Sequence[Override] = (),
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Return what is set for this invocation. May block: reads the user's config.

    `environment` stands for the process's own, `file` for the user's config file. A config that
    is missing is empty; one that is broken stops everything, since a deny rule in it could not be honoured.

    Raises:
        InvalidInput: the config is invalid; holds every problem.
        UsageError: an override or a variable has a wrong key or value, or the config can't be read.
    """
    file = file or config_file()
    table = _user_table(file)
    further = (*_from_environment(os.environ if environment is None else environment), *overrides)
    read_config(table)
    values = merged(BUILT_IN, table.values)
    for override in further:
        values = merged(values, override_values(override))
    config = Reader(Table(values=values, positions=table.positions), ELSEWHERE).read(ConfigTable, {})
    return Settings(config=config, file=file, table=table, overrides=further)


def read_config(table: Table) -> ConfigTable:
    """Return the user's config alone. Pure but for the names of script and plugin tools that rules may use.

    Raises:
        InvalidInput: holds every problem, in file order.
    """
    reader = Reader(table, ELSEWHERE)
    config = reader.read(ConfigTable, {})
    problems = reader.problems(findings_of(config), problems_of_rules(config, table))
    if problems:
        raise InvalidInput(problems, hint="agentctl schema config  prints the format")
    return config


def limit_overrides(texts: Sequence[str]) -> tuple[Override, ...]:
    """Return the overrides of `--limit KEY=VALUE`: keys of `[limits]` and `[write_budget]`, `calls.RULE` too.

    Raises:
        UsageError: a text is not KEY=VALUE, or the key is unknown.
    """
    return tuple(_limit(text) for text in texts)


def merged(under: Mapping[str, TomlValue], over: Mapping[str, TomlValue]) -> dict[str, TomlValue]:
    """Return `under` with `over` laid on it: tables merge key by key, everything else is replaced. Pure."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        result[key] = merged(below, value) if both else value  # type: ignore[arg-type]  # both are tables
    return result


def _user_table(file: Path) -> Table:
    if not file.exists() and not file.is_symlink():
        return Table(values={}, positions=Positions(str(file), ""))
    return parse(read_file(file, what="config"), file=str(file))


def _from_environment(environment: Mapping[str, str]) -> Iterator[Override]:
    for name, key in ENVIRONMENT.items():
        if environment.get(name):
            path = tuple(key.split("."))
            yield Override(path=path, text=environment[name], source=f"environment {name}")
    if environment.get("NO_COLOR"):
        yield Override(path=("terminal", "color"), text="never", source="environment NO_COLOR")


def _limit(text: str) -> Override:
    key, equals, value = text.rpartition("=")
    key = key.strip()
    limits, budget = tuple(fields_of(LimitsTable)), tuple(fields_of(WriteBudgetTable))
    table = "write_budget" if key.removeprefix("write_budget.") in budget else "limits"
    name, dot, rule = key.removeprefix(f"{table}.").partition(".")
    keys = (*limits, *budget)
    hint = f"keys: {', '.join(keys)}; as in --limit steps=20"
    if not equals:
        raise UsageError(f"--limit {text!r} is not KEY=VALUE.", hint=f"write --limit {text}=N; {hint}")
    if name not in keys:
        near = nearest(name, keys)
        meant = f" Did you mean {near!r}?" if near else ""
        raise UsageError(f"--limit {text!r}: there is no limit {name!r}.{meant}", hint=hint)
    if bool(dot) != (name == "calls"):
        raise UsageError(
            f"--limit {text!r}: {'calls needs a rule' if name == 'calls' else f'{name} takes no rule'}.",
            hint="as in --limit 'calls.shell(git push *)=1' and --limit steps=20",
        )
    path = (table, name, rule) if dot else (table, name)
    return Override(path=path, text=value.strip(), source="--limit")


def override_values(override: Override) -> dict[str, TomlValue]:
    """Return an override as nested tables, after checking it by itself."""
    value = read_value(override.text)
    if override.path == ("model", "use") and isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
    for key in reversed(override.path):
        value = {key: value}
    values = value if isinstance(value, dict) else {}
    reader = Reader(Table(values=values, positions=Positions(override.source, "")), ELSEWHERE)
    reader.read(ConfigTable, {})
    limit = override.path[0] in {"limits", "write_budget"}
    name = f"{override.source} {'.'.join(override.path[1:])}" if limit else override.source
    for finding in reader.findings:
        near = f" Did you mean {finding.suggestion!r}?" if finding.suggestion else ""
        raise UsageError(f"{name}: {override.text!r}: {finding.message}.{near}")
    return values


def read_value(text: str) -> TomlValue:
    """Return a value as a person types it: a TOML value where it is one, else the text itself. Total."""
    try:
        found = tomllib.loads(f"value = {text}")
    except ValueError:
        return text
    return found["value"] if found.keys() == {"value"} else text


def read_key(text: str) -> tuple[str, ...]:
    """Return the parts of a dotted TOML key as a person types it: `limits.steps`, `agents."my agent".model`.

    Raises:
        UsageError: it is not a key.
    """
    try:
        value: TomlValue = tomllib.loads(f"{text} = 0")
    except ValueError:
        value = None
    path: list[str] = []
    while isinstance(value, dict) and len(value) == 1:
        [(part, value)] = value.items()
        path.append(part)
    if value != 0 or not path:
        raise UsageError(
            f"{text!r} is not a TOML key.",
            hint="quote a part that is more than letters, digits, - and _: 'tool_permissions.\"github__*\"'",
        )
    return tuple(path)
