"""Reported faults of other harnesses' model adapters, tried through the real command on a service of ours.

The service speaks what the report says; what counts is what the run did: which tools ran, what the model was
told, what the person sees. The cases are those of ../shared/cases/provider-*.jsonl and more of their kinds.
"""

import json
from collections.abc import Sequence

import pytest

from agentctl.testing.replay_server import Answer, Received, replay_server_in_thread
from tests.end_to_end.command import Bench, Ran

WRITER = """
[agent]
name = "writer"
[model]
use = ["openai-chat:m"]
[stages.work]
prompt = "Work."
available_tools = ["write_file", "current_time"]
"""
ARGUMENTS = '{"path":"R.md","content":"cut"}'


def sse(*events: object, done: bool = True) -> Answer:
    data = [one if isinstance(one, str) else json.dumps(one) for one in events] + (["[DONE]"] if done else [])
    return Answer(
        headers={"content-type": "text/event-stream"},
        body="".join(f"data: {one}\n\n" for one in data).encode(),
    )


def chunk(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(arguments: object, *, name: str = "write_file", **more: object) -> dict[str, object]:
    function = {"name": name, "arguments": arguments}
    return chunk(tool_calls=[{"index": 0, "id": "a", "function": function} | more])


DONE = sse(chunk(content="All done."), chunk("stop"))


def played(bench: Bench, answers: Sequence[Answer]) -> tuple[Ran, list[Received]]:
    path = bench.blueprint(WRITER)
    with replay_server_in_thread(answers) as server:
        ran = bench.agentctl(
            "run",
            path,
            "go",
            "--yolo",
            "--json",
            OPENAI_BASE_URL=server.url,
            OPENAI_API_KEY="key-of-the-test",
        )
    return ran, server.received


def results(request: Received) -> list[str]:
    body = request.json()
    assert isinstance(body, dict)
    messages = body["messages"]
    assert isinstance(messages, list)
    return [str(one["content"]) for one in messages if isinstance(one, dict) and one.get("role") == "tool"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(sse(piece(ARGUMENTS), chunk("length")), id="PS-014"),
        pytest.param(sse(piece(ARGUMENTS), chunk("LENGTH")), id="in capitals"),
        pytest.param(sse(piece(ARGUMENTS), chunk("length"), chunk("tool_calls")), id="then another reason"),
        pytest.param(sse(piece(ARGUMENTS), chunk("content_filter")), id="by a filter"),
    ],
)
def test_a_call_of_a_cut_turn_is_not_run_and_the_model_is_told(bench: Bench, answer: Answer) -> None:
    ran, received = played(bench, [answer, DONE])
    assert ran.code == 0, ran.err
    assert not (bench.workdir / "R.md").exists()
    (told,) = results(received[1])
    assert "not run" in told.lower()


