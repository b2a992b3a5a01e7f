"""Which proxy a URL goes through, by option or by the environment's variables. Pure."""

import base64
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from agentctl.records import dataclass


class BadProxy(Exception):
    """The proxy's address is not one that can be used; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProxy:
    """A proxy that is spoken to in HTTP, itself reached over TLS or not."""

    host: str
    port: int
    tls: bool
    authorization: str = ""
    """The header's value, from a user and password in the address."""


def proxy_for(url: str, *, option: str, environment: Mapping[str, str]) -> HttpProxy | None:
    """Return the proxy for `url`. `option` goes over the environment; loopback never goes through one.

    `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY` are read in either case, `NO_PROXY` as a list of hosts,
    domains with all their names, addresses and networks, or `*`.

    Raises:
        BadProxy: the address has another scheme than http or https, or no host.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(url):
        return None
    if option:
        return _parsed(option)
    if _excluded(host, _variable(environment, "no_proxy")):
        return None
    address = _variable(environment, f"{parts.scheme}_proxy") or _variable(environment, "all_proxy")
    return _parsed(address) if address else None


def is_loopback(url: str) -> bool:
    """Return whether the URL's host is this machine. Pure: names are not looked up."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _variable(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or environment.get(name.upper()) or "").strip()


def _parsed(address: str) -> HttpProxy:
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme not in {"http", "https"}:
        raise BadProxy(f"a proxy of the kind {parts.scheme!r} is not supported; http and https are")
    if not parts.hostname:
        raise BadProxy("the proxy's address has no host")
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode("ascii")
    return HttpProxy(
        host=parts.hostname,
        port=parts.port or (443 if parts.scheme == "https" else 80),
        tls=parts.scheme == "https",
        authorization=authorization,
    )


def _excluded(host: str, listed: str) -> bool:
    for entry in listed.lower().replace(" ", ",").split(","):
        name = entry.strip()
        # One colon divides host and port; more of them are an address of version 6.
        name = name.partition(":")[0] if name.count(":") == 1 else name
        name = name if name == "*" else name.removeprefix("*").lstrip(".").strip("[]")
        if not name:
            continue
        if name in {"*", host} or host.endswith(f".{name}"):
            return True
        try:
            if ip_address(host) in ip_network(name, strict=False):
                return True
        except ValueError:
            continue
    return False
