"""Lets a blueprint's own code run only when the user trusts it: by `--trust HASH`, once and for good."""

from agentctl.blueprint.code import CodeLoader
from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.trust import trust_needed
from agentctl.errors import InvalidInput
from agentctl.settings.trust_store import TrustStore

_SHOWN_DIGITS = 16


def trusted_code(blueprint: Blueprint, given: str) -> CodeLoader:
    """Return what loads the blueprint's code, after the user trusted all of it. May block.

    `given` is the `--trust` of the command line; it is remembered.

    Raises:
        InvalidInput: the code is missing, or not trusted; the hint has the flag that would trust it.
    """
    trust = trust_needed(blueprint)
    if missing := trust.missing():
        raise InvalidInput(missing, hint="Bring the file back, or mend the blueprint that names it.")
    store = TrustStore()
    if trust.items and not store.is_trusted(trust.sha256):
        if not trust.is_meant_by(given):
            wrong = f"--trust {given} is not the hash of this code. " if given else ""
            raise InvalidInput(
                trust.problems(),
                hint=f"{wrong}Read that code, then trust it with --trust {trust.sha256[:_SHOWN_DIGITS]}",
            )
        store.add(trust.sha256, blueprint=blueprint.source.path)
    return CodeLoader(blueprint.source.path.parent, trust)
