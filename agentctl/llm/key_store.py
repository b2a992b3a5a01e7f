"""Keys of model services in the desktop's own store. Loaded only when asked for: the extra `keyring`."""

import keyring
import keyring.errors

_SERVICE = "agentctl"


class NoStore(Exception):
    """There is no store on this machine, or it does not open; the text says which."""


def stored_key(provider: str) -> str:
    """Return the provider's key, or empty. May block, and may have the desktop ask for a password.

    Raises:
        NoStore: there is none.
    """
    try:
        return keyring.get_password(_SERVICE, provider) or ""
    except keyring.errors.KeyringError as error:
        raise NoStore(str(error) or type(error).__name__) from error


def store_key(provider: str, key: str) -> None:
    """Keep the provider's key, over one that is there.

    Raises:
        NoStore: there is none.
    """
    try:
        keyring.set_password(_SERVICE, provider, key)
    except keyring.errors.KeyringError as error:
        raise NoStore(str(error) or type(error).__name__) from error


def forget_key(provider: str) -> bool:
    """Delete the provider's key. Return whether there was one.

    Raises:
        NoStore: there is none.
    """
    if not stored_key(provider):
        return False
    try:
        keyring.delete_password(_SERVICE, provider)
    except keyring.errors.KeyringError as error:
        raise NoStore(str(error) or type(error).__name__) from error
    return True
