"""The facts of the system that seed 003 describes, and where this one differs on purpose.

The differences are listed with their reasons in docs/policy.md; `DIFFERENT` and that list are the same.
"""

import json
from pathlib import Path
from typing import TypeAlias

import pytest

from agentctl.errors import InvalidInput
from agentctl.policy.budgets import Budgets, CallCost, Reservation
from agentctl.policy.ceilings import Ceilings
from agentctl.policy.cover import Lifts, cover
from agentctl.policy.decide import decide
from agentctl.policy.defaults import BuiltInPolicy
from agentctl.policy.grants import GrantBook, propose
from agentctl.policy.layers import Launch, Layers
from agentctl.policy.paths import Place
from agentctl.policy.refusals import Refusal
from agentctl.policy.rules import Rule, RuleSet, parse_permissions
from agentctl.policy.safe_data import safe_list
from agentctl.policy.safe_list import SafeList
from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.decisions import Decision, Grant, Verdict
from agentctl.protocol.effects import Effect, ReadPath, RunProgram, SpawnAgent, WritePath
from agentctl.toml.read import parse
from agentctl.toml.table import EMPTY

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
PLACE = Place(workdir="/w", home="/home/u")
VERDICTS = {verdict.word: verdict for verdict in Verdict}
Vector: TypeAlias = dict[str, object]

WEB = "no web tool ships yet; the list of tools a blueprint may loosen is empty until a read-only one does"
SPAWN = "starting an agent asks by default: it spends money and does what nobody has seen yet"
NO_TOOL = "the tool does not exist here, and what nobody knows asks"
LOOKS = "looking for files is as harmless as reading them, and confined the same way"
LOAD_ERROR = "a misspelled verdict is a load error with its place, never a silent ask"
PATH_KEY = "an approval of a file is remembered by its path; approving one is not approving all"
NO_ENV = "rules about variables do not exist; which ones are inert is built in, and all others ask"
FURTHER = "a user's safe entry covers its words with any further arguments, so options are fine in it"
READ_WHOLE = "backticks are read like any other substitution, so each command inside has its own key"
STDIN = "what an interpreter or xargs runs is not in its words, so it cannot be remembered"
UNPROVEN = "the shell would evaluate what a variable holds, so the line cannot be told"
NO_EFFECT = "setting a variable that nothing else reads does nothing, and nothing asks"
KNOWN_HOME = "$HOME is known, so the path is: what protects it is that start-up files are protected"
FUNCTIONS = "a function could stand for any program, so the line cannot be told"
LOOKED = "a test that only looks asks nobody, so there is nothing to remember"
CD_OUT = "a folder outside the workdir is a person's decision"
ONE_LIST = (
    "there is one list, the user's; a blueprint's request is inert until the user copies what they want"
)
LOAD_SAFE = "an entry that cannot be safe is a load error with its place, not a warning"

DIFFERENT: dict[str, str] = {
    **dict.fromkeys(["TS-009"], NO_EFFECT),
    **dict.fromkeys(["TS-019", "TS-493"], STDIN),
    **dict.fromkeys(["TS-043", "TS-044"], UNPROVEN),
    **dict.fromkeys(["TS-053", "TS-054", "TS-169", "TS-341", "TS-346"], READ_WHOLE),
    **dict.fromkeys(["TS-078"], KNOWN_HOME),
    **dict.fromkeys(["TS-124", "TS-125", "TS-126", "TS-337"], NO_ENV),
    **dict.fromkeys(["TS-129", "TS-130"], FURTHER),
    **dict.fromkeys(["TS-145"], CD_OUT),
    **dict.fromkeys(["TS-194", "TS-251"], SPAWN),
    **dict.fromkeys(["TS-197", "TS-198", "TS-199"], WEB),
    **dict.fromkeys(["TS-218", "TS-276", "TS-277", "TS-279", "TS-280"], LOAD_ERROR),
    **dict.fromkeys([f"TS-{number}" for number in (241, *range(243, 251))], NO_TOOL),
    **dict.fromkeys([f"TS-{number}" for number in (253, 254, 256, 259, *range(261, 266))], NO_TOOL),
    **dict.fromkeys(["TS-270", "TS-271"], LOOKS),
    **dict.fromkeys(["TS-331", "TS-333", "TS-334"], ONE_LIST),
    **dict.fromkeys(["TS-335", "TS-336"], LOAD_SAFE),
    **dict.fromkeys(["TS-348", "TS-351"], PATH_KEY),
    **dict.fromkeys(["TS-500"], LOOKED),
    **dict.fromkeys(["TS-503"], FUNCTIONS),
}
"""Id → why it is so here. The same list stands in docs/policy.md."""


