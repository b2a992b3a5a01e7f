"""Weights that are not random: a model that says what a test planned, on the genuine llama.cpp server.

Whole utterances are single tokens, and the last byte of the prompt decides which one comes: the chat template
ends the prompt with another byte after each tool result. Attention and feed-forward are zero, so that the
next token depends on the last one alone.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import gguf
import numpy as np

_WIDTH = 64
_FIRST_MARK = 0x61
_SERVER = """
import json, os, sys, xllamacpp
told = json.loads(sys.stdin.readline())
p = xllamacpp.CommonParams()
p.model.path, p.model_alias = told["path"], {"planned"}
p.hostnames, p.port, p.api_keys = ["127.0.0.1"], 0, [told["key"]]
p.n_ctx, p.n_parallel, p.cpuparams.n_threads = 2048, 1, 1
p.offline, p.ui, p.verbosity, p.use_jinja = True, False, 1, True
p.chat_template = told["template"]
server = xllamacpp.Server(p)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""

TEMPLATE = (
    "{%- if tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
    'Call a tool as <tool_call>\n{"name": NAME, "arguments": OBJECT}\n</tool_call>\n{% endif %}'
    "{%- set ns = namespace(results=0) %}{%- for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}{% if message.tool_calls %}{% for call in message.tool_calls %}\n<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}{% endif %}"
    "{% if message.role == 'tool' %}{% set ns.results = ns.results + 1 %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{{ 'abcdefghij'[ns.results:ns.results + 1] }}{% endif %}"
)


def call_text(tool: str, arguments: dict[str, object]) -> str:
    """Return a tool call as the template has the model write it."""
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"


def write_planned_model(path: Path, utterances: Sequence[str]) -> None:
    """Write a model that says `utterances[n]` when the thread holds n tool results."""
    writer = gguf.GGUFWriter(str(path), "llama")
    inner = 32
    bytes_from = 3
    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256)), "▁".encode()]
    said_from = len(tokens)
    tokens += [text.replace(" ", "▁").encode() for text in utterances]
    kinds = gguf.TokenType
    count = len(tokens)
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.BYTE] * 256]
    types += [kinds.NORMAL] * (count - len(types))
    embedding = np.zeros((count, _WIDTH), np.float32)
    output = np.zeros((count, _WIDTH), np.float32)
    embedding[:, -1] = 0.01
    for number in range(len(utterances)):
        mark, said = bytes_from + _FIRST_MARK + number, said_from + number
        embedding[mark] = 0
        embedding[mark, number] = 1.0
        output[said, number] = 8.0
        embedding[said] = 0
        embedding[said, number + 20] = 1.0
        output[2, number + 20] = 8.0
    for name, add in (
        ("context_length", 2048), ("embedding_length", _WIDTH), ("block_count", 1), ("head_count", 2),
        ("feed_forward_length", inner), ("head_count_kv", 2), ("rope_dimension_count", _WIDTH // 2),
        ("vocab_size", count), ("bos_token_id", 1), ("eos_token_id", 2), ("unk_token_id", 0),
    ):  # fmt: skip
        getattr(writer, f"add_{name}")(add)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * count)
    writer.add_token_types(types)
    writer.add_add_space_prefix(value=False)
    zero = {"attn_q": (64, 64), "attn_k": (64, 64), "attn_v": (64, 64), "attn_output": (64, 64)}
    zero |= {"ffn_gate": (inner, 64), "ffn_up": (inner, 64), "ffn_down": (64, inner)}
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", output)
    for name, shape in zero.items():
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextmanager
def planned_server(path: Path, *, key: str) -> Iterator[str]:
    """Run the llama.cpp server on the model at `path`; give its address."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin
        assert process.stdout
        told = {"path": str(path), "template": TEMPLATE, "key": key}
        process.stdin.write(json.dumps(told).encode() + b"\n")
        process.stdin.flush()
        yield process.stdout.readline().decode().strip()
        process.stdin.close()
