"""How tool results are cut, and where the rest is kept."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.state.backends.memory import MemoryBackend
from agentctl.state.cut import Cut, cut_and_stash, cut_text, stash_key
from agentctl.state.shared_backend import StoreUnreadable, Write, Written
from agentctl.state.shared_state import SharedState

ROOMY = 10**9


def numbered(count: int, first: int = 1) -> str:
    return "\n".join(f"line {number}" for number in range(first, first + count))


def test_a_long_text_keeps_its_head_and_tail_around_a_count() -> None:
    cut = cut_text(numbered(100), max_lines=10, max_bytes=ROOMY)

    assert cut == Cut(
        text="line 1\nline 2\nline 3\n\n[... 93 lines truncated ...]\n\nline 97\nline 98\nline 99\nline 100",
        marked=True,
    )


def test_the_cap_is_met_exactly_and_a_second_cut_changes_nothing() -> None:
    cut = cut_text(numbered(1000), max_lines=50, max_bytes=ROOMY)

    assert cut.text.count("\n") + 1 == 50
    assert "[... 953 lines truncated ...]" in cut.text
    assert cut_text(cut.text, max_lines=50, max_bytes=ROOMY) == Cut(text=cut.text)


@pytest.mark.parametrize("count", range(5))
def test_too_few_lines_for_a_marker_are_just_the_first_ones(count: int) -> None:
    cut = cut_text(numbered(100), max_lines=count, max_bytes=ROOMY)

    assert cut == Cut(text=numbered(count) if count else "")


def test_what_fits_is_left_alone_to_the_last_character() -> None:
    for text in (numbered(100), numbered(99) + "\r\n", "", "x" * 10_000):
        assert cut_text(text, max_lines=100, max_bytes=ROOMY) == Cut(text=text)
    assert cut_text(numbered(100), max_lines=5, max_bytes=ROOMY).text == (
        "line 1\n\n[... 98 lines truncated ...]\n\nline 100"
    )


def test_a_cut_text_has_plain_line_feeds_and_no_last_one() -> None:
    cut = cut_text(numbered(100).replace("\n", "\r\n") + "\r\n", max_lines=10, max_bytes=ROOMY)

    assert "\r" not in cut.text
    assert cut.text.endswith("line 100")
    assert "93 lines" in cut.text


def test_bytes_are_capped_too_and_the_marker_states_both_numbers() -> None:
    one_line = cut_text("€" * 5000, max_lines=200, max_bytes=300)
    many = cut_text(numbered(1000), max_lines=200, max_bytes=300)

    assert len(one_line.text.encode()) <= 300
    assert "0 lines, " in one_line.text
    assert "bytes truncated" in one_line.text
    assert one_line.text.startswith("€")
    assert one_line.text.endswith("€")
    assert len(many.text.encode()) <= 300
    assert many.text.startswith("line 1\n")
    assert many.text.endswith("line 1000")


def test_bytes_too_few_for_a_marker_are_just_the_first_ones() -> None:
    assert cut_text("€" * 100, max_lines=200, max_bytes=10) == Cut(text="€€€")


@given(st.text(max_size=400), st.integers(0, 30), st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_a_cut_keeps_both_bounds_breaks_no_character_and_is_stable(
    text: str, max_lines: int, max_bytes: int
) -> None:
    cut = cut_text(text, max_lines=max_lines, max_bytes=max_bytes)

    assert len(cut.text.encode("utf-8", "surrogatepass")) <= max_bytes
    assert len(cut.text.removesuffix("\n").replace("\r\n", "\n").split("\n")) <= max(max_lines, 1)
    assert "\ufffd" not in cut.text or "\ufffd" in text
    assert cut_text(cut.text, max_lines=max_lines, max_bytes=max_bytes).text == cut.text


@pytest.mark.parametrize(
    ("call_id", "text", "key"),
    [
        ("tc-1", "output", "tool-out-tc-1-150f53f8651b4384"),
        ("google-fc-0", "turn one output", "tool-out-google-fc-0-27c544afcf4bf573"),
        ("google-fc-0", "turn five output", "tool-out-google-fc-0-a9c5d663e572172b"),
        ("t", "", "tool-out-t-cbf29ce484222325"),
    ],
)
def test_a_stash_is_named_by_its_call_and_its_content(call_id: str, text: str, key: str) -> None:
    assert stash_key(call_id, text) == key


@pytest.mark.anyio
async def test_what_was_cut_can_be_read_back_under_the_key_in_the_marker() -> None:
    store = SharedState()
    worker = store.scoped("worker-1")
    text = numbered(500)

    stashed = await cut_and_stash(text, "tc-1", bounds=(20, ROOMY), store=worker)

    assert stashed.key.endswith("-b0")
    assert f'[... 483 lines truncated — full output: shared_state get "{stashed.key}" ...]' in stashed.text
    assert await worker.get(stashed.key) == text
    assert await store.keys() == [f"worker-1/{stashed.key}"]
    again = await cut_and_stash(stashed.text, "tc-2", bounds=(20, ROOMY), store=worker)
    assert again.text == stashed.text


@pytest.mark.anyio
async def test_a_marker_in_the_output_itself_is_left_alone() -> None:
    text = "[... 42 lines truncated ...]\n" + numbered(100)

    stashed = await cut_and_stash(text, "tc-1", bounds=(20, ROOMY), store=SharedState())

    assert stashed.text.startswith("[... 42 lines truncated ...]\n")
    assert stashed.text.count(stashed.key) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("lines", [1, 4])
async def test_nothing_is_stashed_where_no_marker_would_name_it(lines: int) -> None:
    store = SharedState()

    assert (await cut_and_stash(numbered(100), "c", bounds=(lines, ROOMY), store=store)).key == ""
    assert (await cut_and_stash(numbered(3), "c", bounds=(20, ROOMY), store=store)).key == ""
    assert await store.keys() == []


class Refusing(MemoryBackend):
    async def write(self, write: Write) -> Written:
        raise StoreUnreadable("no")


@pytest.mark.anyio
async def test_without_a_store_or_with_one_that_fails_the_marker_names_no_key() -> None:
    plain = cut_text(numbered(100), max_lines=20, max_bytes=ROOMY).text

    none = await cut_and_stash(numbered(100), "c", bounds=(20, ROOMY), store=None)
    failing = await cut_and_stash(
        numbered(100), "c", bounds=(20, ROOMY), store=SharedState(backend=Refusing())
    )
    small = await cut_and_stash(numbered(100), "c", bounds=(20, ROOMY), store=SharedState(10))

    assert [none.text, failing.text, small.text] == [plain] * 3
    assert none.warning == ""
    assert "no" in failing.warning
    assert "capacity" in small.warning
