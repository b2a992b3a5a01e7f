"""Reported failures of configurations elsewhere, as cases: ours and, where it is there, the shared set.

A case is judged by its kind: TOML text is tried as config and as a blueprint, rules as rules, files as
files of the catalogue.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentctl.blueprint.catalogue import entries
from agentctl.blueprint.load import load_blueprint, parse_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.cli.app import run_app
from agentctl.errors import AgentctlError, InvalidInput, UsageError
from agentctl.policy.decide import decide
from agentctl.policy.paths import Place
from agentctl.policy.rules import parse_rule
from agentctl.policy.written import BUILT_IN_NAMES
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.effects import Effect, RunProgram, WritePath
from agentctl.run.policy_layers import layers_of
from agentctl.settings.load import limit_overrides, load_settings
from agentctl.settings.model_choice import WrittenModel, choose_model
from agentctl.tables.declared import ModelTable

WriteConfig = Callable[[str], Path]
PLACE = Place(workdir="/repo/app", home="/home/me")
OWN = Path(__file__).resolve().parents[1] / "corpus" / "config" / "cases.jsonl"
BLUEPRINT = '[agent]\nname = "a"\n[stages.one]\navailable_tools = ["shell", "write_file"]\n'


def cases(file: Path) -> Iterator[dict[str, object]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def blueprint(text: str = BLUEPRINT) -> Blueprint:
    return parse_blueprint(text.encode(), path=Path("/repo/b.toml"), found_by="path")


def verdict(tool: str, *effects: Effect, extra: str = "") -> Verdict:
    layers = layers_of(load_settings(environment={}), blueprint(BLUEPRINT + extra), PLACE)
    return decide(tool, effects, layers).verdict


def run(*argv: str) -> RunProgram:
    return RunProgram(argv=argv)


@pytest.fixture(params=["own", "shared"])
def all_cases(request: pytest.FixtureRequest) -> list[dict[str, object]]:
    if request.param == "own":
        return list(cases(OWN))
    shared: Path = request.getfixturevalue("shared")
    return list(cases(shared / "cases" / "config.jsonl"))


def of_kind(all_cases: list[dict[str, object]], *keys: str) -> Iterator[dict[str, object]]:
    for case in all_cases:
        given = case["input"]
        if isinstance(given, dict) and set(given) == set(keys):
            yield {**given, "id": case["id"]}


def test_toml_with_a_mistyped_key_never_loads(
    all_cases: list[dict[str, object]], write_config: WriteConfig
) -> None:
    for case in of_kind(all_cases, "toml"):
        text = str(case["toml"]).replace("\\n", "\n")
        key = text.partition("=")[0].splitlines()[0].strip("[] ")
        write_config(text)

        with pytest.raises(InvalidInput) as caught:
            load_settings(environment={})
        assert key in str(caught.value), case["id"]
        with pytest.raises(InvalidInput):
            parse_blueprint((BLUEPRINT + text).encode(), path=Path("b.toml"), found_by="path")


def test_one_bad_rule_is_reported_and_the_denies_beside_it_are_not_lost(
    all_cases: list[dict[str, object]], write_config: WriteConfig
) -> None:
    for case in of_kind(all_cases, "rules"):
        rules = case["rules"]
        assert isinstance(rules, dict)
        texts = [str(rule).replace("Bash", "shell") for rule in rules["allow"]]
        denied = [str(rule).partition("(")[2].removesuffix(")") for rule in rules["deny"]]
        remembered = "".join(f"[[remembered]]\nrule = {json.dumps(text)}\n" for text in texts)
        write_config(f"{remembered}[tool_permissions]\nshell = {{ deny = {json.dumps(denied)} }}\n")

        with pytest.raises(InvalidInput):  # nothing runs before the bad rule is mended
            load_settings(environment={})
        write_config(f"[tool_permissions]\nshell = {{ deny = {json.dumps(denied)} }}\n")
        assert verdict("shell", run(*denied[0].split())) is Verdict.DENY


def test_a_pattern_is_literal_where_it_is_not_a_star(
    all_cases: list[dict[str, object]], write_config: WriteConfig
) -> None:
    for case in of_kind(all_cases, "prefix", "command"):
        prefix, command = str(case["prefix"]), str(case["command"]).split()
        write_config(
            f'[tool_permissions]\nshell = {{ default = "ask", allow = [{json.dumps(prefix + " *")}] }}\n'
        )

        assert verdict("shell", run(*command)) is Verdict.ASK
        assert verdict("shell", run(*prefix.split())) is Verdict.ALLOW


def test_one_broken_file_among_several_is_told_and_hides_no_other(
    all_cases: list[dict[str, object]], agentctl_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = agentctl_home / "agentctl" / "config" / "blueprints"
    folder.mkdir(parents=True)
    for case in of_kind(all_cases, "files"):
        names = case["files"]
        assert isinstance(names, list)
        for name in names:
            (folder / str(name)).write_text(
                "[agent" if "broken" in str(name) else BLUEPRINT, encoding="utf-8"
            )

        code = run_app(["blueprints", "list"])

        printed = capsys.readouterr()
        assert code == 3
        for name in names:
            place = printed.err if "broken" in str(name) else printed.out
            assert str(name).removesuffix(".toml") in place


@pytest.mark.parametrize("word", ["toString", "constructor", "__proto__", "items", "get", "__class__"])
def test_a_rule_named_like_something_of_the_language_is_a_rule_like_any_other(
    word: str, write_config: WriteConfig
) -> None:
    write_config(f'[tool_permissions]\nshell = {{ deny = ["{word}"] }}\n[agents.{word.strip("_")}]\n')

    assert verdict("shell", run(word)) is Verdict.DENY


def test_rules_of_the_shared_set_load(all_cases: list[dict[str, object]]) -> None:
    for case in of_kind(all_cases, "rule"):
        text = str(case["rule"]).replace("Bash(", "shell(")
        if text.startswith("shell("):
            assert parse_rule(text, names=BUILT_IN_NAMES).pattern


def test_a_blueprint_never_widens_what_the_user_denies(write_config: WriteConfig) -> None:
    write_config('[tool_permissions]\nshell = { default = "ask", deny = ["sudo *"] }\n')

    extra = '[tool_permissions]\nshell = { default = "allow", allow = ["sudo *"] }\n'

    assert verdict("shell", run("sudo", "ls"), extra=extra) is Verdict.DENY
    assert verdict("shell", run("ls"), extra=extra) is Verdict.ASK


def test_a_project_file_in_the_workdir_is_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text('[tool_permissions]\nshell = "allow"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert verdict("shell", run("sudo", "ls")) is Verdict.ASK


@pytest.mark.parametrize(
    ("written", "steps"), [("64_000", 64000), ("0x10", 16), ("6e4", None), ('"64_000"', None), ("1e3", None)]
)
def test_a_number_is_what_it_says_or_an_error(
    written: str, steps: int | None, write_config: WriteConfig
) -> None:
    write_config(f"[limits]\nsteps = {written}\n")
    for load in (
        lambda: load_settings(environment={}),
        lambda: (write_config(""), load_settings(limit_overrides([f"steps={written}"]), {}))[1],
    ):
        if steps is None:
            with pytest.raises(AgentctlError):
                load()
        else:
            assert load().config.limits.steps == steps


def test_the_model_that_is_resolved_is_the_one_that_is_checked(write_config: WriteConfig) -> None:
    write_config('[security]\nallowed_models = ["ollama:small*"]\n')
    big = WrittenModel(table=ModelTable(use=("ollama:small", "ollama:big")), source="b.toml:1:1")

    with pytest.raises(UsageError, match="'ollama:big'"):
        choose_model(load_settings(environment={}), agent="a", written=[big])
    with pytest.raises(UsageError, match="environment AGENTCTL_MODEL"):
        choose_model(load_settings(environment={"AGENTCTL_MODEL": "ollama:big"}), agent="a")
    with pytest.raises(UsageError, match="'local:"):
        choose_model(load_settings(environment={}), agent="a")
    chosen = choose_model(load_settings(environment={"AGENTCTL_MODEL": "ollama:small-2"}), agent="a")
    assert chosen.table.use == ("ollama:small-2",)


def test_an_allow_for_every_tool_is_refused(write_config: WriteConfig) -> None:
    write_config('[tool_permissions]\n"*" = "allow"\n')

    with pytest.raises(InvalidInput, match="cannot allow every tool"):
        load_settings(environment={})


def test_a_path_rule_holds_for_every_way_to_write(write_config: WriteConfig) -> None:
    write_config('[tool_permissions]\nwrite = { default = "allow", deny = ["docs/**"] }\n')
    effect = WritePath(path="/repo/app/docs/a.md")

    assert verdict("write_file", effect) is Verdict.DENY
    assert verdict("edit_file", effect) is Verdict.DENY
    assert verdict("shell", run("tee", "docs/a.md"), effect) is Verdict.DENY


def test_a_rule_for_a_tool_that_is_none_is_never_ignored(write_config: WriteConfig) -> None:
    write_config('[tool_permissions]\nWrite = { deny = ["docs/**"] }\n')

    with pytest.raises(InvalidInput, match="did you mean"):
        load_settings(environment={})


def test_a_broken_blueprint_does_not_hide_that_others_load(agentctl_home: Path) -> None:
    folder = agentctl_home / "agentctl" / "config" / "blueprints"
    folder.mkdir(parents=True)
    (folder / "ok.toml").write_text(BLUEPRINT, encoding="utf-8")
    (folder / "broken.toml").write_text("[agent", encoding="utf-8")

    found = {entry.name: entry.path for entry in entries()}

    assert load_blueprint(found["ok"]).name == "a"
    with pytest.raises(InvalidInput, match=r"broken\.toml:1:"):
        load_blueprint(found["broken"])
