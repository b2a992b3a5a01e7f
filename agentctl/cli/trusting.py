"""Asks the person at the terminal, once, whether a blueprint's own code may run."""

import os

from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.trust import Trust, trust_needed
from agentctl.settings.trust_store import TrustStore
from agentctl.terminal.api import Device, Looks, open_device
from agentctl.terminal.visible import exact

_SHOWN_DIGITS = 16
_LOOK_AGAIN_S = 0.3


def trust_given(blueprint: Blueprint, given: str) -> str:
    """Return the hash that the user trusts: `given` by `--trust`, or the blueprint's own after a yes.

    Nobody is asked where nothing needs trust, where it was trusted before, and where there is no terminal.
    May block.
    """
    trust = trust_needed(blueprint)
    if (
        not trust.items
        or trust.missing()
        or trust.is_meant_by(given)
        or TrustStore().is_trusted(trust.sha256)
    ):
        return given
    device = open_device(os.environ, Looks())
    if device is None:
        return given
    try:
        return trust.sha256 if device.answers() and _agrees(device, blueprint, trust) else given
    finally:
        device.close()


def _agrees(device: Device, blueprint: Blueprint, trust: Trust) -> bool:
    lines = [f"{exact(blueprint.name)} brings code and addresses of its own:"]
    for item in trust.items:
        digest = f"  sha256 {item.sha256[:_SHOWN_DIGITS]}" if item.sha256 else ""
        lines.append(f"  {item.kind} {exact(item.reference)}  ({exact(str(item.position))}){digest}")
    lines.append("It runs as you, outside the sandbox. Read it first; a change of it asks again.")
    with device.keyed():
        device.drop_typed()
        device.write("\n".join([*lines, "[y] trust it  [n] do not run > "]))
        while not device.gone:
            match device.read(_LOOK_AGAIN_S):
                case b"y" | b"Y":
                    device.write("yes\n")
                    return True
                case b"n" | b"N" | b"q" | b"\x1b" | b"\x04":
                    device.write("no\n")
                    return False
    return False
