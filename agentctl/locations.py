"""Where things live: the user's config, the data of runs, and what ships with the package.

`AGENTCTL_HOME` moves config, data and cache together into one folder; without it the platform's own
folders are used. Nothing here makes a directory.
"""

import os
from pathlib import Path

from platformdirs import user_config_path, user_data_path

_APP = "agentctl"
_PACKAGE = Path(__file__).resolve().parent


def _place(name: str, default: Path) -> Path:
    home = os.environ.get("AGENTCTL_HOME")
    return Path(home).expanduser().absolute() / name if home else default


def config_dir() -> Path:
    """Return the folder of the user's `config.toml`, own blueprints and script tools."""
    return _place("config", user_config_path(_APP))


def data_dir() -> Path:
    """Return the folder of the journal, spilled output and installed models."""
    return _place("data", user_data_path(_APP))


def live_dir() -> Path:
    """Return the folder where running runs open their doors to other terminals."""
    return data_dir() / "live"


def shipped_dir(name: str) -> Path:
    """Return the folder `config` or `blueprints` that ships with agentctl.

    In a checkout that is the folder at its root, in an install the copy inside the package.
    """
    checkout = _PACKAGE.parent / name
    inside = _PACKAGE / "shipped" / name
    return inside if inside.is_dir() else checkout
