"""`agentctl mcp serve`, driven by the client of the official SDK in both generations of the protocol."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from agentctl.errors import Position
from agentctl.protocol.decisions import Decision, Verdict
from agentctl.protocol.questions import ApprovalAnswer, ApprovalQuestion, Asker, PersonAnswer, PersonQuestion
from agentctl.serve.mcp.forms import answer_of, form_of
from tests.end_to_end.command import Bench, environment
from tests.end_to_end.test_mcp import served

pytestmark = pytest.mark.anyio
ASKS = """
[agent]
name = "asker"
description = "Asks before it looks at the clock."
[inputs.zone]
description = "a time zone"
default = "UTC"
[model]
use = ["scripted:"]
[tool_permissions]
current_time = "ask"
[stages.main]
prompt = "Zone {inputs.zone}."
available_tools = ["current_time"]
[script]
[[script.replies]]
tool_calls = [{ tool = "current_time" }]
[[script.replies]]
text = "It is late."
"""

SECOND = """
[[script.replies]]
tool_calls = [{ tool = "current_time" }]
[[script.replies]]
text = "It is later."
"""


class Asked:
    """A person behind the client."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.answers = list(answers)
        self.messages: list[str] = []

    async def ask(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        self.messages.append(params.message)
        return self.answers.pop(0)


@asynccontextmanager
async def client(bench: Bench, path: Path, mode: str, asked: Asked | None = None) -> AsyncIterator[Client]:
    arguments = ["-m", "agentctl", "mcp", "serve", str(path), "--workdir", str(bench.workdir)]
    server = StdioServerParameters(
        command=sys.executable, args=arguments, env=environment(), cwd=str(bench.workdir)
    )
    with anyio.fail_after(60):
        async with Client(server, mode=mode, elicitation_callback=asked.ask if asked else None) as opened:
            yield opened


def said(result: CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_is_a_run_and_its_ask_goes_to_the_client(
    bench: Bench, mode: str, anyio_backend: str
) -> None:
    asked = Asked(ElicitResult(action="accept", content={"answer": "once"}))
    path = bench.blueprint(ASKS)
    async with client(bench, path, mode, asked) as opened:
        (tool,) = (await opened.list_tools()).tools
        result = await opened.call_tool(tool.name, {"task": "what time is it"})

    assert (tool.name, tool.description) == ("asker", "Asks before it looks at the clock.")
    assert tool.input_schema["required"] == ["task"]
    assert tool.input_schema["properties"]["zone"]["default"] == "UTC"
    assert said(result) == "It is late."
    assert isinstance(result.structured_content, dict)
    assert result.structured_content["outcome"] == "finished"
    assert "asker (stage main) wants to call current_time" in asked.messages[0]


@pytest.mark.parametrize("answer", [{"answer": "no", "comment": "not now"}, None])
async def test_a_no_is_heard_by_the_model(bench: Bench, answer: dict[str, str] | None) -> None:
    action = "accept" if answer else "decline"
    asked = Asked(ElicitResult.model_validate({"action": action, "content": answer}))
    async with client(bench, bench.blueprint(ASKS), "auto", asked) as opened:
        result = await opened.call_tool("asker", {"task": "go"})

    assert isinstance(result.structured_content, dict)
    log = bench.agentctl("log", str(result.structured_content["run"]))
    assert "A person said no" in log.out + log.err
    assert said(result) == "It is late."


async def test_a_client_that_can_not_ask_is_nobody(bench: Bench) -> None:
    async with client(bench, bench.blueprint(ASKS), "auto") as opened:
        result = await opened.call_tool("asker", {"task": "go"})

    assert result.is_error
    assert isinstance(result.structured_content, dict)
    assert (result.structured_content["outcome"], result.structured_content["exit_code"]) == ("refused", 5)


async def test_what_is_wrong_with_a_call_is_its_result(bench: Bench) -> None:
    async with client(bench, bench.blueprint(ASKS), "auto") as opened:
        unknown = await opened.call_tool("nobody", {"task": "go"})
        odd = await opened.call_tool("asker", {"task": "go", "colour": "red"})
        bare = await opened.call_tool("asker", {})

    assert unknown.is_error
    assert "There is no agent 'nobody'" in said(unknown)
    assert odd.is_error
    assert "colour" in said(odd)
    assert bare.is_error
    assert "task is missing" in said(bare)


async def test_untrusted_code_is_a_result_that_says_how_to_trust_it(bench: Bench) -> None:
    async with client(bench, served(bench), "auto") as opened:
        result = await opened.call_tool("served", {"task": "go"})

    assert result.is_error
    assert "--trust" in said(result)


def test_servers_are_listed_and_untrusted_ones_not_started(bench: Bench) -> None:
    path = served(bench, "open('started', 'w'); serve(echo)")

    listed = bench.agentctl("mcp", "list", path, "--connect", "--json")
    (row,) = json.loads(listed.out)

    assert (row["name"], row["required"], row["trusted"]) == ("srv", True, False)
    assert not (bench.workdir / "started").exists()


def test_servers_of_the_user_are_started_on_demand(bench: Bench, agentctl_home: Path) -> None:
    served(bench)
    config = agentctl_home / "agentctl" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    command = json.dumps([sys.executable, str(bench.folder / "server.py")])
    config.write_text(
        f'[[mcp_servers]]\nname = "ok"\ncommand = {command}\n'
        '[[mcp_servers]]\nname = "gone"\ncommand = ["no-such-program"]\n',
        encoding="utf-8",
    )

    listed = bench.agentctl("mcp", "list")
    connected = bench.agentctl("mcp", "list", "--connect")

    assert listed.code == 0
    assert "server.py" in listed.out
    assert connected.code == 8
    assert "ok__echo" in connected.out
    assert "'no-such-program' could not be started" in connected.out


def decision() -> Decision:
    return Decision(
        verdict=Verdict.ASK, reason="r", rule="", layer="built-in", position=Position(file=""), judgements=()
    )


def approval(*would_remember: str) -> ApprovalQuestion:
    return ApprovalQuestion(
        question_id="q", asker=Asker(run_id="r", agent="a", stage="s"), call_id="c", tool="shell",
        arguments={}, preview="$ make", decision=decision(), would_remember=would_remember,
    )  # fmt: skip


def test_only_what_may_be_remembered_is_offered_and_taken() -> None:
    def offered(question: ApprovalQuestion) -> object:
        properties = form_of(question).schema["properties"]
        assert isinstance(properties, dict)
        answer = properties["answer"]
        assert isinstance(answer, dict)
        return answer["enum"]

    assert offered(approval()) == ["once", "no"]
    assert offered(approval("shell(make)")) == ["once", "stage", "run", "no"]
    assert answer_of(approval(), "accept", {"answer": "run"}) == ApprovalAnswer(choice="no", by="mcp")
    assert answer_of(approval("x"), "accept", {"answer": "run"}) == ApprovalAnswer(choice="run", by="mcp")
    assert answer_of(approval("x"), "cancel", {"answer": "run"}) == ApprovalAnswer(choice="no", by="mcp")
    assert answer_of(approval("x"), "accept", {"answer": "always"}) == ApprovalAnswer(choice="no", by="mcp")


def test_a_question_to_a_person_is_a_form_of_its_own_kind() -> None:
    asker = Asker(run_id="r", agent="a", stage="s")
    choice = PersonQuestion(question_id="q", asker=asker, kind="choice", prompt="Which?", options=("x", "y"))
    edit = PersonQuestion(question_id="q", asker=asker, kind="edit", prompt="Mend it", document="old")

    assert "old" in form_of(edit).message
    assert answer_of(choice, "accept", {"answer": "y"}) == PersonAnswer(option="y", by="mcp")
    assert answer_of(choice, "decline", {}) == PersonAnswer(no_answer="declined", by="mcp")
    assert answer_of(edit, "accept", {"document": "new"}) == PersonAnswer(document="new", by="mcp")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_that_is_left_open_stands_still_and_can_be_resumed(bench: Bench, mode: str) -> None:
    asked = anyio.Event()

    class Slow(Asked):
        async def ask(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
            del context, params
            asked.set()
            await anyio.sleep_forever()
            raise AssertionError

    async with (
        client(bench, bench.blueprint(ASKS), mode, Slow()) as opened,
        anyio.create_task_group() as group,
    ):
        group.start_soon(opened.call_tool, "asker", {"task": "go"})
        await asked.wait()
        group.cancel_scope.cancel()

    resumed = bench.agentctl("resume", "last", "--allow", "current_time")
    assert resumed.code == 0, resumed.err
    assert resumed.out == "It is late.\n"


async def test_a_thread_is_continued_by_a_later_call(bench: Bench) -> None:
    path = bench.blueprint(ASKS.replace('current_time = "ask"', 'run_info = "ask"') + SECOND)
    async with client(bench, path, "auto") as opened:
        first = await opened.call_tool("asker", {"task": "one"})
        assert isinstance(first.structured_content, dict)
        thread = first.structured_content["thread"]
        second = await opened.call_tool("asker", {"task": "two", "thread": thread})

    assert isinstance(second.structured_content, dict)
    assert second.structured_content["thread"] == thread
    assert second.structured_content["run"] != first.structured_content["run"]
