"""docs/output.md names every key of every record."""

import re
from pathlib import Path

from agentctl.interaction.unattended import RefusedAsk
from agentctl.terminal.api import Ending
from agentctl.terminal.board import Board
from agentctl.terminal.json_views import event_record
from agentctl.terminal.result import header, result
from tests.terminal.samples import approval, published, started

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "output.md").read_text("utf-8")


def words(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def test_the_header_is_documented() -> None:
    line = next(line for line in DOCS.splitlines() if line.startswith("`header`"))

    assert words(line) - {"header"} == set(header())


def test_event_records_are_documented() -> None:
    one = published(started(), parent="r-parent")
    paragraph = DOCS.split("`event` and `live`:")[1].split(". An")[0]

    assert set(event_record(one)) | {"sequence"} == words(paragraph)


def test_the_result_is_documented_in_its_order() -> None:
    table = [
        line.split("|")[1] for line in DOCS.split("| key | what |")[1].splitlines() if line.startswith("| `")
    ]
    keys = [word for row in table for word in re.findall(r"`(\w+)`", row)]
    board = Board(waiting={"q-1": approval()})
    record = result(board, Ending(exit_code=0, refused=(RefusedAsk(tool="x", shown="y"),)))

    assert sorted(keys) == sorted(record)
    for name in ("questions", "refused"):
        row = next(line for line in DOCS.splitlines() if line.startswith(f"| `{name}`"))
        entries = record[name]
        assert isinstance(entries, list)
        assert isinstance(entries[0], dict)
        assert set(entries[0]) <= words(row)
