"""What a server may offer and ask for, and what becomes of it."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from agentctl.executor.api import SandboxPolicy
from agentctl.protocol.messages import TextPart, UserMessage
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.tools.mcp.names import may_select, tool_name
from agentctl.tools.mcp.wire.session import SdkSession
from agentctl.tools.outside import Wanted
from tests.tools.mcp.serving import plan, program, running

pytestmark = pytest.mark.anyio
ASKING = """
    held = []
    def call(m):
        held.append(m)
        send(id="q1", method=METHOD, params=PARAMS)
    while True:
        m = read()
        if m.get("id") == "q1" and "method" not in m:
            answer(held.pop(), **text(json.dumps(m.get("result") or m.get("error"))))
        elif not usual(m):
            call(m)
"""
FORM = """
    METHOD = "elicitation/create"
    PARAMS = {"message": "Who are you?", "requestedSchema": {"type": "object", "required": ["name"],
        "properties": {
            "name": {"type": "string", "title": "Your name"},
            "age": {"type": "integer"},
            "sure": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]},
            "size": {"oneOf": [{"const": "s", "title": "small"}], "type": "string"}}}}
"""


async def test_progress_is_shown_while_the_call_runs(tmp_path: Path) -> None:
    command = program("""
        def call(m):
            token = m["params"]["_meta"]["progressToken"]
            for n in (1, 2):
                send(method="notifications/progress",
                     params={"progressToken": token, "progress": n, "total": 2, "message": f"part {n}"})
            send(method="notifications/message", params={"level": "info", "data": "half way"})
            echo(m)
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        await run.call("srv__echo", text="hi")

    assert set(run.shown) == {"1 of 2: part 1\n", "2 of 2: part 2\n", "info: half way\n"}


async def test_a_form_is_asked_field_by_field_and_names_the_server(tmp_path: Path) -> None:
    async with running(tmp_path, plan(tmp_path, command=program(FORM + ASKING))) as run:
        run.person.answers = [
            PersonAnswer(text="Ann"),
            PersonAnswer(text="many"),
            PersonAnswer(text="7"),
            PersonAnswer(option="yes"),
            PersonAnswer(option="green"),
            PersonAnswer(option="(leave it out)"),
        ]
        output = await run.call("srv__echo")

    assert output.text == (
        '{"action": "accept", "content": {"name": "Ann", "age": 7, "sure": true, "colour": "g"}}'
    )
    assert all("'srv' asks: Who are you?" in question.prompt for question in run.person.asked)
    assert "'many' is not taken" in run.person.asked[2].prompt
    assert run.person.asked[4].options == ("red", "green", "(leave it out)", "Decline")
    assert [question.call_id for question in run.person.asked][:2] == ["c1", "c1/2"]


async def test_defaults_of_a_form_can_be_taken(tmp_path: Path) -> None:
    body = """
    METHOD = "elicitation/create"
    PARAMS = {"message": "m", "requestedSchema": {"type": "object", "required": ["word", "sure", "colours"],
        "properties": {
            "word": {"type": "string", "default": "x"},
            "sure": {"type": "boolean", "default": False},
            "colour": {"type": "string", "enum": ["r", "g"], "default": "g"},
            "colours": {"type": "array", "items": {"enum": ["r", "g"]}}}}}
    """
    async with running(tmp_path, plan(tmp_path, command=program(body + ASKING))) as run:
        run.person.answers = [
            PersonAnswer(text=""),
            PersonAnswer(option="(take the default)"),
            PersonAnswer(option="(take the default)"),
            PersonAnswer(text="g, r"),
        ]
        output = await run.call("srv__echo")

    assert output.text == (
        '{"action": "accept", "content": {"word": "x", "sure": false, "colour": "g", "colours": ["g", "r"]}}'
    )


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (PersonAnswer(text=""), "decline"),
        (PersonAnswer(no_answer="declined"), "decline"),
        (PersonAnswer(no_answer="unattended"), "cancel"),
        (PersonAnswer(no_answer="deadline"), "cancel"),
    ],
)
async def test_a_person_may_decline_or_not_be_there(
    tmp_path: Path, answer: PersonAnswer, action: str
) -> None:
    async with running(tmp_path, plan(tmp_path, command=program(FORM + ASKING))) as run:
        run.person.answers = [answer]
        output = await run.call("srv__echo")

    assert f'"action": "{action}"' in output.text


