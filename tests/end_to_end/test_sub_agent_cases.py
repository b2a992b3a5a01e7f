"""Reported faults of sub-agents elsewhere, each tried here through the real command."""

import json
import re
from pathlib import Path

from tests.end_to_end.command import Bench
from tests.end_to_end.test_mcp import trust
from tests.end_to_end.test_subagents import ALLOW, FAMILY, lead
from tests.tools.mcp.serving import PREAMBLE

SPAWN = '{ tool = "spawn_agent", arguments = { agent = "digger", task = "dig" } }'
DIGGER_TOOLS = 'available_tools = ["shell"]\n[script]'


def blueprint(bench: Bench, call: str, *, child: str = "", parent: str = "", top: str = "") -> Path:
    """A lead that starts a digger, which makes one call and says how it ended."""
    text = FAMILY.replace("[model]", f"{top}\n[model]", 1)
    text = text.replace('[stages.digger]\nprompt = "Dig."', f'{parent}\n[stages.digger]\nprompt = "Dig."')
    tools = 'available_tools = ["shell", "read_file", "write_file", "list_dir"]'
    text = text.replace(DIGGER_TOOLS, f"{tools}\n{child}\n[script]")
    replies = f'[[script.replies]]\nagent = "digger"\ntool_calls = [{call}]\n'
    return bench.blueprint(
        text + lead(SPAWN) + replies + '[[script.replies]]\nagent = "digger"\ntext = "dug"\n'
    )


def outcome_of_the_child(bench: Bench, path: Path, *flags: str) -> tuple[str, str]:
    """Run it; return outcome and text of the digger's one call."""
    ran = bench.agentctl("run", path, "go", *flags, "--jsonl")
    found = [
        event["event"]["message"]["result"]
        for event in map(json.loads, ran.out.splitlines())
        if event["type"] == "event"
        and event.get("parent")
        and event["event"].get("message", {}).get("type") == "ToolMessage"
    ]
    assert len(found) == 1, ran.err
    return found[0]["outcome"], found[0]["text"]


def test_sa_001_what_the_operator_denies_is_denied_in_the_child(bench: Bench) -> None:
    (bench.workdir / "f").touch(mode=0o600)
    path = blueprint(bench, '{ tool = "shell", arguments = { command = "chmod 777 f" } }')

    outcome, text = outcome_of_the_child(bench, path, *ALLOW, "--yolo", "--deny", "shell(chmod 777 *)")

    assert outcome == "denied"
    assert "chmod 777" in text
    assert (bench.workdir / "f").stat().st_mode & 0o777 == 0o600


def test_sa_002_the_childs_own_deny_holds(bench: Bench) -> None:
    (bench.workdir / "secrets").mkdir()
    (bench.workdir / "secrets" / "x").write_text("key", encoding="utf-8")
    own = '[stages.digger.tool_permissions]\nread_file = { default = "allow", deny = ["secrets/**"] }'
    path = blueprint(bench, '{ tool = "read_file", arguments = { path = "secrets/x" } }', child=own)

    assert outcome_of_the_child(bench, path, *ALLOW, "--yolo")[0] == "denied"


def test_sa_003_a_parent_that_may_not_write_starts_no_child_that_does(bench: Bench) -> None:
    (bench.workdir / "f").write_text("as it was", encoding="utf-8")
    plan_mode = '[stages.lead.tool_permissions]\nwrite_file = "deny"'
    own = '[stages.digger.tool_permissions]\nwrite_file = "allow"'
    write = '{ tool = "write_file", arguments = { path = "new", content = "x" } }'
    path = blueprint(bench, write, parent=plan_mode, child=own)

    assert outcome_of_the_child(bench, path, *ALLOW, "--yolo")[0] == "denied"
    assert not (bench.workdir / "new").exists()


def test_sa_004_what_a_stage_does_not_offer_or_asks_is_its_own_affair(bench: Bench) -> None:
    """The lead has no read_file, and its stage asks for it: neither comes down. A deny does."""
    (bench.workdir / "f").write_text("found", encoding="utf-8")
    read = '{ tool = "read_file", arguments = { path = "f" } }'
    asks = '[stages.lead.tool_permissions]\nread_file = "ask"'
    denies = '[stages.lead.tool_permissions]\nread_file = "deny"'

    asked = outcome_of_the_child(bench, blueprint(bench, read, parent=asks), *ALLOW)
    denied = outcome_of_the_child(bench, blueprint(bench, read, parent=denies), *ALLOW)
    above = blueprint(bench, read, top='[tool_permissions]\nread_file = "ask"')

    assert asked[0] == "ok"
    assert denied[0] == "denied"
    assert outcome_of_the_child(bench, above, *ALLOW)[0] == "denied"


def test_sa_009_a_server_that_is_denied_for_the_child_is_not_there(bench: Bench) -> None:
    (bench.folder / "server.py").write_text(f"{PREAMBLE}\nserve(echo)", encoding="utf-8")
    own = (
        'available_connectors = ["srv"]\n[stages.digger.tool_permissions]\n"srv__*" = "deny"\n'
        '[[mcp_servers]]\nname = "srv"\ncommand = ["python3", "server.py"]'
    )
    path = blueprint(bench, '{ tool = "srv__echo", arguments = { text = "hi" } }', child=own)

    outcome, text = outcome_of_the_child(bench, path, *ALLOW, "--yolo", "--trust", trust(bench, path))

    assert outcome == "failed"
    assert "There is no tool 'srv__echo' in this stage." in text


def test_every_shared_case_of_sub_agents_has_a_test(shared: Path) -> None:
    lines = (shared / "cases" / "sub-agent.jsonl").read_text(encoding="utf-8").splitlines()
    known = {json.loads(line)["id"] for line in lines}
    in_memory = (Path(__file__).parents[1] / "run" / "test_children.py").read_text(encoding="utf-8")
    tested = [*globals(), *re.findall(r"def (test_sa_\w+)", in_memory)]
    here = {f"SA-{name.split('_')[2]}" for name in tested if name.startswith("test_sa_")}

    assert known - here == set()
