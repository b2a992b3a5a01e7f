"""The narrowest layer of settings: what holds where nobody says anything."""

from typing import Final

from agentctl.toml.table import TomlValue

DEFAULT_MODEL: Final = "local:qwen2.5-coder-1.5b"
"""The model of a run for which nobody names one."""

BUILT_IN: Final[dict[str, TomlValue]] = {
    "limits": {"steps": 100, "subagents": 16, "depth": 3, "interaction_timeout": 3600},
    "write_budget": {"per_call": 16 * 2**20, "per_run": 256 * 2**20, "files": 500},
}
"""As a config file would say it. What is not here has no built-in value or is the default of its table."""

ENVIRONMENT: Final = {
    "AGENTCTL_MODEL": "model.use",
    "AGENTCTL_EDITOR": "terminal.editor",
    "AGENTCTL_COLOR": "terminal.color",
}
"""Variable → the key that it sets. `NO_COLOR`, whatever its value, sets `terminal.color = "never"`."""
