"""The pages about blueprints and configuration are true: their references current, their examples valid."""

import re
from pathlib import Path

import pytest

from agentctl.blueprint.lints import lints_of
from agentctl.blueprint.load import parse_blueprint
from agentctl.cli.schema import Kind, reference_text
from agentctl.settings.load import read_config
from agentctl.toml.read import parse

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {Kind.BLUEPRINT: DOCS / "blueprints.md", Kind.CONFIG: DOCS / "configuration.md"}
EXAMPLE = re.compile(r"```toml\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("kind", list(Kind))
def test_the_reference_of_a_page_is_what_the_code_says(kind: Kind) -> None:
    mark = f"<!-- reference: agentctl schema {kind.value} --markdown -->\n"
    text = PAGES[kind].read_text(encoding="utf-8")

    _, _, rest = text.partition(mark)

    assert rest.partition("<!-- end of reference -->")[0] == reference_text(kind)


def test_the_examples_of_the_blueprint_page_load_without_a_lint() -> None:
    examples = EXAMPLE.findall(PAGES[Kind.BLUEPRINT].read_text(encoding="utf-8"))

    assert examples
    for text in examples:
        blueprint = parse_blueprint(text.encode(), path=Path("example.toml"), found_by="path")
        assert lints_of(blueprint) == ()


def test_the_examples_of_the_configuration_page_are_valid() -> None:
    examples = EXAMPLE.findall(PAGES[Kind.CONFIG].read_text(encoding="utf-8"))

    assert examples
    for text in examples:
        read_config(parse(text.encode(), file="config.toml"))


def test_every_lint_is_explained() -> None:
    source = (DOCS.parent / "agentctl" / "blueprint" / "lints.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source))

    page = PAGES[Kind.BLUEPRINT].read_text(encoding="utf-8")

    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []
