"""The keyring as commands use it: loaded only when a key is looked for; a missing store is told."""

from importlib.util import find_spec

from agentctl.errors import ProviderError

_HINT = "pip install 'agentctl[keyring]', or set the provider's variable in the environment"


def keyring_installed() -> bool:
    """Return whether the extra `keyring` is there. Loads nothing."""
    return find_spec("keyring") is not None


def check_keyring() -> None:
    """Check that there can be a keyring: before a person types a secret that nothing would keep.

    Raises:
        ProviderError: the extra is not there.
    """
    if not keyring_installed():
        raise ProviderError("The keyring is not installed.", hint=_HINT)


def stored_key(provider: str) -> str:
    """Return a provider's key, or empty: also where there is no keyring. May block."""
    if not keyring_installed():
        return ""
    from agentctl.llm.key_store import NoStore, stored_key  # noqa: PLC0415 - the extra

    try:
        return stored_key(provider)
    except NoStore:
        # A machine without a desktop has none, and its user did not ask for one.
        return ""


def store_key(provider: str, key: str) -> None:
    """Keep a provider's key.

    Raises:
        ProviderError: there is no keyring to keep it in.
    """
    check_keyring()
    from agentctl.llm.key_store import NoStore, store_key  # noqa: PLC0415 - the extra

    try:
        store_key(provider, key)
    except NoStore as error:
        raise ProviderError(f"The keyring cannot be used: {error}.", hint=_HINT) from error


def forget_key(provider: str) -> bool:
    """Delete a provider's key. Return whether there was one.

    Raises:
        ProviderError: there is no keyring.
    """
    check_keyring()
    from agentctl.llm.key_store import NoStore, forget_key  # noqa: PLC0415 - the extra

    try:
        return forget_key(provider)
    except NoStore as error:
        raise ProviderError(f"The keyring cannot be used: {error}.", hint=_HINT) from error
