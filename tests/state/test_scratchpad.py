"""One value a type, atomic updates, saved with the run."""

import copy
import threading
from dataclasses import dataclass, field

import pytest

from agentctl.state.scratchpad import Scratchpad, ScratchpadBusy


@dataclass
class Count:
    n: int = 0


@dataclass
class Names:
    seen: list[str] = field(default_factory=list)


class Opaque:
    pass


def bump(count: Count) -> int:
    count.n += 1
    return count.n


def test_update_starts_from_the_types_own_default_and_returns_what_the_function_returns() -> None:
    pad = Scratchpad()

    assert [pad.update(Count, bump), pad.update(Count, bump)] == [1, 2]
    assert pad.get(Count) == Count(2)
    assert pad.remove(Count) == Count(2)
    assert pad.get(Count) is None


def test_insert_returns_the_value_before_and_types_do_not_mix() -> None:
    pad = Scratchpad()

    assert pad.insert(1) is None
    assert pad.insert(2) == 1
    assert not pad.contains(str)
    assert not pad.contains(bool)
    assert pad.contains(int)


def test_handles_that_are_copied_share_the_notes() -> None:
    pad = Scratchpad()
    other = copy.copy(pad)
    pad.insert(7)

    assert other.get(int) == 7


def test_get_gives_a_copy() -> None:
    pad = Scratchpad()
    pad.insert(Names())
    found = pad.get(Names)
    assert found is not None
    found.seen.append("x")

    assert pad.get(Names) == Names()


def test_what_is_done_to_a_value_after_its_insertion_changes_nothing() -> None:
    pad, names = Scratchpad(), Names(["a"])
    pad.insert(names)

    names.seen.append("b")

    assert pad.get(Names) == Names(["a"])


def test_a_function_that_raises_leaves_the_value_as_it_was() -> None:
    def spoil(names: Names) -> None:
        names.seen.append("half")
        raise RuntimeError("no")

    pad = Scratchpad()
    pad.insert(Names(["kept"]))
    with pytest.raises(RuntimeError):
        pad.update(Names, spoil)

    assert pad.get(Names) == Names(["kept"])
    assert pad.update(Count, bump) == 1


def test_use_from_inside_an_update_is_an_error_that_says_so() -> None:
    pad = Scratchpad()

    with pytest.raises(ScratchpadBusy, match="inside the function"):
        pad.update(Count, lambda count: pad.get(Names))
    assert pad.get(Count) is None
    assert pad.get(Names) is None


def test_no_update_is_lost_between_threads() -> None:
    pad = Scratchpad()

    def many() -> None:
        for _ in range(200):
            pad.update(Count, bump)

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert pad.get(Count) == Count(1600)


def test_dataclasses_of_json_types_are_saved_and_read_back_when_asked_for() -> None:
    pad = Scratchpad()
    pad.insert(Names(["a"]))
    pad.insert(Opaque())
    pad.insert(5)
    resumed = Scratchpad()
    resumed.restore(pad.dump())

    assert list(resumed.dump()) == [f"{__name__}:Names"]
    assert resumed.contains(Names)
    assert resumed.update(Names, lambda names: names.seen) == ["a"]
    assert resumed.get(Opaque) is None
    assert resumed.get(int) is None


def test_a_type_that_changed_since_starts_over() -> None:
    pad = Scratchpad()
    pad.restore({f"{__name__}:Count": {"n": "not a number"}})

    assert pad.update(Count, bump) == 1


def test_two_runs_share_nothing() -> None:
    one, two = Scratchpad(), Scratchpad()
    one.insert(1)

    assert not two.contains(int)
