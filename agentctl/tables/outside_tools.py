"""Tools that don't ship with agentctl: scripts in a folder, and Python plugins that the user installed."""

from collections.abc import Iterable
from pathlib import Path

from agentctl.locations import config_dir
from agentctl.records import dataclass

PLUGIN_GROUP = "agentctl.tools"
"""The entry point group of Python plugin tools."""
STORE_GROUP = "agentctl.shared_state"
"""The entry point group of backends of shared state."""


def script_tools(folder: Path) -> tuple[Path, ...]:
    """Return the script tools in `folder`, sorted: each `NAME.py` is the tool NAME. May block.

    Names that begin with an underscore are parts of other scripts.
    """
    return tuple(sorted(path for path in folder.glob("*.py") if not path.name.startswith("_")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One entry point of an installed package: its name is the tool's."""

    name: str
    package: str
    """The package that has it, with its version."""
    reference: str
    """`module:object`."""


def user_scripts() -> tuple[Path, ...]:
    """Return the user's own script tools, sorted. May block."""
    return script_tools(config_dir() / "tools")


def plugins() -> tuple[Plugin, ...]:
    """Return the plugin tools that are installed, sorted by name. May block; imports none of them."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - costs 15 ms that few blueprints need

    found = [
        Plugin(
            name=point.name,
            package=f"{point.dist.name} {point.dist.version}" if point.dist else "",
            reference=point.value,
        )
        for point in entry_points(group=PLUGIN_GROUP)
    ]
    return tuple(sorted(found, key=lambda plugin: plugin.name))


def loaded_plugins(names: Iterable[str]) -> dict[str, object]:
    """Import the plugin tools of these names; return what their entry points name. Runs their code.

    Raises:
        ImportError, AttributeError: a package is broken; whatever else its code raises.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - see above

    wanted = frozenset(names)
    # SAFETY: only the user can install a package; a blueprint chooses by name among those there are.
    return {point.name: point.load() for point in entry_points(group=PLUGIN_GROUP) if point.name in wanted}


def installed_stores() -> tuple[str, ...]:
    """Return the names of installed backends of shared state. May block; imports none of them."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - see above

    return tuple(sorted(point.name for point in entry_points(group=STORE_GROUP)))


def user_tool_names() -> tuple[str, ...]:
    """Return the names of the user's own script tools and of installed plugin tools. May block."""
    scripts = (path.stem for path in user_scripts())
    return tuple(sorted({*scripts, *(plugin.name for plugin in plugins())}))
