"""How keys of machine instances are made comparable."""

import posixpath
from typing import Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

Normaliser: TypeAlias = Literal["none", "trim", "lowercase", "path", "url"]
_DEFAULT_PORTS = {"http": 80, "https": 443}


def normalised(key: str, how: Normaliser) -> str:
    """Return the comparable form of a key. Pure, total, idempotent."""
    match how:
        case "none":
            return key
        case "trim":
            return key.strip()
        case "lowercase":
            return key.strip().lower()
        case "path":
            return _path(key)
        case "url":
            return _url(key.strip())


def _path(key: str) -> str:
    # Lexical, so pure: two names of one file through a link stay two keys, which only asks for more.
    path = posixpath.normpath(key.strip().replace("\\", "/")) if key.strip() else ""
    return "/" + path.lstrip("/") if path.startswith("//") else path


def _url(key: str) -> str:
    try:
        parts = urlsplit(key)
        port = parts.port
    except ValueError:
        return key
    if not parts.scheme or not parts.hostname:
        return key
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{port}"
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), parts.query, ""))
