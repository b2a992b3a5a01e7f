"""The page on tools is true for scripts, and an installed plugin's tool is offered and judged."""

import re
import sys
from pathlib import Path

import pytest

from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.trust import trust_needed
from agentctl.cli.tool_list import listed_tools
from agentctl.errors import InvalidInput
from agentctl.settings.trust_store import TrustStore
from agentctl.testing.play import Played, Turn, approve, play

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).resolve().parents[2] / "docs" / "tools.md"
PLUGIN = """
from agentctl.protocol.effects import ReachHost
from agentctl.protocol.messages import ToolSpec
from agentctl.tools.definition import Prepared, ToolOutput


class Weather:
    aliases = ()
    waits_for_person = False
    spec = ToolSpec(name="weather", description="The weather.", parameters={"type": "object"})

    async def prepare(self, arguments, place):
        async def act(context):
            return ToolOutput(text="sunny")

        return Prepared(effects=(ReachHost(host="weather.example"),), act=act, preview="ask for the weather")


def broken():
    raise RuntimeError("no sky")
"""


def blueprint(folder: Path, tools: str) -> Path:
    path = folder / "a.toml"
    path.write_text(
        f'[agent]\nname = "a"\n[model]\nuse = "scripted:"\n[stages.one]\navailable_tools = [{tools}]\n',
        encoding="utf-8",
    )
    needed = trust_needed(load_blueprint(path))
    if needed.items:
        TrustStore().add(needed.sha256, blueprint=path)
    return path


async def called(blueprint: Path, tool: str, **arguments: str) -> Played:
    call = {"tool_calls": [{"tool": tool, "arguments": dict(arguments)}]}
    turn = Turn(text="go", replies=[call, {"text": "done"}])  # type: ignore[list-item]
    return await play(blueprint, [turn], workdir=blueprint.parent, answers=approve)


async def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    found = re.search(
        r"<!-- example: (tools/\w+\.py) -->\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    assert found
    file = tmp_path / found[1]
    file.parent.mkdir()
    file.write_text(found[2], encoding="utf-8")
    (tmp_path / "text.txt").write_text("b a b c\nb a", encoding="utf-8")
    path = blueprint(tmp_path, '"count_words", "read_file"')

    played = await called(path, "count_words", path="text.txt")

    assert played.results[0].structured == {"words": 6, "most": ["b", "a", "c"]}
    listed = {tool.name: tool for tool in listed_tools(str(path))}
    assert listed["count_words"].origin == f"blueprint {file}"
    assert listed["shell"].origin == "built-in"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with two plugin tools, one of which is broken."""
    site = tmp_path / "site"
    info = site / "sky-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "sky_tools.py").write_text(PLUGIN, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sky\nVersion: 1.0\n", encoding="utf-8")
    points = "[agentctl.tools]\nweather = sky_tools:Weather\nbroken = sky_tools:broken\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    sys.modules.pop("sky_tools", None)


@pytest.mark.usefixtures("installed")
async def test_a_plugin_tool_is_offered_and_its_effects_judged(tmp_path: Path) -> None:
    path = blueprint(tmp_path, '"weather"')

    played = await called(path, "weather")

    assert played.results[0].text == "sunny"
    (question,) = played.questions
    entries = {judgement.entry for judgement in question.decision.judgements}  # type: ignore[union-attr]
    assert entries == {"weather", "network"}
    assert "plugin sky 1.0" in {tool.origin for tool in listed_tools("")}


@pytest.mark.usefixtures("installed")
async def test_a_broken_plugin_is_named_with_its_package(tmp_path: Path) -> None:
    path = blueprint(tmp_path, '"broken"')

    with pytest.raises(InvalidInput, match=r"plugin tool 'broken' of sky 1\.0 fails: RuntimeError: no sky"):
        await called(path, "broken")
