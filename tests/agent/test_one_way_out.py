"""A step that would leave its stage twice leaves it once, and says so."""

from pathlib import Path

import pytest

from agentctl.testing.play import Turn, play

pytestmark = pytest.mark.anyio
BLUEPRINT = """
[agent]
name = "walker"
entry_stage = "a"
[model]
use = ["scripted:"]
[stages.a]
prompt = "A."
transitions = { b = { hint = "to b" }, c = { hint = "to c" } }
[stages.b]
prompt = "B."
[stages.c]
prompt = "C."
"""


async def test_the_first_transition_of_a_step_is_taken_and_the_next_is_told_that_it_is_not(
    tmp_path: Path,
) -> None:
    file = tmp_path / "walker.toml"
    file.write_text(BLUEPRINT)
    both = [{"tool": "transition", "arguments": {"to": to}} for to in ("b", "c")]
    turn = Turn(text="go", replies=[{"tool_calls": both}, {"stage": "b", "text": "here"}])

    played = await play(file, [turn], workdir=tmp_path)

    assert played.answer == "here"
    assert [(result.outcome, result.text) for result in played.results] == [
        ("ok", "Going to stage b."),
        ("failed", "Not done: this step goes to stage b already."),
    ]


async def test_a_transition_that_was_refused_leaves_the_way_to_the_next(tmp_path: Path) -> None:
    file = tmp_path / "walker.toml"
    file.write_text(BLUEPRINT)
    both = [{"tool": "transition", "arguments": {"to": to}} for to in ("nowhere", "c")]
    turn = Turn(text="go", replies=[{"tool_calls": both}, {"stage": "c", "text": "here"}])

    played = await play(file, [turn], workdir=tmp_path)

    assert [result.outcome for result in played.results] == ["failed", "ok"]
