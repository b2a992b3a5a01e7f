import json
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from agentctl.protocol.messages import ToolCall, ToolSpec
from agentctl.protocol.tool_names import BUILT_IN_TOOLS, TOOL_ALIASES, WAITING_TOOLS, canonical_tool
from agentctl.protocol.values import JsonObject
from agentctl.tools.definition import Prepared, ToolPlace
from agentctl.tools.registry import (
    CheckedArguments,
    InvalidArguments,
    ToolRegistry,
    ValidArguments,
    refusal_of_unknown,
)
from agentctl.tools.schema import Bounds, Says, read_arguments, schema_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    path: Annotated[str, Says("Where.", Bounds(min_length=1))]
    offset: Annotated[int, Says("First line.", Bounds(minimum=1))] = 1
    share: float | None = None
    deep: bool = False
    edits: tuple[Edit, ...] = ()
    names: tuple[str, ...] = ()
    how: Literal["all", "some"] = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeTool:
    spec: ToolSpec
    aliases: tuple[str, ...] = ()
    waits_for_person: bool = False

    def prepare(self, arguments: JsonObject, place: ToolPlace) -> Awaitable[Prepared]:
        raise AssertionError("not prepared in these tests")


def tool(parameters: JsonObject, name: str = "thing", aliases: tuple[str, ...] = ()) -> FakeTool:
    return FakeTool(spec=ToolSpec(name=name, description="", parameters=parameters), aliases=aliases)


EVERYTHING = tool(schema_of(Everything))
AN_EDIT: JsonObject = {"old": "a", "new": "b"}


def check(arguments: JsonObject, *, made: FakeTool = EVERYTHING, text: str = "") -> CheckedArguments:
    call = ToolCall(call_id="c-1", tool="thing", arguments=arguments, invalid_arguments=text)
    return ToolRegistry([made]).check(made, call)


def test_a_schema_says_types_bounds_defaults_and_what_is_required() -> None:
    assert schema_of(Everything) == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where.", "minLength": 1},
            "offset": {"type": "integer", "description": "First line.", "minimum": 1, "default": 1},
            "share": {"type": "number"},
            "deep": {"type": "boolean"},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
                    "required": ["old", "new"],
                    "additionalProperties": False,
                },
            },
            "names": {"type": "array", "items": {"type": "string"}},
            "how": {"type": "string", "enum": ["all", "some"], "default": "all"},
        },
        "required": ["path"],
        "additionalProperties": False,
    }


def test_arguments_become_the_dataclass() -> None:
    read = read_arguments(
        Everything, {"path": "a", "edits": [{"old": "x", "new": "y"}], "offset": 3.0, "share": None}
    )

    assert read == Everything(path="a", edits=(Edit(old="x", new="y"),), offset=3)


def test_valid_arguments_pass_as_they_are() -> None:
    assert check({"path": "a", "offset": 2}) == ValidArguments(arguments={"path": "a", "offset": 2})


@pytest.mark.parametrize(
    ("sent", "mended"),
    [
        ({"path": "a", "offset": " +12 "}, {"path": "a", "offset": 12}),
        ({"path": "a", "share": "0.5"}, {"path": "a", "share": 0.5}),
        ({"path": "a", "deep": "True"}, {"path": "a", "deep": True}),
        (
            {"path": "a", "edits": '[{"old":"a","new":"b"}]'},
            {"path": "a", "edits": [AN_EDIT]},
        ),
        ({"path": "a", "offset": None}, {"path": "a"}),
        (
            {"path": "a", "edits": ['{"old":"a","new":"b"}']},
            {"path": "a", "edits": [AN_EDIT]},
        ),
    ],
)
def test_a_shape_fault_with_one_reading_is_mended(sent: JsonObject, mended: JsonObject) -> None:
    assert check(sent) == ValidArguments(arguments=mended, mended=True)


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ({}, '"path" is a required property'),
        ({"path": 123}, "path: 123 is not of type"),
        ({"path": None}, "path: null is not of type"),
        ({"path": "a", "offset": "twelve"}, "offset:"),
        ({"path": "a", "offset": 0}, "offset: 0 is less than the minimum of 1"),
        ({"path": "a", "pth": 1}, "'pth' was unexpected"),
        ({"path": "a", "edits": "[1,"}, "edits:"),
        ({"path": "a", "how": "none"}, "how:"),
        ({"path": "a", "edits": [{"old": "x"}]}, 'edits.0: "new" is a required property'),
    ],
)
def test_anything_else_is_named_for_the_model(sent: JsonObject, named: str) -> None:
    checked = check(sent)

    assert isinstance(checked, InvalidArguments)
    assert named in checked.text
    assert "thing takes: path (required), offset" in checked.text


