"""What an approval stores, for how long, and what it covers."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest

from agentctl.policy.cover import Lifts, after_answer, cover, used_grants
from agentctl.policy.decide import decide
from agentctl.policy.grants import GrantBook, propose, restore, used_once
from agentctl.policy.layers import Layers, bind_rules
from agentctl.policy.rules import Rule
from agentctl.protocol.decisions import Grant, Verdict
from agentctl.protocol.effects import (
    Effect,
    OpaqueCommand,
    ReachHost,
    ReadPath,
    RunProgram,
    SpawnAgent,
    WritePath,
)

MakeLayers: TypeAlias = Callable[..., Layers]
DENY, ASK, ALLOW = Verdict.DENY, Verdict.ASK, Verdict.ALLOW


def run(line: str, **more: object) -> RunProgram:
    return RunProgram(argv=tuple(line.split()), **more)


def keys_of(layers: Layers, *effects: Effect, tool: str = "shell") -> tuple[str, ...]:
    return propose(decide(tool, effects, layers))


def verdict(layers: Layers, book: GrantBook, *effects: Effect, tool: str = "shell") -> Verdict:
    return cover(tool, decide(tool, effects, layers), Lifts(grants=book)).verdict


@pytest.fixture
def book(layers: MakeLayers) -> GrantBook:
    return GrantBook(layers().place)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("git push --force origin", "shell(git push *)"),
        ("git status", "shell(git status *)"),
        ("cargo test --lib", "shell(cargo test *)"),
        ("pytest -q tests", "shell(pytest *)"),
        ("npm run build", "shell(npm run build *)"),
        ("npm test", "shell(npm test *)"),
        ("npx prettier --check .", "shell(npx prettier *)"),
        ("uv run pytest -q", "shell(uv run pytest *)"),
        ("python3 -m pytest -q", "shell(python3 -m pytest *)"),
        ("python3 test.py", "shell(python3 test.py)"),
        ("./gradlew build", "shell(./gradlew build *)"),
        ("make test", "shell(make test)"),
        ("FOO=1 npm test", "shell(FOO=1 npm test *)"),
        ("FOO=1 BAR=2 make test", "shell(FOO=1 BAR=2 make test)"),
        ("rm -rf build", "shell(rm -rf build)"),
        ("curl https://example.com/x", "shell(curl https://example.com/x)"),
        ("sudo rm x", "shell(sudo rm x)"),
        ("env FOO=1 ls", "shell(env FOO=1 ls)"),
        ("bash script.sh", "shell(bash script.sh)"),
        ("git", "shell(git)"),
        ("git -c core.pager=x log", "shell(git -c core.pager=x log)"),
        ("git config core.pager x", "shell(git config core.pager x)"),
        ("docker run -it x", "shell(docker run -it x)"),
        ("uv run python evil.py", "shell(uv run python evil.py)"),
    ],
)
def test_a_key_is_the_narrowest_rule_that_matches_again(layers: MakeLayers, line: str, key: str) -> None:
    assert keys_of(layers(), run(line)) == (key,)


@pytest.mark.parametrize("line", ["sh", "bash -s", "python3", "python3 -", "perl -w", "xargs rm", "FOO=1 sh"])
def test_a_program_that_reads_its_orders_elsewhere_cannot_be_remembered(
    layers: MakeLayers, line: str
) -> None:
    assert keys_of(layers(), run(line)) == ()


def test_words_the_shell_has_yet_to_make_fall_to_the_star_or_end_the_offer(layers: MakeLayers) -> None:
    unknown = {"unknown": (1,), "spread": (1,)}

    assert keys_of(layers(), run("pytest $FILES", **unknown)) == ("shell(pytest *)",)
    assert keys_of(layers(), run("rm $FILES", **unknown)) == ()
    assert keys_of(layers(), run("git $SUB", **unknown)) == ()


def test_each_part_that_asks_gets_its_own_key_and_parts_that_are_allowed_get_none(
    layers: MakeLayers,
) -> None:
    by = layers(user='shell = { default = "ask", allow = ["git status *"] }')

    keys = keys_of(
        by,
        run("git status"),
        run("npm test"),
        WritePath(path="/repo/app/src/a.py"),
        ReachHost(host="example.com"),
        SpawnAgent(agent="researcher"),
        ReadPath(path="/etc/hosts", outside=True),
        run("npm test"),
    )

    assert keys == (
        "shell(npm test *)",
        "write_file(/repo/app/src/*)",
        "network(example.com)",
        "spawn_agent(researcher)",
        "read_file(/etc/hosts)",
    )


def test_nothing_is_remembered_of_a_call_with_a_part_that_may_not_be(layers: MakeLayers) -> None:
    opaque = OpaqueCommand(line="$X", reason="cannot tell")
    protected = WritePath(path="/repo/app/.git/config", protected="git internals")

    assert keys_of(layers(), run("npm test"), opaque) == ()
    assert keys_of(layers(), run("npm test"), protected) == ()


def test_a_tool_without_effects_is_remembered_by_its_name(layers: MakeLayers) -> None:
    assert keys_of(layers(), tool="github__create_issue") == ("github__create_issue",)


def test_all_parts_must_be_covered(layers: MakeLayers, book: GrantBook) -> None:
    book.give(Grant(key="shell(ls *)", scope="run"))

    assert verdict(layers(), book, run("ls -la")) is ALLOW
    assert verdict(layers(), book, run("ls"), run("curl https://evil.test")) is ASK


def test_a_deny_beats_a_grant(layers: MakeLayers, book: GrantBook) -> None:
    book.give(Grant(key="shell(ls *)", scope="run"))

    assert verdict(layers(stage='shell = "deny"'), book, run("ls")) is DENY


def test_a_stage_grant_ends_with_its_stage_and_a_run_grant_does_not(
    layers: MakeLayers, book: GrantBook
) -> None:
    book.enter_stage(0)
    book.give(Grant(key="shell(ls *)", scope="stage", stage_index=0))
    book.give(Grant(key="shell(cat *)", scope="run"))

    book.enter_stage(0)
    assert verdict(layers(), book, run("ls"), run("cat x")) is ALLOW
    book.enter_stage(1)
    assert verdict(layers(), book, run("ls")) is ASK
    assert verdict(layers(), book, run("cat x")) is ALLOW
    book.enter_stage(0)
    assert verdict(layers(), book, run("ls")) is ASK


def test_a_grant_with_uses_covers_so_many_calls(layers: MakeLayers, book: GrantBook) -> None:
    book.give(Grant(key="shell(ls *)", scope="run", uses=2))

    for _ in range(2):
        decision = cover("shell", decide("shell", (run("ls"),), layers()), Lifts(grants=book))
        assert decision.verdict is ALLOW
        assert used_grants(decision) == ("shell(ls *)",)
        book.use("shell(ls *)")

    assert verdict(layers(), book, run("ls")) is ASK


def test_a_revoked_grant_covers_nothing(layers: MakeLayers, book: GrantBook) -> None:
    book.give(Grant(key="shell(ls *)", scope="run"))

    assert book.revoke("shell(ls *)")
    assert not book.revoke("shell(ls *)")
    assert verdict(layers(), book, run("ls")) is ASK


def test_grants_lift_held_asks_but_no_protected_write_and_no_opaque_line(
    layers: MakeLayers, book: GrantBook
) -> None:
    for key in ("shell(git push *)", "write_file(/repo/app/**)", "read_file(/etc/**)", "shell"):
        book.give(Grant(key=key, scope="run"))
    held = layers(blueprint='shell = { ask = ["git push *"] }', ask=["shell(git push *)"])

    assert verdict(held, book, run("git push")) is ALLOW
    assert verdict(layers(), book, ReadPath(path="/etc/hosts", outside=True), run("git push")) is ALLOW
    assert verdict(layers(), book, WritePath(path="/repo/app/.git/x", protected="git internals")) is ASK
    assert verdict(layers(), book, OpaqueCommand(line="$X", reason="cannot tell")) is ASK


def test_a_remembered_rule_covers_as_a_grant_does(layers: MakeLayers, book: GrantBook) -> None:
    by = layers()
    lifts = Lifts(grants=book, remembered=bind_rules([Rule(tool="shell", pattern="pytest *")], by.place))

    decision = cover("shell", decide("shell", (run("pytest -q"),), by), lifts)

    assert (decision.verdict, decision.lift) == (ALLOW, "remembered")
    assert "shell(pytest *)" in decision.reason


def test_an_answered_call_asks_no_second_time_and_a_denied_one_stays_denied(layers: MakeLayers) -> None:
    opaque = OpaqueCommand(line="$X", reason="cannot tell")
    asked = decide("shell", (run("make"), opaque), layers())
    denied = decide("shell", (run("make"), opaque), layers(deny=["shell(make)"]))

    assert after_answer("shell", asked).verdict is ALLOW
    assert after_answer("shell", asked).lift == "answer"
    assert after_answer("shell", denied).verdict is DENY


def test_the_sandbox_lifts_the_shells_own_ask_only(layers: MakeLayers, book: GrantBook) -> None:
    lifts = Lifts(grants=book, sandbox_auto_allow=True)

    def judged(by: Layers, *effects: Effect) -> Verdict:
        return cover("shell", decide("shell", effects, by), lifts).verdict

    assert judged(layers(), run("make")) is ALLOW
    assert judged(layers(), run("make"), WritePath(path="/repo/app/x")) is ASK
    assert judged(layers(user='write_file = "allow"'), run("make"), WritePath(path="/repo/app/x")) is ALLOW
    assert judged(layers(user='shell = { ask = ["make *"] }'), run("make")) is ASK
    assert judged(layers(ask=["shell"]), run("make")) is ASK
    assert judged(layers(), OpaqueCommand(line="$X", reason="cannot tell")) is ASK


def test_a_journal_brings_the_book_back_to_where_it_was(layers: MakeLayers, book: GrantBook) -> None:
    given = [
        Grant(key="shell(a *)", scope="stage", stage_index=0),
        Grant(key="shell(b *)", scope="run"),
        Grant(key="shell(c *)", scope="run", uses=3),
        Grant(key="shell(e *)", scope="stage", stage_index=1),
    ]

    restore(book, used_once(given, "shell(c *)"))
    book.enter_stage(1)

    assert book.active == (given[1], replace(given[2], uses=2), given[3])