def vectors(*areas: str) -> list[Vector]:
    path = SHARED / "vectors" / "tool_state.json"
    if not path.is_file():
        return []
    return [vector for vector in json.loads(path.read_text("utf-8")) if vector["area"] in areas]


def each(*areas: str) -> pytest.MarkDecorator:
    found = vectors(*areas)
    return pytest.mark.parametrize("vector", found, ids=[str(vector["id"]) for vector in found])


def agrees(vector: Vector, *, same: bool) -> None:
    """Check that the vector holds exactly where it is not listed as different."""
    different = str(vector["id"]) in DIFFERENT
    assert same is not different, f"{vector} is {'the same' if same else 'different'} here"


def rules(built_in: BuiltInPolicy, words: dict[str, str]) -> RuleSet:
    names = built_in.names.plus(tool for tool in words if tool not in built_in.names.aliases)
    text = "[t]\n" + "\n".join(f'"{tool}" = "{word}"' for tool, word in words.items())
    return parse_permissions(parse(text.encode(), file="vector").table("t"), names=names)


def effects_of(tool: str) -> tuple[Effect, ...]:
    return {
        "shell": (RunProgram(argv=("make",)),),
        "write_file": (WritePath(path="/w/a"),),
        "edit_file": (WritePath(path="/w/a"),),
        "read_file": (ReadPath(path="/w/a"),),
        "spawn_agent": (SpawnAgent(agent="x"),),
    }.get(tool, ())


def flag_rules(words: dict[str, str], verdict: str, built_in: BuiltInPolicy) -> tuple[Rule, ...]:
    return tuple(
        Rule(tool=built_in.names.canonical(tool))
        for tool, word in words.items()
        if word == verdict and tool != "*"
    )


@each("resolve_policy")
def test_policies_resolve_as_there(vector: Vector, built_in: BuiltInPolicy) -> None:
    given = vector["input"]
    flags = given["launch"]
    try:
        layers = Layers(
            launch=Launch(
                allow=flag_rules(flags, "allow", built_in),
                ask=flag_rules(flags, "ask", built_in),
                deny=flag_rules(flags, "deny", built_in),
                yolo=flags.get("*") == "allow",
            ),
            stage=rules(built_in, given["stage"]),
            blueprint=rules(built_in, given["blueprint_agent"]),
            user=rules(built_in, given["user_ceiling"]),
            built_in=built_in.rules,
            follows=built_in.follows,
            loosenable=built_in.loosenable,
            allow_blueprint_permissions=given["allow_blueprint_permissions"],
            place=PLACE,
        )
    except InvalidInput:
        agrees(vector, same=False)
        return
    tool = built_in.names.canonical(given["tool"])

    verdict = decide(tool, effects_of(tool), layers).verdict

    agrees(vector, same=verdict is VERDICTS[vector["expected"]])


@each("default_policy")
def test_defaults_are_as_there(vector: Vector, built_in: BuiltInPolicy) -> None:
    tool = built_in.names.canonical(vector["input"]["tool"])
    layers = Layers(built_in=built_in.rules, follows=built_in.follows, place=PLACE)

    verdict = decide(tool, effects_of(tool), layers).verdict

    agrees(vector, same=verdict is VERDICTS[vector["expected"]])


@each("parse_policy_str")
def test_verdict_words_are_as_there(vector: Vector, built_in: BuiltInPolicy) -> None:
    try:
        parsed = rules(built_in, {"shell": vector["input"]["value"]}).entries["shell"].default
    except InvalidInput:
        parsed = None

    agrees(vector, same=parsed is VERDICTS[vector["expected"]])


