"""Which action a small model may take next, and how it is asked: pure, without any model."""

import json

import pytest

from agentctl.llm.base import ModelRequest
from agentctl.llm.local_actions import Actions, action_request, allowed_actions, as_reply
from agentctl.protocol.messages import (
    AssistantMessage,
    Message,
    StopReason,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    user_text,
)
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.tools.stage import submit_output_tool, transition_tool

TASK = user_text("Which port?", source="task")


def spec(name: str, *parameters: str) -> ToolSpec:
    properties: JsonObject = {parameter: {"type": "string"} for parameter in parameters}
    required: list[JsonValue] = [*parameters[:1]]
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(name=name, description=f"{name}.", parameters=schema)


LOOKING = (spec("read_file", "path"), spec("list_dir", "path"), spec("grep", "pattern", "path"))
WRITING = (spec("write_file", "path", "content"), spec("shell", "command"))


def call(tool: str, **arguments: JsonValue) -> AssistantMessage:
    return AssistantMessage(
        parts=(ToolCall(call_id="c-1", tool=tool, arguments=arguments),), stop="tool_calls"
    )


def result(tool: str, text: str = "found", structured: JsonValue = None) -> ToolMessage:
    return ToolMessage(
        result=ToolResult(call_id="c-1", tool=tool, outcome="ok", text=text, structured=structured)
    )


LOOKED = (
    call("list_dir", path=".", depth=2),
    result("list_dir", structured={"path": ".", "entries": [{"name": "README.md", "kind": "file"}]}),
)


def actions(*messages: Message, tools: tuple[ToolSpec, ...] = LOOKING, guided: bool = False) -> Actions:
    request = ModelRequest(system="S", messages=(TASK, *messages), tools=tools)
    return allowed_actions(request, guided=guided)


def names(found: Actions) -> list[str]:
    return [tool.name for tool in found.tools] + (["answer"] if found.answer else [])


def test_the_first_reply_to_a_task_is_a_tool_call() -> None:
    assert names(actions()) == ["read_file", "list_dir", "grep"]


def test_after_a_result_the_answer_may_be_given() -> None:
    assert names(actions(*LOOKED))[-1] == "answer"


def test_after_a_repeated_call_only_the_answer_is_left() -> None:
    read = (call("read_file", path="a"), result("read_file"))

    assert names(actions(*read, *read)) == ["answer"]


def test_after_eight_calls_only_the_answer_is_left() -> None:
    many = [one for number in range(8) for one in (call("read_file", path=str(number)), result("read_file"))]

    assert names(actions(*many)) == ["answer"]


def test_a_new_task_begins_anew_and_a_nudge_of_the_harness_does_not() -> None:
    nudge = user_text("Go on.", source="harness")

    assert "answer" not in names(actions(*LOOKED, user_text("Another task.")))
    assert "answer" in names(actions(*LOOKED, nudge))


def test_a_stage_with_an_output_ends_by_handing_it_in() -> None:
    submit = submit_output_tool({"type": "object", "properties": {"port": {"type": "integer"}}}).spec

    assert names(actions(tools=(*LOOKING, submit))) == ["read_file", "list_dir", "grep"]
    assert names(actions(*LOOKED, tools=(*LOOKING, submit))) == [
        "read_file", "list_dir", "grep", "submit_output"
    ]  # fmt: skip


def test_one_way_out_is_taken_by_answering_and_several_by_the_transition_tool() -> None:
    one = transition_tool({"next": "go on"}).spec
    two = transition_tool({"next": "go on", "back": ""}).spec

    assert "transition" not in names(actions(*LOOKED, tools=(*LOOKING, one)))
    assert "transition" in names(actions(*LOOKED, tools=(*LOOKING, two)))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("none", ["answer"]), ("required", ["read_file", "list_dir", "grep"]), ("grep", ["grep"])],
)
def test_the_callers_tool_choice_is_kept(choice: str, expected: list[str]) -> None:
    request = ModelRequest(system="S", messages=(TASK, *LOOKED), tools=LOOKING, tool_choice=choice)

    assert names(allowed_actions(request, guided=False)) == expected


