"""What the vectors say of hooks, effects, views, commits and machines, held against ours."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentctl.agent.agent_state import AgentState, LiveState, StatePlan
from agentctl.agent.compaction import start_of_recent_steps
from agentctl.agent.hook_stack import merge_patches
from agentctl.agent.prompt import counted_tokens, estimate_tokens, visible_messages
from agentctl.agent.showing import for_tools
from agentctl.agent.snapshot import RunSnapshot
from agentctl.api import (
    Blocks,
    Cells,
    Command,
    Continue,
    Fail,
    FoldStateKey,
    Hook,
    HookContext,
    HookStack,
    InvalidToolCall,
    Merge,
    ModelCall,
    ModelSelect,
    Origin,
    Ownership,
    Patch,
    PatternError,
    RemoveValue,
    Repeat,
    RewriteArguments,
    RewriteResult,
    Scratchpad,
    Select,
    SetValue,
    Skip,
    StateConflict,
    StateEffect,
    StateEffectCall,
    StateKey,
    Stop,
    ToolCallEvent,
    ToolResultEvent,
    TurnFinished,
    assemble,
    parse_tool_pattern,
    place,
    run_effects,
    table_of,
)
from agentctl.interaction.hub import Hub
from agentctl.llm.base import ModelRequest
from agentctl.policy.decide import decide
from agentctl.policy.layers import Layers
from agentctl.policy.paths import Place
from agentctl.policy.rules import ToolNames, parse_permissions
from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.commands import Scope
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.events import ContextCompacted
from agentctl.protocol.messages import (
    AssistantMessage,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    user_text,
)
from agentctl.protocol.questions import Asker, PersonAnswer, PersonQuestion
from agentctl.protocol.tool_names import RULE_NAMES, TOOL_ALIASES
from agentctl.state.effects import EffectRefused, check_patch, parsed_result
from agentctl.state.machine import Bound, Emit, Instance, Machine, Move, When, stored
from agentctl.state.machine_check import check_machines
from agentctl.state.machines import Called, advance, advance_on_event, gate, unfinished
from agentctl.state.typed import same
from agentctl.state.views import context_block, workspace_block
from agentctl.toml.read import parse
from tests.interaction.test_hub import HandClock

Check = Callable[[Any], Awaitable[None]]
ORIGIN = Origin(run_id="r", thread_id="t")
CONTEXT = HookContext(run_id="r", agent="agent", step=3)
CALL = ToolCallEvent(call_id="c", tool="add", arguments={"step": 0})


@dataclass
class Count:
    n: int = 0


def bump(count: Count) -> int:
    count.n += 1
    return count.n


async def scratchpad(vector: Any) -> None:
    pad = Scratchpad()
    match vector["case"]:
        case "scratchpad_update_get_remove":
            pad.update(Count, bump)
            pad.update(Count, bump)
            assert [pad.get(Count), pad.remove(Count), pad.get(Count)] == [Count(2), Count(2), None]
        case "scratchpad_clone_shares":
            pad.insert(7)
            assert pad.get(int) == 7
        case "scratchpad_insert_returns_previous":
            assert [pad.insert(1), pad.insert(2)] == vector["expected"]
        case "scratchpad_update_returns_closure_value":
            assert [pad.update(Count, bump)] == vector["expected"]
        case "scratchpad_contains":
            seen = [pad.contains(int), pad.insert(1), pad.contains(int), pad.contains(str)]
            assert seen == vector["expected"]


async def context_identity(vector: Any) -> None:
    context = HookContext(agent="agent", streaming=True, step=vector["input"]["set_turn"])
    expected = vector["expected"]
    assert (context.streaming, context.agent, context.step) == (
        expected["is_streaming"],
        expected["agent_name"],
        expected["turn"],
    )
    assert context.run_id


def hook(event: str, answer: Any, log: list[Any] | None = None) -> Hook:
    def method(self: Hook, context: HookContext, event: Any) -> Any:
        if log is not None:
            log.append(event)
        return answer(event) if callable(answer) else answer

    made: Hook = type("Made", (Hook,), {f"on_{event}": method})()
    return made


async def order(vector: Any) -> None:
    log: list[Any] = []
    ends = "stop" in vector["input"]["hooks"]
    answers = [None, Stop("x"), None] if ends else [None, None, None]
    action = await HookStack([hook("tool_call", one, log) for one in answers]).on_tool_call(CONTEXT, CALL)
    assert len(log) == (2 if ends else 3)
    assert isinstance(action, Stop if ends else Continue)


async def rewrites(vector: Any) -> None:
    log: list[Any] = []

    def more(event: ToolCallEvent) -> RewriteArguments:
        assert isinstance(event.arguments, dict)
        return RewriteArguments({"step": int(str(event.arguments["step"])) + 1})

    action = await HookStack([hook("tool_call", more, log), hook("tool_call", more, log)]).on_tool_call(
        CONTEXT, CALL
    )
    assert [event.arguments for event in log] == vector["expected"]["seen"]
    assert action == RewriteArguments(vector["expected"]["final"])


async def result_rewrites(vector: Any) -> None:
    log: list[Any] = []
    event = ToolResultEvent(
        call_id="c", tool="t", arguments={}, outcome="failed", raw="raw", structured=None, shown="raw"
    )
    if vector["case"] == "terminal_result_short_circuit":
        await HookStack([hook("tool_result", Stop("x")), hook("tool_result", None, log)]).on_tool_result(
            CONTEXT, event
        )
        assert log == []
        return
    hooks = [
        hook("tool_result", RewriteResult("redacted"), log),
        hook("tool_result", RewriteResult("truncated"), log),
    ]
    assert await HookStack(hooks).on_tool_result(CONTEXT, event) == RewriteResult("truncated")
    assert [(one.raw, one.shown) for one in log] == [("raw", "raw"), ("raw", "redacted")]


async def selects(vector: Any) -> None:
    log: list[Any] = []
    first = Stop("x") if vector["case"] == "model_select_stop" else Select("m1")
    hooks = [hook("model_select", first), hook("model_select", Select("m2"), log)]
    action = await HookStack(hooks).on_model_select(CONTEXT, ModelSelect(candidate="m0"))
    if isinstance(first, Stop):
        assert (action, log) == (first, [])
    else:
        assert (action, log[0].candidate) == (Select("m2"), "m1")


async def invalid(vector: Any) -> None:
    answers: dict[str, list[Any]] = {
        "invalid_tool_fail_short_circuits": [Fail(), Skip("s")],
        "invalid_tool_none_defers": [None, Skip("s")],
    }
    hooks = [hook("invalid_tool_call", one) for one in answers[vector["case"]]]
    event = InvalidToolCall(call_id="c", tool="x", arguments={}, offered=())
    action = await HookStack(hooks).on_invalid_tool_call(CONTEXT, event)
    assert type(action).__name__ == vector["expected"]["action"]


def patch_of(given: dict[str, Any]) -> Patch:
    names = {"temperature": "temperature", "max_tokens": "max_output_tokens", "preamble": "system"}
    return Patch(**{names[name]: value for name, value in given.items()})


async def patches(vector: Any) -> None:
    given = vector["input"]
    request = ModelCall(request=ModelRequest(system="", messages=()))

    def stack(answers: list[Any]) -> HookStack:
        return HookStack(
            [hook("model_call", Stop("x") if one == "stop" else patch_of(one)) for one in answers]
        )

    if "inner" in given:
        nested = HookStack([stack(given["inner"]), stack(given["outer"])])
        assert await nested.on_model_call(CONTEXT, request) == patch_of(vector["expected"]["patch"])
        return
    action = await stack(given["hooks"]).on_model_call(CONTEXT, request)
    expected = vector["expected"]["patch"]
    assert action == (Stop("x") if expected is None else patch_of(expected))


async def merges(vector: Any) -> None:
    first, second = vector["input"]
    expected = vector["expected"]
    match vector["case"]:
        case "merge_context":
            assert merge_patches(Patch(context=tuple(first)), Patch(context=tuple(second))).context == tuple(
                expected
            )
        case "merge_params_shallow":
            assert merge_patches(Patch(extra=first), Patch(extra=second)).extra == expected
        case "merge_scalar_last":
            assert merge_patches(Patch(temperature=first), Patch(temperature=second)).temperature == expected
        case _:
            merged = merge_patches(Patch(active_tools=tuple(first)), Patch(active_tools=tuple(second)))
            assert merged.active_tools == tuple(expected)


async def observes(vector: Any) -> None:
    stack = HookStack(
        [hook(re.sub("(?!^)([A-Z])", r"_\1", name).lower(), None) for name in vector["input"]["members"]]
    )
    for name, expected in vector["expected"].items():
        event = re.sub("(?!^)([A-Z])", r"_\1", name).lower()
        assert stack.observes(event) is expected  # type: ignore[arg-type]


async def nested_end(vector: Any) -> None:
    end = Stop("why") if "stop" in vector["case"] else Skip("why")
    rewritten: Any = {"x": 3} if "deep" in vector["case"] else {"x": 41}
    inner = HookStack([hook("tool_call", RewriteArguments(rewritten)), hook("tool_call", end)])
    outer = HookStack([hook("tool_call", RewriteArguments({"x": 1})), HookStack([inner])])
    action = await outer.on_tool_call(CONTEXT, CALL)
    assert isinstance(action, Stop | Skip)
    assert action.rewritten == rewritten


async def into_nested(vector: Any) -> None:
    log: list[Any] = []
    given: Any = "plain string" if vector["case"] == "string_rewrite_json_encoded" else {"x": 2}
    inner = HookStack([hook("tool_call", None, log)])
    await HookStack([hook("tool_call", RewriteArguments(given)), inner]).on_tool_call(CONTEXT, CALL)
    assert log[0].arguments == given


async def turn_first(vector: Any) -> None:
    log: list[Any] = []
    hooks = [hook("turn_finished", None), hook("turn_finished", Repeat()), hook("turn_finished", None, log)]
    turn = TurnFinished(reply=AssistantMessage(parts=(TextPart(text="x"),)))
    assert await HookStack(hooks).on_turn_finished(CONTEXT, turn) == Repeat()
    assert log == []


HOOKS: dict[str, Check] = {
    **dict.fromkeys(
        ("scratchpad_update_get_remove", "scratchpad_clone_shares", "scratchpad_insert_returns_previous",
         "scratchpad_update_returns_closure_value", "scratchpad_contains"), scratchpad),
    "hook_context_identity": context_identity,
    **dict.fromkeys(
        ("registration_order_all_consulted", "first_stop_short_circuits_tool_call",
         "first_stop_short_circuits_observation"), order),
    "tool_call_rewrites_chain": rewrites,
    **dict.fromkeys(("result_rewrites_chain", "terminal_result_short_circuit"), result_rewrites),
    **dict.fromkeys(("model_select_last_wins", "model_select_stop"), selects),
    **dict.fromkeys(("invalid_tool_fail_short_circuits", "invalid_tool_none_defers"), invalid),
    **dict.fromkeys(("patches_accumulate", "patch_then_stop_discards", "nested_stack_patches"), patches),
    **dict.fromkeys(
        ("merge_context", "merge_params_shallow", "merge_scalar_last", "merge_active_tools",
         "merge_active_tools_empty"), merges),
    **dict.fromkeys(("observes_or", "observes_empty"), observes),
    **dict.fromkeys(
        ("nested_rewrite_then_skip", "nested_rewrite_then_stop", "deep_nested_last_rewrite",
         "rewrite_then_skip_reported"), nested_end),
    **dict.fromkeys(("string_rewrite_json_encoded", "outer_rewrite_into_nested"), into_nested),
    "model_turn_retry_short_circuits": turn_first,
}  # fmt: skip


async def patch(vector: Any) -> None:
    given, expected = vector["input"], vector["expected"]
    state = given["state"]
    try:
        after = check_patch(state, given["ops"], Ownership())
        applied = bool(given["ops"])
    except EffectRefused:
        after, applied = state, False
    assert applied is expected["applied"]
    assert same(after, expected["state"])


async def result(vector: Any) -> None:
    given = vector["input"]["tool_result"] or {"content": [{"text": "null"}]}
    texts = [block["text"] for block in given["content"] if "text" in block]
    made = ToolResult(
        call_id="c",
        tool="t",
        outcome="ok",
        text=texts[0] if texts else "null",
        structured=given.get("structuredContent"),
    )
    assert same(parsed_result(made), vector["expected"])


async def glob(vector: Any) -> None:
    assert fnmatchcase(vector["input"]["tool"], vector["input"]["pattern"]) is vector["expected"]


async def view(vector: Any) -> None:
    given, expected = vector["input"], vector["expected"]
    block = workspace_block(given["workspace"], given["state"])
    lines = (expected or "").replace("\\u00e9", "é").split("\n")[1:]
    assert block.split("\n")[1:] == lines


async def effects_go_on(vector: Any) -> None:
    def raises(call: StateEffectCall) -> list[Any]:
        raise RuntimeError

    def none(call: StateEffectCall) -> None:
        return None

    first = none if vector["case"] == "effect_mapper_returns_none" else raises
    effects = (StateEffect(tool="x", mapper=first), StateEffect(tool="x", path="/a"))
    outcome = await run_effects(effects, StateEffectCall(tool="x", input={}, result=1), {})
    assert outcome.document == {"a": 1}
    assert len(outcome.warnings) == 1


async def effect_shape(vector: Any) -> None:
    given = dict(vector["input"])
    if "mapper" in given:
        given["mapper"] = lambda call: []
    try:
        StateEffect(**given)
    except (ValueError, TypeError):
        return
    raise AssertionError("taken")


def messages(words: list[str]) -> list[Message]:
    made: dict[str, Message] = {
        "toolUse": AssistantMessage(parts=(ToolCall(call_id="c", tool="t"),), stop="tool_calls"),
        "toolResult": ToolMessage(result=ToolResult(call_id="c", tool="t", outcome="ok", text="r")),
    }
    found: list[Message] = []
    for word in words:
        role, _, what = word.partition(" ")
        reply = AssistantMessage(parts=(TextPart(text=what),))
        found.append(made.get(what) or (user_text(what) if role == "user" else reply))
    return found


def texts(message: Message) -> list[str]:
    assert isinstance(message, UserMessage)
    return [part.text for part in message.parts if isinstance(part, TextPart)]


async def placed(vector: Any) -> None:
    given, expected = vector["input"], vector["expected"]
    match vector["case"]:
        case "place_base_on_latest_human":
            shown = place(messages(given["messages"]), Blocks(bases=(given["block"],)))
            assert texts(shown[0]) == expected["first_message_texts"]
        case "place_order":
            bases = (given["run_context"], given["workspace"], *reversed(given["bases"]))
            assert texts(place([user_text(given["message"])], Blocks(bases=bases))[0]) == expected
        case "place_no_human_message":
            shown = place(messages(given["messages"]), Blocks(bases=(given["block"],)))
            assert texts(shown[0]) == [given["block"]]
        case _:
            shown = place(messages(given["messages"]), Blocks(changes=given["changes"]))
            assert texts(shown[-1]) == [given["changes"]]


WRITES: dict[str, Check] = {
    **dict.fromkeys(
        ("patch_empty", "patch_add", "patch_missing_parent_dropped", "patch_append",
         "patch_move_touches_destination_only", "patch_remove", "patch_remove_missing", "patch_tilde_escape",
         "patch_list_out_of_range", "patch_unknown_op", "patch_no_path", "patch_pointer_without_slash",
         "patch_not_objects"), patch),
    **dict.fromkeys(
        ("result_none", "result_json_text", "result_plain_text", "result_json_block_ignored",
         "result_first_text_block", "result_structured_wins", "result_structured_null_falls_back",
         "result_structured_empty_object_counts", "result_empty_text"), result),
    **dict.fromkeys(
        ("glob dashboard___*_widgets ~ dashboard___update_widgets",
         "glob dashboard___*_widgets ~ dashboard___widgets", "glob * ~ x", "glob a[bc]* ~ ab1",
         "glob A* ~ abc", "glob x?y ~ x.y"), glob),
    **dict.fromkeys(
        ("view_one", "view_two_null", "view_missing_only", "view_missing_skipped", "view_root",
         "view_bad_pointer", "view_none"), view),
    **dict.fromkeys(("effect_mapper_raises_others_run", "effect_mapper_returns_none"), effects_go_on),
    **dict.fromkeys(("effect_both_mapper_and_path", "effect_neither", "effect_unknown_field"), effect_shape),
    **dict.fromkeys(
        ("place_base_on_latest_human", "place_order", "place_no_human_message", "changes_after_tool_result",
         "changes_after_assistant"), placed),
}  # fmt: skip


class Counter(StateKey[int]):
    name = "counter"


class Total(FoldStateKey[int, int]):
    name = "counter"
    fold = "sum"


def command(words: list[Any]) -> Command:
    """`[Scope?, Policy?, set|remove, key, value?]` as the vectors write it."""
    rest = list(words)
    scope: Scope = "thread"
    merge = Merge.DISJOINT
    while rest and isinstance(rest[0], str) and rest[0] not in ("set", "remove"):
        word = str(rest[0]).lower()
        if word in ("run", "thread", "shared", "profile"):
            scope = word  # type: ignore[assignment]
        elif word in set(Merge):
            merge = Merge(word)
        else:
            break
        rest.pop(0)
    action = rest.pop(0) if rest[0] in ("set", "remove") else "set"
    value = SetValue(value=rest[1]) if action == "set" else RemoveValue()
    return Command(scope=scope, key=rest[0], action=value, merge=merge)


def cells_of(*commands: Command) -> Cells:
    return assemble(ORIGIN, (), commands).cells


def refused(*commands: Command) -> bool:
    try:
        cells_of(*commands)
    except StateConflict:
        return True
    return False


async def rebuild(vector: Any) -> None:
    cells = cells_of(*map(command, vector["input"]))
    expected = vector["expected"]
    if "len" in expected:
        assert len(cells) == expected["len"]
        assert cells.get("thread", "a") == expected["a"]
    else:
        assert cells.get("run", "k", run_id="r") == expected["Run/k"]
        assert cells.get("thread", "k") == expected["Thread/k"]


async def commutative(vector: Any) -> None:
    merge = Merge.COMMUTATIVE
    if vector["case"] == "commutative_after_remove_starts_fresh":
        commands = [
            Command(scope="thread", key="k", action=action, merge=merge)
            for action in (SetValue(value={"a": 1}), RemoveValue(), SetValue(value={"b": 2}))
        ]
    else:
        commands = [
            Command(scope="thread", key="k", action=SetValue(value=value), merge=merge)
            for value in vector["input"]
        ]
    assert cells_of(*commands).get("thread", "k") == vector["expected"]


async def exclusive(vector: Any) -> None:
    def put(key: str, scope: Scope = "run") -> Command:
        return Command(scope=scope, key=key, action=SetValue(value=1), merge=Merge.EXCLUSIVE)

    gone = Command(scope="run", key="lock", action=RemoveValue(), merge=Merge.EXCLUSIVE)
    several = Command(scope="run", key="c", action=SetValue(value={}), merge=Merge.COMMUTATIVE)
    commands = {
        "exclusive_double_set": (put("lock"), put("lock")),
        "exclusive_removes_ok": (gone, gone),
        "exclusive_other_scope_ok": (put("once"), put("once", "thread")),
        "exclusive_once_with_commutative_repeats": (several, several, put("once")),
        "exclusive_set_remove_set": (put("lock"), gone, put("lock")),
        "validate_repeat_exclusive": (put("lock"), put("lock")),
        "remove_absent_noop": (gone,),
    }[vector["case"]]
    assert refused(*commands) is (isinstance(vector["expected"], dict) and "error" in vector["expected"])


async def typed(vector: Any) -> None:
    drifted = cells_of(Command(scope="run", key="counter", action=SetValue(value="not a number"))).view("r")
    match vector["case"]:
        case "load_absent_default":
            assert Counter.load(Cells().view("r")) == vector["expected"]
        case "fold_commit":
            keys = table_of(Total)
            cells = assemble(ORIGIN, (), (Total.commit(2), Total.commit(3)), keys=keys).cells
            assert Total.load(cells.view("r")) == vector["expected"][-1]
        case "serializer_failure":
            assert _raises(lambda: Counter.try_write(object()))  # type: ignore[arg-type]
        case _:
            assert _raises(lambda: Counter.load(drifted), "counter", "run", "int")
            assert Counter.load_or_default(drifted) == 0


def _raises(act: Callable[[], object], *words: str) -> bool:
    try:
        act()
    except StateConflict as error:
        return all(word in error.message for word in words)
    return False


async def scans(vector: Any) -> None:
    cells = cells_of(
        *(
            Command(scope=word.split()[0].lower(), key=word.split()[1], action=SetValue(value=1))
            for word in vector["input"]["keys"]
        )
    )
    if "scan" in vector["input"]:
        scope, prefix = vector["input"]["scan"]
        assert list(cells.scan(scope.lower(), prefix)) == vector["expected"]
    else:
        assert len(cells.project([vector["input"]["allow"]])) == vector["expected"]["len"]


async def binds(vector: Any) -> None:
    scope: Scope = "run" if "Run" in vector["input"]["command"] else "thread"
    made = Command(scope=scope, key="k", action=SetValue(value=1))
    origin = Origin(run_id=vector["input"]["run"], thread_id="t")
    bound = assemble(origin, (), (made,)).commit.commands[0]
    assert (bound.run_id or None) == vector["expected"]["run_id"]


async def empty_ids(vector: Any) -> None:
    origin = Origin(
        run_id=vector["input"].get("run_id", "r"), thread_id=vector["input"].get("thread_id", "t")
    )
    assert _raises(lambda: assemble(origin, ()), "must not be empty")


async def cell_round_trip(vector: Any) -> None:
    @dataclass
    class Revision:
        revision: int = 0

    class Address(StateKey[Revision]):
        name = "review/17/state"
        scope = "thread"

    assert Cells().cell("thread", Address.name) is None
    cells = cells_of(Address.write(Revision(7)))
    assert Address.load(cells) == Revision(7)
    bad = cells.after((Command(scope="thread", key=Address.name, action=SetValue(value=3)),))
    assert _raises(lambda: Address.load(bad))
    assert cells_of(Address.write(Revision(7)), Address.remove()).cell("thread", Address.name) is None


STATE: dict[str, Check] = {
    **dict.fromkeys(("rebuild_in_order", "scope_separates"), rebuild),
    **dict.fromkeys(
        ("commutative_merge", "commutative_merge_is_shallow", "commutative_same_field_last_wins",
         "commutative_scalar_replaces", "commutative_scalar_then_object", "commutative_object_then_scalar",
         "commutative_after_remove_starts_fresh"), commutative),
    **dict.fromkeys(
        ("exclusive_double_set", "exclusive_removes_ok", "exclusive_other_scope_ok",
         "exclusive_once_with_commutative_repeats", "exclusive_set_remove_set", "remove_absent_noop",
         "validate_repeat_exclusive"), exclusive),
    **dict.fromkeys(
        ("load_absent_default", "fold_commit", "drift_fails_closed", "state_error_text",
         "serializer_failure"), typed),
    "cell_roundtrip": cell_round_trip,
    **dict.fromkeys(("scan_prefix", "project"), scans),
    **dict.fromkeys(("assemble_binds_run", "assemble_does_not_bind_thread"), binds),
    **dict.fromkeys(("validate_empty_thread", "validate_empty_run"), empty_ids),
}  # fmt: skip


def move(on: str, origin: str, to: str, **more: Any) -> Move:
    return Move(on=on, origin=frozenset(origin.split()), to=to, **more)


def rbw(**more: Any) -> Machine:
    moves = (
        move("Read", "unread read written", "read"),
        move(
            "Write",
            more.pop("write_from", "read written"),
            "written",
            reason="Read {file_path} before writing.",
        ),
    )
    fields: dict[str, Any] = {
        "name": "rbw", "scope": "thread", "key": "{file_path}", "initial": "unread", "moves": moves,
    }  # fmt: skip
    return Machine(**{**fields, **more})


def at(machine: Machine, state: str, key: str = "a.rs") -> Cells:
    return cells_of(stored(machine, key, Instance(state=state)))


def step(
    machine: Machine, tool: str, cells: Cells, *, success: bool = True, text: str = "", **arguments: Any
) -> Any:
    called = Called(tool=tool, arguments=arguments or {"file_path": "a.rs"}, success=success, text=text)
    return advance([machine], called, cells.view("r"))


def word(machine: Machine | list[Machine], tool: str, cells: Cells, **arguments: Any) -> Any:
    machines = machine if isinstance(machine, list) else [machine]
    return gate(machines, tool, arguments or {"file_path": "a.rs"}, cells.view("r"))


async def machine_gate(vector: Any) -> None:
    given, expected = vector["input"], vector["expected"]
    match vector["case"]:
        case "fsm_write_before_read":
            said = word(rbw(), given["call"][0], Cells(), **given["call"][1])
        case "fsm_write_after_read" | "fsm_repeat_write_engine":
            machine = rbw()
            said = word(machine, "Write", at(machine, given["state"]))
        case "fsm_repeat_write_doc":
            machine = rbw(write_from="read")
            said = word(machine, "Write", at(machine, given["state"]))
        case "fsm_missing_key_skips":
            assert step(rbw(), "Write", Cells(), x=1) == []
            said = word(rbw(), "Write", Cells(), x=1)
        case "fsm_warn_before_deny":
            moves = (
                move("Write", "other", "x", on_violation="warn", reason="soft"),
                move("Write", "other", "x", reason="hard"),
            )
            said = word(rbw(moves=moves), "Write", Cells())
        case "fsm_deny_beats_ask":
            deny = rbw(moves=(move("Write", "other", "x"),))
            ask = rbw(name="b", moves=(move("Write", "other", "x", on_violation="ask"),))
            said = word([ask, deny], "Write", Cells())
            assert said == word([deny, ask], "Write", Cells())
        case "fsm_strict_undeclared":
            said = word(rbw(strict=True), "Edit", Cells())
        case "fsm_non_strict_undeclared":
            said = word(rbw(), "Edit", Cells())
        case _:
            moves = (move("Write", "read", "w", counters={"n": Bound(gte=1)}),)
            machine = rbw(moves=moves, initial="read")
            assert step(machine, "Write", Cells()) == []
            said = word(machine, "Write", Cells())
    assert said.verdict == expected["gate"]
    assert said.reason == expected.get("reason", said.reason)


async def machine_moves(vector: Any) -> None:
    machine = rbw()
    match vector["case"]:
        case "fsm_warn_only":
            warn = rbw(moves=(move("Write", "read", "w", on_violation="warn", reason="careful"),))
            assert word(warn, "Write", Cells()).verdict == "allow"
            assert [moved.say for moved in step(warn, "Write", Cells())] == ["careful"]
        case "fsm_path_key":
            machine = rbw(key_normaliser="path")
            (moved,) = step(machine, "Read", Cells(), file_path=vector["input"]["file_path"])
            assert (moved.key, moved.after) == (vector["expected"]["key"], vector["expected"]["to"])
        case "fsm_self_loop_noop":
            assert step(machine, "Read", at(machine, "read")) == []
        case "fsm_first_self_loop_materialises":
            loop = rbw(initial="tracking", moves=(move("Read", "tracking", "tracking"),))
            assert [moved.after for moved in step(loop, "Read", Cells())] == ["tracking"]
        case "fsm_success_route" | "fsm_error_route":
            routes = rbw(
                moves=(
                    move("t", "unread", "passing"),
                    move("t", "unread", "failing", when=When(status="error")),
                )
            )
            (moved,) = step(routes, "t", Cells(), success=vector["input"]["result"] == "ok")
            assert moved.after == vector["expected"]["to"]
        case "fsm_on_unmatched":
            routes = rbw(on_unmatched="flaky", moves=(move("t", "unread", "x", when=When(content="*ok*")),))
            assert [moved.after for moved in step(routes, "t", Cells(), text="boom")] == ["flaky"]
        case "fsm_no_match_no_fallback":
            routes = rbw(moves=(move("t", "unread", "x", when=When(status="error")),))
            assert step(routes, "t", Cells()) == []
        case _:
            assert step(machine, "Read", Cells(), success=False) == []


async def machine_events(vector: Any) -> None:
    if vector["case"] == "fsm_counter_threshold":
        machine = Machine(
            name="pace",
            initial="on",
            moves=(
                move("event:after", "on", "on", increment=("steps",)),
                move(
                    "event:before", "on", "on",
                    counters={"steps": Bound(gte=1)},
                    emit=Emit(content="review todos at {counters.steps}", target="context"),
                ),
            ),
        )  # fmt: skip
        after = advance_on_event([machine], "after", {}, 1, Cells().view("r"))
        cells = assemble(ORIGIN, (), [one for moved in after for one in moved.commands]).cells
        said = advance_on_event([machine], "before", {}, 2, cells.view("r"))
    else:
        machine = Machine(
            name="todo",
            initial="idle",
            moves=(
                move("event:todo.changed", "idle open", "open", capture={"snapshot": "{snapshot}"}),
                move("event:later", "open", "open", emit=Emit(content="TODO: {instance.data.snapshot}")),
            ),
        )
        moved = advance_on_event(
            [machine], "todo.changed", {"snapshot": "ship backend"}, 1, Cells().view("r")
        )
        cells = assemble(ORIGIN, (), [one for each in moved for one in each.commands]).cells
        said = advance_on_event([machine], "later", {}, 2, cells.view("r"))
    assert [one.say for one in said] == [vector["expected"]["emit"]]


async def machine_holds(vector: Any) -> None:
    machine = rbw(terminal=frozenset({"written"}), max_continuations=5)
    match vector["case"]:
        case "fsm_guard_steers":
            assert unfinished([machine], at(machine, "read").view("r")) == ["rbw[a.rs]=read"]
        case "fsm_guard_all_terminal":
            assert unfinished([machine], at(machine, "written").view("r")) == []
        case _:
            assert unfinished([rbw(max_continuations=5)], at(rbw(), "read").view("r")) == []


async def machine_checks(vector: Any) -> None:
    machines = (
        [rbw(moves=(move("Read(", "unread", "x"),))]
        if vector["case"] == "fsm_bad_pattern"
        else [rbw(), rbw()]
    )
    assert [problem.level for problem in check_machines(machines)].count("error") == 1


async def context_items(vector: Any) -> None:
    items = {item["description"]: item["value"] for item in vector["input"]["items"]}
    given = for_tools(items, set(vector["input"].get("client_tools", ())))
    assert context_block(given) == vector["expected"]


async def window(vector: Any) -> None:
    """Nothing costs nothing; what a service counted holds, with a guess of what came after."""
    empty = estimate_tokens(ModelRequest(system="", messages=()))
    if vector["case"] == "estimate_tokens_empty":
        assert empty == vector["expected"]
        return
    usage = Usage(
        input_tokens=vector["input"]["usage"]["input"], output_tokens=vector["input"]["usage"]["output"]
    )
    snapshot = RunSnapshot()
    snapshot.messages += [user_text("q"), AssistantMessage(parts=(TextPart(text="a"),), usage=usage)]
    assert counted_tokens(snapshot) == 150
    snapshot.messages.append(user_text("trailing " * 40))
    counted = counted_tokens(snapshot)
    assert counted is not None
    assert counted > 150 + 90 - 10


async def compacted(vector: Any) -> None:
    """Whatever is cut or summarised, a call and its result are in view together; the marker never changes."""
    snapshot = RunSnapshot(started=None)
    for number in range(30):
        call = ToolCall(call_id=f"c{number}", tool="t")
        done = ToolResult(call_id=call.call_id, tool="t", outcome="ok", text="r" * 900)
        snapshot.messages += [AssistantMessage(parts=(call,), stop="tool_calls"), ToolMessage(result=done)]
    for keep in (1, 2, 3, 5, 8, 13, 21, 29, 30):
        kept_from = start_of_recent_steps(snapshot, keep)
        ids = tuple(f"c{number}" for number in range(30 - keep))
        for how, cut in (("results_cut", ids), ("summary", ())):
            snapshot.apply(
                ContextCompacted(
                    how=how,  # type: ignore[arg-type]
                    kept_from=kept_from,
                    tokens_before=1,
                    tokens_after=1,
                    summary="s",
                    cut_call_ids=cut,
                )
            )
            shown = visible_messages(snapshot)
            asked = [call.call_id for m in shown if isinstance(m, AssistantMessage) for call in m.tool_calls]
            answered = [m.result.call_id for m in shown if isinstance(m, ToolMessage)]
            assert asked == answered
            markers = {m.result.text for m in shown if isinstance(m, ToolMessage)} - {"r" * 900}
            assert len(markers) <= 1
        snapshot.window_from, snapshot.summary = 0, ""
        snapshot.cut_results.clear()


async def merged_batches(vector: Any) -> None:
    merge = Merge.EXCLUSIVE if "exclusive" in vector["case"] else Merge.COMMUTATIVE
    batches = [
        Command(scope="thread", key="k", action=SetValue(value={name: 1}), merge=merge) for name in "ab"
    ]
    if merge is Merge.EXCLUSIVE:
        assert refused(*batches)
    else:
        assert cells_of(*batches).get("thread", "k") == {"a": 1, "b": 1}


WAITS: dict[str, Any] = {"question_id": "q", "asker": Asker(run_id="r", agent="a", stage="s"), "kind": "text"}


async def answer_to_a_question(vector: Any) -> None:
    """An answer names a question that waits; one that is past its deadline has answered itself."""
    clock = HandClock()
    hub, answers = Hub(clock), []
    deadline = {"resume_no_deadline": 0.0}.get(vector["case"], 100.0)

    async def ask() -> None:
        answers.append(await hub.ask(PersonQuestion(prompt="?", deadline_s=deadline, **WAITS)))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        while not hub.waiting():
            await anyio.lowlevel.checkpoint()
        if vector["case"] == "resume_correlation_id":
            assert hub.answer("another", PersonAnswer(text="x")) is False
        if vector["case"] == "resume_expired":
            await anyio.wait_all_tasks_blocked()
            clock.move(999)
            await anyio.wait_all_tasks_blocked()
            assert hub.answer("q", PersonAnswer(text="late")) is False
        else:
            assert hub.answer("q", PersonAnswer(text="in time")) is True
    assert answers == [
        PersonAnswer(no_answer="deadline", by="deadline")
        if vector["case"] == "resume_expired"
        else PersonAnswer(text="in time")
    ]


async def machine_asks(vector: Any) -> None:
    machine = rbw(moves=(move("Write", "read", "w", on_violation=vector["input"]["on_violation"]),))
    assert word(machine, "Write", Cells()).verdict == "ask"


async def continuation_cap(vector: Any) -> None:
    cap = vector["input"]["cap"]
    machine = rbw(terminal=frozenset({"written"}), max_continuations=cap)
    live = LiveState(thread_id="t", cells=at(machine, "read"))
    agent = AgentState(run_id="r", thread_id="t", agent="a", live=live, plan=StatePlan(machines=(machine,)))
    for _ in range(vector["input"]["forced_continuations"]):
        again = agent.continuation()
        assert again is not None
        live.cells = assemble(ORIGIN, (), (again[1],), cells=live.cells).cells
    assert agent.continuation() is None


async def rule_words(vector: Any) -> None:
    """The same words in our rules: the command's pattern is over words, `Bash` is `shell`."""
    given = vector["input"]
    known = ToolNames(known=RULE_NAMES, aliases=TOOL_ALIASES)
    if given["rules"][:1] == ["Bash ask"]:
        table = 'bash = { default = "ask", allow = ["npm test *"] }'
    elif given["rules"]:
        table = 'bash = { default = "allow", deny = ["rm *", "* rm *"] }'
    else:
        table = ""
    user = parse_permissions(parse(f"[t]\n{table}".encode(), file="v").table("t"), names=known)
    line = next(iter(given["call"][1].values())) if "call" in given else "make"
    effects = analyse(line, cwd="/w", home="/h").effects
    built_in = parse_permissions(parse(b"[t]\n", file="v").table("t"), names=known)
    layers = Layers(built_in=built_in, user=user, place=Place(workdir="/w", home="/h"))
    assert decide("shell", effects, layers).verdict.word == vector["expected"]


