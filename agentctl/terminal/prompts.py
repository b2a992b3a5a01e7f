"""Answer the hub's questions on the terminal device, one after the other, until cancelled."""

from agentctl.interaction.hub import Hub
from agentctl.terminal.contract import Terminal
from agentctl.terminal.device import Device


async def serve_prompts(hub: Hub, device: Device, terminal: Terminal) -> None:
    """Show each waiting question and give the person's answer to the hub. Runs until cancelled.

    `terminal` is held while a prompt is shown; other agents go on meanwhile. The device's modes are
    restored whatever happens.
    """
