"""Every value in effect with its source, for `agentctl config show`."""

from collections.abc import Iterator, Mapping

from agentctl.settings.built_in import BUILT_IN, DEFAULT_MODEL
from agentctl.settings.load import merged, override_values
from agentctl.settings.model import ConfigTable
from agentctl.settings.settings import Setting, Settings
from agentctl.toml.fields import fields_of, is_table_class, parts_of
from agentctl.toml.table import Table, TomlValue


def effective(settings: Settings) -> tuple[Setting, ...]:
    """Return every value in effect, in the order of the config's tables."""
    values = merged(BUILT_IN, settings.table.values)
    for override in settings.overrides:
        values = merged(values, override_values(override))
    written: dict[tuple[str, ...], object] = dict(_leaves(values, ()))
    defaults = {path: value for path, value in _defaults(ConfigTable, ()) if path not in written}
    if not settings.config.model.use:
        defaults[("model", "use")] = DEFAULT_MODEL
    found = {**written, **defaults}
    return tuple(
        Setting(path=path, value=found[path], source=settings.source_of(*path))
        for path in sorted(found, key=_order)
    )


def _leaves(
    values: Mapping[str, TomlValue], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], TomlValue]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _defaults(kind: type, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, field in fields_of(kind).items():
        plain, _ = parts_of(field.hint)
        if is_table_class(plain):
            yield from _defaults(plain, (*path, key))
        elif plain is not Table and field.default not in (None, "", (), {}):
            yield (*path, key), field.default


def _order(path: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    tables = list(fields_of(ConfigTable))
    return (tables.index(path[0]) if path[0] in tables else len(tables), path)