def decision_on(line: str, built_in: BuiltInPolicy, **tables: RuleSet) -> Decision:
    layers = Layers(built_in=built_in.rules, follows=built_in.follows, place=PLACE, **tables)
    return decide("shell", analyse(line, cwd="/w", home="/home/u").effects, layers)


@each("shell_keys", "shell_keys_ungrantable", "derived_shell_keys")
def test_what_can_be_remembered_is_as_there(vector: Vector, built_in: BuiltInPolicy) -> None:
    keys = propose(decision_on(vector["input"]["command"], built_in))

    agrees(vector, same=bool(keys) is bool(vector["expected"]))


@each("shell_keys_same_grant")
def test_the_same_grant_covers_the_same_lines(vector: Vector, built_in: BuiltInPolicy) -> None:
    book = GrantBook(PLACE)
    for key in propose(decision_on(vector["input"]["a"], built_in)):
        book.give(Grant(key=key, scope="run"))

    covered = cover("shell", decision_on(vector["input"]["b"], built_in), Lifts(grants=book))

    agrees(vector, same=(covered.verdict is Verdict.ALLOW) is vector["expected"])


@each("clamp_by_effect")
def test_a_writing_line_answers_to_the_write_rule(vector: Vector, built_in: BuiltInPolicy) -> None:
    given = vector["input"]
    user = rules(built_in, {"shell": given["policy"], "write_file": given["write_file_policy"]})
    if given["tool"] == "read_file":
        user = rules(built_in, {"read_file": given["policy"], "write_file": given["write_file_policy"]})
        layers = Layers(built_in=built_in.rules, place=PLACE, user=user)
        verdict = decide("read_file", (ReadPath(path="/w/a > b"),), layers).verdict
    else:
        verdict = decision_on(given["arguments"].get("command", ""), built_in, user=user).verdict

    agrees(vector, same=verdict is VERDICTS[vector["expected"]])


def unprompted(line: str, built_in: BuiltInPolicy, safe: SafeList) -> bool:
    decision = cover("shell", decision_on(line, built_in), Lifts(safe_list=safe, grants=GrantBook(PLACE)))
    return decision.verdict is Verdict.ALLOW


@pytest.fixture(scope="module")
def safe(built_in: BuiltInPolicy) -> SafeList:
    shipped = ROOT / "config" / "safe_commands.toml"
    return safe_list(parse(shipped.read_bytes(), file=str(shipped)), names=built_in.names)


@each("default_safe_unprompted")
def test_what_needs_no_prompt_is_as_there(vector: Vector, built_in: BuiltInPolicy, safe: SafeList) -> None:
    agrees(vector, same=unprompted(vector["input"]["command"], built_in, safe) is vector["expected"])


SAFE_LINES = ("ls", "cat notes", "grep x f", "git status", "git log", "git diff", "echo x", "pwd", "wc f")


@each("default_safe_escape_shape")
def test_no_shape_escapes_from_a_safe_command(
    vector: Vector, built_in: BuiltInPolicy, safe: SafeList
) -> None:
    answers = {
        unprompted(vector["input"]["template"].replace("{p}", line), built_in, safe) for line in SAFE_LINES
    }

    agrees(vector, same=answers == {vector["expected"]})


@each("derived_residual_hole")
def test_the_holes_of_the_original_are_closed(
    vector: Vector, built_in: BuiltInPolicy, safe: SafeList
) -> None:
    assert not unprompted(vector["input"]["command"], built_in, safe)


@each("default_safe_membership")
def test_programs_that_can_do_harm_are_safe_in_listed_forms_only(vector: Vector, safe: SafeList) -> None:
    bare = [
        name for name in vector["input"]["programs"] if safe.covers(RunProgram(argv=(name, "--x", "/etc/x")))
    ]

    assert bare == []


@each("safe_entry_valid")
def test_a_users_safe_entries_are_checked_as_there(vector: Vector, built_in: BuiltInPolicy) -> None:
    entry = json.dumps(vector["input"]["entry"])
    user = parse(f"[safe_commands]\nshell = [{entry}]".encode(), file="c.toml").table("safe_commands")
    try:
        safe_list(EMPTY, user, names=built_in.names)
        valid = True
    except InvalidInput:
        valid = False

    agrees(vector, same=valid is vector["expected"])