async def verdict_words(vector: Any) -> None:
    assert vector["expected"] in {verdict.word for verdict in Verdict}


OPERATORS = {"exact": "=", "glob": "~"}


async def pattern_read(vector: Any) -> None:
    text, expected = vector["input"]["pattern"], vector["expected"]
    if "error" in expected:
        with pytest.raises(PatternError):
            parse_tool_pattern(text)
        return
    read = parse_tool_pattern(text)
    if "tool" in expected:
        assert read.tool == expected["tool"][1]
    match expected.get("args"):
        case None | "any":
            assert "args" not in expected or (read.main, read.fields) == ("", ())
        case ["primary", "glob", main]:
            assert read.main == main
        case conditions:
            assert [[one.path[0], one.operator, one.value] for one in read.fields] == [
                [name, OPERATORS[kind], value] for name, kind, value in conditions
            ]
    if "path" in expected:
        path = [{"any index": "*"}.get(step, step) for step in expected["path"]]
        assert list(read.fields[0].path) == path
    if "value" in expected:
        assert read.fields[0].value == expected["value"].removesuffix(" (backslash and n kept)")


async def pattern_match(vector: Any) -> None:
    given = vector["input"]
    read = parse_tool_pattern(given["pattern"])
    tool = given.get("tool", read.tool)
    assert read.matches(tool, given.get("args", {})) is vector["expected"].startswith("match")


