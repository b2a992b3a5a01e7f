"""The README shows what is so: its screen, its blueprint, its links."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.blueprint.load import load_blueprint

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_screen_in_the_readme_is_what_a_terminal_shows() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "capture.py"), "--check"], check=False, timeout=90
    )

    assert ran.returncode == 0, "python docs/capture.py  makes it anew"


def test_the_blueprint_in_the_readme_loads(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    path = tmp_path / "fix.toml"
    path.write_text(block, encoding="utf-8")

    blueprint = load_blueprint(path)

    assert [stage.name for stage in blueprint.in_order] == ["find", "mend"]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_in_the_readme_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_every_page_of_the_guide_is_linked_from_the_readme() -> None:
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name})" not in README] == []
