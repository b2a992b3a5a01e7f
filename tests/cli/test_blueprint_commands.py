"""`check`, `new`, `blueprints`, `config` and `schema` as a person uses them."""

import json
from pathlib import Path

import pytest

from agentctl.cli.app import run_app

GOOD = '[agent]\nname = "a"\ndescription = "Does a."\n[stages.one]\nprompt = "go"\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Said:
    """One command's exit code and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        capsys.readouterr()
        self.code = run_app(arguments)
        self.out, self.err = capsys.readouterr()


def test_check_prints_the_graph_and_ends_with_a_summary(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.toml").write_text(GOOD)

    said = Said(capsys, "check", "a.toml")

    assert (said.code, said.err) == (0, "")
    assert said.out == "one  (entry)\n  └─> end\n\na: 1 stage, no warnings, no policy tests.\n"


def test_check_tells_every_problem_on_a_line_of_its_own(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.toml").write_text('[agent]\nnaem = "a"\n[stages.one]\npromt = "go"\n')

    said = Said(capsys, "check", "a.toml")

    assert (said.code, said.out) == (3, "")
    assert said.err.splitlines()[:3] == [
        "a.toml:1:2: agent.name: required key is missing",
        "a.toml:2:1: agent.naem: unknown key in [agent] (did you mean 'name'?)",
        "a.toml:4:1: stages.one.promt: unknown key in [stages.one] (did you mean 'prompt'?)",
    ]


def test_check_in_json_tells_the_same(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.toml").write_text('[agent]\nname = "a"\nnaem = "b"\n[stages.one]\n')

    said = Said(capsys, "check", "a.toml", "--json")

    assert (said.code, said.err) == (3, "")
    assert json.loads(said.out) == {
        "ok": False,
        "path": "a.toml",
        "problems": [
            {
                "file": "a.toml",
                "line": 3,
                "column": 1,
                "key": "agent.naem",
                "message": "unknown key in [agent]",
                "suggestion": "name",
            }
        ],
    }


def test_check_knows_the_providers_that_a_run_would_know(
    here: Path, agentctl_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.toml").write_text(GOOD + 'model = ["anthropc:x", "mine:y", "scripted"]\n')

    said = Said(capsys, "check", "a.toml")

    assert said.code == 3
    assert "a.toml:6:10: stages.one.model[0]: unknown provider 'anthropc'" in said.err
    assert "did you mean 'anthropic'" in said.err
    assert "unknown provider 'mine'" in said.err
    Said(capsys, "config", "set", "providers.mine.base_url", "http://localhost:1/v1")
    assert "unknown provider 'mine'" not in Said(capsys, "check", "a.toml").err


def test_a_lint_is_a_warning_unless_warnings_are_denied(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.toml").write_text(GOOD + "[stages.two]\n")

    assert Said(capsys, "check", "a.toml").code == 0
    assert Said(capsys, "check", "a.toml", "--deny-warnings").code == 3
    assert (
        json.loads(Said(capsys, "check", "a.toml", "--json").out)["lints"][0]["code"] == "unreachable-stage"
    )


@pytest.mark.parametrize(
    ("call", "expect"),
    [
        ('"network(example.com)"', "ask"),
        ('"spawn_agent(other)"', "ask"),
        ('"current_time"', "allow"),
        ('"github__issue"', "deny"),
        ('{ tool = "current_time" }', "allow"),
    ],
)
def test_policy_tests_pass_or_fail_by_the_policy_in_effect(
    call: str, expect: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for word in ("allow", "ask", "deny"):
        test = f'[[policy_tests]]\ncall = {call}\nexpect = "{word}"\nbecause = "of it"\n'
        (here / "a.toml").write_text(f'{GOOD}[tool_permissions]\n"github__*" = "deny"\n{test}')

        said = Said(capsys, "check", "a.toml")

        assert said.code == (0 if word == expect else 3)
        assert word == expect or f"expected {word}, got {expect}" in said.err


def test_policy_tests_of_the_user_are_run_for_every_blueprint(
    here: Path, agentctl_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = agentctl_home / "agentctl" / "config"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[[policy_tests]]\ncall = "network(x.org)"\nexpect = "deny"\n')
    (here / "a.toml").write_text(GOOD)

    said = Said(capsys, "check", "a.toml")

    assert said.code == 3
    assert "config.toml:1:3: policy_tests: network(x.org): expected deny, got ask" in said.err


@pytest.mark.parametrize(("name", "code"), [("gone.toml", 2), (".", 2), ("nothing-of-this-name", 2)])
def test_check_of_what_is_not_there_is_a_usage_error(
    name: str, code: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, "check", name)

    assert (said.code, said.out) == (code, "")


def test_a_blueprint_of_ten_megabytes_is_one_clear_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.toml").write_bytes(b"#" * 10 * 2**20)

    said = Said(capsys, "check", "a.toml")

    assert said.code == 3
    assert "10,485,760 bytes; at most 1,048,576 (1 MiB) are taken" in said.err


def test_a_new_blueprint_is_clean_and_says_how_to_run_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, "new", "mine")

    assert (said.code, said.out) == (0, "mine.toml\n")
    assert "agentctl run ./mine.toml" in said.err
    report = json.loads(Said(capsys, "check", "mine.toml", "--json").out)
    assert (report["name"], report["lints"], report["problems"]) == ("mine", [], [])


def test_policy_tests_see_shell_lines_paths_and_the_safe_list(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = {
        "shell(ls -l)": "allow",
        "shell(git push origin x)": "deny",
        "shell(echo hi > src/a.txt)": "allow",
        "shell(echo hi > b.txt)": "ask",
        "shell(echo hi; git push)": "deny",
        "write_file(src/a.txt)": "allow",
        "edit_file(b.lock)": "deny",
        "write_file(.git/config)": "ask",
        "read_file(src/a.txt)": "allow",
    }
    tests = "".join(
        f"[[policy_tests]]\ncall = {json.dumps(call)}\nexpect = '{word}'\n" for call, word in calls.items()
    )
    (here / "a.toml").write_text(
        GOOD
        + "available_tools = ['shell', 'write_file']\n[tool_permissions]\nshell = { deny = ['git push *'] }\n"
        "write_file = { default = 'ask', allow = ['src/**', '.git/**'], deny = ['**/*.lock'] }\n" + tests
    )

    report = json.loads(Said(capsys, "check", "a.toml", "--json").out)

    assert {row["call"]: row["got"] for row in report["policy_tests"]} == {
        **calls,
        "shell(echo hi > src/a.txt)": "ask",  # a blueprint may not allow what the user is silent about
        "write_file(src/a.txt)": "ask",
    }


def test_a_new_blueprint_runs_at_once_and_offline(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Said(capfd, "new", "mine")

    said = Said(capfd, "run", "./mine.toml", "--json")

    assert said.code == 0
    assert json.loads(said.out)["answer"].startswith("The scripted answer of mine")


def test_new_never_overwrites(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "mine.toml").write_text("precious")

    assert Said(capsys, "new", "mine").code == 2
    assert (here / "mine.toml").read_text() == "precious"


@pytest.mark.parametrize("name", ["../up", "a b", "", "-", "7up", "a/b"])
def test_new_takes_names_only(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Said(capsys, "new", "--", name).code == 2
    assert list(here.iterdir()) == []


def test_new_for_the_user_can_be_named_from_anywhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Said(capsys, "new", "--user", "mine").code == 0

    rows = json.loads(Said(capsys, "blueprints", "list", "--json").out)

    assert [row["found_by"] for row in rows if row["name"] == "mine"] == ["user"]


def test_show_prints_the_file_as_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.toml").write_text(GOOD)

    said = Said(capsys, "blueprints", "show", "./a.toml")

    assert (said.code, said.out) == (0, GOOD)
    assert json.loads(Said(capsys, "blueprints", "show", "./a.toml", "--json").out)["text"] == GOOD


def test_config_is_set_shown_with_its_source_and_unset(
    agentctl_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = agentctl_home / "agentctl" / "config" / "config.toml"
    assert Said(capsys, "config", "path").out == f"{file}\n"
    assert Said(capsys, "config", "show", "limits.steps").out.split() == [
        "limits.steps",
        "=",
        "100",
        "#",
        "built-in",
    ]

    assert Said(capsys, "config", "set", "limits.steps", "7").code == 0

    assert Said(capsys, "config", "show", "limits.steps").out == f"limits.steps = 7  # {file}:2:1\n"
    assert json.loads(Said(capsys, "config", "show", "limits.steps", "--json").out) == [
        {"key": "limits.steps", "value": 7, "source": f"{file}:2:1"}
    ]
    assert Said(capsys, "config", "unset", "limits.steps").code == 0
    assert Said(capsys, "config", "unset", "limits.steps").code == 1


def test_config_show_of_nothing_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert Said(capsys, "config", "show", "limits.tokens").code == 1


def test_config_set_tells_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "config", "set", "limits.stepz", "7")

    assert said.code == 3
    assert "did you mean 'steps'" in said.err
    assert Said(capsys, "config", "set", "a..b", "7").code == 2


def test_schema_prints_json_schema_of_either_file(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("blueprint", "config"):
        assert json.loads(Said(capsys, "schema", kind).out)["title"].startswith("agentctl")
    assert Said(capsys, "schema", "run").code == 2


def test_a_policy_test_whose_arguments_do_not_fit_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = '[[policy_tests]]\ncall = { tool = "write_file", arguments = { path = "x" } }\nexpect = "ask"\n'
    (here / "a.toml").write_text(GOOD + test)

    said = Said(capsys, "check", "a.toml")

    assert said.code == 3
    assert "write_file: can't be judged: Invalid arguments for write_file" in said.err
    assert '"content" is a required property' in said.err
