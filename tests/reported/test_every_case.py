"""No case of these areas is without a test that carries its id."""

import re
from pathlib import Path

import pytest

from tests.reported.cases import AREAS, OWN, SHARED, cases, read_cases

HERE = Path(__file__).parent


@pytest.mark.parametrize("area", AREAS)
def test_every_case_of_an_area_is_tried_by_its_id(area: str) -> None:
    module = (HERE / f"test_{area.replace('-', '_')}.py").read_text(encoding="utf-8")
    ids = [case.id for case in cases(area)]

    assert re.findall(r'@each_case\("(.*)"\)', module) == [area]
    assert len(ids) == len(set(ids))
    assert {case.id for case in read_cases(OWN / f"{area}.jsonl")} <= set(ids)


def test_the_shared_files_are_all_read(shared: Path) -> None:
    """What stands beside the checkout is what was collected: an area without its file would try nothing."""
    assert shared / "cases" == SHARED
    for area in AREAS:
        there = [case.id for case in read_cases(SHARED / f"{area}.jsonl")]
        assert there == [case.id for case in cases(area)][-len(there) :]
