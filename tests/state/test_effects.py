"""State effects: matching, mappers, paths, templates, ownership, all or nothing."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentctl.protocol.messages import ToolResult
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state import effects as module
from agentctl.state.document import apply_patch
from agentctl.state.effects import (
    Ownership,
    StateEffect,
    StateEffectCall,
    parsed_result,
    run_effects,
)

pytestmark = pytest.mark.anyio


def call(result: JsonValue = None, *, tool: str = "save", **more: Any) -> StateEffectCall:
    return StateEffectCall(tool=tool, input=more.pop("input", {}), result=result, agent="coder", run="r-1")


def add(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


async def test_a_mappers_operations_are_applied_and_named() -> None:
    def mapper(seen: StateEffectCall) -> list[JsonObject]:
        return [add("/w", {"by": seen.agent, "got": seen.result, "asked": seen.input})]

    outcome = await run_effects((StateEffect(tool="save", mapper=mapper),), call(5, input={"q": 1}), {})

    assert outcome.document == {"w": {"by": "coder", "got": 5, "asked": {"q": 1}}}
    assert [patch.source for patch in outcome.patches] == [
        "test_a_mappers_operations_are_applied_and_named.<locals>.mapper"
    ]
    assert outcome.warnings == ()


async def test_an_async_mapper_is_awaited() -> None:
    async def mapper(seen: StateEffectCall) -> list[JsonObject]:
        await anyio.lowlevel.checkpoint()
        return [add("/w", seen.tool)]

    assert (await run_effects((StateEffect(tool="*", mapper=mapper),), call(), {})).document == {"w": "save"}


async def test_each_effect_sees_the_state_the_one_before_left() -> None:
    def first(seen: StateEffectCall) -> list[JsonObject]:
        return [add("/n", 1)]

    def second(seen: StateEffectCall) -> list[JsonObject]:
        return [add("/m", seen.state["n"])]

    outcome = await run_effects(
        (StateEffect(tool="save", mapper=first), StateEffect(tool="s*", mapper=second)), call(), {}
    )

    assert outcome.document == {"n": 1, "m": 1}


async def test_what_a_mapper_does_to_its_copy_changes_nothing() -> None:
    def mapper(seen: StateEffectCall) -> list[JsonObject]:
        seen.state.clear()
        seen.input["q"] = "changed"
        return []

    document: JsonObject = {"a": {"b": 1}}
    given = call(input={"q": 1})
    outcome = await run_effects((StateEffect(tool="save", mapper=mapper),), given, document)

    assert outcome.document == {"a": {"b": 1}}
    assert given.input == {"q": 1}
    assert outcome.patches == ()


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("dashboard___*_widgets", "dashboard___update_widgets", True),
        ("dashboard___*_widgets", "dashboard___widgets", False),
        ("*", "x", True),
        ("a[bc]*", "ab1", True),
        ("A*", "abc", False),
        ("x?y", "x.y", True),
    ],
)
async def test_a_glob_is_held_against_the_whole_name(pattern: str, tool: str, matches: bool) -> None:  # noqa: FBT001
    outcome = await run_effects((StateEffect(tool=pattern, path="/a"),), call(1, tool=tool), {})

    assert (outcome.document == {"a": 1}) is matches


async def test_a_path_takes_the_whole_result_and_its_parents_are_made() -> None:
    outcome = await run_effects(
        (StateEffect(tool="save", path="/workspace/project"),), call({"name": "x"}), {}
    )

    assert outcome.document == {"workspace": {"project": {"name": "x"}}}
    assert apply_patch({}, outcome.patches[0].patch) == outcome.document


def raising(seen: StateEffectCall) -> list[JsonObject]:
    raise RuntimeError("no")


def nothing(seen: StateEffectCall) -> None:
    return None


def text(seen: StateEffectCall) -> str:
    return "add"


def half(seen: StateEffectCall) -> list[JsonObject]:
    return [add("/w/a", 1), {"op": "replace", "path": "/w/zz/y", "value": 2}]


def unencodable(seen: StateEffectCall) -> list[Any]:
    return [add("/w/a", object())]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mapper", "why"),
    [
        (raising, "raised RuntimeError: no"),
        (nothing, "returned None"),
        (text, "returned str"),
        (half, "operation 1"),
        (unencodable, "no form in JSON"),
    ],
)
async def test_a_mapper_that_fails_changes_nothing_and_the_next_effect_runs(mapper: Any, why: str) -> None:
    outcome = await run_effects(
        (StateEffect(tool="save", mapper=mapper), StateEffect(tool="save", path="/a")),
        call(1),
        {"w": {}},
    )

    assert outcome.document == {"w": {}, "a": 1}
    assert len(outcome.patches) == 1
    assert why in outcome.warnings[0]
    assert outcome.failed == ""


async def test_an_effect_that_must_not_fail_says_so() -> None:
    outcome = await run_effects(
        (StateEffect(tool="save", mapper=raising, on_error="fail"), StateEffect(tool="save", path="/a")),
        call(1),
        {},
    )

    assert "RuntimeError" in outcome.failed
    assert outcome.document == {}


async def test_a_mapper_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EFFECT_TIMEOUT_S", 0.05)

    async def hang(seen: StateEffectCall) -> list[JsonObject]:
        await anyio.sleep_forever()
        return []

    outcome = await run_effects((StateEffect(tool="save", mapper=hang),), call(), {})

    assert "took longer" in outcome.warnings[0]


@pytest.mark.parametrize(
    "operations",
    [
        [add("/other", 1)],
        [add("/workspacex", 1)],
        [{"op": "move", "from": "/other", "path": "/workspace/x"}],
        [{"op": "remove", "path": "/other"}],
        [add("", {"workspace": {}})],
        [add("/workspace/a", 1), add("/other", 1)],
        [add("bad", 1)],
    ],
)
async def test_a_patch_outside_what_effects_own_is_refused_whole(operations: list[JsonObject]) -> None:
    def mapper(seen: StateEffectCall) -> list[JsonObject]:
        return operations

    document: JsonObject = {"workspace": {}, "other": 1}
    owned = Ownership(pointers=("/workspace",))

    outcome = await run_effects((StateEffect(tool="save", mapper=mapper),), call(), document, owned)

    assert outcome.document == document
    assert len(outcome.warnings) == 1


async def test_effects_may_read_and_test_what_they_do_not_own() -> None:
    def mapper(seen: StateEffectCall) -> list[JsonObject]:
        return [
            {"op": "test", "path": "/other", "value": 1},
            {"op": "copy", "from": "/other", "path": "/workspace/x"},
        ]

    owned = Ownership(pointers=("/workspace",))
    outcome = await run_effects(
        (StateEffect(tool="save", mapper=mapper),), call(), {"workspace": {}, "other": 1}, owned
    )

    assert outcome.document == {"workspace": {"x": 1}, "other": 1}


async def test_the_root_may_be_replaced_by_an_object_where_it_is_owned() -> None:
    def root(value: JsonValue) -> StateEffect:
        return StateEffect(tool="save", mapper=lambda seen: [add("", value)])

    assert (await run_effects((root({"z": 1}),), call(), {"w": 1})).document == {"z": 1}
    assert (await run_effects((root([1]),), call(), {"w": 1})).document == {"w": 1}


async def test_a_document_over_its_size_takes_no_more_but_may_shrink() -> None:
    owned = Ownership(max_bytes=30)
    big = await run_effects((StateEffect(tool="save", path="/a"),), call("x" * 40), {}, owned)
    shrunk = await run_effects(
        (StateEffect(tool="save", mapper=lambda seen: [{"op": "remove", "path": "/a"}]),),
        call(),
        {"a": "x" * 40, "b": "y" * 40},
        owned,
    )

    assert big.document == {}
    assert "workspace.max_bytes" in big.warnings[0]
    assert shrunk.document == {"b": "y" * 40}


async def test_templates_write_without_code() -> None:
    effect = StateEffect(
        tool="save_query",
        each="/created",
        ops=(
            {
                "op": "add",
                "path": "/queries/{query_id}",
                "value": {"title": "{title}", "rows": "{rows}", "by": "{agent}, {{kept}}"},
            },
        ),
    )
    result: JsonValue = {"created": [{"query_id": "a/b", "title": "T", "rows": 3}]}

    outcome = await run_effects((effect,), call(result, tool="save_query"), {"queries": {}})

    assert outcome.document == {"queries": {"a/b": {"title": "T", "rows": 3, "by": "coder, {kept}"}}}


async def test_a_template_that_asks_for_what_is_not_there_is_left_out() -> None:
    effect = StateEffect(tool="save", ops=(add("/x", "{missing.part}"),))

    outcome = await run_effects((effect,), call({"missing": 1}), {})

    assert "no member 'missing.part'" in outcome.warnings[0]
    assert (
        "no member 'rows'"
        in (
            await run_effects((StateEffect(tool="save", each="/rows", ops=(add("/x", 1),)),), call({}), {})
        ).warnings[0]
    )


@pytest.mark.parametrize("fields", [{"path": "/a", "mapper": raising}, {}, {"path": "/a", "ops": ({},)}])
async def test_an_effect_has_exactly_one_way_to_write(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one of path, mapper and ops"):
        StateEffect(tool="x", **fields)


@pytest.mark.parametrize(
    ("body", "structured", "expected"),
    [
        ('{"a":1}', None, {"a": 1}),
        ("hello", None, "hello"),
        ("prose", {"z": 1}, {"z": 1}),
        ('"s"', None, "s"),
        ("1", {}, {}),
        ("", None, ""),
        ("NaN", None, "NaN"),
        ("5", None, 5),
        ("[" * 100_000, None, "[" * 100_000),
    ],
)
async def test_what_effects_see_of_a_result(body: str, structured: JsonValue, expected: JsonValue) -> None:
    result = ToolResult(call_id="c", tool="t", outcome="ok", text=body, structured=structured)

    assert parsed_result(result) == expected
