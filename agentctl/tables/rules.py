"""What must hold between the keys of the shared tables, beyond the shape of each."""

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from agentctl.protocol.hook_names import COMMAND_HOOK_EVENTS, HOOK_EVENTS
from agentctl.tables.declared import HookTable, McpServerTable, SharedStateTable
from agentctl.tables.outside_tools import installed_stores
from agentctl.toml.positions import Path
from agentctl.toml.validate import Finding
from agentctl.toml.words import nearest, one_of

STORES = ("memory", "file", "sqlite", "redis")
"""Backends of shared state that need no package of their own."""
SHIPPED_HOOK_PARAMS = {
    "redact": ("patterns", "defaults"),
    "audit": ("file",),
    "notify": ("command",),
    "read_before_write": (),
}
"""What `params` of a hook that ships with agentctl may hold."""
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


def choose(path: Path, what: str, word: str, known: Iterable[str], *, needs: Sequence[Path] = ()) -> Finding:
    """Return the finding that `word` is not one of the known names of `what`."""
    names = list(known)
    suggestion = nearest(word, names)
    known_words = one_of(names) if names else "none"
    return Finding(
        path=path,
        message=f"there is no {what} {word!r}" + ("" if suggestion else f"; there is {known_words}"),
        suggestion=suggestion,
        at_value=True,
        needs=tuple(needs),
    )


def unique(path: Path, names: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding for each table of the array at `path` whose `name` stood before."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            message = f"the name {name!r} is taken by another table above"
            yield Finding(path=(*path, index, "name"), message=message, at_value=True, needs=(path,))
        seen.add(name)


def exactly_one(path: Path, given: Sequence[tuple[str, object]]) -> Iterator[Finding]:
    """Yield a finding unless exactly one of the keys has a value; `given` pairs keys with values."""
    keys = [key for key, _ in given]
    set_keys = [key for key, value in given if value]
    if len(set_keys) == 1:
        return
    found = "none of them is set" if not set_keys else f"{' and '.join(set_keys)} are set"
    yield Finding(path=path, message=f"exactly one of {', '.join(keys)} is needed; {found}", needs=(path,))


def store_findings(store: SharedStateTable) -> Iterator[Finding]:
    """Yield what keeps `[shared_state]` from being opened. May block where a backend is no built-in one."""
    at: Path = ("shared_state",)
    name = store.backend
    if name and name not in STORES and name not in (installed := installed_stores()):
        yield choose((*at, "backend"), "shared state backend", name, [*STORES, *installed], needs=[at])
    if name == "memory" and store.url:
        yield Finding(path=(*at, "url"), message='backend = "memory" has no address', needs=(at,))
    if name == "redis" and store.url and not store.url.startswith(REDIS_SCHEMES):
        message = f"the address of a Redis server begins with {one_of(REDIS_SCHEMES)}"
        yield Finding(path=(*at, "url"), message=message, at_value=True, needs=(at,))


def hook_findings(hooks: Sequence[HookTable]) -> Iterator[Finding]:
    """Yield what is wrong between the keys of `[[hooks]]`."""
    yield from unique(("hooks",), [hook.name for hook in hooks])
    for index, hook in enumerate(hooks):
        at: Path = ("hooks", index)
        kinds = (("use", hook.use), ("command", hook.command), ("builtin", hook.builtin))
        yield from exactly_one(at, kinds)
        known = sorted(COMMAND_HOOK_EVENTS) if hook.command else HOOK_EVENTS
        for number, event in enumerate(hook.events):
            if event not in known:
                message = f"{event!r} is no event of this hook; there are {', '.join(known)}"
                yield Finding(path=(*at, "events", number), message=message)
        if hook.command and not hook.events:
            message = "a command hook must say which events it gets"
            yield Finding(path=(*at, "events"), message=message, needs=(at,))
        yield from _shipped_hook(at, hook)


def _shipped_hook(at: Path, hook: HookTable) -> Iterator[Finding]:
    known = SHIPPED_HOOK_PARAMS.get(hook.builtin)
    if known is None:
        return
    for name in hook.params:
        if name not in known:
            taken = f"it takes {one_of(known)}" if known else "it takes none"
            yield Finding(
                path=(*at, "params", name),
                message=f"the hook {hook.builtin!r} has no parameter {name!r}; {taken}",
                suggestion=nearest(name, known),
            )
    if hook.builtin == "audit" and not hook.params.get("file"):
        message = "the audit hook needs params.file, the path of the file to write to"
        yield Finding(path=(*at, "builtin"), message=message, needs=(at,))


def server_findings(servers: Sequence[McpServerTable]) -> Iterator[Finding]:
    """Yield what is wrong between the keys of `[[mcp_servers]]`."""
    yield from unique(("mcp_servers",), [server.name for server in servers])
    for index, server in enumerate(servers):
        at: Path = ("mcp_servers", index)
        yield from exactly_one(at, (("command", server.command), ("url", server.url)))
        stray = ("headers", server.headers) if server.command else ("env", server.env)
        if "__" in server.name or server.name.endswith("_"):
            message = (
                "`__` ends a server's name in those of its tools: it may not stand in the name or be begun"
            )
            yield Finding(path=(*at, "name"), message=message, at_value=True, needs=((*at, "name"),))
        yield from _oauth(at, server)
        if stray[1] and bool(server.command) != bool(server.url):
            belongs = "url" if server.command else "command"
            message = f"only a server with {belongs!r} takes this"
            yield Finding(path=(*at, stray[0]), message=message, needs=(at,))


def _oauth(at: Path, server: McpServerTable) -> Iterator[Finding]:
    """Yield what is missing for the grant that a server's OAuth names."""
    oauth = server.oauth
    if oauth is None:
        return
    where: Path = (*at, "oauth")
    if not server.url:
        yield Finding(path=where, message="only a server with 'url' takes this", needs=(where,))
    if oauth.grant == "identity_assertion":
        wanted = (
            ("client_id", oauth.client_id),
            ("client_secret", oauth.client_secret),
            ("issuer", oauth.issuer),
            ("id_token", oauth.id_token),
            ("exchange", oauth.exchange),
        )
        for key, value in wanted:
            if not value:
                message = f'grant = "identity_assertion" needs {key}'
                yield Finding(path=(*where, "grant"), message=message, needs=(where,))
        if oauth.exchange and not _is_safe_address(oauth.exchange):
            message = "a token is sent there: an https address, or one of this machine"
            yield Finding(path=(*where, "exchange"), message=message, at_value=True, needs=(where,))
    elif oauth.exchange or oauth.id_token:
        message = 'only grant = "identity_assertion" takes id_token and exchange'
        yield Finding(path=(*where, "grant"), message=message, needs=(where,))
    if oauth.grant == "client_credentials":
        needed = (("client_id", oauth.client_id), ("issuer", oauth.issuer))
        for key, value in needed:
            if not value:
                message = f'grant = "client_credentials" needs {key}'
                yield Finding(path=(*where, "grant"), message=message, needs=(where,))
        kinds = (("client_secret", oauth.client_secret), ("private_key", oauth.private_key))
        yield from exactly_one(where, kinds)


def _is_safe_address(address: str) -> bool:
    parts = urlsplit(address)
    here = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and here))
