"""What each layer may say, and which of them wins."""

from agentctl.errors import Position
from agentctl.policy.decide import decide
from agentctl.policy.layers import Layers
from agentctl.policy.paths import Place
from agentctl.policy.rules import ToolNames, parse_permissions
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.effects import RunProgram

NAMES = ToolNames(known=frozenset({"shell", "write_file"}), aliases={"bash": "shell"})


def test_one_denied_part_denies_the_whole_line() -> None:
    rules = parse_permissions(
        {"shell": {"default": "allow", "deny": ["git push *"]}},
        names=NAMES,
        locate=lambda _: Position(file="policy.toml"),
    )
    layers = Layers(built_in=rules, place=Place(workdir="/repo", home="/home/u"))

    decision = decide("shell", (RunProgram(argv=("ls",)), RunProgram(argv=("git", "push"))), layers)

    assert decision.verdict is Verdict.DENY
    assert decision.rule == "shell(git push *)"