def test_text_stays_text_where_the_schema_wants_text() -> None:
    assert check({"path": "[1]", "names": ["2"]}) == ValidArguments(arguments={"path": "[1]", "names": ["2"]})


def test_a_long_value_does_not_come_back_whole() -> None:
    checked = check({"path": "a", "offset": "x" * 100_000})

    assert isinstance(checked, InvalidArguments)
    assert len(checked.text) < 1000


@pytest.mark.parametrize("text", [" ", "null", '""', "{}", '"{}"'])
def test_nothing_at_all_means_no_arguments(text: str) -> None:
    anything = tool({"type": "object", "properties": {}})

    assert check({}, made=anything, text=text) == ValidArguments(arguments={}, mended=True)


@pytest.mark.parametrize("text", ['{"a":', "[1]", "3", "NaN", "{" * 5000])
def test_arguments_that_are_no_object_are_an_answer_to_the_model(text: str) -> None:
    checked = check({}, text=text)

    assert isinstance(checked, InvalidArguments)
    assert "not a JSON object" in checked.text
    assert len(checked.text) < 1000


def test_an_object_encoded_twice_is_read() -> None:
    assert check({}, text='"{\\"path\\": \\"a\\"}"') == ValidArguments(arguments={"path": "a"}, mended=True)


def test_a_broken_schema_of_a_server_is_an_answer_and_reaches_no_host() -> None:
    broken = tool({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}})

    checked = check({"a": 1}, made=broken)

    assert isinstance(checked, InvalidArguments)
    assert "its own schema is invalid" in checked.text


def test_a_tool_is_found_by_alias_but_a_name_wins() -> None:
    shell = tool({"type": "object"}, name="shell", aliases=("bash", "run"))
    run = tool({"type": "object"}, name="run")
    registry = ToolRegistry([shell, run])

    assert [registry.find(name) for name in ("shell", "bash", "run", "nothing")] == [shell, shell, run, None]
    assert [spec.name for spec in registry.specs(["run", "bash", "shell", "nothing"])] == ["run", "shell"]


def test_an_unknown_tool_is_refused_with_what_there_is() -> None:
    text = refusal_of_unknown("read_flie", ["read_file", "grep", "read_file"])

    assert "Did you mean read_file?" in text
    assert text.endswith("Tools here: read_file, grep.")


def test_aliases_stand_for_built_in_tools_and_are_no_tool_themselves() -> None:
    assert set(TOOL_ALIASES.values()) <= set(BUILT_IN_TOOLS)
    assert not set(TOOL_ALIASES) & set(BUILT_IN_TOOLS)
    assert set(BUILT_IN_TOOLS) >= WAITING_TOOLS
    assert canonical_tool("bash") == "shell"


def schema_for(case: JsonObject) -> JsonObject:
    given = case["input"]
    assert isinstance(given, dict)
    text, number, array = ({"type": kind} for kind in ("string", "integer", "array"))
    if "schema" in given:
        return {"type": "object", "properties": {"edits": array}}
    if "schema_required" in given:
        return {"type": "object", "properties": {"path": text}, "required": given["schema_required"]}
    return {"type": "object", "properties": {"file_path": text, "offset": number, "a": number}}


def test_shared_cases_of_argument_shapes(shared: Path) -> None:
    expected: dict[str, JsonObject | None] = {
        "PA-001": {},
        "PA-002": None,
        "PA-011": {"edits": [{"old": "a", "new": "b"}]},
        "PA-012": None,
        "PA-013": {"offset": 12},
        "PA-014": None,
    }
    seen = set()
    for line in (shared / "cases" / "provider-args.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["id"] not in expected:
            continue  # the stream cases are the providers' own
        seen.add(case["id"])
        text = case["input"]["arguments"]
        made = tool(schema_for(case))
        try:
            arguments = json.loads(text)
            checked = check(arguments, made=made)
        except ValueError:
            checked = check({}, made=made, text=text or " ")
        want = expected[case["id"]]
        if want is None:
            assert isinstance(checked, InvalidArguments), case["id"]
        else:
            assert isinstance(checked, ValidArguments), case["id"]
            assert checked.arguments == want, case["id"]
    assert seen == set(expected)
