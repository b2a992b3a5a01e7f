"""How a dataclass says what its TOML may look like: marks for `Annotated`, and two kinds of field."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes: an integer, or a text such as `"64KiB"` or `"10 MiB"`."""


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds: a number, or a text such as `"90s"`, `"5m"`, `"1h30m"`."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number between two bounds, both inclusive."""

    minimum: float | None = None
    maximum: float | None = None

    def holds(self, number: float) -> bool:
        """Tell whether `number` lies within the bounds."""
        return not (
            (self.minimum is not None and number < self.minimum)
            or (self.maximum is not None and number > self.maximum)
        )

    @property
    def words(self) -> str:
        """What a value must be, for messages."""
        if self.minimum is not None and self.maximum is not None:
            return f"a number from {self.minimum:g} to {self.maximum:g}"
        if self.minimum is not None:
            return f"a number of at least {self.minimum:g}"
        return f"a number of at most {self.maximum:g}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text that matches `pattern` as a whole; `what` says so in words for messages."""

    pattern: str
    what: str


@dataclass(frozen=True, slots=True)
class OneOrMore:
    """An array of texts that may be written as a single text when it has one item."""


@dataclass(frozen=True, slots=True)
class Shorthand:
    """A table that may be written as its one field `name` alone, as a text or an array of texts."""

    name: str


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A table that is a JSON Schema (draft 2020-12)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A table of permissions as `policy.rules` reads it: tool → verdict, or a table of patterns."""


Bytes: TypeAlias = Annotated[int, Size(), Range(minimum=0)]
Seconds: TypeAlias = Annotated[float, Duration(), Range(minimum=0)]
Count: TypeAlias = Annotated[int, Range(minimum=0)]
Positive: TypeAlias = Annotated[int, Range(minimum=1)]
Texts: TypeAlias = Annotated[tuple[str, ...], OneOrMore()]
Name: TypeAlias = Annotated[
    str, Text(pattern=r"[A-Za-z][A-Za-z0-9_-]{0,63}", what="a letter, then letters, digits, `-` or `_`")
]
Pointer: TypeAlias = Annotated[
    str, Text(pattern=r"(/([^~/]|~[01])*)*", what='a JSON Pointer such as "/plan/items" (RFC 6901)')
]
ModelName: TypeAlias = Annotated[
    str,
    Text(
        pattern=r"[a-z][a-z0-9_-]*:\S+|scripted:?",
        what='"provider:model", such as "anthropic:claude-sonnet-4-5"',
    ),
]
CodeName: TypeAlias = Annotated[
    str, Text(pattern=r"[^\s:]+:[A-Za-z_]\w*", what='"module:function" or "file.py:function"')
]

SET_BY_LOADER: Final = {"toml": ""}
"""Field metadata: not in the TOML of its table; the loader fills it in."""


def written_as(key: str) -> dict[str, str]:
    """Return field metadata for a field whose TOML key is `key`."""
    return {"toml": key}
