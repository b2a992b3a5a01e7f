"""Changes to the user's config.toml that keep its comments and layout.

The only user of tomlkit, imported when something is changed: loading needs no more than `tomllib`, and
tomlkit would cost every start 30 ms.
"""

from collections.abc import Callable, MutableMapping, MutableSequence
from datetime import UTC, datetime

from agentctl.errors import UsageError
from agentctl.policy.rules import parse_rule
from agentctl.settings.files import locked, replace_file
from agentctl.settings.load import config_file, read_config, read_value
from agentctl.settings.rules import names_for
from agentctl.toml.read import parse, read_file
from agentctl.toml.table import TomlValue, dotted


def set_value(path: tuple[str, ...], text: str) -> str:
    """Set the value at a key of the user's config and return how it stands there. May block.

    `text` is read like a TOML value, or as text where it is none. Missing tables are made, comments stay.
    Atomic, under a lock; nothing is written unless the whole config is valid afterwards.

    Raises:
        InvalidInput: the config would be invalid, or is already.
        UsageError: the key leads through something that is not a table, or the file can't be written.
        StateConflict: another process keeps the config locked.
    """
    import tomlkit  # noqa: PLC0415 - see the top

    value = read_value(text)
    _change(lambda document: _set(document, path, value))
    shown = value
    if isinstance(value, dict):  # on one line, as a person would type it
        shown = tomlkit.inline_table()
        shown.update(value)
    return f"{dotted(path)} = {tomlkit.item(shown).as_string()}"


def unset_value(path: tuple[str, ...]) -> bool:
    """Take the key out of the user's config; False where nobody had set it. Else like `set_value`."""
    found: list[str] = []

    def remove(document: MutableMapping[str, object]) -> None:
        table = _table_at(document, path[:-1])
        if table is not None and path[-1] in table:
            del table[path[-1]]
            found.append(path[-1])

    _change(remove)
    return bool(found)


def remember(rule: str, *, described: str = "", tools: tuple[str, ...] = ()) -> bool:
    """Add `[[remembered]] rule = …` to the user's config: an approval without end. May block.

    Idempotent: False where the rule stands there already. `described` tells how a tool server describes the
    tool, and replaces how it did. `tools` are the names of tools that somebody else brings, such as the
    blueprint that runs: rules may name them as well. Atomic, under a lock, comments stay.

    Raises:
        InvalidInput: it is no rule, or the config is invalid.
        UsageError: the file can't be written.
        StateConflict: another process keeps the config locked.
    """
    import tomlkit  # noqa: PLC0415 - see the top

    parse_rule(rule, names=names_for([rule.partition("(")[0].strip()], tools))
    added: list[str] = []

    def add(document: MutableMapping[str, object]) -> None:
        entries = document.get("remembered")
        if not isinstance(entries, MutableSequence):
            entries = tomlkit.aot()
            document["remembered"] = entries
        same = next((entry for entry in entries if entry.get("rule") == rule), None)
        if same is not None:
            if described and same.get("described", described) != described:
                same["described"] = described
                added.append(rule)
            return
        entry = tomlkit.table() if isinstance(entries, tomlkit.items.AoT) else tomlkit.inline_table()
        entry["rule"] = rule
        if described:
            entry["described"] = described
        entry["added"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entries.append(entry)
        added.append(rule)

    _change(add)
    return bool(added)


def _change(edit: Callable[[MutableMapping[str, object]], None]) -> None:
    """Apply `edit` to the config as it is now, check the outcome, replace the file if it differs."""
    import tomlkit  # noqa: PLC0415 - see the top

    file = config_file()
    with locked(file):
        before = ""
        if file.exists():
            data = read_file(file, what="config")
            before = parse(data, file=str(file)).positions.text  # one clear error for what is not TOML
        document = tomlkit.parse(before)
        edit(document)
        after = tomlkit.dumps(document)
        if after != before:
            read_config(parse(after.encode(), file=str(file)))
            replace_file(file, after)


def _set(document: MutableMapping[str, object], path: tuple[str, ...], value: TomlValue) -> None:
    import tomlkit  # noqa: PLC0415 - see the top

    table = document
    for depth, part in enumerate(path[:-1], 1):
        below = table.get(part)
        if below is None:
            below = tomlkit.table(is_super_table=depth < len(path) - 1)
            table[part] = below
            below = table[part]
        if not isinstance(below, MutableMapping):
            raise UsageError(f"{dotted(path[:depth])} is not a table, so {dotted(path)} can't be set.")
        table = below
    table[path[-1]] = value


def _table_at(
    document: MutableMapping[str, object], path: tuple[str, ...]
) -> MutableMapping[str, object] | None:
    table: object = document
    for part in path:
        table = table.get(part) if isinstance(table, MutableMapping) else None
    return table if isinstance(table, MutableMapping) else None
