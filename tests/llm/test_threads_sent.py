"""Threads that another service, another model or a mistake began, as each service takes them."""

import json
from typing import Any

import pytest
from adapters import WIRES, target

from agentctl.errors import ProviderError
from agentctl.llm.base import ModelRequest
from agentctl.llm.catalogue import ModelFacts, cost_of, load_catalogue
from agentctl.llm.endpoints import protocol_of
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings
from agentctl.llm.providers import Providers
from agentctl.llm.wire import with_lists
from agentctl.protocol.events import LiveEvent, ModelRetried
from agentctl.protocol.messages import (
    AssistantMessage,
    AssistantPart,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
    user_text,
)
from agentctl.testing.hand_clock import HandClock
from agentctl.testing.replay_server import Answer, replay_server

KIMI = "functions.read_file:0"
TOOL = ToolSpec(name="f", description="", parameters={"type": "object"})
LONG = "call_" + "x" * 80


def sent(
    *messages: Message,
    to: str = "svc:m",
    facts: ModelFacts | None = None,
    dialect: dict[str, object] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    aim = target(to, facts, dialect)
    request = ModelRequest(system="", messages=messages, **settings)
    return json.loads(json.dumps(protocol_of(WIRES.get(aim.provider, "openai-chat")).body(request, aim)))


def said(*parts: AssistantPart, by: str = "other:m") -> AssistantMessage:
    return AssistantMessage(parts=parts, model=by, stop="tool_calls")


def call(call_id: str = "a", tool: str = "f") -> ToolCall:
    return ToolCall(call_id=call_id, tool=tool, arguments={"x": 1})


def answer(call_id: str = "a", tool: str = "f", *, text: str = "ok", pictures: int = 0) -> ToolMessage:
    images = tuple(ImagePart(media_type="image/png", data="AAAA") for _ in range(pictures))
    return ToolMessage(result=ToolResult(call_id=call_id, tool=tool, outcome="ok", text=text, images=images))


def ids(value: object) -> list[str]:
    """All ids of calls in a body, in order."""
    if isinstance(value, list):
        return [one for item in value for one in ids(item)]
    if not isinstance(value, dict):
        return []
    names = ("call_id", "tool_call_id", "tool_use_id")
    own = [value[name] for name in names if name in value]
    if value.get("type") in {"tool_use", "function"} and "id" in value:
        own.append(value["id"])
    return own + [one for item in value.values() for one in ids(item)]


@pytest.mark.parametrize("call_id", [KIMI, LONG, "é", "a|b"])
@pytest.mark.parametrize("to", ["anthropic:m", "openai:m"])
def test_an_id_that_a_service_would_refuse_is_written_plainly_and_alike(to: str, call_id: str) -> None:
    body = sent(said(call(call_id)), answer(call_id), to=to)
    first, second = ids(body)
    assert first == second
    assert first.replace("_", "").replace("-", "").isalnum()
    assert first.isascii()
    assert len(first) <= 64


def test_two_ids_that_differ_in_what_is_refused_stay_two() -> None:
    body = sent(said(call("a:1"), call("a.1")), answer("a:1"), answer("a.1"), to="anthropic:m")
    first, second, *answers = ids(body)
    assert first != second
    assert answers == [first, second]


def test_an_id_that_fits_is_not_touched() -> None:
    assert ids(sent(said(call("toolu_01-x")), answer("toolu_01-x"), to="anthropic:m")) == ["toolu_01-x"] * 2


def test_mistral_gets_nine_letters_for_calls_of_others_and_its_own_as_they_were() -> None:
    rule = {"call_ids": "nine"}
    other = ids(sent(said(call(KIMI)), answer(KIMI), to="mistral:m", dialect=rule))
    own = ids(sent(said(call("c_1"), by="mistral:m"), answer("c_1"), to="mistral:m", dialect=rule))
    assert other[0] == other[1]
    assert len(other[0]) == 9
    assert other[0].isalnum()
    assert own == ["c_1", "c_1"]


def test_openai_gets_ids_of_at_most_forty() -> None:
    found = ids(sent(said(call(LONG)), answer(LONG), dialect={"call_ids": "forty"}))
    assert len(found[0]) == 40
    assert found[0] == found[1]


@pytest.mark.parametrize("tool", ["functions.read_file", "read file", "", "x" * 200])
@pytest.mark.parametrize("to", ["svc:m", "openai:m", "anthropic:m", "gemini:m", "ollama:m"])
def test_a_name_that_a_model_made_up_does_not_break_the_thread(to: str, tool: str) -> None:
    body = json.dumps(sent(user_text("go"), said(call(tool=tool)), answer(tool=tool), to=to))
    name = json.loads(body.partition('"name": ')[2].partition(",")[0].rstrip("}]"))
    assert name
    assert len(name) <= 128
    assert name.replace("_", "").replace("-", "").isalnum()


def test_pictures_follow_the_last_answer_of_a_turn() -> None:
    body = sent(
        user_text("go"), said(call("a"), call("b")), answer("a", pictures=1), answer("b", pictures=1),
        user_text("and?"),
    )  # fmt: skip
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert len(body["messages"][4]["content"]) == 2


def test_ollama_gets_the_pictures_of_an_answer() -> None:
    body = sent(user_text("go"), said(call()), answer(pictures=2), to="ollama:m")
    assert body["messages"][2]["images"] == ["AAAA", "AAAA"]


@pytest.mark.anyio
async def test_a_model_that_reads_no_pictures_gets_words_in_their_place() -> None:
    shown = UserMessage(
        parts=(TextPart(text="see"), ImagePart(media_type="image/png", data="AAAA", name="a.png"))
    )
    request = ModelRequest(system="", messages=(shown, said(call()), answer(pictures=1)))
    reply = Answer(body=b'{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}')
    for images in (False, True):
        async with replay_server([reply]) as server:
            providers = Providers(
                ProviderConfig(
                    providers={"svc": ProviderSettings(protocol="openai-chat", base_url=server.url)},
                    models={"svc:m": {"images": images}},
                )
            )
            await providers.open(["svc:m"]).reply(request, lambda _: None)
            await providers.aclose()
            (received,) = server.received
        assert (b"AAAA" in received.body) is images
        assert (b"reads no pictures: a.png" in received.body) is not images


def test_deepseek_thinking_gets_thoughts_even_of_a_call_that_has_none() -> None:
    dialect = {"reasoning": "thinking", "reasoning_back": "reasoning_content"}
    thread = (user_text("go"), said(call()), answer())
    thinking = sent(*thread, to="deepseek:m", dialect=dialect, reasoning_effort="high")
    silent = sent(*thread, to="deepseek:m", dialect=dialect, reasoning_effort="none")
    assert thinking["messages"][1]["reasoning_content"] == ""
    assert "reasoning_content" not in silent["messages"][1]


def test_gemini_three_takes_unsigned_calls_by_the_services_own_word() -> None:
    thread = (user_text("go"), said(call("a"), call("b")), answer("a"), answer("b"))
    parts = sent(*thread, to="gemini:m", facts=ModelFacts(thinking="level"))["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]
    older = sent(*thread, to="gemini:m", facts=ModelFacts(thinking="budget"))["contents"][1]["parts"]
    assert not any("thoughtSignature" in part for part in older)


def test_gemini_three_keeps_the_signature_that_a_call_has() -> None:
    signed = ToolCall(call_id="a", tool="f", opaque={"thoughtSignature": "s1"})
    body = sent(
        user_text("go"), said(signed, call("b"), by="gemini:m"), answer("a"), answer("b"),
        to="gemini:m", facts=ModelFacts(thinking="level"),
    )  # fmt: skip
    parts = body["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["s1", None]


def test_gemini_that_always_thinks_gets_its_least_budget() -> None:
    facts = ModelFacts(thinking="budget", least_thinking=128)
    body = sent(user_text("go"), to="gemini:m", facts=facts, reasoning_effort="none")
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 128


@pytest.mark.parametrize("to", ["openai:m", "svc:m"])
@pytest.mark.parametrize(
    ("taken", "wanted", "said"),
    [
        (("minimal", "low", "medium", "high"), "none", "minimal"),
        (("none", "high"), "none", "none"),
        (("none", "high"), "low", "high"),
        (("low", "medium"), "high", "medium"),
        ((), "none", "none"),
    ],
)
def test_an_effort_that_a_model_lacks_is_the_next_one_above(
    to: str, taken: tuple[str, ...], wanted: str, said: str
) -> None:
    facts = ModelFacts(thinking="effort", efforts=taken)
    body = sent(user_text("go"), to=to, facts=facts, reasoning_effort=wanted)
    assert (body.get("reasoning_effort") or body["reasoning"]["effort"]) == said


def test_a_model_that_thinks_gets_its_limit_by_its_own_name_wherever_it_is_served() -> None:
    def names(**facts: Any) -> set[str]:
        return set(sent(user_text("go"), facts=ModelFacts(**facts), max_output_tokens=9))

    assert "max_completion_tokens" in names(thinking="effort")
    assert "max_tokens" in names(thinking="none")


def test_no_effort_is_asked_of_a_model_that_has_none() -> None:
    facts = ModelFacts(thinking="none")
    assert "reasoning_effort" not in sent(user_text("go"), facts=facts, reasoning_effort="low")


def test_thoughts_that_were_kept_nowhere_do_not_go_back_by_id() -> None:
    reply = AssistantMessage(
        parts=(
            ReasoningPart(text="hm", opaque={"id": "rs_1", "summary": []}),
            TextPart(text="I look.", opaque={"id": "msg_1"}),
            ToolCall(call_id="a", tool="f", opaque={"id": "fc_1"}),
        ),
        model="openai:m",
    )
    body = sent(user_text("go"), reply, answer(), to="openai:m", dialect={"stateless": True})
    assert [one["type"] for one in body["input"]] == [
        "message", "message", "function_call", "function_call_output",
    ]  # fmt: skip
    assert not any("id" in one for one in body["input"])
    kept = sent(user_text("go"), reply, answer(), to="openai:m")
    assert [one.get("id") for one in kept["input"]] == [None, "rs_1", "msg_1", "fc_1", None]


@pytest.mark.parametrize(("thinking", "kinds"), [("none", ["message", "function_call"]), ("effort", None)])
def test_a_model_that_does_not_think_gets_no_thoughts(thinking: Any, kinds: list[str] | None) -> None:
    thought = ReasoningPart(opaque={"id": "rs_1", "summary": [], "encrypted_content": "e"})
    reply = said(thought, ToolCall(call_id="a", tool="f", opaque={"id": "fc_1"}), by="openai:m")
    facts = ModelFacts(thinking=thinking)
    body = sent(user_text("go"), reply, to="openai:m", facts=facts, dialect={"stateless": True})
    expected = kinds or ["message", "reasoning", "function_call"]
    assert [one["type"] for one in body["input"]] == expected


def test_a_model_of_groqs_that_does_not_think_gets_no_thoughts() -> None:
    reply = said(ReasoningPart(text="hm"), call(), by="groq:a")
    dialect = {"reasoning_back": "reasoning"}
    for thinking, expected in (("none", None), ("", "hm")):
        body = sent(reply, answer(), to="groq:b", facts=ModelFacts(thinking=thinking), dialect=dialect)
        assert body["messages"][0].get("reasoning") == expected


def test_encrypted_thoughts_go_back_with_their_ids() -> None:
    thought = ReasoningPart(opaque={"id": "rs_1", "summary": [], "encrypted_content": "e"})
    reply = said(thought, ToolCall(call_id="a", tool="f", opaque={"id": "fc_1"}), by="openai:m")
    body = sent(user_text("go"), reply, answer(), to="openai:m", dialect={"stateless": True})
    assert [one.get("id") for one in body["input"]] == [None, "rs_1", "fc_1", None]


def test_anthropic_gets_no_text_of_blanks() -> None:
    body = sent(
        user_text("go"), said(TextPart(text=" \n"), call(), by="anthropic:m"), answer(text="\n"),
        UserMessage(parts=(TextPart(text="  "), TextPart(text="on"))),
        to="anthropic:m",
    )  # fmt: skip
    texts = [block["text"] for turn in body["messages"] for block in turn["content"] if "text" in block]
    assert texts == ["go", "on"]
    assert "content" not in body["messages"][2]["content"][0]


@pytest.mark.parametrize(("choice", "thinks"), [("auto", True), ("required", False), ("f", False)])
def test_anthropic_gets_no_budget_together_with_a_forced_call(choice: str, *, thinks: bool) -> None:
    facts = ModelFacts(thinking="budget", max_output_tokens=32_000)
    body = sent(user_text("go"), to="anthropic:m", facts=facts, reasoning_effort="low", tool_choice=choice)
    assert ("thinking" in body) is thinks


SIGNED = ReasoningPart(text="hm", opaque={"type": "thinking", "signature": "s"})
HIDDEN = ReasoningPart(opaque={"type": "redacted_thinking", "data": "d"})


def test_claude_gets_no_thoughts_of_another_claude_model() -> None:
    """Anthropic of such a refusal: anthropics/anthropic-sdk-python#1598."""
    for by, kinds in (("m", ["thinking", "redacted_thinking", "tool_use"]), ("other", ["tool_use"])):
        reply = said(SIGNED, HIDDEN, call(), by=f"anthropic:{by}")
        body = sent(user_text("go"), reply, answer(), to="anthropic:m")
        assert [block["type"] for block in body["messages"][1]["content"]] == kinds


def test_anthropic_gets_no_budget_amid_a_turn_that_began_without_thoughts() -> None:
    """Seen as a 400: anthropics/claude-code#12894, n8n-io/n8n#22550."""
    thought, bare = said(SIGNED, call(), by="anthropic:m"), said(call("b"), by="anthropic:m")
    foreign = said(call(), by="openai:m")
    facts = ModelFacts(thinking="budget", max_output_tokens=32_000)

    def thinks(*thread: Message, facts: ModelFacts = facts) -> bool:
        return "thinking" in sent(*thread, to="anthropic:m", facts=facts, reasoning_effort="low")

    assert thinks(user_text("go"), thought, answer(), bare, answer("b"))
    assert not thinks(user_text("go"), bare, answer("b"))
    assert not thinks(user_text("go"), foreign, answer(), thought, answer())
    assert thinks(user_text("go"), bare, answer("b"), said(TextPart(text="done")), user_text("more"))
    assert thinks(user_text("go"), bare, answer("b"), facts=ModelFacts(thinking="adaptive"))


def test_newer_claude_models_drop_thoughts_whose_prefix_changed() -> None:
    aim = target("anthropic:m", ModelFacts(thinking="adaptive", bound_thinking=True, forced_calls=False))
    wire = protocol_of("anthropic")
    assert wire.fixed_headers(aim)["anthropic-beta"].startswith("thinking-binding-controls")
    request = ModelRequest(system="", messages=(user_text("go"),), tools=(TOOL,), tool_choice="required")
    body = wire.body(request, aim)
    assert body["thinking"] == {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert "tool_choice" not in body
    assert "anthropic-beta" not in wire.fixed_headers(target("anthropic:m", ModelFacts(thinking="adaptive")))


def test_a_beta_that_the_user_names_stands_beside_ours() -> None:
    found = with_lists({"anthropic-beta": "a", "x": "1"}, {"Anthropic-Beta": "b", "X": "2"})
    assert found == {"anthropic-beta": "a,b", "x": "2"}


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("anthropic:claude-opus-5", False),
        ("anthropic:claude-opus-5-20260724", False),
        ("anthropic:claude-opus-5-5", True),
        ("anthropic:claude-fable-5-20260601", False),
        ("anthropic:claude-fable-5-1-20260901", True),
        ("anthropic:claude-fable-5-2", True),
        ("anthropic:claude-fable-5-2-20261101", True),
        ("anthropic:claude-sonnet-4-20250514", False),
    ],
)
def test_which_claude_models_bind_their_thoughts(name: str, *, bound: bool) -> None:
    facts = load_catalogue({}).facts(name)
    assert facts.bound_thinking is (True if bound else None)
    assert facts.price is not None


def test_a_long_prompt_costs_its_own_price() -> None:
    facts = load_catalogue({}).facts("gemini:gemini-2.5-pro")
    short = cost_of(Usage(input_tokens=200_000, output_tokens=1_000), facts)
    long = cost_of(Usage(input_tokens=200_001, output_tokens=1_000, cache_read_tokens=1), facts)
    assert short == pytest.approx(0.26)
    assert long == pytest.approx(0.515, abs=1e-5)


def test_a_signature_of_geminis_openai_door_goes_back_to_the_service_it_came_from_alone() -> None:
    signed = ToolCall(call_id="a", tool="f", opaque={"extra_content": {"google": {"thought_signature": "s"}}})
    own = sent(said(signed, by="svc:m"), answer())
    other = sent(said(signed, by="else:m"), answer())
    assert "extra_content" in own["messages"][0]["tool_calls"][0]
    assert "extra_content" not in other["messages"][0]["tool_calls"][0]


@pytest.mark.parametrize("text", ["so", ""])
def test_mistral_gets_its_thoughts_back_in_the_content_if_the_model_thinks(text: str) -> None:
    dialect = {"reasoning": "ignored", "reasoning_back": "content", "max_tokens": "max_tokens"}
    parts: list[AssistantPart] = [ReasoningPart(text="hm"), call()]
    reply = said(*([TextPart(text=text)] if text else []), *parts, by="mistral:m")

    def body(thinking: Any) -> dict[str, Any]:
        facts = ModelFacts(thinking=thinking, efforts=("none", "high"))
        settings = {"reasoning_effort": "low", "max_output_tokens": 9}
        return sent(
            user_text("go"), reply, answer(), to="mistral:m", facts=facts, dialect=dialect, **settings
        )

    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    words = [{"type": "text", "text": text}] if text else []
    assert body("effort")["messages"][1]["content"] == [thought, *words]
    assert (body("effort")["reasoning_effort"], body("effort")["max_tokens"]) == ("high", 9)
    assert body("")["messages"][1].get("content", "") == text
    assert "reasoning_effort" not in body("")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("The encrypted content for item rs_1 could not be verified.", "invalid_encrypted_content"),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", None),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", "invalid_request_error"),
        (
            "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
            None,
        ),
        ("Thought signature is not valid.", "INVALID_ARGUMENT"),
    ],
)
async def test_thoughts_that_a_service_refuses_are_left_out_in_sight(words: str, code: str | None) -> None:
    """Seen as the end of whole sessions: anthropics/anthropic-sdk-python#1598, langchain-ai/openwiki#921."""
    refusal = json.dumps({"error": {"message": words, "code": code}}).encode()
    whole = {"type": "message", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
    thread = (user_text("go"), said(SIGNED, call(), by="svc:m"), answer())
    seen: list[LiveEvent] = []
    refused = Answer(status=400, body=refusal, headers={"content-type": "application/json"})
    async with replay_server([refused, Answer(body=json.dumps(whole).encode()), refused]) as server:
        providers = Providers(
            ProviderConfig(
                providers={"svc": ProviderSettings(protocol="anthropic", base_url=server.url)},
                clock=HandClock(),
            )
        )
        model = providers.open(["svc:m"])
        message = await model.reply(ModelRequest(system="", messages=thread), seen.append)
        with pytest.raises(ProviderError):
            await model.reply(ModelRequest(system="", messages=(user_text("go"),)), seen.append)
        await providers.aclose()
    first, second = (one.body for one in server.received[:2])
    assert (b'"thinking"' in first, b'"thinking"' in second, b'"tool_use"' in second) == (True, False, True)
    assert message.text == "ok"
    assert [words in one.reason for one in seen if isinstance(one, ModelRetried)] == [True]


@pytest.mark.parametrize(("by", "expected"), [("gemini:m", ["a", "a"]), ("other:m", [None, None])])
def test_gemini_gets_the_ids_of_its_own_calls_on_both_sides(by: str, expected: list[str | None]) -> None:
    own = ToolCall(call_id="a", tool="f", opaque={"id": True})
    turns = sent(user_text("go"), said(own, by=by), answer(), to="gemini:m")["contents"]
    found = turns[1]["parts"][0]["functionCall"], turns[2]["parts"][0]["functionResponse"]
    assert [one.get("id") for one in found] == expected


@pytest.mark.parametrize(("more", "there"), [({}, False), ({"additionalProperties": True}, True)])
def test_gemini_is_told_of_arguments_whose_names_are_free(more: dict[str, Any], *, there: bool) -> None:
    tool = ToolSpec(name="f", description="", parameters={"type": "object", "properties": {}, **more})
    (found,) = sent(user_text("go"), to="gemini:m", tools=(tool,))["tools"][0]["functionDeclarations"]
    assert ("parametersJsonSchema" in found) is there


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature"),
        ("`temperature` is deprecated for this model.", "temperature"),
        (
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
            "parallel_tool_calls",
        ),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning_effort"),
        ('"m" does not support thinking', "reasoning_effort"),
        ("output_config.effort: Extra inputs are not permitted", "reasoning_effort"),
        ("Thinking level MINIMAL is not supported for this model.", "reasoning_effort"),
        ("Unsupported parameter: 'stop' is not supported with this model.", "stop"),
    ],
)
async def test_a_setting_that_a_model_lacks_is_left_out_in_sight_and_then_at_once(
    words: str, name: str
) -> None:
    """Seen: evalstate/fast-agent#279, langchain-ai/open-swe#628."""
    seen: list[LiveEvent] = []
    settings: dict[str, Any] = {
        "temperature": 0.2, "parallel_tool_calls": False, "reasoning_effort": "low", "stop": ("x",),
    }  # fmt: skip
    request = ModelRequest(system="", messages=(user_text("go"),), tools=(TOOL,), **settings)
    refused = Answer(
        status=400,
        body=json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode(),
        headers={"content-type": "application/json"},
    )
    whole = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
    fine = Answer(body=json.dumps(whole).encode())
    async with replay_server([refused, fine, fine]) as server:
        providers = Providers(
            ProviderConfig(
                providers={"svc": ProviderSettings(protocol="openai-chat", base_url=server.url)},
                clock=HandClock(),
            )
        )
        model = providers.open(["svc:m"])
        for _ in range(2):
            assert (await model.reply(request, seen.append)).text == "ok"
        await providers.aclose()
    sent_settings = [set(settings) & set(json.loads(one.body)) for one in server.received]
    assert sent_settings == [set(settings), set(settings) - {name}, set(settings) - {name}]
    assert [f"`{name}`" in one.reason for one in seen if isinstance(one, ModelRetried)] == [True]


@pytest.mark.parametrize(
    ("model", "effort", "think"),
    [("gpt-oss:20b", "low", "low"), ("gpt-oss:20b", "none", False), ("qwen3:8b", "low", True)],
)
def test_ollama_takes_an_effort_as_a_word_for_gpt_oss_alone(model: str, effort: str, think: object) -> None:
    facts = load_catalogue({}).facts(f"ollama:{model}")
    assert sent(user_text("go"), to=f"ollama:{model}", facts=facts, reasoning_effort=effort)["think"] == think
