import json
from typing import get_args

import pytest

from agentctl.errors import Position
from agentctl.protocol import events
from agentctl.protocol.codec import Malformed, UnknownType, decode, encode
from agentctl.protocol.decisions import Decision, Judgement, Say, Verdict
from agentctl.protocol.effects import RunProgram
from agentctl.protocol.events import CallCompleted, Event, MessageAdded, ToolCallDecided
from agentctl.protocol.messages import (
    AssistantMessage,
    ImagePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)


def round_trip(event: Event) -> Event:
    read: Event = decode(Event, json.loads(json.dumps(encode(event))))
    return read


def test_a_message_with_every_part_comes_back_equal() -> None:
    message = AssistantMessage(
        parts=(
            TextPart(text="a"),
            ReasoningPart(text="hm", opaque={"signature": "x", "n": [1, None, {"a": 1.5}]}),
            ToolCall(call_id="c", tool="t", arguments={"a": [1, True, None]}),
        ),
        stop="tool_calls",
        usage=Usage(input_tokens=3, cost_usd=0.5),
        model="p:m",
    )

    assert round_trip(MessageAdded(message=message, step=2)) == MessageAdded(message=message, step=2)


def test_a_decision_comes_back_with_its_trace() -> None:
    position = Position(file="policy.toml", line=3, column=1)
    say = Say(layer="user", verdict=Verdict.DENY, rule="shell(rm *)", position=position)
    judgement = Judgement(
        entry="shell",
        effect=RunProgram(argv=("rm", "x"), via=("sudo",)),
        verdict=Verdict.DENY,
        rule="shell(rm *)",
        layer="user",
        position=position,
        says=(say,),
    )
    decision = Decision(
        verdict=Verdict.DENY,
        reason="no",
        rule="shell(rm *)",
        layer="user",
        position=position,
        judgements=(judgement,),
    )
    event = ToolCallDecided(call_id="c", tool="shell", arguments={}, decision=decision)

    assert round_trip(event) == event


def test_a_result_with_images_comes_back_equal() -> None:
    image = ImagePart(media_type="image/png", data="AA==")
    result = ToolResult(
        call_id="c", tool="t", outcome="ok", text="x", structured={"a": None}, images=(image,)
    )
    event = CallCompleted(call_id="c", result=result, elapsed_s=1.0)

    assert round_trip(event) == event


def test_a_field_that_equals_its_default_is_not_written() -> None:
    assert encode(TextPart(text="a")) == {"type": "TextPart", "text": "a"}
    assert encode(Usage()) == {"type": "Usage"}


def test_an_unknown_event_says_its_name() -> None:
    with pytest.raises(UnknownType, match="FromTheFuture"):
        decode(Event, {"type": "FromTheFuture"})


def test_a_field_from_a_newer_version_is_ignored() -> None:
    read = decode(Event, {"type": "Noted", "level": "info", "text": "x", "colour": "red"})

    assert read == events.Noted(level="info", text="x")


@pytest.mark.parametrize(
    "record",
    [
        {"type": "Noted", "level": "loud", "text": "x"},
        {"type": "Noted", "level": "info"},
        {"type": "Noted", "level": "info", "text": 3},
        {"type": "StageEntered", "stage": "a", "index": True, "visit": 1, "model": "m"},
    ],
)
def test_a_record_of_the_wrong_shape_is_malformed(record: dict[str, object]) -> None:
    with pytest.raises(Malformed):
        decode(Event, record)  # type: ignore[arg-type]


def test_every_event_has_a_name_of_its_own() -> None:
    names = [member.__name__ for member in get_args(Event)]

    assert len(names) == len(set(names))
