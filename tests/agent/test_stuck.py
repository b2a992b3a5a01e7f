from agentctl.agent.stuck import is_stuck
from agentctl.protocol.messages import AssistantMessage, Message, ToolCall, ToolMessage, ToolResult, user_text


def step(tool: str, text: str = "same", **arguments: str) -> list[Message]:
    call = ToolCall(call_id=f"{tool}-{text}-{arguments}", tool=tool, arguments=dict(arguments))
    result = ToolResult(call_id=call.call_id, tool=tool, outcome="ok", text=text)
    return [AssistantMessage(parts=(call,)), ToolMessage(result=result)]


def test_the_same_call_with_the_same_result_three_times_in_a_row_is_stuck() -> None:
    assert is_stuck([user_text("do it"), *step("grep") * 3])


def test_twice_is_not_stuck() -> None:
    assert not is_stuck([user_text("do it"), *step("grep") * 2])


def test_the_same_call_with_another_result_is_progress() -> None:
    assert not is_stuck([*step("shell", "1"), *step("shell", "2"), *step("shell", "3")])


def test_a_cycle_of_two_that_comes_round_three_times_is_stuck() -> None:
    assert is_stuck([*step("grep"), *step("read_file")] * 3)


def test_a_cycle_of_four_that_comes_round_three_times_is_stuck() -> None:
    once = [*step("a"), *step("b"), *step("c"), *step("d")]

    assert is_stuck(once * 3)
    assert not is_stuck(once * 2)


def test_an_answer_in_between_starts_the_count_again() -> None:
    answer = AssistantMessage(parts=())

    assert not is_stuck([*step("grep") * 2, answer, *step("grep")])