def test_a_file_is_not_overwritten_by_half_of_itself(bench: Bench) -> None:
    """PS-015: what was written only in part does not take the place of the whole."""
    (bench.workdir / "a.py").write_text("def main(): work()\n" * 900, encoding="utf-8")
    cut = json.dumps({"path": "a.py", "content": "def main(): ..."})
    ran, _ = played(bench, [sse(piece(cut), chunk("length")), DONE])
    assert ran.code == 0, ran.err
    assert (bench.workdir / "a.py").stat().st_size == 19 * 900


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(sse(piece(ARGUMENTS), done=False), id="an end without its terminator"),
        pytest.param(sse(piece(ARGUMENTS), {"error": {"message": "x", "code": 502}}), id="PS-013"),
        pytest.param(sse(piece(ARGUMENTS), '{"choices":[{"index"', chunk("tool_calls")), id="a broken event"),
        pytest.param(sse(piece(ARGUMENTS), chunk("error")), id="a reason that is an error"),
        pytest.param(Answer(body=b""), id="PS-031"),
        pytest.param(
            Answer(status=502, headers={"content-type": "text/html"}, body=b"<h1>Bad</h1>"), id="PS-029"
        ),
    ],
)
def test_a_reply_that_is_not_whole_is_asked_for_again_and_nothing_of_it_runs(
    bench: Bench, broken: Answer
) -> None:
    ran, received = played(bench, [broken, DONE])
    assert ran.code == 0, ran.err
    assert len(received) == 2
    assert not (bench.workdir / "R.md").exists()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(sse(piece(ARGUMENTS), chunk("tool_calls"), chunk("stop")), id="PS-016"),
        pytest.param(sse(piece(ARGUMENTS), chunk("stop")), id="PS-017"),
        pytest.param(sse(piece(ARGUMENTS), {"choices": []}, chunk(None)), id="PS-024"),
        pytest.param(sse(piece({"path": "R.md", "content": "cut"}), chunk("tool_calls")), id="an object"),
        pytest.param(sse(piece(json.dumps(ARGUMENTS)), chunk("tool_calls")), id="encoded twice"),
        pytest.param(sse(piece(ARGUMENTS, index=None), chunk("tool_calls")), id="PA-007"),
        pytest.param(sse(piece(ARGUMENTS, id=None), chunk("tool_calls")), id="PA-008"),
        pytest.param(sse(piece(ARGUMENTS, id=""), chunk("")), id="an empty reason"),
        pytest.param(sse(chunk(content=None, refusal=None, tool_calls=None), piece(ARGUMENTS), chunk("stop"),
                         {"choices": [], "usage": None}), id="nulls"),
    ],
)  # fmt: skip
def test_a_call_that_is_whole_runs_once_however_it_is_written(bench: Bench, answer: Answer) -> None:
    ran, received = played(bench, [answer, DONE])
    assert ran.code == 0, ran.err
    assert (bench.workdir / "R.md").read_text(encoding="utf-8") == "cut"
    assert len(results(received[1])) == 1


@pytest.mark.parametrize("name", ["functions.write_file", "write file", "", "wrote_file"])
def test_a_name_that_is_none_gets_an_answer_and_does_not_break_the_thread(bench: Bench, name: str) -> None:
    ran, received = played(bench, [sse(piece(ARGUMENTS, name=name), chunk("tool_calls")), DONE])
    assert ran.code == 0, ran.err
    body = received[1].json()
    assert isinstance(body, dict)
    (sent,) = [call["function"]["name"] for one in body["messages"] for call in one.get("tool_calls") or []]
    assert sent.replace("_", "").isalnum()
    assert results(received[1])


def test_broken_arguments_of_one_call_do_not_stop_the_other(bench: Bench) -> None:
    """PA-014."""
    other = {"index": 1, "id": "b", "function": {"name": "write_file", "arguments": ARGUMENTS}}
    ran, received = played(
        bench, [sse(piece('{"path":'), chunk(tool_calls=[other]), chunk("tool_calls")), DONE]
    )
    assert ran.code == 0, ran.err
    assert (bench.workdir / "R.md").exists()
    assert len(results(received[1])) == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            Answer(body=b"unsupported model: x", headers={"content-type": "text/plain"}),
            "unsupported model: x",
        ),
        (Answer(status=401, body=b'{"error":{"message":"wrong key-of-the-test"}}'), "wrong [key]"),
        (Answer(status=429, headers={"retry-after": "7200"}, body=b'{"error":{"message":"slow"}}'), "7200 s"),
        (Answer(status=400, body=b'{"error":{"message":"no such","code":"bad_thing"}}'), "no such"),
    ],
)
def test_what_the_service_says_reaches_the_person(bench: Bench, answer: Answer, words: str) -> None:
    """PS-027, PS-030."""
    ran, received = played(bench, [answer])
    assert ran.code == 7, ran.out
    assert words in ran.err
    assert "key-of-the-test" not in ran.err + ran.out
    assert "Traceback" not in ran.err
    assert len(received) == 1
