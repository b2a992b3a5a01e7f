"""The embedded model with a real llama.cpp server over real HTTP, on random weights that the test makes."""

import json
import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import anyio
import gguf
import numpy as np
import pytest

from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.llm.local import AnswerStream, LocalModel, open_local
from agentctl.llm.local_catalogue import default_model
from agentctl.llm.local_server import LocalServer
from agentctl.protocol.events import LiveEvent, Progressed, TextStreamed
from agentctl.protocol.messages import ToolCall, ToolSpec, user_text

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="no wheel of llama.cpp for this platform"),
]
READ = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string", "enum": ["README.md", "LICENSE"]}},
        "required": ["path"],
        "additionalProperties": False,
    },
)


def write_random_model(path: Path) -> None:
    """Write a llama of one layer with random weights and one token a byte: 110 KB, loads in no time."""
    writer = gguf.GGUFWriter(str(path), "llama")
    width, inner, tokens = 32, 64, 260
    writer.add_context_length(4096)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // 2)
    writer.add_vocab_size(tokens)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(
        [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256)), "▁".encode()]
    )
    writer.add_token_scores([0.0] * tokens)
    kinds = gguf.TokenType
    writer.add_token_types([kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.BYTE] * 256, kinds.NORMAL])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(value=False)  # else the sampler refuses grammars
    random = np.random.default_rng(7)
    shapes = {
        "token_embd": (tokens, width), "output": (tokens, width),
        "blk.0.attn_q": (width, width), "blk.0.attn_k": (width, width), "blk.0.attn_v": (width, width),
        "blk.0.attn_output": (width, width), "blk.0.ffn_gate": (inner, width),
        "blk.0.ffn_up": (inner, width), "blk.0.ffn_down": (width, inner),
    }  # fmt: skip
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(0, 0.3, shape).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "random.gguf"
    write_random_model(path)
    return path


def request(*, tools: tuple[ToolSpec, ...] = (READ,)) -> ModelRequest:
    return ModelRequest(
        system="You read.",
        messages=(user_text("Read it.", source="task"),),
        tools=tools,
        max_output_tokens=400,
    )


async def test_random_weights_still_call_an_offered_tool_with_valid_arguments(weights: Path) -> None:
    model = open_local(str(weights))
    heard: list[LiveEvent] = []
    try:
        with anyio.fail_after(60):
            reply = await model.reply(request(), heard.append)
    finally:
        await model.aclose()

    (call,) = reply.parts
    assert isinstance(call, ToolCall)
    assert (call.tool, reply.stop, reply.model) == ("read_file", "tool_calls", f"local:{weights}")
    assert call.arguments["path"] in {"README.md", "LICENSE"}
    assert reply.usage.input_tokens > 0
    assert reply.usage.cost_usd == 0.0
    assert isinstance(heard[0], Progressed)
    assert not [event for event in heard if isinstance(event, TextStreamed)]


async def test_without_tools_it_just_talks_and_its_text_is_streamed(weights: Path) -> None:
    model = open_local(str(weights))
    heard: list[LiveEvent] = []
    try:
        with anyio.fail_after(60):
            reply = await model.reply(request(tools=()), heard.append)
    finally:
        await model.aclose()

    assert reply.text == "".join(event.text for event in heard if isinstance(event, TextStreamed))


async def test_one_process_serves_every_agent_and_ends_with_the_model(weights: Path) -> None:
    server = LocalServer(path=weights, alias="random", context=2048)
    model = LocalModel(label=str(weights), guided=False, server=server)
    addresses = []
    with anyio.fail_after(60):
        async with anyio.create_task_group() as agents:
            for _ in range(3):
                agents.start_soon(model.reply, request(), lambda _event: None)
        addresses = [(await server.address()).base_url for _ in range(2)]
        await model.aclose()

    assert len(set(addresses)) == 1
    assert not server.running
    port = int(addresses[0].rsplit(":", 1)[1].partition("/")[0])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


async def test_a_server_that_died_is_started_again(weights: Path) -> None:
    server = LocalServer(path=weights, alias="random", context=2048)
    with anyio.fail_after(60):
        before = await server.address()
        assert server._process is not None  # noqa: SLF001 - the process that is killed is the server's own
        server._process.kill()  # noqa: SLF001
        await server._process.wait()  # noqa: SLF001
        after = await server.address()
        await server.aclose()

    assert before.base_url != after.base_url or before.key != after.key


async def test_the_key_keeps_other_users_of_the_machine_out(weights: Path) -> None:
    server = LocalServer(path=weights, alias="random", context=2048)
    try:
        with anyio.fail_after(60):
            address = await server.address()
            port = int(address.base_url.rsplit(":", 1)[1].partition("/")[0])
            async with await anyio.connect_tcp("127.0.0.1", port) as connection:
                await connection.send(
                    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"
                )
                answer = await connection.receive()
    finally:
        await server.aclose()

    assert b" 401 " in answer.split(b"\r\n")[0]


async def test_the_process_is_gone_when_its_parent_is_killed(weights: Path) -> None:
    script = (
        "import anyio, sys, time\n"
        "from pathlib import Path\n"
        "from agentctl.llm.local_server import LocalServer\n"
        "async def main():\n"
        "    server = LocalServer(path=Path(sys.argv[1]), alias='x', context=512)\n"
        "    print((await server.address()).base_url, flush=True)\n"
        "    await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(weights)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline().decode().rsplit(":", 1)[1].partition("/")[0])
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()

    with anyio.fail_after(30):
        while True:
            try:
                connection = await anyio.connect_tcp("127.0.0.1", port)
            except OSError:
                break
            await connection.aclose()
            await anyio.lowlevel.checkpoint()


async def test_a_file_that_is_no_model_hands_over_to_the_next_model(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"no model at all")
    model = open_local(str(path))

    with anyio.fail_after(60), pytest.raises(ModelCallFailed, match="cannot run here") as raised:
        await model.reply(request(), lambda _event: None)

    assert raised.value.details.next_model
    assert not raised.value.details.retryable


async def test_a_model_that_is_not_installed_says_what_to_type() -> None:
    model = open_local(default_model())

    with pytest.raises(ModelCallFailed) as raised:
        await model.reply(request(), lambda _event: None)

    assert raised.value.details.next_model
    assert "cannot run here" in raised.value.message


@pytest.mark.parametrize("size", [1, 2, 3, 7, 200])
async def test_the_final_answer_is_streamed_as_text_whatever_the_pieces(size: int) -> None:
    answer = 'Say "hi"\n\u00e9 \U0001f600 \\ end'
    written = json.dumps({"final_answer": answer})
    heard: list[LiveEvent] = []
    stream = AnswerStream(heard.append)

    for start in range(0, len(written), size):
        stream(TextStreamed(text=written[start : start + size]))

    assert "".join(event.text for event in heard if isinstance(event, TextStreamed)) == answer


async def test_a_tool_call_is_not_streamed_as_text() -> None:
    heard: list[LiveEvent] = []
    stream = AnswerStream(heard.append)

    stream(TextStreamed(text='{"tool": "read_file", "arguments": {"path": "a"}}'))

    assert not heard