async def pattern_regex(vector: Any) -> None:
    with pytest.raises(PatternError, match="no regular expressions"):
        parse_tool_pattern(vector["input"]["pattern"])
    (problem,) = check_machines([rbw(moves=(move(vector["input"]["pattern"], "unread", "unread"),))])
    assert (problem.level, problem.path) == ("error", ("transitions", 0, "on"))


MACHINES: dict[str, Check] = {
    **dict.fromkeys(
        ("pat_exact", "pat_any_args", "pat_primary", "pat_fields", "pat_path", "pat_escape",
         "pat_backslash_n_kept", "pat_empty", "pat_open_paren", "pat_trailing", "pat_no_quote",
         "pat_glob_bracket"), pattern_read),
    **dict.fromkeys(
        ("match_primary_two_args", "match_missing_field", "match_missing_field_negated", "match_not_glob",
         "match_globstar", "match_exact_field", "perm_field_glob", "perm_field_glob_miss",
         "perm_glob_tool_name", "perm_primary_arg", "perm_case_sensitive"), pattern_match),
    "perm_regex_refused": pattern_regex,
    **dict.fromkeys(("run_context_format", "run_context_none"), context_items),
    **dict.fromkeys(("estimate_tokens_empty", "tracker_usage_plus_trailing"), window),
    **dict.fromkeys(("compaction_marker_constant", "compaction_never_orphans_tool_calls"), compacted),
    **dict.fromkeys(("old06_parallel_exclusive_conflict", "old06_parallel_commutative_ok"), merged_batches),
    **dict.fromkeys(
        ("resume_correlation_id", "resume_expired", "resume_at_deadline_ok", "resume_no_deadline"),
        answer_to_a_question),
    "fsm_ask_ticket": machine_asks,
    "fsm_guard_cap": continuation_cap,
    **dict.fromkeys(
        ("perm_deny_absolute", "perm_allow_when_no_deny", "perm_specific_allow_beats_ask", "perm_broad_ask",
         "perm_unmatched_default"), rule_words),
    **dict.fromkeys(
        ("gate_label_Allow", "gate_label_Block", "gate_label_RequireConfirmation"), verdict_words),
    **dict.fromkeys(
        ("fsm_write_before_read", "fsm_write_after_read", "fsm_repeat_write_engine", "fsm_repeat_write_doc",
         "fsm_missing_key_skips", "fsm_warn_before_deny", "fsm_deny_beats_ask", "fsm_strict_undeclared",
         "fsm_non_strict_undeclared", "fsm_gate_ignores_counters"), machine_gate),
    **dict.fromkeys(
        ("fsm_warn_only", "fsm_path_key", "fsm_self_loop_noop", "fsm_first_self_loop_materialises",
         "fsm_success_route", "fsm_error_route", "fsm_on_unmatched", "fsm_no_match_no_fallback",
         "fsm_no_advance_on_error"), machine_moves),
    **dict.fromkeys(("fsm_counter_threshold", "fsm_capture"), machine_events),
    **dict.fromkeys(
        ("fsm_guard_steers", "fsm_guard_all_terminal", "fsm_no_terminal_never_holds"), machine_holds),
    **dict.fromkeys(("fsm_duplicate_machine_in_section", "fsm_bad_pattern"), machine_checks),
}  # fmt: skip
