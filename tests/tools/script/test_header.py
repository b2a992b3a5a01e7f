"""A script tool's header: what it gives, and every fault with its place."""

from pathlib import Path

import pytest

from agentctl.errors import InvalidInput
from agentctl.tables.script_header import MAX_SCRIPT_BYTES, has_header, parse_script

WHOLE = '''"""Anything may stand before the header."""
# /// tool
# name = "count"
# description = """
# Count words.
# Twice."""
#
# [parameters.path]
# type = "string"
#
# [parameters.top]
# type = "integer"
# minimum = 1
# default = 3
# ///

def run(path, top):
    return top
'''


def test_a_header_gives_the_spec_and_the_defaults() -> None:
    script = parse_script(WHOLE.encode(), file="tools/count.py")

    assert (script.name, script.description) == ("count", "Count words.\nTwice.")
    assert script.parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "top": {"type": "integer", "minimum": 1, "default": 3},
        },
        "additionalProperties": False,
        "required": ["path"],
    }
    assert script.filled({"path": "x"}) == {"path": "x", "top": 3}


def test_crlf_and_a_byte_order_mark_are_taken() -> None:
    data = b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode()

    assert parse_script(data, file="tools/count.py").name == "count"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"integer"', '"intger"', "tools/count.py:11:15: parameters.top: not a JSON Schema"),
        ("default = 3", "default = 0", "tools/count.py:14:3: parameters.top.default: the default is none"),
        ("description", "descripton", "tools/count.py:4:3: descripton: unknown key"),
        (
            'name = "count"',
            'name = "other"',
            "tools/count.py:3:3: name: the file's name makes the tool 'count'",
        ),
        ('# type = "integer"', "# type = integer", "tools/count.py:12:10: not valid TOML"),
        ("# ///\n\n", "\n", "tools/count.py:15:1: the header has not ended"),
        ("# /// tool\n", "", "tools/count.py: it has no header"),
        ("def run", "def go", "tools/count.py: there is no function `def run(...)`"),
        ("parameters.path", "parameters.a-b", "parameters.a-b: a parameter's name is a Python name"),
        ("Count words.\n# Twice.", " ", "tools/count.py:4:3: description: the model chooses by it"),
    ],
)
def test_a_fault_is_named_with_its_place(old: str, new: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_script(WHOLE.replace(old, new, 1).encode(), file="tools/count.py")

    assert problem in caught.value.message


def test_bytes_that_are_no_text_are_named_by_line() -> None:
    with pytest.raises(InvalidInput, match=r"tools/count\.py:2:1: byte 0xff is not UTF-8"):
        parse_script(b"#\n\xff", file="tools/count.py")


def test_a_script_that_is_too_long_to_be_read_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 65,536"):
        parse_script(b"#" * (MAX_SCRIPT_BYTES + 1), file="tools/count.py")


@pytest.mark.parametrize("name", ["a__b.py", "1a.py", "a b.py"])
def test_a_file_whose_name_is_no_tool_name_is_refused(name: str) -> None:
    text = WHOLE.replace('# name = "count"\n', "")

    with pytest.raises(InvalidInput, match="is no name for a tool"):
        parse_script(text.encode(), file=name)


def test_an_ordinary_program_does_not_mean_to_be_a_tool() -> None:
    assert not has_header(Path(__file__).read_bytes().replace(b"# /// tool", b""))
    assert has_header(WHOLE.encode())
