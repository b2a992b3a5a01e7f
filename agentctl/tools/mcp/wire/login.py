"""OAuth at a server: tokens that a login left are used and refreshed; without any, how to log in is told."""

import time
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import parse_qs

import anyio.to_thread
import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from agentctl.protocol.values import JsonObject
from agentctl.tools.mcp.logins import LoginDoor, LoginFile
from agentctl.tools.mcp.server import OauthPlan, ServerFailed, ServerPlan

_NO_WAY_BACK = "http://127.0.0.1/callback"


def oauth(plan: ServerPlan, wanted: OauthPlan, door: LoginDoor | None) -> httpx2.Auth:
    """Return what authorises requests to a server. Without a door nobody can log in, and that is told."""
    store = _Store(plan=plan, wanted=wanted, redirect_uri=door.redirect_uri if door else _NO_WAY_BACK)
    if wanted.grant == "client_credentials" and wanted.private_key:
        signed = SignedJWTParameters(
            issuer=wanted.client_id,
            subject=wanted.client_id,
            signing_key=wanted.private_key,
            signing_algorithm=wanted.algorithm,
        )
        return PrivateKeyJWTOAuthProvider(
            server_url=plan.url,
            storage=store,
            client_id=wanted.client_id,
            assertion_provider=signed.create_assertion_provider(),
            issuer=wanted.issuer,
            scope=wanted.scope or None,
        )
    if wanted.grant == "client_credentials":
        return ClientCredentialsOAuthProvider(
            server_url=plan.url,
            storage=store,
            client_id=wanted.client_id,
            client_secret=wanted.client_secret,
            issuer=wanted.issuer,
            scope=wanted.scope or None,
        )

    if wanted.grant == "identity_assertion":
        return _vouched_for(plan, wanted, store)

    async def show(address: str) -> None:
        if door is None:
            raise ServerFailed(f"it wants a login; run: agentctl mcp login {plan.name}")
        await door.open(address)

    async def came_back() -> AuthorizationCodeResult:
        assert door is not None, "`show` came first"  # noqa: S101
        answer = {name: values[0] for name, values in parse_qs(await door.came_back()).items()}
        if "code" not in answer:
            why = answer.get("error_description") or answer.get("error") or "no code came back"
            raise ServerFailed(f"the login was not accepted: {why}")
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

    document = wanted.client_id if wanted.client_id.startswith("https://") else None
    provider = OAuthClientProvider(
        server_url=plan.url,
        client_metadata=OAuthClientMetadata(
            client_name="agentctl",
            redirect_uris=[AnyUrl(store.redirect_uri)],
            scope=wanted.scope or None,
        ),
        storage=store,
        redirect_handler=show,
        callback_handler=came_back,
        client_metadata_url=document,
    )
    store.provider = provider
    return provider


def _vouched_for(plan: ServerPlan, wanted: OauthPlan, store: "_Store") -> IdentityAssertionOAuthProvider:
    return IdentityAssertionOAuthProvider(
        server_url=plan.url,
        storage=store,
        client_id=wanted.client_id,
        client_secret=wanted.client_secret,
        issuer=wanted.issuer,
        assertion_provider=partial(_asserted, wanted),
        scope=wanted.scope or None,
        token_endpoint_auth_method="client_secret_basic",  # noqa: S106 - the name of a method
    )


async def _asserted(wanted: OauthPlan, audience: str, resource: str) -> str:
    """Return the identity provider's assertion to the service `audience`, for the server `resource` alone.

    Raises:
        ServerFailed: the provider gave none.
    """
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "subject_token": wanted.id_token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "audience": audience,
        "resource": resource,
    }
    named = {
        "scope": wanted.scope,
        "client_id": wanted.exchange_client_id,
        "client_secret": wanted.exchange_client_secret,
    }
    form |= {name: value for name, value in named.items() if value}
    async with httpx2.AsyncClient(timeout=30.0, follow_redirects=False) as http:
        answer = await http.post(wanted.exchange, data=form)
    try:
        said = answer.json()
    except ValueError:
        said = {}
    token = said.get("access_token") if isinstance(said, dict) else None
    if answer.is_success and isinstance(token, str) and token:
        return token
    why = said.get("error_description") or said.get("error") if isinstance(said, dict) else ""
    about = f": {why}" if isinstance(why, str) and why else ""
    raise ServerFailed(
        f"the identity provider did not exchange id_token (HTTP status {answer.status_code}){about}"
    )


@dataclass(slots=True, kw_only=True)
class _Store:
    """Keeps what the SDK wants kept, in the login's file."""

    plan: ServerPlan
    wanted: OauthPlan
    redirect_uri: str
    provider: OAuthClientProvider | None = None
    file: LoginFile = field(init=False)

    def __post_init__(self) -> None:
        self.file = LoginFile(url=self.plan.url)

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens; those whose time is up as expired, so that they are refreshed first."""
        known = await anyio.to_thread.run_sync(self.file.read)
        try:
            token = OAuthToken.model_validate(known["tokens"])
        except (KeyError, ValidationError):
            return None
        expires_at = known.get("expires_at")
        if isinstance(expires_at, int | float) and self.provider is not None:
            token.expires_in = int(expires_at - time.time())
            self.provider.context.update_token_expiry(token)
        return token

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens with the moment at which they end."""
        known: JsonObject = {"tokens": tokens.model_dump(mode="json", exclude_none=True)}
        if tokens.expires_in is not None:
            known["expires_at"] = time.time() + tokens.expires_in
        await self._keep(known)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return who we are there: as configured, else as registered at the login."""
        if self.wanted.client_id and not self.wanted.client_id.startswith("https://"):
            return OAuthClientInformationFull(
                client_id=self.wanted.client_id,
                client_secret=self.wanted.client_secret or None,
                redirect_uris=[AnyUrl(self.redirect_uri)],
                token_endpoint_auth_method="client_secret_basic" if self.wanted.client_secret else "none",
            )
        known = await anyio.to_thread.run_sync(self.file.read)
        try:
            return OAuthClientInformationFull.model_validate(known["client"])
        except (KeyError, ValidationError):
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep who we are there."""
        await self._keep({"client": client_info.model_dump(mode="json", exclude_none=True)})

    async def _keep(self, more: JsonObject) -> None:
        known = await anyio.to_thread.run_sync(self.file.read)
        await anyio.to_thread.run_sync(self.file.write, known | more)
