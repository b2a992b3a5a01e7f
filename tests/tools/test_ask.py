from collections.abc import Awaitable, Callable

import pytest

from agentctl.protocol.questions import Asker, PersonAnswer, PersonQuestion
from agentctl.protocol.tool_names import WAITING_TOOLS
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.tools.ask import ask_user_tools
from agentctl.tools.definition import Tool, ToolOutput

pytestmark = pytest.mark.anyio
Call = Callable[[Tool, JsonObject], Awaitable[ToolOutput]]
Answering = Callable[[PersonAnswer], list[PersonQuestion]]
Told = tuple[str, JsonObject]
TOOLS = {tool.spec.name: tool for tool in ask_user_tools()}
TWO: JsonObject = {"question": "Which?", "options": ["red", "blue"]}
DRAFT: JsonObject = {"document": "draft", "question": "Good?"}


@pytest.mark.parametrize(
    ("name", "arguments", "answer", "told"),
    [
        ("ask_user", {"question": "Why?"}, PersonAnswer(text="so"), ("so", {"answer": "so"})),
        (
            "ask_user_choice",
            TWO,
            PersonAnswer(option="blue"),
            ("blue", {"option": "blue", "answer": "blue", "comment": ""}),
        ),
        (
            "ask_user_choice",
            TWO,
            PersonAnswer(text="green"),
            ("green", {"option": "", "answer": "green", "comment": "green"}),
        ),
        (
            "ask_user_confirm",
            {"question": "Go?"},
            PersonAnswer(option="yes"),
            ("yes", {"confirmed": True, "comment": ""}),
        ),
        (
            "ask_user_confirm",
            {"question": "Go?"},
            PersonAnswer(text="not now"),
            ("no", {"confirmed": False, "comment": ""}),
        ),
        (
            "ask_user_review",
            DRAFT,
            PersonAnswer(option="revise", text="shorter"),
            ("The person wants changes.\nshorter", {"approved": False, "comment": "shorter"}),
        ),
        (
            "ask_user_edit",
            DRAFT,
            PersonAnswer(document="final"),
            ("final", {"document": "final", "changed": True, "comment": ""}),
        ),
    ],
)
async def test_an_answer_reaches_the_model_as_text_and_json(
    call: Call, answering: Answering, name: str, arguments: JsonObject, answer: PersonAnswer, told: Told
) -> None:
    answering(answer)

    output = await call(TOOLS[name], arguments)

    assert (output.text, output.structured) == (told[0], {"answered": True, **told[1]})


@pytest.mark.parametrize("name", sorted(TOOLS))
async def test_no_answer_is_told_and_is_not_an_approval(call: Call, answering: Answering, name: str) -> None:
    answering(PersonAnswer(no_answer="deadline"))
    arguments: dict[str, JsonValue] = {**TWO} if name == "ask_user_choice" else {"question": "Go?"}
    if name in {"ask_user_review", "ask_user_edit"}:
        arguments = {**DRAFT}

    output = await call(TOOLS[name], arguments)

    assert output.structured == {"answered": False, "why": "deadline"}
    assert "No answer came (deadline)" in output.text


async def test_the_question_says_who_asks_and_for_which_call(call: Call, answering: Answering) -> None:
    questions = answering(PersonAnswer(text="so"))

    await call(TOOLS["ask_user"], {"question": "Why?"})

    (asked,) = questions
    assert asked.asker == Asker(run_id="r-1", agent="tester", stage="only")
    assert asked.call_id == "c-1"


def test_all_of_them_wait_for_a_person() -> None:
    assert set(TOOLS) == WAITING_TOOLS
    assert all(tool.waits_for_person for tool in TOOLS.values())
