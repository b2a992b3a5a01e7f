"""Logins at servers: what is kept, who can read it, and what is told where nobody can log in."""

import json
import stat
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar
from urllib.parse import parse_qs

import anyio
import pytest
from mcp.shared.auth import OAuthToken

from agentctl.cli.mcp_login import BrowserDoor
from agentctl.tools.mcp.logins import LoginFile
from agentctl.tools.mcp.server import OauthPlan, ServerFailed
from agentctl.tools.mcp.wire.login import _asserted, _Store, oauth
from tests.end_to_end.command import Bench
from tests.end_to_end.conftest import bench
from tests.tools.mcp.serving import plan

__all__ = ["bench"]
pytestmark = pytest.mark.anyio
URL = "https://example.com/mcp"


def store(tmp_path: Path) -> _Store:
    wanted = OauthPlan()
    made = _Store(
        plan=plan(tmp_path, url=URL, oauth=wanted), wanted=wanted, redirect_uri="http://127.0.0.1/callback"
    )
    made.file = LoginFile(url=URL, folder=tmp_path / "logins")
    return made


def test_a_login_is_kept_where_nobody_else_can_read_it(tmp_path: Path) -> None:
    file = LoginFile(url=URL, folder=tmp_path / "logins")

    file.write({"tokens": {"access_token": "a"}})

    assert file.read()["tokens"] == {"access_token": "a"}
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.folder.stat().st_mode) == 0o700
    assert file.forget()
    assert file.read() == {}


def test_a_broken_login_counts_as_none(tmp_path: Path) -> None:
    file = LoginFile(url=URL, folder=tmp_path)
    file.path.write_text("not json", encoding="utf-8")

    assert file.read() == {}


async def test_tokens_whose_time_is_up_are_refreshed_first(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.provider = oauth(kept.plan, kept.wanted, None)
    await kept.set_tokens(OAuthToken(access_token="a", refresh_token="r", expires_in=-5))

    token = await kept.get_tokens()
    kept.provider.context.current_tokens = token

    assert token is not None
    assert token.refresh_token == "r"
    assert not kept.provider.context.is_token_valid()


async def test_a_configured_client_is_not_registered_anew(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.wanted = OauthPlan(client_id="me", client_secret="s")

    client = await kept.get_client_info()

    assert client is not None
    assert (client.client_id, client.token_endpoint_auth_method) == ("me", "client_secret_basic")


async def test_without_anybody_to_log_in_the_command_for_it_is_named(tmp_path: Path) -> None:
    server = plan(tmp_path, name="far", url=URL, oauth=OauthPlan())
    assert server.oauth is not None
    provider = oauth(server, server.oauth, None)

    assert provider.context.redirect_handler is not None
    with pytest.raises(ServerFailed, match="agentctl mcp login far"):
        await provider.context.redirect_handler("https://example.com/authorize")


async def test_the_browser_comes_back_to_this_machine() -> None:
    door = BrowserDoor(redirect_uri="http://127.0.0.1:1/callback")
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django

    async def fetch(path: str) -> bytes:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            return await stream.receive()

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, door.take)
        with anyio.fail_after(5):
            icon = await fetch("/favicon.ico")
            page = await fetch("/callback?code=c&state=s")
            query = await door.came_back()
        group.cancel_scope.cancel()

    assert icon.startswith(b"HTTP/1.1 404")
    assert page.startswith(b"HTTP/1.1 200")
    assert query == "code=c&state=s"


def test_secrets_of_a_login_are_not_in_what_is_printed_of_a_plan(tmp_path: Path) -> None:
    wanted = OauthPlan(client_id="me", client_secret="hush", private_key="pem-text")

    assert "hush" not in repr(replace(plan(tmp_path, url=URL), oauth=wanted))
    assert "pem-text" not in repr(wanted)


def test_an_unknown_server_and_one_without_login_are_told(bench: Bench, agentctl_home: Path) -> None:
    config = agentctl_home / "agentctl" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[[mcp_servers]]\nname = "plain"\nurl = "https://example.com/mcp"\n', encoding="utf-8")

    unknown = bench.agentctl("mcp", "login", "nobody")
    plain = bench.agentctl("mcp", "login", "plain")
    out = bench.agentctl("mcp", "logout", "plain")

    assert unknown.code == 2
    assert "There is no MCP server 'nobody' in your config; there: plain." in unknown.err
    assert plain.code == 2
    assert "[mcp_servers.oauth]" in plain.err
    assert out.out == "There was no login at 'plain'.\n"


def test_client_credentials_need_their_service_and_one_kind_of_proof(
    bench: Bench, agentctl_home: Path
) -> None:
    config = agentctl_home / "agentctl" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        '[[mcp_servers]]\nname = "far"\nurl = "https://example.com/mcp"\n'
        '[mcp_servers.oauth]\ngrant = "client_credentials"\nclient_id = "me"\n',
        encoding="utf-8",
    )

    ran = bench.agentctl("mcp", "list")

    assert ran.code == 3
    assert "needs issuer" in ran.err
    assert "exactly one of client_secret, private_key is needed" in ran.err


class Provider(BaseHTTPRequestHandler):
    """An identity provider that exchanges one token."""

    asked: ClassVar[list[dict[str, list[str]]]] = []

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        self.asked.append(form)
        known = form["subject_token"] == ["who-i-am"]
        said = {"access_token": "an-assertion"} if known else {"error": "invalid_grant"}
        body = json.dumps(said).encode()
        self.send_response(200 if known else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


async def test_an_identity_is_exchanged_for_an_assertion_to_the_servers_own_service() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        wanted = OauthPlan(
            grant="identity_assertion",
            id_token="who-i-am",
            exchange=f"http://127.0.0.1:{server.server_port}/token",
            exchange_client_id="agentctl",
        )
        assertion = await _asserted(wanted, "https://login.example.com", URL)
        with pytest.raises(
            ServerFailed, match=r"did not exchange id_token \(HTTP status 400\): invalid_grant"
        ):
            await _asserted(replace(wanted, id_token="somebody"), "https://login.example.com", URL)
        server.shutdown()

    assert assertion == "an-assertion"
    asked = {name: values[0] for name, values in Provider.asked[0].items()}
    assert asked["audience"] == "https://login.example.com"
    assert asked["resource"] == URL
    assert asked["requested_token_type"].endswith(":id-jag")
    assert asked["client_id"] == "agentctl"
    assert "client_secret" not in asked


def test_an_identity_assertion_needs_all_its_parts_and_a_safe_address(
    bench: Bench, agentctl_home: Path
) -> None:
    config = agentctl_home / "agentctl" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        '[[mcp_servers]]\nname = "notes"\nurl = "https://example.com/mcp"\n[mcp_servers.oauth]\n'
        'grant = "identity_assertion"\nid_token = "${ID_TOKEN}"\nexchange = "http://idp.example.com/token"\n',
        encoding="utf-8",
    )
    listed = bench.agentctl("mcp", "list")

    assert listed.code == 3
    for key in ("client_id", "client_secret", "issuer"):
        assert f'grant = "identity_assertion" needs {key}' in listed.err
    assert "an https address, or one of this machine" in listed.err
