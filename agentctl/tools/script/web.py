"""`http_get` and `http_post` for script tools: one host that is judged, and no other is reached."""

import json
from dataclasses import field
from typing import Annotated, Literal
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio

from agentctl.errors import ToolError
from agentctl.llm.base import ModelCallFailed
from agentctl.llm.http import Http, HttpCall, HttpOptions, HttpResponse
from agentctl.protocol.effects import ReachHost
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.schema import Bounds, Says
from agentctl.tools.typed import typed_tool

_MOST_BYTES = 512 * 1024
_TIMEOUT_S = 30.0
_MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te", "trailer"}
)
"""Headers that say where a request ends and whom it is for: a script that set them could ask another host."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpGetArguments:
    """Arguments of `http_get`."""

    url: Annotated[str, Says("An http or https address.", Bounds(min_length=1))]
    headers: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPostArguments:
    """Arguments of `http_post`."""

    url: Annotated[str, Says("An http or https address.", Bounds(min_length=1))]
    body: str = ""
    headers: dict[str, object] = field(default_factory=dict)


def web_tools(http: Http) -> tuple[Tool, ...]:
    """Return the two tools that reach a host."""
    web = _Web(http=http)
    return (
        typed_tool("http_get", "Fetch an address.", HttpGetArguments, web.get),
        typed_tool("http_post", "Post text to an address.", HttpPostArguments, web.post),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Web:
    http: Http

    async def get(self, arguments: HttpGetArguments, place: ToolPlace) -> Prepared:
        del place
        return self._prepared(arguments.url, "GET", _checked_headers(arguments.headers), "")

    async def post(self, arguments: HttpPostArguments, place: ToolPlace) -> Prepared:
        del place
        return self._prepared(arguments.url, "POST", _checked_headers(arguments.headers), arguments.body)

    def _prepared(
        self, url: str, method: Literal["GET", "POST"], headers: dict[str, str], body: str
    ) -> Prepared:
        parts = _taken_apart(url)
        call = HttpCall(url=url, method=method, headers=headers, body=body.encode(), follow=False)

        async def act(context: ActContext) -> ToolOutput:
            del context
            return await self._asked(call)

        shown = "".join(f"\n{name}: {value}" for name, value in headers.items())
        return Prepared(
            effects=(ReachHost(host=(parts.hostname or "").lower()),),
            act=act,
            preview=f"{method} {url}{shown}\n\n{body}".rstrip(),
            read_only=method == "GET",
        )

    async def _asked(self, call: HttpCall) -> ToolOutput:
        try:
            with anyio.fail_after(_TIMEOUT_S):
                return await self._followed(call)
        except TimeoutError:
            raise ToolError(f"{call.url} took longer than {_TIMEOUT_S:g} s.") from None
        except ModelCallFailed as failure:
            raise ToolError(f"{call.url} was not reached: {failure.message}") from failure

    async def _followed(self, call: HttpCall) -> ToolOutput:
        """Follow redirects within the judged host; one that leads elsewhere is told and not followed."""
        options = HttpOptions(stall_timeout_s=_TIMEOUT_S)
        for _ in range(_MOST_REDIRECTS + 1):
            async with self.http.send(call, options) as response:
                target = response.header("location")
                if response.status not in _REDIRECTS or not target:
                    return await _output(call.url, response)
                # What is left unread stays unread: the connection is closed with it.
                await response.read(_MOST_BYTES)
            call = _redirected(call, urljoin(call.url, target), response.status)
        raise ToolError(f"{call.url} redirects more than {_MOST_REDIRECTS} times.")


def _taken_apart(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError as error:
        raise ToolError(f"{url!r} is no address: {error}.") from None
    if not usable or any(one.isspace() or not one.isprintable() for one in url):
        raise ToolError(f"{url!r} is no http or https address.")
    if parts.username is not None or parts.password is not None:
        raise ToolError("A name or password in an address is not taken: use a header.")
    return parts


def _checked_headers(headers: dict[str, object]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(value, str) or not name or not name.replace("-", "").isalnum():
            raise ToolError(f"The header {name!r} is no header.")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise ToolError(f"The header {name!r} is not a script's to set.")
        if not value.isprintable():
            raise ToolError(f"The header {name!r} holds a character that no header can.")
        checked[name.lower()] = value
    return checked


def _redirected(call: HttpCall, url: str, status: int) -> HttpCall:
    before, after = _taken_apart(call.url), _taken_apart(url)
    same = (before.hostname, _port(before)) == (after.hostname, _port(after))
    safer = (before.hostname, before.scheme, after.scheme) == (after.hostname, "http", "https")
    if not (safer or (same and before.scheme == after.scheme)):
        raise ToolError(
            f"{call.url} redirects to {url}, which is another host or way: it was not followed. "
            "Call that address by itself, and it is judged by itself."
        )
    if status in {307, 308} or call.method == "GET":
        return HttpCall(url=url, method=call.method, headers=call.headers, body=call.body, follow=False)
    return HttpCall(url=url, method="GET", headers=call.headers, follow=False)


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


async def _output(url: str, response: HttpResponse) -> ToolOutput:
    data = await response.read(_MOST_BYTES + 1)
    cut = len(data) > _MOST_BYTES
    text = data[:_MOST_BYTES].decode("utf-8", "replace")
    kind = response.header("content-type")
    structured: JsonObject = {
        "url": url,
        "status": response.status,
        "content_type": kind,
        "text": text,
        "cut": cut,
    }
    if kind.partition(";")[0].strip() == "application/json" and not cut:
        structured["json"] = _read_json(text)
    return ToolOutput(text=f"{response.status} {url}\n{text}", structured=structured)


def _read_json(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
