"""The facts of the original about writes, places, blueprints and environments; `DIFFERENT` as next door."""

import importlib.util
import json
import re
from pathlib import Path
from typing import TypeAlias

import pytest

from agentctl.blueprint.load import parse_blueprint
from agentctl.errors import InvalidInput
from agentctl.executor.environment import credential_shaped
from agentctl.policy.containment import refused_place
from agentctl.policy.decide import decide
from agentctl.policy.defaults import BuiltInPolicy
from agentctl.policy.layers import Layers
from agentctl.policy.paths import Place
from agentctl.policy.refusals import call_too_large, disk_floor, run_too_large
from agentctl.policy.rules import parse_permissions
from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.effects import OpaqueCommand, SpawnAgent, WritePath
from agentctl.toml.read import parse

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "policy.md"
SHARED = Path(__file__).resolve().parents[3] / "shared"
Vector: TypeAlias = dict[str, object]

NUL = "only the null device of this system is one; `NUL` is a file of that name"
READ_WHOLE = "backticks are read, so the line is known to write nothing"
PREFIXES = "a read path is a folder or a file with all in it: no prefixes, no patterns"
ONE_SWITCH = "only the user grants read paths; a switch that takes the blueprint's word does not exist"
GROWTH = "an edit is counted by what it adds to the file, and what was written is measured afterwards"
NOT_HERE = "regions, gates, transforms, routing and per-tool overrides do not exist here"
NO_IMAGES = "the sandbox runs no containers: no images, engines or mounts, and one ordering of kinds"
SANDBOX_ON = "a sandbox is on by default where the system has one, without network"
NARROWS = "a blueprint's read, write and network only narrow what the user's sandbox gives"
NO_TAINT = "there is no taint tracking"
NO_MODES = "there is one environment: what looks like a credential is withheld, `[environment] pass` adds"
NO_DOTENV = "no .env file is read"
NEVER_SHOWN = "keys and headers are shown nowhere, so nothing is cut"
WORDS = "an approval is answered by a word (once, stage, run, always, no), not by a position"
OWN_LABELS = "the prompt shows every key it would remember, one a line"
UNATTENDED = "nobody answers for a person: the tool is not offered, and a call of it gets no answer"
POSIX = "command lines are bash's; cmd.exe is not supported"
CATALOGUE = "an agent is spawned only from what stood at its path, byte for byte, when the run started"

DIFFERENT: dict[str, str] = {
    **dict.fromkeys(["TS-108", "TS-116"], NUL),
    **dict.fromkeys(["TS-101"], READ_WHOLE),
    **dict.fromkeys(
        [f"TS-{n}" for n in (386, 387, 388, 389, 390, 392, *range(393, 395), *range(398, 408))], PREFIXES
    ),
    **dict.fromkeys(["TS-413"], ONE_SWITCH),
    **dict.fromkeys(["TS-304", "TS-307", "TS-308"], GROWTH),
    **dict.fromkeys([f"TS-{n}" for n in (373, 374, 375, 376, 377, 379, 380, 381, 382)], NO_IMAGES),
    **dict.fromkeys(["TS-383"], SANDBOX_ON),
    **dict.fromkeys(["TS-378"], NARROWS),
    **dict.fromkeys([f"TS-{n}" for n in range(415, 426)], NO_TAINT),
    **dict.fromkeys([f"TS-{n}" for n in range(428, 434)], NO_MODES),
    **dict.fromkeys(["TS-434", "TS-435"], NO_DOTENV),
    **dict.fromkeys([f"TS-{n}" for n in range(436, 441)], NEVER_SHOWN),
    **dict.fromkeys([f"TS-{n}" for n in range(353, 358)], WORDS),
    **dict.fromkeys([f"TS-{n}" for n in range(358, 362)], OWN_LABELS),
    **dict.fromkeys(["TS-364", "TS-365"], UNATTENDED),
    **dict.fromkeys(["TS-081", "TS-082", "TS-083"], POSIX),
    **dict.fromkeys(["TS-369", "TS-370", "TS-371", "TS-372"], CATALOGUE),
    **dict.fromkeys([f"TS-{n}" for n in (*range(444, 451), 454, 455, 462, 463)], NOT_HERE),
    **dict.fromkeys([f"TS-{n}" for n in range(467, 476)], NOT_HERE),
}

MANIFESTS = {
    "TS-441": "",
    "TS-442": '[[hooks]]\nname = "h"\ncommand = ["x"]\nevents = ["on_stage_entry"]',
    "TS-443": '[stages.s.transitions.s]\ncondition = "whenever_i_feel_like_it"',
    "TS-451": '[[stages.s.interaction_points]]\nname = "p"\nprompt = "?"\nunattended = "always"',
    "TS-452": "[safe_commands]\nshell = [1]",
    "TS-453": '[stages.s.fan_out]\nworker = "s"\nmax_workers = -1',
    "TS-456": '[stages.t]\nmode = "outupt"',
    "TS-457": "[tool_permissions]\nbash = true",
    "TS-458": '[tool_permissions]\nshell = "denied"',
    "TS-459": '[sandbox]\nkind = "vm"',
    "TS-460": '[sandbox]\non_unavailable = "explode"',
    "TS-461": '[stages.s.fan_out]\nworker = "s"\non_failure = "explode"',
    "TS-464": "[stages.t]\ntotally_made_up_key = 1",
    "TS-465": "[context]\nhidden = 1",
    "TS-466": '[stages.s.transitions.s]\nconditon = "error"',
}
"""What is wrong in each, written in this format."""


