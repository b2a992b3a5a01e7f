"""Addresses of services as people write them, and as they go over the wire. Pure."""

import base64
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit, urlunsplit

_PATH = "/%:@!$&'()*+,;=~"
_QUERY = _PATH + "?"


def joined(base: str, path: str, query: Mapping[str, str]) -> str:
    """Return the URL of `path` at the service whose address is `base`, with `query` after what `base` has.

    People write the version into the address or leave it out (`…/v1` and `/v1/messages` share it), copy the
    whole address of the call, or name Ollama's other door.
    """
    parts = urlsplit(base)
    place, own, _ = path.partition("?")
    start = parts.path.rstrip("/").removesuffix(place)
    version = place[: place.find("/", 1)] if place.count("/") > 1 else ""
    for ending in (version, "/v1" if version == "/api" else ""):
        start = start.removesuffix(ending) if ending else start
    said = [parts.query, path[len(place) + 1 :] if own else ""]
    said += [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items()]
    return urlunsplit((parts.scheme, parts.netloc, start + place, "&".join(one for one in said if one), ""))


def fault_of(address: str) -> str:
    """Return what is wrong with an address, or empty."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        return "it is no http or https address"
    return ""


def without_password(address: str) -> tuple[str, str]:
    """Return the address without the user and password in it, and the header's value that they stand for."""
    parts = urlsplit(address)
    if parts.username is None:
        return address, ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return urlunsplit(plain), "Basic " + base64.b64encode(pair.encode()).decode("ascii")


def host_name(host: str) -> str:
    """Return the name of a host in letters that go over the wire.

    Raises:
        ValueError: it is no name of a host.
    """
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"{host!r} is no name of a host") from error


def target_of(path: str, query: str) -> str:
    """Return what a request line asks for; blanks and other letters in it are written by their numbers."""
    return quote(path or "/", safe=_PATH) + (f"?{quote(query, safe=_QUERY)}" if query else "")
