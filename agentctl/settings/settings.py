"""Everything that is set for this invocation, each value with the place it came from."""

from dataclasses import dataclass
from pathlib import Path

from agentctl.protocol.values import JsonValue
from agentctl.settings.model import ConfigTable
from agentctl.toml.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value in effect."""

    key: str
    """Dotted TOML key: `limits.steps`."""
    value: JsonValue
    source: str
    """`built-in`, `FILE:LINE:COLUMN`, `environment AGENTCTL_MODEL`, or a flag such as `--limit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Built-in < user's config < environment < flags, merged key by key."""

    config: ConfigTable
    """What holds."""
    file: Path
    """The user's `config.toml`; it need not exist."""
    table: Table
    """The user's file as written, with positions; empty where there is none."""
    values: tuple[Setting, ...]
    """Every value in effect, in the order of the config's tables."""
    built_in_policy: Table
    """`config/policy.toml` as shipped: `[tool_permissions]`, and the tools a blueprint may loosen."""
    safe_list: Table
    """`config/safe_commands.toml` as shipped."""

    def source_of(self, key: str) -> str:
        """Return where the value of the dotted `key` came from; `built-in` where nobody set it."""
        return next((value.source for value in self.values if value.key == key), "built-in")


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A value that a flag sets for one invocation."""

    key: str
    """Dotted TOML key: `limits.steps`."""
    text: str
    """The value as typed; read like a TOML value, or as text where it is none."""
    flag: str
    """How messages and `config show` name it: `--limit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The models of a run, in order of preference, and who chose them."""

    names: tuple[str, ...]
    """`provider:model`; never empty."""
    source: str
    """`--model`, `environment AGENTCTL_MODEL`, a `FILE:LINE:COLUMN`, or `built-in`."""
