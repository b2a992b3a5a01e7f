"""Everything that is set for this invocation, each value with the place it came from."""

from pathlib import Path

from agentctl.records import dataclass
from agentctl.settings.model import ConfigTable
from agentctl.toml.table import Table, dotted


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A value that a flag or a variable of the environment sets for one invocation."""

    path: tuple[str, ...]
    """The TOML key: `("limits", "steps")`."""
    text: str
    """The value as typed; read like a TOML value, or as text where it is none."""
    source: str
    """How messages and `config show` name it: `--limit`, `environment AGENTCTL_MODEL`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Built-in < user's config < environment < flags, merged key by key."""

    config: ConfigTable
    """What holds."""
    file: Path
    """The user's `config.toml`; it need not exist."""
    table: Table
    """The user's file as written, with positions; empty where there is none."""
    overrides: tuple[Override, ...] = ()
    """What environment and flags set, the strongest last."""

    def source_of(self, *path: str) -> str:
        """Return where the value at a key came from: flag, variable, `FILE:LINE:COLUMN`, or `built-in`."""
        for override in reversed(self.overrides):
            if override.path == path:
                return override.source
        return str(self.table.position(*path)) if self.table.has(*path) else "built-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value in effect, as `config show` prints it."""

    path: tuple[str, ...]
    value: object
    """A TOML value."""
    source: str

    @property
    def key(self) -> str:
        """Dotted TOML key: `limits.steps`."""
        return dotted(self.path)
