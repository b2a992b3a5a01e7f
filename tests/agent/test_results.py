from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.agent.results import cut


def test_text_within_the_bounds_stays_as_it_is() -> None:
    assert cut("a\nb\n", 2, 100) == "a\nb\n"


def test_head_and_tail_stay_and_the_line_between_counts_what_is_missing() -> None:
    text = "".join(f"line {n}\n" for n in range(100))

    shown = cut(text, 9, 10_000)

    assert shown.startswith("line 0\n")
    assert shown.endswith("line 99\n")
    assert "[… 91 lines, " in shown


def test_one_long_line_is_cut_inside() -> None:
    shown = cut("x" * 100_000, 400, 1000)

    assert len(shown) < 1200
    assert shown.startswith("xxx")
    assert shown.endswith("xxx")


@settings(max_examples=200, deadline=None)
@given(text=st.text(), lines=st.integers(3, 50), size=st.integers(30, 500))
def test_a_cut_text_never_holds_half_a_character_and_stays_near_its_bound(
    text: str, lines: int, size: int
) -> None:
    shown = cut(text, lines, size)

    shown.encode("utf-8", "surrogatepass")
    assert shown == text or len(shown.encode("utf-8", "surrogatepass")) <= size + 120
