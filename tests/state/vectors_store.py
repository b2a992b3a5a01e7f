"""What the vectors say of shared state, cuts and stashes, held against ours. Each check takes one vector."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentctl.api import (
    CapacityExceeded,
    FileBackend,
    InvalidKey,
    SharedState,
    SharedStateError,
    cut_and_stash,
    cut_text,
    stash_key,
)
from agentctl.errors import ToolError
from agentctl.protocol.values import JsonObject
from agentctl.state.backends.memory import MemoryBackend
from agentctl.state.pages import Bounds
from agentctl.state.shared_backend import StoreUnreadable, Write, Written
from agentctl.state.shared_state import DEFAULT_MAX_BYTES, size_text
from agentctl.tools.definition import ActContext, ToolOutput, ToolPlace
from agentctl.tools.shared_state import shared_state_tool

Check = Callable[[Any], Awaitable[None]]
ROOMY = 10**9


def numbered(count: int, first: int = 1) -> str:
    return "\n".join(f"line {number}" for number in range(first, first + count))


async def play(state: SharedState, operation: list[str]) -> object:
    match operation:
        case ["get", key]:
            return await state.get(key)
        case ["set", key, value]:
            try:
                await state.set(key, value)
            except CapacityExceeded:
                return "refused"
            return "ok"
        case ["remove", key]:
            return await state.remove(key)
        case ["keys"]:
            return await state.keys()
        case ["summary"]:
            return await state.summary()
        case _:
            raise AssertionError(operation)


def plain(expected: object) -> object:
    return "refused" if isinstance(expected, dict) and "error" in expected else expected


async def operations(vector: Any) -> None:
    given = vector["input"]
    steps = given if isinstance(given, list) else given["ops"]
    limit = DEFAULT_MAX_BYTES if isinstance(given, list) else given.get("max_bytes", DEFAULT_MAX_BYTES)
    state = SharedState(limit)
    expected = vector["expected"]
    seen = [await play(state, step) for step in steps]
    if isinstance(expected, list):
        assert seen == [plain(one) for one in expected]
    else:
        assert seen[-1] == expected


async def summary_of_one(vector: Any) -> None:
    given = vector["input"]
    assert f"{given['key']} ({size_text(given['bytes'])})" == vector["expected"]


async def default_cap(vector: Any) -> None:
    assert SharedState().max_bytes == vector["expected"]["max_bytes"]


async def summary_entries(vector: Any) -> None:
    state = SharedState().scoped("s")
    for key, value in vector["input"]["entries"].items():
        await state.set(key, value)
    assert await state.summary() == vector["expected"]


async def stash_recycled(vector: Any) -> None:
    state = SharedState(500)
    view = state.scoped("worker-1") if "scope" in str(vector["input"]["ops"]) else state
    if view is not state:
        await state.set("plan", "p" * 80)
    for number in range(40):
        await view.set(f"tool-out-tc{number}-aaaa-b0", "x" * 100)
    assert await view.get("tool-out-tc39-aaaa-b0")
    assert await view.get("tool-out-tc0-aaaa-b0") is None
    assert view is state or await state.get("plan")


async def callers_keys_stay(vector: Any) -> None:
    state = SharedState(vector["input"]["max_bytes"])
    for key, value in (("artifact0", "q" * 100), ("artifact1", "q" * 100)):
        await state.set(key, value)
    assert await play(state, ["set", "artifact9", "q" * 200]) == "refused"
    assert await state.get("artifact0")


async def overwrite_is_newest(vector: Any) -> None:
    state = SharedState(vector["input"]["max_bytes"])
    for step in vector["input"]["ops"]:
        await play(state, step)
    assert await state.keys() == sorted(vector["expected"]["kept"])


async def reserved_prefix_recycled(vector: Any) -> None:
    state = SharedState(vector["input"]["max_bytes"])
    for step in vector["input"]["ops"]:
        await play(state, step)
    assert "tool-out-mine" not in await state.keys()


def in_files(test: Callable[[SharedState, Any], Awaitable[None]]) -> Callable[[Any, Any], Awaitable[None]]:
    async def check(vector: Any, folder: Any) -> None:
        limit = (
            vector["input"].get("max_bytes", DEFAULT_MAX_BYTES)
            if isinstance(vector["input"], dict)
            else 10**7
        )
        await test(SharedState(limit, backend=FileBackend(folder)), vector)

    return check


async def file_roundtrip(state: SharedState, vector: Any) -> None:
    assert await state.get("x") is None
    assert await state.keys() == []
    assert await state.summary() == "(empty)"
    await state.set("report", "analysis done")
    assert await state.get("report") == "analysis done"
    await state.set("log", "build output")
    assert await state.keys() == ["log", "report"]
    assert [await state.remove("report"), await state.remove("report")] == [True, False]


async def file_keys(state: SharedState, vector: Any) -> None:
    given = vector["input"]
    keys = list(given["set"]) if "set" in given else [given["key"]]
    for key in keys:
        await state.set(key, f"v {key}")
    assert await state.keys() == sorted(keys)
    assert [await state.get(key) for key in keys] == [f"v {key}" for key in keys]


async def file_refuses(state: SharedState, vector: Any) -> None:
    await state.set("keepme", "small")
    assert await play(state, ["set", "huge", "x" * 5000]) == "refused"
    assert await state.get("keepme") == "small"


async def file_recycles_oldest(state: SharedState, vector: Any) -> None:
    for name in vector["input"]["write_order"]:
        await state.set(f"tool-out-{name}", "x" * 100)
    keys = await state.keys()
    assert vector["expected"]["contains"] in keys
    assert vector["expected"]["missing"] not in keys


async def file_keeps_plan(state: SharedState, vector: Any) -> None:
    await state.set("plan", "p" * 100)
    for number in range(5):
        await state.set(f"tool-out-tc{number}-aaaa-b0", "x" * 100)
    assert await state.get("plan") == "p" * 100


async def scopes(vector: Any) -> None:
    root = SharedState()
    researcher, writer = root.scoped("researcher"), root.scoped("writer")
    await researcher.set("notes", "secret research")
    await writer.set("notes", "draft prose")
    seen = ["ok", "ok", await researcher.get("notes"), await writer.get("notes"), await researcher.keys()]
    seen += [await writer.remove("notes"), await researcher.get("notes")]
    assert seen == vector["expected"]


async def scoped_summary(vector: Any) -> None:
    root = SharedState()
    for scope in ("writer", "researcher"):
        for key, value in vector["input"][scope].items():
            await root.scoped(scope).set(key, value)
    assert await root.scoped("researcher").summary() == vector["expected"]


async def no_escape(vector: Any) -> None:
    root = SharedState()
    for key, value in vector["input"]["root"].items():
        await root.set(key, value)
    sub = root.scoped(vector["input"]["scope"])
    assert [await sub.get(key) for key in vector["input"]["gets"]] == vector["expected"]


async def nested(vector: Any) -> None:
    sub = SharedState().scoped("sub")
    deeper = sub.scoped("deeper")
    await deeper.set("k", "v")
    assert ["ok", await sub.get("k"), await deeper.get("k")] == vector["expected"]


async def unscoped(vector: Any) -> None:
    state = SharedState()
    await state.set("k", "v")
    assert ["ok", await state.get("k"), await state.keys(), state.scope] == vector["expected"]


async def child_handle(vector: Any) -> None:
    root = SharedState()
    await root.scoped("researcher").set("notes", "...")
    seen = ["ok", await root.scoped("writer").get("notes"), await root.scoped("researcher").get("notes")]
    assert [*seen, await root.get("notes")] == vector["expected"]


async def prompt_summary(vector: Any) -> None:
    state = SharedState()
    keys = vector["input"]["keys"]
    for key, value in keys.items():
        await state.set(key, "x" * 9000 if "*" in value else value)
    expected = vector["expected"]
    shown = await state.prompt_summary()
    assert shown == (expected["prompt_summary"] if isinstance(expected, dict) else expected)
    whole = await state.summary()
    assert all(key in whole for key in keys)


async def parallel_sets(vector: Any) -> None:
    state = SharedState()
    for number in range(vector["input"]["writers"]):
        await state.set(f"k{number}", "v")
    assert len(await state.keys()) == vector["expected"]["len(keys)"]


async def use_tool(state: SharedState, arguments: JsonObject) -> ToolOutput:
    tool = shared_state_tool(lambda _: state, Bounds(lines=400, size_bytes=32768))

    async def nobody(question: object) -> Any:
        raise AssertionError(question)

    place = ToolPlace(workdir=Path("/w"), temp=Path("/t"), why_protected=lambda _: "")
    try:
        prepared = await tool.prepare(arguments, place)
        context = ActContext(call_id="c", emit_output=lambda _: None, ask_person=nobody)
        return await prepared.act(context)
    except (ToolError, SharedStateError, InvalidKey) as error:
        return ToolOutput(text=str(error), failed=True)


async def tool_call(vector: Any) -> None:
    given = vector["input"]
    arguments = given.get("args", {name: given[name] for name in ("action", "key", "value") if name in given})
    state = SharedState(given.get("max_bytes", DEFAULT_MAX_BYTES))
    for key, value in given.get("state", {}).items():
        await state.set(key, value)
    if vector["case"] == "tool_remove_present":
        await state.set("k", "v")
    output = await use_tool(state, arguments)
    expected = vector["expected"]
    assert output.failed is bool(expected.get("is_error", False))
    if isinstance(output.structured, dict):
        for name, value in expected.get("details", {}).items():
            assert output.structured[name] == value


async def truncated(vector: Any) -> None:
    given, expected = vector["input"], vector["expected"]
    lines = int(str(given["lines"]).rsplit(" ", 1)[1]) if "lines" in given else 100
    text = given["text"] if "text" in given else numbered(lines)
    if "1000000" in text:
        text = "x" * 1_000_000
    if "ended lines" in text:
        text = numbered(100).replace("\n", "\r\n") + "\r\n"
    cut = cut_text(text, max_lines=given["max_lines"], max_bytes=ROOMY)
    if isinstance(expected, str):
        assert cut.text == expected
        return
    if expected.get("unchanged"):
        assert cut.text == text
    if "text" in expected:
        assert cut.text == expected["text"]
    if expected.get("marker") is False:
        assert not cut.marked
    elif isinstance(expected.get("marker"), str):
        assert expected["marker"] in cut.text
        assert cut.text.count("\n") + 1 == expected["line_count"]
        assert cut_text(cut.text, max_lines=given["max_lines"], max_bytes=ROOMY).text == cut.text
    if "line_ends" in expected:
        assert "\r" not in cut.text
        assert not cut.text.endswith("\n")


async def keyed_marker(vector: Any) -> None:
    given = vector["input"]
    count = 500 if "499" in str(given["lines"]) else 100
    text = numbered(count, 0)
    if "truncated" in str(given["lines"]):
        text = "[... 42 lines truncated ...]\n" + numbered(99)
    cut = cut_text(text, max_lines=given["max_lines"], max_bytes=ROOMY, key=given["key"] + "-b0")
    if "marker" in vector["expected"]:
        assert vector["expected"]["marker"] in cut.text
        again = cut_text(cut.text, max_lines=given["max_lines"], max_bytes=ROOMY, key="other")
        assert again.text == cut.text
    elif "occurrences_of_key" in vector["expected"]:
        assert cut.text.count(given["key"]) == 1
    else:
        assert given["key"] not in cut.text


async def stash_key_value(vector: Any) -> None:
    given, expected = vector["input"], vector["expected"]
    if isinstance(expected, str):
        assert stash_key(given["tool_call_id"], given["text"]) == expected
    else:
        assert stash_key(*given["a"]) == expected["a"]
        assert stash_key(*given["b"]) == expected["b"]


class Refusing(MemoryBackend):
    async def write(self, write: Write) -> Written:
        raise StoreUnreadable("no")


async def stash_flow(vector: Any) -> None:
    given, store = vector["input"], SharedState()
    case = vector["case"]
    if case == "stash_write_fails":
        store = SharedState(backend=Refusing())
    view = store.scoped("worker-1") if case == "stash_scoped_subagent" else store
    text = numbered(10 if case == "stash_fits" else 500)
    kept = await cut_and_stash(
        text,
        "tc-1",
        bounds=(given.get("max_lines", 20), ROOMY),
        store=None if case == "stash_no_sink" else view,
    )
    if case in ("stash_write_fails", "stash_no_sink", "stash_fits"):
        assert kept.key == ""
        assert "shared_state" not in kept.text
        return
    assert await view.get(kept.key) == text
    if case == "stash_parallel_results":
        other = await cut_and_stash(text, "tc-2", bounds=(20, ROOMY), store=view)
        assert other.key != kept.key
        assert await view.get(other.key) == text
    if case == "stash_scoped_subagent":
        assert await store.get(f"worker-1/{kept.key}") == text
    if case == "stash_not_in_prompt":
        assert "tool-out" not in await view.prompt_summary()


STORE: dict[str, Check] = {
    **dict.fromkeys(
        ("get_set_remove", "keys_sorted", "overwrite", "capacity_memory", "overwrite_excludes_old_value",
         "capacity_exactly_full_ok", "capacity_one_over_fails", "capacity_counts_utf8_bytes", "summary_empty",
         "summary_small"), operations),
    **dict.fromkeys(("summary_1023", "summary_1024", "summary_mb"), summary_of_one),
    "default_cap": default_cap,
    "summary_two_entries_separator": summary_entries,
    "ten_concurrent_sets": parallel_sets,
    "memory_stash_recycled": stash_recycled,
    "memory_caller_keys_refuse": callers_keys_stay,
    "memory_scoped_stash_evictable": stash_recycled,
    "memory_overwrite_refreshes_age": overwrite_is_newest,
    "user_key_with_reserved_prefix_is_evictable": reserved_prefix_recycled,
    "scopes_isolated": scopes,
    "scoped_summary_hides_siblings": scoped_summary,
    "scope_cannot_escape": no_escape,
    "nested_scope_narrows": nested,
    "unscoped_unchanged": unscoped,
    "seed_example_reads_through_child_handle": child_handle,
    **dict.fromkeys(("prompt_summary_hides_stash", "prompt_summary_only_stash"), prompt_summary),
    **dict.fromkeys(
        ("tool_set", "tool_get", "tool_get_missing", "tool_list", "tool_list_empty", "tool_remove_present",
         "tool_remove_absent_is_success", "tool_get_no_key", "tool_set_no_value", "tool_set_over_cap"),
        tool_call),
    **dict.fromkeys(
        ("trunc_100_to_10", "trunc_1000_to_50", "trunc_degenerate_1", "trunc_degenerate_2",
         "trunc_degenerate_3", "trunc_degenerate_4", "trunc_max_5", "trunc_max_0",
         "trunc_exact_fit_unchanged", "trunc_one_long_line_passes",
         "trunc_trailing_newline_and_crlf_lost"), truncated),
    **dict.fromkeys(
        ("trunc_keyed_marker", "trunc_marker_in_output_left_alone", "trunc_small_budget_no_stash_1",
         "trunc_small_budget_no_stash_4"), keyed_marker),
    **dict.fromkeys(("stash_key_value", "stash_key_reused_id", "stash_key_empty_text"), stash_key_value),
    **dict.fromkeys(
        ("stash_fits", "stash_write_fails", "stash_no_sink", "stash_parallel_results",
         "stash_full_text_retrievable", "stash_scoped_subagent", "stash_not_in_prompt"), stash_flow),
}  # fmt: skip
FILES = {
    "file_roundtrip": in_files(file_roundtrip),
    **dict.fromkeys(
        ("file_key_encoding", "file_percent_is_escaped", "file_space_and_unicode_letter"),
        in_files(file_keys)),
    "file_over_cap_value_refused": in_files(file_refuses),
    "file_evicts_oldest_by_mtime": in_files(file_recycles_oldest),
    "file_never_evicts_caller_key": in_files(file_keeps_plan),
}  # fmt: skip
