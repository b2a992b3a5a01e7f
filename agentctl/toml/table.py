"""A TOML table as plain Python values that still knows where each key stands in its file."""

from collections.abc import Iterator
from typing import TypeAlias

from agentctl.errors import Position
from agentctl.records import dataclass
from agentctl.toml.positions import Key, Path, Positions

TomlValue: TypeAlias = "bool | int | float | str | list[TomlValue] | dict[str, TomlValue] | None"
"""A TOML value, the same type as JSON's. Dates and times are left out: validation refuses them everywhere."""

_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of a TOML file. Never changed after loading; share it freely."""

    values: dict[str, TomlValue]
    """The table's content, in file order."""
    positions: Positions
    """Of the whole file; use `position`, which knows this table's place in it."""
    path: Path = ()
    """Where this table stands in its file: `("stages", "plan", "tool_permissions")`."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def position(self, *path: Key) -> Position:
        """Return where the key at `path` below this table stands; the nearest parent's when it has none.

        Items of an array are addressed by their index from 0: `position("shell", "allow", 2)`.
        """
        return self.positions.of_key((*self.path, *path))

    def value_position(self, *path: Key) -> Position:
        """Return where the value at `path` begins; the nearest parent's when there is none."""
        return self.positions.of_value((*self.path, *path))

    def has(self, *path: Key) -> bool:
        """Tell whether somebody wrote a value at `path`."""
        return self.positions.has((*self.path, *path))

    def key(self, *path: Key) -> str:
        """Return the dotted TOML key of `path` below this table, as errors name it."""
        return dotted((*self.path, *path))

    def table(self, key: str) -> "Table":
        """Return the table at `key`, or an empty one where there is none or `key` is something else."""
        value = self.values.get(key)
        values = value if isinstance(value, dict) else {}
        return Table(values=values, positions=self.positions, path=(*self.path, key))


def dotted(path: Path) -> str:
    """Return `path` as a dotted key: `stages.plan.available_tools[2]`; odd names are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = part.isascii() and part.replace("-", "").replace("_", "").isalnum()
            name = shown(part) if not bare or len(part) > _LONGEST else part
            text += f".{name}" if text else name
    return text


def shown(text: str) -> str:
    """Return `text` quoted for a message: cut when long, nothing in it that a terminal would act on."""
    cut = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    escaped = cut.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'


EMPTY = Table(values={}, positions=Positions("", ""))
"""A table that nobody wrote."""
