"""The narrowest layer of settings: what holds where nobody says anything."""

from typing import Final

from agentctl.policy.ceilings import BUILT_IN_CEILINGS
from agentctl.toml.table import TomlValue

DEFAULT_MODEL: Final = "local:qwen2.5-coder-1.5b"
"""The model of a run for which nobody names one."""

BUILT_IN: Final[dict[str, TomlValue]] = {
    "limits": {
        "steps": BUILT_IN_CEILINGS.steps,
        "subagents": BUILT_IN_CEILINGS.subagents,
        "depth": BUILT_IN_CEILINGS.depth,
        "unknown_price": BUILT_IN_CEILINGS.unknown_price,
        "interaction_timeout": 3600,
    },
    "write_budget": {
        "per_call": BUILT_IN_CEILINGS.per_call_bytes,
        "per_run": BUILT_IN_CEILINGS.per_run_bytes,
        "files": BUILT_IN_CEILINGS.files,
    },
}
"""As a config file would say it. What is not here has no built-in value or is the default of its table."""

ENVIRONMENT: Final = {
    "AGENTCTL_MODEL": "model.use",
    "AGENTCTL_EDITOR": "terminal.editor",
    "AGENTCTL_COLOR": "terminal.color",
}
"""Variable → the key that it sets. `NO_COLOR`, whatever its value, sets `terminal.color = "never"`."""