async def test_an_address_is_shown_and_never_opened(tmp_path: Path) -> None:
    body = """
    METHOD = "elicitation/create"
    VERSION = "2025-11-25"
    PARAMS = {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e"}
    """
    async with running(tmp_path, plan(tmp_path, command=program(body + ASKING))) as run:
        run.person.answers = [PersonAnswer(option="I have opened it")]
        output = await run.call("srv__echo")

    assert output.text == '{"action": "accept"}'
    assert "https://example.com/login" in run.person.asked[0].prompt


async def test_the_time_of_a_call_stands_still_while_a_person_thinks(tmp_path: Path) -> None:
    deadlines: list[float] = []
    async with running(tmp_path, plan(tmp_path, command=program(FORM + ASKING))) as run:

        async def ask(question: PersonQuestion) -> PersonAnswer:
            session = run.line.session
            assert isinstance(session, SdkSession)
            deadlines.extend(call.scope.deadline for call in session.calls.running)
            return PersonAnswer(text="")

        run.person.ask = ask  # type: ignore[method-assign]
        await run.call("srv__echo")

    assert deadlines == [float("inf")]


async def test_the_root_is_the_workdir(tmp_path: Path) -> None:
    body = '    METHOD, PARAMS = "roots/list", {}\n'
    async with running(tmp_path, plan(tmp_path, command=program(body + ASKING))) as run:
        output = await run.call("srv__echo")

    assert tmp_path.as_uri() in output.text


SAMPLING = """
    METHOD = "sampling/createMessage"
    PARAMS = {"messages": [{"role": "user", "content": {"type": "text", "text": "2+2?"}}],
              "maxTokens": 9, "systemPrompt": "Be brief."}
"""


async def test_sampling_is_refused_unless_it_is_configured(tmp_path: Path) -> None:
    async with running(tmp_path, plan(tmp_path, command=program(SAMPLING + ASKING))) as run:
        output = await run.call("srv__echo")

    assert "Sampling not supported" in output.text
    assert run.model.wishes == []


async def test_sampling_goes_through_the_run(tmp_path: Path) -> None:
    command = program(SAMPLING + ASKING)
    async with running(tmp_path, plan(tmp_path, command=command, sampling=True)) as run:
        output = await run.call("srv__echo")

    (wish,) = run.model.wishes
    assert (wish.server, wish.system, wish.max_output_tokens) == ("srv", "Be brief.", 9)
    assert wish.messages == (UserMessage(parts=(TextPart(text="2+2?"),), source="agent:server"),)
    assert '"text": "an answer"' in output.text


