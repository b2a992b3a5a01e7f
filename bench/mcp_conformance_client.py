"""What the conformance suite starts: agentctl's own MCP client, sent to the suite's server.

The suite appends the server's address. Every tool there is called once with arguments made from its schema;
questions get their defaults, and the login is done by a browser without eyes.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2

from agentctl.executor.api import Roots, SandboxKind, SandboxPolicy
from agentctl.executor.local import LocalExecutor
from agentctl.protocol.messages import AssistantMessage, TextPart
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.tools.definition import ActContext, SampleRequest
from agentctl.tools.mcp.line import Line
from agentctl.tools.mcp.opening import load_wire
from agentctl.tools.mcp.server import OauthPlan, ServerPlan

DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Browser:
    """Follows the login's address to where it is sent back."""

    redirect_uri = "http://127.0.0.1:3030/callback"
    _query = ""

    async def open(self, address: str) -> None:
        async with httpx2.AsyncClient() as http:
            answer = await http.get(address, follow_redirects=False)
        self._query = urlsplit(answer.headers["location"]).query

    async def came_back(self) -> str:
        return self._query


async def ask(question: PersonQuestion) -> PersonAnswer:
    """Take the default, else the first option."""
    if not question.options:
        return PersonAnswer(text="")
    default = next((one for one in question.options if "default" in one), question.options[0])
    return PersonAnswer(option=default)


async def sample(wish: SampleRequest) -> AssistantMessage:
    return AssistantMessage(parts=(TextPart(text=f"for {wish.server}"),), model="scripted:")


async def issuer_of(url: str) -> str:
    """Return the service that a person would have written into the config."""
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource"
    async with httpx2.AsyncClient() as http:
        for place in (f"{address}{parts.path}", address):
            answer = await http.get(place)
            if answer.status_code == 200:
                return str(answer.json()["authorization_servers"][0])
    return ""


async def oauth(scenario: str, context: JsonObject, url: str) -> OauthPlan | None:
    if not scenario.startswith("auth/"):
        return None
    given = OauthPlan(
        client_id=str(context.get("client_id", "")), client_secret=str(context.get("client_secret", ""))
    )
    match scenario:
        case "auth/basic-cimd":
            return OauthPlan(client_id=DOCUMENT)
        case "auth/client-credentials-basic":
            return OauthPlan(
                grant="client_credentials",
                client_id=given.client_id,
                client_secret=given.client_secret,
                issuer=await issuer_of(url),
            )
        case "auth/client-credentials-jwt":
            return OauthPlan(
                grant="client_credentials",
                client_id=given.client_id,
                private_key=str(context["private_key_pem"]),
                algorithm=str(context["signing_algorithm"]),
                issuer=await issuer_of(url),
            )
        case "auth/cross-app-access-complete-flow":
            return OauthPlan(
                grant="identity_assertion",
                client_id=given.client_id,
                client_secret=given.client_secret,
                issuer=await issuer_of(url),
                id_token=str(context["idp_id_token"]),
                exchange=str(context["idp_token_endpoint"]),
                exchange_client_id=str(context["idp_client_id"]),
            )
        case _:
            return given


def arguments(schema: JsonObject) -> JsonObject:
    """Return arguments that fit simple schemas."""
    properties = schema.get("properties")
    made: JsonObject = {}
    values: dict[str, JsonValue] = {"number": 5, "integer": 5, "boolean": True}
    for name, described in properties.items() if isinstance(properties, dict) else ():
        kind = described.get("type") if isinstance(described, dict) else None
        made[name] = values.get(str(kind), "text")
    return made


async def main(url: str) -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context: JsonObject = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    folder = Path(tempfile.mkdtemp())
    os.environ["AGENTCTL_HOME"] = str(folder)
    executor = LocalExecutor()
    plan = ServerPlan(
        name="suite",
        position="the suite",
        url=url,
        oauth=await oauth(scenario, context, url),
        roots=Roots(workdir=folder, temp=folder),
        sandbox=SandboxPolicy(kind=SandboxKind.NONE),
        sampling=True,
    )
    line = Line(plan=plan, executor=executor, load=load_wire, door=Browser())
    act = ActContext(call_id="c", emit_output=lambda _: None, ask_person=ask, sample=sample)
    async with anyio.create_task_group() as group:
        group.start_soon(line.serve)
        await line.settled()
        if line.session is None:
            print(await line.gone(), file=sys.stderr)
            return 1
        for tool in line.offer.tools:
            output = await line.session.call(tool.name, arguments(tool.parameters), act)
            print(tool.name, output.text)
        await line.stop()
    await executor.aclose()
    return 0


sys.exit(anyio.run(main, sys.argv[-1]))