@each("safe_commands")
def test_the_safe_list_is_built_as_there(vector: Vector, built_in: BuiltInPolicy) -> None:
    given = vector["input"]
    if "agent" in given or given.get("allow_blueprint_safe_commands") or str(vector["id"]) in DIFFERENT:
        assert str(vector["id"]) in DIFFERENT
        return
    shipped = parse((ROOT / "config" / "safe_commands.toml").read_bytes(), file="shipped")
    config = given.get("config", {})
    words = [word for word in config.get("shell", []) if not word.startswith(">")]
    text = f"[s]\ndefaults = {json.dumps(config.get('defaults', True))}\nshell = {json.dumps(words)}"
    safe = safe_list(shipped, parse(text.encode(), file="c").table("s"), names=built_in.names)

    if isinstance(vector["expected"], str):
        assert not unprompted(given["command"], built_in, safe)
        return
    for key, source in vector["expected"].items():
        argv = tuple(key.removeprefix("shell:").split())
        assert bool(safe.covers(RunProgram(argv=argv))) is (source is not None)


@each("grants", "grant_keys")
def test_grants_cover_as_there(vector: Vector, built_in: BuiltInPolicy) -> None:
    given, expected = vector["input"], str(vector["expected"])
    line = given.get("command") or given.get("arguments", {}).get("command", "")
    if "events" in given or "tool" in given:
        tool = built_in.names.canonical(given.get("tool", "shell"))
        ask = rules(built_in, {tool: "ask"})
        effects = (
            analyse(line, cwd="/w", home="/home/u").effects if tool == "shell" else (ReadPath(path="/w/a"),)
        )
        layers = Layers(built_in=built_in.rules, place=PLACE, user=ask)
        keys = propose(decide(tool, effects, layers))
        if vector["id"] in {"TS-343", "TS-344", "TS-345", "TS-347", "TS-349"}:
            return  # scopes and uses: tests/policy/test_grants.py plays them through
        recorded = bool(keys) if tool == "shell" else keys == ("read_file",)
        agrees(vector, same=recorded is not (expected == "[]" or "nothing recorded" in expected))
        return
    book = GrantBook(PLACE)
    for key in given["run_grants"]:
        book.give(Grant(key=f"shell({key.removeprefix('shell:')} *)", scope="run"))
    decision = decision_on(line, built_in, user=rules(built_in, {"shell": given["policy"]}))
    verdict = cover("shell", decision, Lifts(grants=book)).verdict
    said = {"prompt": Verdict.ASK, "runs": Verdict.ALLOW, "[denied]": Verdict.DENY}

    agrees(vector, same=verdict is said[expected.split(maxsplit=1)[0]])


@each("write_budget")
def test_ceilings_on_writes_are_as_there(vector: Vector) -> None:
    given = vector["input"]
    budgets = Budgets(Ceilings(per_call_bytes=given["per_call"], per_run_bytes=given["per_run"]), PLACE)
    budgets.restore({"bytes_written": given["already_written"]})

    answer = budgets.reserve_call(
        CallCost(
            tool="write_file", writes=True, bytes_written=given["bytes"], free_bytes=given["disk_available"]
        )
    )

    expected = vector["expected"]
    key = {"call_too_large": "write_budget.per_call", "run_too_large": "write_budget.per_run"}
    match answer:
        case Reservation():
            assert expected["verdict"] == "allow"
        case Refusal():
            assert answer.key == key.get(expected["verdict"], "")
            assert answer.ceiling == expected.get("limit", answer.ceiling)
            assert answer.used == expected.get("written", answer.used)


@each("write_budget_batch")
def test_writes_of_one_step_share_the_budget_as_there(vector: Vector) -> None:
    given = vector["input"]
    budgets = Budgets(
        Ceilings(per_call_bytes=given.get("per_call"), per_run_bytes=given.get("per_run")), PLACE
    )

    written = [
        isinstance(
            budgets.reserve_call(
                CallCost(
                    tool=call["tool"],
                    writes=True,
                    bytes_written=call["bytes"],
                    free_bytes=given.get("disk_available"),
                )
            ),
            Reservation,
        )
        for call in given["calls"]
    ]

    assert written == [answer == "written" for answer in vector["expected"]]