async def test_resources_and_prompts_are_read_with_tools_of_their_own(tmp_path: Path) -> None:
    command = program("""
        CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}}
        while True:
            m = read()
            match m.get("method"):
                case "resources/list":
                    answer(m, resources=[{"uri": "note://1", "name": "one", "mimeType": "text/plain"}])
                case "resources/templates/list":
                    answer(m, resourceTemplates=[{"uriTemplate": "note://{n}", "name": "any"}])
                case "resources/read":
                    answer(m, contents=[{"uri": m["params"]["uri"], "text": "the note"},
                                        {"uri": "pic://1", "mimeType": "image/png", "blob": "aGk="}])
                case "prompts/list":
                    answer(m, prompts=[{"name": "greet", "arguments": [{"name": "who", "required": True}]}])
                case "prompts/get":
                    who = m["params"]["arguments"]["who"]
                    answer(m, messages=[{"role": "user", "content": {"type": "text", "text": f"Hi {who}"}}])
                case _:
                    usual(m) or echo(m)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        names = run.names
        listed = await run.call("srv__list_resources")
        read = await run.call("srv__read_resource", uri="note://1")
        prompts = await run.call("srv__list_prompts")
        prompt = await run.call_with("srv__get_prompt", {"name": "greet", "arguments": {"who": "Ann"}})

    assert names == [
        "srv__echo", "srv__list_resources", "srv__read_resource", "srv__list_prompts", "srv__get_prompt",
    ]  # fmt: skip
    assert listed.structured == [
        {"uri": "note://1", "name": "one", "media_type": "text/plain"},
        {"uri_template": "note://{n}", "name": "any"},
    ]
    assert read.text == "[note://1]\nthe note"
    assert [image.name for image in read.images] == ["pic://1"]
    assert prompts.structured == [
        {"name": "greet", "arguments": [{"name": "who", "description": "", "required": True}]}
    ]
    assert prompt.text == "[user]\nHi Ann"


async def test_all_pages_are_listed_and_endless_ones_are_left(tmp_path: Path) -> None:
    command = program("""
        while True:
            m = read()
            if m.get("method") == "tools/list":
                at = (m.get("params") or {}).get("cursor", "0")
                answer(m, tools=[tool("t" + at)], nextCursor={"0": "1", "1": "2"}.get(at, "1"))
            else:
                usual(m) or echo(m)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert run.names == ["srv__t0", "srv__t1", "srv__t2"]


async def test_a_huge_answer_arrives_and_an_even_larger_one_ends_the_connection(tmp_path: Path) -> None:
    command = program("""
        serve(lambda m: answer(m, **text("x" * int(m["params"]["arguments"]["text"]))))
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        large = await run.call("srv__echo", text=str(9 << 20))
        larger = await run.call("srv__echo", text=str(40 << 20))

    assert "[cut: the server sent 9437184 characters]" in large.text
    assert larger.failed
    assert "without a line end" in larger.text


async def test_an_error_of_the_tool_is_told_as_one(tmp_path: Path) -> None:
    command = program('serve(lambda m: answer(m, **text("no such file", isError=True)))')
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        output = await run.call("srv__echo")

    assert (output.text, output.failed) == ("no such file", True)


async def test_an_error_of_the_protocol_is_told_with_the_name_of_the_server(tmp_path: Path) -> None:
    command = program('serve(lambda m: send(id=m["id"], error={"code": -32602, "message": "bad text"}))')
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        output = await run.call("srv__echo")

    assert output.failed
    assert output.text == "The MCP server 'srv' could not do this: bad text"


async def test_an_answer_that_breaks_the_protocol_fails_that_call_alone(tmp_path: Path) -> None:
    command = program("""
        n = 0
        def call(m):
            global n
            n += 1
            answer(m, **({"content": 42} if n == 1 else text("fine")))
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        first = await run.call("srv__echo")
        second = await run.call("srv__echo")

    assert first.failed
    assert "does not follow the protocol" in first.text
    assert second.text == "fine"


async def test_a_server_that_says_nothing_is_given_up_after_its_time(tmp_path: Path) -> None:
    command = program("sys.stderr.write('loading the index\\n'); sys.stderr.flush(); time.sleep(300)")
    async with running(tmp_path, plan(tmp_path, command=command, startup_timeout_s=1.0)) as run:
        notes = run.notes()

    assert "did not answer within 1 s (startup_timeout)" in notes
    assert "loading the index" in notes
    assert "exit code" not in notes


async def test_a_server_that_keeps_silent_about_unknown_methods_is_still_greeted(tmp_path: Path) -> None:
    command = program("""
        while True:
            m = read()
            if m.get("method") in ("initialize", "tools/list", "notifications/initialized"):
                usual(m)
            elif m.get("method") == "tools/call":
                echo(m)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert (await run.call("srv__echo", text="hi")).text == "hi"


async def test_a_server_gets_no_credentials_but_those_it_is_given(tmp_path: Path) -> None:
    command = program("""
        names = ("SECRET_TOKEN", "MY_API_KEY", "PATH")
        serve(lambda m: answer(m, **text(str([os.environ.get(n) for n in names]))))
    """)
    async with running(tmp_path, plan(tmp_path, command=command, env=(("MY_API_KEY", "given"),))) as run:
        output = await run.call("srv__echo")

    assert output.text == "[None, 'given', '/usr/local/bin:/usr/bin:/bin']"


async def test_a_server_can_be_held_in_the_sandbox(tmp_path: Path) -> None:
    target = tmp_path.parent / "outside.txt"
    command = program(f"""
        def call(m):
            try:
                open({str(target)!r}, "w").write("x")
                answer(m, **text("written"))
            except OSError as error:
                answer(m, **text(error.strerror))
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command, sandbox=SandboxPolicy())) as run:
        await run.call("srv__echo")

    assert not target.exists()


async def test_what_a_server_writes_in_the_workdir_is_counted(tmp_path: Path) -> None:
    command = program("""
        def call(m):
            open("made.txt", "w").write("12345")
            echo(m)
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        output = await run.call("srv__echo")

    assert (output.bytes_written, output.files_written) == (5, 1)


async def test_one_server_serves_all_that_want_the_same(tmp_path: Path) -> None:
    shared = plan(tmp_path, command=program("serve(lambda m: answer(m, **text(str(os.getpid()))))"))
    async with running(tmp_path, shared) as run:
        first = run.line
        second = run.pool.take(shared)
        await run.pool.let_go([shared])

        assert first is second
        assert not (await run.call("srv__echo")).failed


async def test_only_wanted_servers_are_waited_for(tmp_path: Path) -> None:
    slow = plan(tmp_path, name="slow", command=program("time.sleep(300)"), startup_timeout_s=30.0)
    quick = plan(tmp_path, name="quick", command=program("serve(echo)"))
    async with running(tmp_path, quick) as run:
        run.source.plans = (quick, slow)
        run.source._lines["slow"] = run.pool.take(slow)  # noqa: SLF001 - started beside, as for another stage
        run.source._heard["slow"] = 0  # noqa: SLF001
        with anyio.fail_after(5):
            await run.source.ready(Wanted(tools=("quick__*",), connectors=()))

        assert run.names == ["quick__echo"]


async def test_a_missing_package_is_named_and_how_to_get_it(tmp_path: Path) -> None:
    from agentctl.tools.mcp.line import Line  # noqa: PLC0415
    from agentctl.tools.mcp.server import ServerFailed  # noqa: PLC0415

    async def load() -> None:
        raise ServerFailed("MCP servers need the package 'mcp'")

    async with running(tmp_path, plan(tmp_path, command=program("serve(echo)"))) as run:
        line = Line(plan=run.line.plan, executor=run.executor, load=load)  # type: ignore[arg-type]
        await line.serve()

    assert line.why == "MCP servers need the package 'mcp'"


def test_names_fit_every_service() -> None:
    assert tool_name("srv", "a.b/c d") == "srv__a_b_c_d"
    assert len(tool_name("s" * 64, "tool")) == 64


@pytest.mark.parametrize(
    ("pattern", "selects"),
    [("*", True), ("git__*", True), ("git__log", True), ("g*", True), ("gitlab__*", False), ("shell", False),
     ("git", False), ("git__lo?", True), ("[g]it__x", True)],
)  # fmt: skip
def test_a_glob_selects_the_servers_it_could_mean(pattern: str, selects: bool) -> None:  # noqa: FBT001
    assert may_select(pattern, "git") is selects


async def test_several_messages_in_one_line_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    command = program("""
        sys.stdout.buffer.write(b"\\xef\\xbb\\xbf")
        def call(m):
            note = {"jsonrpc": "2.0", "method": "notifications/x"}
            write(json.dumps([note, {"jsonrpc": "2.0", "id": m["id"], "result": text("both")}]) + "\\n")
        serve(call)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert (await run.call("srv__echo")).text == "both"
        assert run.notes() == ""


async def test_bytes_that_are_no_text_are_skipped(tmp_path: Path) -> None:
    command = program("""
        sys.stdout.buffer.write(b"\\xff\\xfe{}[\\n[1, 2]\\n42\\n")
        serve(echo)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert (await run.call("srv__echo", text="hi")).text == "hi"
        assert "not of the protocol" in run.notes()


async def test_a_server_may_speak_first_and_ask_for_what_nobody_knows(tmp_path: Path) -> None:
    command = program("""
        send(id="s1", method="ping")
        send(id="s2", method="no/such/thing")
        send(id=99, result={})
        serve(echo)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        assert (await run.call("srv__echo", text="hi")).text == "hi"


async def test_one_bad_entry_does_not_hide_the_other_tools(tmp_path: Path) -> None:
    command = program("""
        TOOLS = [{"name": "bare", "inputSchema": {"$schema": "x", "properties": None}}, {"name": "none"},
                 {"inputSchema": {}}, "nonsense", tool("echo", outputSchema={"type": "object"})]
        serve(echo)
    """)
    async with running(tmp_path, plan(tmp_path, command=command)) as run:
        names = run.names
        bare = run.source.tools()[0].tool.spec
        output = await run.call("srv__echo", text="without the promised JSON")

    assert names == ["srv__bare", "srv__none", "srv__echo"]
    assert bare.parameters == {"type": "object", "properties": {}}
    assert bare.description == "bare of the server srv"
    assert output.text == "without the promised JSON"
