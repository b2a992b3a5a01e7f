"""`agentctl policy`: cases tried, effects shown, peers' rules taken over."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentctl.cli.app import run_app
from agentctl.policy.defaults import built_in_policy
from agentctl.policy.rules import RuleSet, parse_permissions
from agentctl.settings.rules import shipped_table
from agentctl.toml.read import parse


def case(**given: object) -> str:
    policy = {"allow": ["ls *", "cat *"], "ask": [], "deny": ["rm *"], "default": "ask"}
    shape = {
        "id": "T-1",
        "area": "shell-permission",
        "input": {"policy": policy, "command": given.pop("command")},
    }
    setup = given.pop("setup", None)
    if setup:
        shape["input"]["setup"] = setup  # type: ignore[index]
    return json.dumps(shape | given)


@pytest.fixture
def tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, object]]]:
    def run(*cases: str) -> tuple[int, dict[str, object]]:
        path = tmp_path / "cases.jsonl"
        path.write_text("\n".join(cases) + "\n", encoding="utf-8")
        code = run_app(["policy", "test", "--json", str(path)])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_a_case_that_is_decided_otherwise_fails_the_command(
    tried: Callable[..., tuple[int, dict[str, object]]],
) -> None:
    code, report = tried(
        case(command="ls -la", decision="allow"), case(command="ls -la", decision="deny", id="T-2")
    )

    assert code == 1
    assert report == {
        "total": 2,
        "passed": 1,
        "failed": ["T-2"],
        "areas": {"shell-permission": {"total": 2, "passed": 1}},
        "contested": [],
        "skipped": [],
    }


def test_an_expected_ask_is_met_by_a_deny_but_an_allow_only_by_an_allow(
    tried: Callable[..., tuple[int, dict[str, object]]],
) -> None:
    code, report = tried(
        case(command="rm x", decision="ask"), case(command="ls $(x)", decision="allow", id="T-2")
    )

    assert (code, report["failed"]) == (1, ["T-2"])


def test_links_and_rules_of_a_setup_are_made_and_others_skip_the_case(
    tried: Callable[..., tuple[int, dict[str, object]]],
) -> None:
    code, report = tried(
        case(command="cat l/passwd", decision="ask", setup="l -> /etc"),
        case(command="cat in/f", decision="allow", setup="in -> /repo/app/sub", id="T-2"),
        case(command="ls -l > f", decision="deny", setup="write to f is denied", id="T-3"),
        case(command="ls -l > f", decision="allow", setup="writes inside workspace: allow", id="T-4"),
        case(command="ls", decision="deny", setup="the moon is full", id="T-5"),
        case(
            command="cat secret", decision="deny", setup="read of secret is denied; secret exists", id="T-6"
        ),
        case(
            command="cat a", decision="allow", setup="a is a symlink to /repo/app/b; b contains x", id="T-7"
        ),
        case(command="cat d/x", decision="ask", setup="link d -> /etc. sub is a directory", id="T-8"),
        case(command="ls", decision="allow", setup="writes outside workspace are denied", id="T-9"),
        json.dumps(
            {"id": "T-10", "area": "path-confinement", "input": {"path": "x"}, "expected": "rejected"}
        ),
    )

    assert (code, report["failed"], report["total"]) == (0, [], 8)
    assert report["skipped"] == [
        {"id": "T-5", "reason": "its setup cannot be made here: the moon is full"},
        {"id": "T-10", "reason": "it is not about a command line with a policy"},
    ]


def test_a_contested_case_is_told_and_does_not_fail(
    tried: Callable[..., tuple[int, dict[str, object]]],
) -> None:
    code, report = tried(case(command="x", decision="allow", contested=True))

    assert (code, report["passed"]) == (0, 1)
    assert report["contested"] == [{"id": "T-1", "expected": "allow", "got": "ask"}]


def test_a_file_that_holds_no_cases_is_refused_with_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"area": "shell-x", "input": {"command": 1}}\nnot json\n', encoding="utf-8")

    assert run_app(["policy", "test", str(path)]) == 3
    said = capsys.readouterr().err
    assert "cases.jsonl:1:1: this is no policy case" in said
    assert "cases.jsonl:2:1: this is no policy case" in said


def test_the_effects_of_a_line_are_one_json_object(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = "cd sub && timeout 5 curl -o f https://example.com/x < g"

    assert run_app(["policy", "effects", line, "--workdir", str(tmp_path)]) == 0

    assert json.loads(capsys.readouterr().out) == {
        "line": line,
        "opaque": False,
        "reason": "",
        "effects": [
            {"kind": "run", "argv": ["cd", "sub"], "via": []},
            {"kind": "read", "path": f"{tmp_path}/sub/g"},
            {
                "kind": "run",
                "argv": ["timeout", "5", *line.split()[5:-2]],
                "via": [],
                "cwd": [f"{tmp_path}/sub"],
            },
            {"kind": "run", "argv": line.split()[5:-2], "via": ["timeout"], "cwd": [f"{tmp_path}/sub"]},
            {"kind": "write", "path": f"{tmp_path}/sub/f"},
            {"kind": "host", "host": "example.com"},
        ],
    }


def test_ten_thousand_lines_go_through_one_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('"git status"\n"$x \\ud800"\n' * 5000))

    assert run_app(["policy", "effects", "--stdin"]) == 0

    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["opaque"] for one in shown] == [False, True] * 5000


def test_stdin_that_is_no_json_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("git status\n"))

    assert run_app(["policy", "effects", "--stdin"]) == 2
    assert "line 1 of stdin is no JSON" in capsys.readouterr().err


CLAUDE = {
    "permissions": {
        "allow": [
            "Bash(git diff:*)",
            "Bash(ls*)",
            "Bash(a && b)",
            "Read(src/**)",
            "WebFetch(domain:example.com)",
        ],
        "ask": ["Bash"],
        "deny": ["Read(./.env)", "Edit(*.lock)", "Skill(x)"],
    }
}
CODEX = """
prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt", match=["git push x"])
prefix_rule(pattern=["rm", "a b"], decision="forbidden")
host_executable(name="git", paths=["/usr/bin/git"])
"""
GEMINI = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["git log"]
decision = "allow"
[[rule]]
toolName = "run_shell_command"
commandRegex = "x.*"
decision = "deny"
"""


