"""docs/sandbox.md says what is there."""

from dataclasses import fields
from pathlib import Path

from agentctl.executor.background import LOG_KEEP_BYTES
from agentctl.executor.commands import GRACE_S, SPILL_CAP_BYTES
from agentctl.executor.prepare import MAX_TIMEOUT_S
from agentctl.executor.process_types import CommandRequest
from agentctl.executor.sandbox_places import PRIVATE_PLACES
from agentctl.executor.sandbox_policy import OnUnavailable, SandboxKind, SandboxPolicy
from tests.executor.sandbox_inside import attempts

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text("utf-8")


def test_every_setting_and_every_value_is_on_the_page() -> None:
    for field in fields(SandboxPolicy):
        assert f"{field.name} = " in PAGE
    for value in (*SandboxKind, *OnUnavailable):
        assert value.value in PAGE


def test_the_numbers_on_the_page_are_the_ones_in_force() -> None:
    assert MAX_TIMEOUT_S == 3600
    assert "3,600 s" in PAGE
    assert CommandRequest.__dataclass_fields__["timeout_s"].default == 120
    assert "120 s" in PAGE
    assert SPILL_CAP_BYTES == 1 << 30
    assert "1 GiB a\n" in PAGE
    assert LOG_KEEP_BYTES == 32 << 20
    assert "32 MiB" in PAGE
    assert GRACE_S == 0.5
    assert "half a second" in PAGE
    for place in PRIVATE_PLACES:
        assert f"--tmpfs {place}" in PAGE


def test_the_attempts_are_as_many_as_the_page_says() -> None:
    known = {"outside": "", "home": "", "pid": "1", "tcp": "1", "udp": "1", "abstract": "", "socket": ""}

    assert f"makes {len(attempts(known))} attempts" in PAGE
