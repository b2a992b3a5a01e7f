"""Arguments and characters as services send them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.llm.assemble import PartList, read_arguments, without_half_characters
from agentctl.protocol.events import LiveEvent, ReasoningStreamed, TextStreamed
from agentctl.protocol.messages import TextPart


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("  ", {}),
        ("null", {}),
        ('{"a":1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"text":"two\nlines"}', {"text": "two\nlines"}),
        ('{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a":"\\ud83d"}', {"a": "\ufffd"}),
        ('{"n":123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
    ],
)
def test_what_can_be_read_as_an_object_is(text: str, expected: dict[str, object]) -> None:
    assert read_arguments(text) == (expected, "")


@pytest.mark.parametrize(
    "text",
    [
        '{"a":',
        "[1]",
        "3",
        '"text"',
        '{"a":1}{"b":2}',
        '{"a":NaN}',
        '{"a":' * 100_000,
        '{"n":' + "9" * 5000 + "}",
        "{'a': 1}",
    ],
)
def test_what_cannot_stays_as_it_came(text: str) -> None:
    assert read_arguments(text) == ({}, text)


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet=st.characters(codec="utf-16"), max_size=30), data=st.data())
def test_characters_split_into_surrogate_halves_are_joined(text: str, data: st.DataObject) -> None:
    halves = text.encode("utf-16-le").decode("utf-16-le", "surrogatepass")
    units = [
        unit
        for character in halves
        for unit in (
            [character]
            if ord(character) < 0x10000
            else [
                chr(0xD800 + ((ord(character) - 0x10000) >> 10)),
                chr(0xDC00 + ((ord(character) - 0x10000) & 0x3FF)),
            ]
        )
    ]
    seen: list[LiveEvent] = []
    parts = PartList(seen.append)
    for unit in units:
        if data.draw(st.booleans()):
            parts.text("")
        parts.text(unit)

    streamed = "".join(one.text for one in seen if isinstance(one, TextStreamed | ReasoningStreamed))
    found = "".join(part.text for part in parts.parts(str) if isinstance(part, TextPart))
    assert streamed == found == text


@given(st.text(alphabet=st.characters(), max_size=20))
def test_any_text_can_be_encoded_afterwards(text: str) -> None:
    without_half_characters(text).encode()
