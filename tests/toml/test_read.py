"""What can be wrong with a file itself gets one clear error and the right exit code."""

import os
from pathlib import Path

import pytest

from agentctl.errors import AgentctlError, ExitCode, InvalidInput, UsageError
from agentctl.toml.read import MAX_BYTES, parse, read_file


def test_a_missing_file_is_a_usage_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no blueprint at .*gone\.toml"):
        read_file(tmp_path / "gone.toml", what="blueprint")


def test_a_directory_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory"):
        read_file(tmp_path, what="blueprint")


def test_a_pipe_is_refused_without_being_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)

    with pytest.raises(UsageError, match="not a regular file"):
        read_file(pipe, what="blueprint")


def test_a_path_below_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="There is no blueprint"):
        read_file(tmp_path / "file" / "x.toml", what="blueprint")


def test_a_file_of_exactly_one_mebibyte_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "full.toml"
    file.write_bytes(b"#" * MAX_BYTES)

    assert len(read_file(file, what="blueprint")) == MAX_BYTES


def test_a_larger_file_is_invalid_and_tells_both_numbers(tmp_path: Path) -> None:
    file = tmp_path / "big.toml"
    file.write_bytes(b"#" * (10 * MAX_BYTES))

    with pytest.raises(InvalidInput, match=r"10,485,760 bytes; at most 1,048,576") as caught:
        read_file(file, what="blueprint")
    assert caught.value.exit_code is ExitCode.INVALID


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a = ", "f:1:5: not valid TOML: invalid value"),
        (b"a = 1\nb == 2", "f:2:4: not valid TOML: invalid value"),
        (b"a = 1\na = 2", "f:2:6: not valid TOML: cannot overwrite a value"),
        (b'a = "x', "f:1:7: not valid TOML: unterminated string"),
        (b"[a\n", "f:1:3: not valid TOML: expected ']' at the end of a table declaration"),
        (b"a = 1\nb = \xff\xfe", "f:2:5: byte 0xff is not UTF-8"),
        (b"a = \x00", "f:1:5: not valid TOML: invalid value"),
        (b"a = " + b"9" * 5000, "f"),
        (b"a = " + b"[" * 3000, "f"),
        (b"a = " + b"[" * 70 + b"]" * 70, "f: values are nested deeper than 64 levels"),
    ],
)
def test_what_is_not_toml_is_told_with_line_and_column(data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(data, file="f")

    assert str(caught.value).startswith(message)
    assert len(caught.value.problems) == 1


def test_a_byte_order_mark_and_windows_line_ends_are_taken() -> None:
    table = parse(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n", file="f")

    assert table.values == {"a": 1, "b": 2}
    assert str(table.value_position("b")) == "f:2:5"


def test_every_error_of_a_file_says_who_must_act(tmp_path: Path) -> None:
    for make in (lambda: read_file(tmp_path / "x", what="config"), lambda: parse(b"=", file="f")):
        with pytest.raises(AgentctlError) as caught:
            make()
        assert caught.value.exit_code in {ExitCode.USAGE, ExitCode.INVALID}
