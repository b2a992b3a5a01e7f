"""docs/exit-codes.md tells every code that there is, by its name."""

import re
from pathlib import Path

from agentctl.errors import ExitCode

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exit-codes.md"


def test_the_page_lists_exactly_the_codes_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert [(int(code), name) for code, name in rows] == [(int(code), code.name.lower()) for code in ExitCode]
