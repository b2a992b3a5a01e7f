"""Names of the tools that don't ship with agentctl: scripts in a folder, and installed plugins."""

from pathlib import Path

from agentctl.locations import config_dir

PLUGIN_GROUP = "agentctl.tools"
"""The entry point group of Python plugin tools."""


def script_tools(folder: Path) -> tuple[Path, ...]:
    """Return the script tools in `folder`, sorted: each `NAME.py` is the tool NAME. May block.

    Names that begin with an underscore are parts of other scripts.
    """
    return tuple(sorted(path for path in folder.glob("*.py") if not path.name.startswith("_")))


def user_tool_names() -> tuple[str, ...]:
    """Return the names of the user's own script tools and of installed plugin tools. May block."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - costs 15 ms that few blueprints need

    scripts = (path.stem for path in script_tools(config_dir() / "tools"))
    return tuple(sorted({*scripts, *(point.name for point in entry_points(group=PLUGIN_GROUP))}))
