"""Open the view of a run: one factory for all modes, and the prompts on the terminal device."""

from agentctl.terminal.contract import Ending, Mode, Streams, Terminal, Watcher, choose_mode
from agentctl.terminal.device import Device, open_device
from agentctl.terminal.prompts import serve_prompts

__all__ = [
    "Device",
    "Ending",
    "Mode",
    "Streams",
    "Terminal",
    "Watcher",
    "choose_mode",
    "open_device",
    "open_terminal",
    "serve_prompts",
]


def open_terminal(mode: Mode, *, streams: Streams, root_run: str = "") -> Terminal:
    """Return the view of one run in `mode`. It owns nothing but what it has not written yet."""
    raise RuntimeError(f"no view yet for {mode}: {streams} {root_run}")
