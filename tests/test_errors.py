import pytest

from agentctl.errors import LimitReached, RunFailed, known_error


def test_a_group_of_known_errors_is_its_first_one() -> None:
    full = RunFailed("The disk is full.")
    group = BaseExceptionGroup("tasks", [BaseExceptionGroup("inner", [full]), RunFailed("again")])

    assert known_error(group) is full


def test_a_group_with_anything_else_in_it_is_a_bug_and_no_sentence() -> None:
    group = BaseExceptionGroup("tasks", [RunFailed("x"), ValueError("y")])

    assert known_error(group) is None


def test_a_limit_says_the_key_the_number_and_the_ceiling() -> None:
    with pytest.raises(LimitReached, match=r"limits\.steps: 11 would pass the ceiling of 10"):
        raise LimitReached("limits.steps", used=11, ceiling=10)