def vectors(*areas: str) -> list[Vector]:
    path = SHARED / "vectors" / "tool_state.json"
    if not path.is_file():
        return []
    return [vector for vector in json.loads(path.read_text("utf-8")) if vector["area"] in areas]


def each(*areas: str) -> pytest.MarkDecorator:
    found = vectors(*areas)
    return pytest.mark.parametrize("vector", found, ids=[str(vector["id"]) for vector in found])


def agrees(vector: Vector, *, same: bool) -> None:
    assert same is not (str(vector["id"]) in DIFFERENT), vector


def writes_of(line: str) -> tuple[list[str], bool]:
    effects = analyse(line, cwd="/w", home="/home/u").effects
    paths = [effect.path for effect in effects if isinstance(effect, WritePath)]
    return paths, any(isinstance(effect, OpaqueCommand) for effect in effects)


@each("writes_a_file")
def test_a_line_that_writes_is_seen_to_or_cannot_be_told(vector: Vector) -> None:
    paths, opaque = writes_of(vector["input"]["command"])

    agrees(vector, same=bool(paths or opaque) is vector["expected"])


@each("write_target_paths")
def test_what_a_line_writes_is_found_with_its_place(vector: Vector) -> None:
    paths, opaque = writes_of(vector["input"]["command"])
    expected = [path if path.startswith("/") else f"/w/{path}" for path in vector["expected"]]

    agrees(vector, same=paths == expected or (opaque and not expected))


@each("redirect_confinement")
def test_writes_outside_are_refused_whatever_the_rules_say(vector: Vector) -> None:
    given = vector["input"]
    line = given.get("command", "").replace("<abs path inside workdir>", "/w/in.txt")
    effects = analyse(line, cwd="/w", home="/home/u").effects
    resolved = [
        WritePath(path=str(Path(effect.path).resolve()) if ".." in effect.path else effect.path)
        for effect in effects
        if isinstance(effect, WritePath)
    ]

    refused = bool(refused_place("shell", resolved, ("/w",)))

    agrees(vector, same=refused is str(vector["expected"]).startswith("refused"))


@each("subagent_policy")
def test_sub_agent_tools_answer_to_the_policy(vector: Vector, built_in: BuiltInPolicy) -> None:
    given = vector["input"]
    text = "[t]\n" + "\n".join(f'{tool} = "{word}"' for tool, word in given["user_ceiling"].items())
    user = parse_permissions(parse(text.encode(), file="u").table("t"), names=built_in.names)
    layers = Layers(built_in=built_in.rules, user=user, place=Place(workdir="/w", home="/h"))
    effects = (SpawnAgent(agent="x"),) if given["tool"] == "spawn_agent" else ()

    verdict = decide(given["tool"], effects, layers).verdict

    agrees(vector, same=verdict is (Verdict.DENY if vector["expected"] == "[denied]" else Verdict.ALLOW))


@each("write_budget_message")
def test_a_refusal_names_the_figure_and_the_disks_names_no_key(vector: Vector) -> None:
    assert "1,234 bytes" in call_too_large(1234, 10).message
    assert "write_budget.per_run" in run_too_large(5, 1234, 10).message
    assert "write_budget" not in disk_floor(2**30, 5).message
    agrees(vector, same=True)


@each("env_sensitive")
def test_names_that_look_like_credentials_are_withheld(vector: Vector) -> None:
    names = [name for name in vector["input"]["names"] if name != "SSH_AUTH_SOCK"]
    # An agent's socket answers and does not tell, so programs may use it: TS-428 keeps it as well.

    assert {credential_shaped(name) for name in names} == {vector["expected"]}


@each("manifest_validation")
def test_what_is_wrong_in_a_blueprint_is_told(vector: Vector) -> None:
    name = str(vector["id"])
    if name in DIFFERENT:
        assert name not in MANIFESTS
        return
    text = f'[agent]\nname = "a"\n[stages.s]\n{MANIFESTS[name]}\n' if MANIFESTS[name] else "[stages.s]\n"

    with pytest.raises(InvalidInput) as caught:
        parse_blueprint(text.encode(), path=Path("a.toml"), found_by="path")

    assert caught.value.problems[0].key


def test_every_fact_is_tested_listed_or_played_through_elsewhere() -> None:
    spec = importlib.util.spec_from_file_location("next_door", Path(__file__).with_name("test_vectors.py"))
    assert spec is not None
    assert spec.loader is not None
    next_door = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(next_door)
    different = {*DIFFERENT, *next_door.DIFFERENT}

    listed: set[str] = set()
    for first, last in re.findall(r"TS-(\d+)(?:-(\d+))?", DOCUMENT.read_text("utf-8")):
        listed |= {f"TS-{number:03}" for number in range(int(first), int(last or first) + 1)}

    assert listed == different
