"""The scripted model: in order, for whom it is meant, strict both ways."""

import pytest

from agentctl.errors import InvalidInput, ProviderError
from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.llm.script import Script, parse_script
from agentctl.llm.scripted import ScriptedModel
from agentctl.protocol.events import LiveEvent, TextStreamed
from agentctl.protocol.messages import AssistantMessage, Message, ToolCall, ToolMessage, ToolResult, user_text

pytestmark = pytest.mark.anyio


def script(text: str) -> Script:
    return parse_script(text, source="script.toml")


def request(*messages: Message, agent: str = "", stage: str = "") -> ModelRequest:
    return ModelRequest(system="be brief", messages=messages or (user_text("go"),), agent=agent, stage=stage)


def ignore(_: LiveEvent) -> None:
    pass


async def test_replies_come_in_order_and_stream_what_they_say() -> None:
    model = ScriptedModel(script('[[replies]]\ntext = "one"\n[[replies]]\ntext = "two"'))
    seen: list[LiveEvent] = []

    first = await model.reply(request(), seen.append)
    second = await model.reply(request(), seen.append)

    assert (first.text, second.text) == ("one", "two")
    assert seen == [TextStreamed(text="one"), TextStreamed(text="two")]


async def test_a_call_without_a_reply_left_fails() -> None:
    model = ScriptedModel(script('[[replies]]\ntext = "one"'))
    await model.reply(request(), ignore)

    with pytest.raises(ModelCallFailed, match="no reply left") as caught:
        await model.reply(request(), ignore)

    assert not caught.value.details.retryable


async def test_an_unread_reply_is_an_error_that_names_its_line() -> None:
    model = ScriptedModel(script('[[replies]]\ntext = "one"\n\n[[replies]]\ntext = "two"'))
    await model.reply(request(), ignore)

    with pytest.raises(ProviderError, match=r"script\.toml:4"):
        model.check_all_read()


async def test_stages_and_agents_get_their_own_replies() -> None:
    model = ScriptedModel(
        script(
            '[[replies]]\nagent = "child"\ntext = "from child"\n'
            '[[replies]]\nstage = "build"\ntext = "from build"\n'
            '[[replies]]\nstage = "plan"\ntext = "from plan"\n'
        )
    )

    plan = await model.reply(request(agent="parent", stage="plan"), ignore)
    child = await model.reply(request(agent="child", stage="plan"), ignore)
    build = await model.reply(request(agent="parent", stage="build"), ignore)

    assert [plan.text, child.text, build.text] == ["from plan", "from child", "from build"]
    model.check_all_read()


async def test_a_request_that_is_not_as_expected_fails_and_says_why() -> None:
    model = ScriptedModel(script('[[replies]]\nexpect = { task = "stop", offers = ["shell"] }\ntext = "x"'))

    with pytest.raises(ModelCallFailed, match="first message lacks 'stop'; shell is not on offer"):
        await model.reply(request(), ignore)


async def test_what_a_tool_said_can_be_captured_into_text_and_arguments() -> None:
    model = ScriptedModel(
        script(
            "[[replies]]\ncapture = { title = '^# (.+)$' }\ntext = 'It is ${title}.'\n"
            "tool_calls = [{ tool = 'note', arguments = { text = '${title}' } }]"
        )
    )
    result = ToolResult(call_id="c", tool="read_file", outcome="ok", text="x\n# Hello\n")
    call = ToolCall(call_id="c", tool="read_file")
    thread = (user_text("go"), AssistantMessage(parts=(call,)), ToolMessage(result=result))

    reply = await model.reply(request(*thread), ignore)

    assert reply.text == "It is Hello."
    assert reply.tool_calls[0].arguments == {"text": "Hello"}


async def test_a_resumed_run_goes_on_after_the_last_reply_it_got() -> None:
    text = '[[replies]]\nerror = { status = 503 }\n[[replies]]\ntext = "one"\n[[replies]]\ntext = "two"'
    before = ScriptedModel(script(text))
    with pytest.raises(ModelCallFailed):
        await before.reply(request(), ignore)
    first = await before.reply(request(), ignore)
    after = ScriptedModel(script(text))
    after.already_answered([first.response_id])

    second = await after.reply(request(user_text("go"), first, user_text("on")), ignore)

    assert second.text == "two"
    after.check_all_read()


async def test_a_reply_with_times_answers_that_often_with_its_own_call_ids() -> None:
    model = ScriptedModel(script("[[replies]]\ntimes = 2\ntool_calls = [{ tool = 'ls' }]"))

    calls = [(await model.reply(request(), ignore)).tool_calls[0].call_id for _ in range(2)]

    assert len(set(calls)) == 2
    model.check_all_read()


def test_all_mistakes_of_a_script_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        script('[[replies]]\ntexts = "one"\n[[replies]]\ntext = 1\n[[replies]]\ntext = ""\nstop = "soon"')

    told = [(problem.position.line, problem.key) for problem in caught.value.problems]
    assert told == [
        (1, "replies[0].texts"),
        (1, "replies[0]"),
        (3, "replies[1].text"),
        (5, "replies[2].stop"),
    ]