def test_the_default_model_is_offered_nothing_that_writes() -> None:
    found = actions(tools=(*LOOKING, *WRITING), guided=True)

    assert [tool.name for tool in found.shown] == ["read_file", "list_dir", "grep"]


def test_the_default_model_begins_by_looking_around() -> None:
    found = actions(guided=True)

    assert names(found) == ["list_dir"]
    assert found.tools[0].parameters["properties"] == {"path": {"const": "."}, "depth": {"const": 2}}


def test_the_default_model_reads_before_it_answers_and_only_what_it_saw() -> None:
    found = actions(*LOOKED, guided=True)

    assert names(found) == ["read_file", "grep"]
    properties = found.tools[0].parameters["properties"]
    assert isinstance(properties, dict)
    assert isinstance(properties["path"], dict)
    assert properties["path"]["enum"] == ["README.md"]


def test_a_search_that_found_nothing_is_followed_by_reading() -> None:
    nothing = (
        call("grep", pattern="x"),
        result("grep", structured={"path": ".", "matches": [], "files_searched": 3}),
    )

    assert names(actions(*LOOKED, *nothing, guided=True)) == ["read_file"]


def test_the_request_holds_the_schema_of_the_allowed_actions_and_every_string_is_bounded() -> None:
    request = ModelRequest(system="S", messages=(TASK, *LOOKED), tools=LOOKING)
    found = allowed_actions(request, guided=False)

    asked = action_request(request, found, guided=False)

    assert asked.tools == ()
    assert asked.temperature == 0.0
    assert isinstance(asked.output_schema, dict)
    choices = asked.output_schema["anyOf"]
    assert isinstance(choices, list)
    assert len(choices) == 4
    assert json.dumps(choices).count('"maxLength"') == json.dumps(choices).count('"type": "string"')


def test_the_prompt_stays_the_same_over_the_steps_so_that_its_cache_holds() -> None:
    prompts = set()
    for messages in ((TASK,), (TASK, *LOOKED)):
        request = ModelRequest(system="S", messages=messages, tools=LOOKING)
        found = allowed_actions(request, guided=True)
        prompts.add(action_request(request, found, guided=True).system)

    assert len(prompts) == 1


def test_the_thread_is_shown_as_actions_and_results_with_sides_alternating() -> None:
    request = ModelRequest(system="S", messages=(TASK, *LOOKED), tools=LOOKING)

    shown = action_request(request, allowed_actions(request, guided=False), guided=False).messages

    assert [type(message).__name__ for message in shown] == [
        "UserMessage", "AssistantMessage", "UserMessage"
    ]  # fmt: skip
    said = shown[1]
    assert isinstance(said, AssistantMessage)
    assert json.loads(said.text) == {"tool": "list_dir", "arguments": {"path": ".", "depth": 2}}


def test_a_long_result_is_cut_for_the_model() -> None:
    long = (call("read_file", path="a"), result("read_file", "x" * 50_000))
    request = ModelRequest(system="S", messages=(TASK, *long), tools=LOOKING)

    shown = action_request(request, allowed_actions(request, guided=False), guided=False).messages

    assert sum(len(str(message)) for message in shown) < 4000
    assert "characters left out" in str(shown[-1])


def written(text: str, stop: StopReason = "end") -> AssistantMessage:
    return as_reply(
        AssistantMessage(parts=(TextPart(text=text),), stop="length" if stop == "length" else "end"),
        model="m",
    )


def test_an_action_becomes_a_tool_call_or_text() -> None:
    called = written('{"tool": "grep", "arguments": {"pattern": "x"}}')
    answered = written('{"final_answer": "8417"}')

    assert [(one.tool, one.arguments) for one in called.tool_calls] == [("grep", {"pattern": "x"})]
    assert called.stop == "tool_calls"
    assert (answered.text, answered.stop) == ("8417", "end")


@pytest.mark.parametrize("text", ["plain talk", '{"tool": 1}', "[]", '{"final_answer": 3}'])
def test_what_is_no_action_stays_text(text: str) -> None:
    assert written(text).text == text


def test_an_action_cut_by_length_is_never_a_call() -> None:
    cut = written('{"tool": "grep", "arguments": {}}', "length")

    assert cut.stop == "length"
    assert cut.tool_calls == ()
