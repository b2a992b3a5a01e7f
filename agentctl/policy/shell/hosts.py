"""Finds the host in a URL or an scp-like address."""

import re

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^/:?#\s]*)")
_SCP = re.compile(r"(?:[^/@:\s]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):(?!//)\S*")
_BARE = re.compile(r"(?:[^/@\s]*@)?([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?:[:/?#]\S*)?")


def host_of(text: str) -> str:
    """Return the host of a URL or of `user@host:path`; empty for a local path."""
    match = _URL.match(text)
    if match:
        return "" if text.lower().startswith("file:") else match[1]
    match = _SCP.fullmatch(text)
    return match[1] if match else ""


def host_of_url(text: str) -> str:
    """Return the host of a web address, where the scheme may be left out."""
    match = _URL.match(text) or _BARE.fullmatch(text)
    return match[1] if match else ""
