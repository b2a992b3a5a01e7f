"""The page about MCP is true: its examples load."""

import re
from pathlib import Path

import pytest

from agentctl.blueprint.load import parse_blueprint
from agentctl.settings.load import read_config
from agentctl.toml.read import parse

EXAMPLES = re.findall(
    r"```toml\n(.*?)```",
    (Path(__file__).resolve().parents[3] / "docs" / "mcp.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.parametrize("text", [text for text in EXAMPLES if "[[mcp_servers]]" in text])
def test_servers_of_the_page_are_valid_config(text: str) -> None:
    assert read_config(parse(text.encode(), file="config.toml")).mcp_servers


def test_stage_and_rules_of_the_page_are_a_valid_blueprint() -> None:
    rest = "\n".join(text for text in EXAMPLES if "[[mcp_servers]]" not in text)

    blueprint = parse_blueprint(f'[agent]\nname = "a"\n{rest}'.encode(), path=Path("a.toml"), found_by="path")

    assert blueprint.entry.available_connectors == ("git",)
