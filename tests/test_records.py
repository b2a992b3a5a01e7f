"""Our `dataclass` gives what the standard one gives; only the price of making the class differs."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from typing import get_type_hints

import pytest

from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """One of each kind of field."""

    name: str
    count: int = 0
    items: list[int] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """The same, by the standard decorator."""

    name: str
    count: int = 0
    items: list[int] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Runs code after it was made."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("negative")


@dataclass(slots=True)
class Other:
    """A form that goes to the standard decorator."""

    value: int = 1


def test_an_instance_shows_itself_as_the_standard_one_does() -> None:
    assert repr(Ours(name="a", items=[1])) == repr(Theirs(name="a", items=[1])).replace("Theirs", "Ours")


def test_instances_are_equal_by_the_fields_that_count() -> None:
    assert Ours(name="a", seen={"x": 1}) == Ours(name="a")
    assert Ours(name="a") != Ours(name="b")
    assert Ours(name="a") != Theirs(name="a")


def test_an_instance_with_hashable_fields_is_hashable() -> None:
    assert hash(Checked(size=1)) == hash(Checked(size=1))
    with pytest.raises(TypeError):
        hash(Ours(name="a"))


def test_defaults_from_a_factory_are_not_shared() -> None:
    assert Ours(name="a").items is not Ours(name="a").items


def test_nothing_can_be_set_or_deleted() -> None:
    one = Ours(name="a")

    with pytest.raises(FrozenInstanceError):
        one.name = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del one.name
    with pytest.raises((AttributeError, TypeError)):
        one.colour = "red"  # type: ignore[attr-defined]
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize("wrong", [{}, {"nme": "a"}, {"name": "a", "extra": 1}])
def test_wrong_arguments_are_a_type_error_at_the_first_and_at_later_instances(
    wrong: dict[str, object],
) -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            Ours(**wrong)  # type: ignore[arg-type]


def test_positional_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        Ours("a")  # type: ignore[misc]


def test_code_after_the_making_runs() -> None:
    with pytest.raises(ValueError, match="negative"):
        Checked(size=-1)


def test_the_standard_functions_know_it() -> None:
    one = Ours(name="a", items=[1])

    assert is_dataclass(Ours)
    assert [item.name for item in fields(Ours)] == [item.name for item in fields(Theirs)]
    assert replace(one, count=2) == Ours(name="a", count=2, items=[1])
    assert dataclasses.asdict(one) == dataclasses.asdict(Theirs(name="a", items=[1]))
    assert get_type_hints(Ours) == get_type_hints(Theirs)


def test_copies_and_pickles_come_back_equal() -> None:
    one = Ours(name="a", items=[1], seen={"x": 2})

    assert copy.deepcopy(one) == one
    back = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own bytes
    assert (back, back.seen) == (one, {"x": 2})


def test_other_forms_go_to_the_standard_decorator() -> None:
    other = Other()
    other.value = 2

    assert other == Other(2)