def taken(
    capsys: pytest.CaptureFixture[str], peer: str, path: Path
) -> tuple[RuleSet, list[dict[str, object]]]:
    assert run_app(["policy", "import", peer, str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    table = parse(shown["toml"].encode(), file="imported.toml")
    names = built_in_policy(shipped_table("policy.toml")).names
    return parse_permissions(table.table("tool_permissions"), names=names), shown["notes"]


def texts(rules: RuleSet, tool: str) -> tuple[list[str | None], list[str | None], list[str | None]]:
    entry = rules.entries[tool]
    return tuple([rule.pattern for rule in part] for part in (entry.deny, entry.ask, entry.allow))  # type: ignore[return-value]


def test_rules_of_claude_are_taken_over_with_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(CLAUDE), encoding="utf-8")

    rules, notes = taken(capsys, "claude", path)

    assert texts(rules, "shell") == ([], [], ["git diff *", "ls* *"])
    assert rules.entries["shell"].default is not None
    assert rules.entries["shell"].default.word == "ask"
    assert texts(rules, "read_file") == ([".env"], [], ["src/**"])
    assert texts(rules, "write_file") == (["**/*.lock"], [], [])
    assert texts(rules, "network") == ([], [], ["example.com"])
    assert [(note["rule"], note["carried"]) for note in notes] == [
        ("Skill(x)", False),
        ("Bash(ls*)", True),
        ("Bash(a && b)", False),
    ]


def test_rules_of_codex_are_read_and_never_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "default.rules"
    path.write_text(CODEX, encoding="utf-8")

    rules, notes = taken(capsys, "codex", path)

    assert texts(rules, "shell") == (["rm 'a b' *"], ["git push *", "git fetch *"], [])
    assert [note["carried"] for note in notes] == [False]


def test_rules_of_gemini_are_taken_over_but_no_regular_expressions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(GEMINI, encoding="utf-8")

    rules, notes = taken(capsys, "gemini", path)

    assert texts(rules, "shell") == ([], [], ["git log *"])
    assert [note["carried"] for note in notes] == [False]


def test_a_file_of_another_kind_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "settings.json"
    path.write_text("[]", encoding="utf-8")

    assert run_app(["policy", "import", "claude", str(path)]) == 2
    assert "holds no JSON object" in capsys.readouterr().err


def imported(peer: str, name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert run_app(["policy", "import", peer, str(path)]) == 0
    return capsys.readouterr().out


def test_each_kind_of_a_claude_rule_is_taken_over_or_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    permissions = {
        "allow": [
            "Bash(git * main)", "Read(//etc/hosts)", "Read(/docs/x.md)", "Edit(build/)", "Edit(!x)",
            "WebFetch", "WebFetch(url:x)", "mcp__github__search", "mcp__fs", "mcp____x", "Agent(helper)",
            "Task", "Grep", "LS",
            "Bash(echo 'open)", "???", "Bash(*)", "Write", "Unknown(x)", "WebSearch",
        ],
        "deny": ["Bash(curl * evil)"],
        "additionalDirectories": ["../shared"],
        "defaultMode": "bypassPermissions",
    }  # fmt: skip

    out = imported("claude", "s.json", json.dumps({"permissions": permissions}), tmp_path, capsys)

    assert '"fs__*" = "allow"' in out
    assert 'github__search = "allow"' in out
    assert 'grep = "allow"' in out
    assert 'list_dir = "allow"' in out
    assert '[tool_permissions.spawn_agent]\ndefault = "allow"\nallow = ["helper"]' in out
    assert '"/etc/hosts",\n    "../shared",' in out
    assert '"docs/x.md"' in out
    assert '"build/**"' in out
    assert "it DENIES LESS" in out
    assert "start the run with --yolo for the same" in out
    missing = [line.split(": ")[1] for line in out.splitlines() if line.startswith("# NOT CARRIED OVER")]
    assert missing == [
        "Edit(!x)", "WebFetch(url:x)", "mcp____x", "Bash(echo 'open)", "???", "Unknown(x)", "WebSearch",
        "defaultMode bypassPermissions",
    ]  # fmt: skip


def test_each_kind_of_a_codex_rule_is_taken_over_or_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = """
"a docstring"
prefix_rule(pattern=["npm", "run"], justification="use make",
            match=[["npm", "run", "a b"]], not_match=["npm"])
network_rule(host="api.example.com", protocol="https", decision="deny")
prefix_rule(pattern=[], decision="allow")
prefix_rule(pattern=["x"], decision="perhaps")
prefix_rule(pattern=[["a", "b"]] * 3)
prefix_rule(pattern=[["a","b","c","d"],["a","b","c","d"],["a","b","c","d"],["a","b","c","d"],["a","b"]])
other_rule(x=1)
x = 1
"""
    out = imported("codex", "default.rules", rules, tmp_path, capsys)

    assert 'allow = ["npm run *"]' in out
    assert 'deny = ["api.example.com"]' in out
    assert "call = \"shell(npm run 'a b')\"" in out
    assert 'because = "use make"' in out
    assert out.count("# NOT CARRIED OVER") == 6


def test_codex_rules_that_are_no_code_are_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "default.rules"
    path.write_text("prefix_rule(", encoding="utf-8")

    assert run_app(["policy", "import", "codex", str(path)]) == 2
    assert "holds no Codex rules" in capsys.readouterr().err


def test_each_kind_of_a_gemini_rule_is_taken_over_or_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = """
[[rule]]
toolName = ["write_file", "replace", "magic"]
decision = "ask_user"
priority = 1
[[rule]]
mcpName = "gh"
decision = "deny"
priority = 2
denyMessage = "no"
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git log"
decision = "allow"
allowRedirection = true
modes = ["yolo"]
[[rule]]
toolName = "glob"
decision = "allow"
interactive = true
[[rule]]
toolName = "a__b"
decision = "allow"
[[rule]]
toolName = "glob"
decision = "maybe"
"""
    out = imported("gemini", "policy.toml", rules, tmp_path, capsys)

    assert 'write_file = "ask"' in out
    assert '"gh__*" = "deny"' in out
    assert 'a__b = "allow"' in out
    assert 'allow = ["git log *"]' in out
    assert "the strictest rule that matches decides here, whatever its priority" in out
    assert out.count("# NOT CARRIED OVER") == 3


def test_the_tool_lists_of_gemini_settings_are_taken_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {
        "tools": {"allowed": ["ShellTool(git status)", "read_file", "glob(x)"], "core": ["LSTool"]},
        "excludeTools": ["run_shell_command(rm)"],
    }

    out = imported("gemini", "settings.json", json.dumps(settings), tmp_path, capsys)

    assert 'deny = ["rm *"]\nallow = ["git status *"]' in out
    assert 'read_file = "allow"' in out
    assert out.count("# NOT CARRIED OVER") == 2


def test_results_are_told_in_words_without_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(
        "\n".join(
            [
                case(command="ls -l", decision="deny"),
                case(command="x", decision="allow", contested=True, id="T-2"),
                case(command="ls", decision="allow", setup="it rains", id="T-3"),
            ]
        ),
        encoding="utf-8",
    )

    assert run_app(["policy", "test", str(path)]) == 1

    said = capsys.readouterr()
    assert said.out == "shell-permission: 1 of 2 passed\n1 of 2 cases passed\n"
    assert "T-1: expected deny, got allow" in said.err
    assert "T-2: expected allow, got ask (contested)" in said.err
    assert "T-3: skipped: its setup cannot be made here: it rains" in said.err


def test_what_cannot_be_read_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["policy", "test", str(tmp_path / "none.jsonl")]) == 2
    assert run_app(["policy", "import", "claude", str(tmp_path / "none.json")]) == 2
    assert run_app(["policy", "effects"]) == 2
    assert "agentctl policy effects 'git status'" in capsys.readouterr().err
