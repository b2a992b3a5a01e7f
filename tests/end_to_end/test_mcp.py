"""Whole runs with servers: trust, missing ones, rules, questions, model calls."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.end_to_end.command import Bench, Ran
from tests.tools.mcp.serving import PREAMBLE
from tests.tools.mcp.test_use import FORM, SAMPLING

BLUEPRINT = """
[agent]
name = "served"
[model]
use = ["scripted:"]
[stages.main]
prompt = "Work."
available_connectors = ["srv"]
[[mcp_servers]]
name = "srv"
command = [{python}, "server.py"]
required = true
{more}
[script]
[[script.replies]]
tool_calls = [{{ tool = "srv__echo", arguments = {{ text = "hi" }} }}]
{between}
[[script.replies]]
text = "done"
"""
ASKING = """
def call(m):
    send(id="q1", method=METHOD, params=PARAMS)
    reply = read()
    answer(m, **text(json.dumps(reply.get("result") or reply.get("error"))))
serve(call)
"""


def served(bench: Bench, body: str = "serve(echo)", *, more: str = "", between: str = "") -> Path:
    (bench.folder / "server.py").write_text(PREAMBLE + textwrap.dedent(body), encoding="utf-8")
    text = BLUEPRINT.format(python=json.dumps(sys.executable), more=more, between=between)
    return bench.blueprint(text)


def trust(bench: Bench, path: Path) -> str:
    report = json.loads(bench.agentctl("check", path, "--json").out)
    return str(report["trust"]["sha256"])


def results(ran: Ran) -> list[tuple[str, str]]:
    """Outcome and text of each tool call."""
    events = [json.loads(line).get("event", {}) for line in ran.out.splitlines()]
    done = [event["result"] for event in events if event.get("type") == "CallCompleted"]
    return [(result["outcome"], result["text"]) for result in done]


def test_a_server_that_a_blueprint_brings_starts_only_when_it_is_trusted(bench: Bench) -> None:
    path = served(bench, "open('started', 'w'); serve(echo)")

    untrusted = bench.agentctl("run", path, "go", "--allow", "srv__*")
    checked = bench.agentctl("check", path)
    planned = bench.agentctl("plan", path)

    assert untrusted.code == 3
    assert "--trust" in untrusted.err
    assert (checked.code, planned.code) == (0, 0), planned.err
    assert not (bench.workdir / "started").exists()

    ran = bench.agentctl("run", path, "go", "--allow", "srv__*", "--jsonl", "--trust", trust(bench, path))
    assert ran.code == 0, ran.err
    assert results(ran) == [("ok", "hi")]
    assert (bench.workdir / "started").exists()


def test_an_ask_is_refused_unattended_and_names_the_rule_that_helps(bench: Bench) -> None:
    path = served(bench)

    ran = bench.agentctl("run", path, "go", "--trust", trust(bench, path))

    assert ran.code == 5
    assert "--allow 'srv__echo'" in ran.err


def test_a_missing_required_server_ends_the_run_before_any_token_is_spent(bench: Bench) -> None:
    path = served(bench, "sys.exit('no licence')")

    ran = bench.agentctl("run", path, "go", "--json", "--trust", trust(bench, path))

    assert ran.code == 8
    assert ran.result["steps"] == 0
    assert "no licence" in str(ran.result["reason"])


def test_a_missing_optional_server_is_a_warning(bench: Bench) -> None:
    path = served(bench, "sys.exit('no licence')", more="[stages.main.limits]\nsteps = 5")
    path.write_text(path.read_text("utf-8").replace("required = true", ""), encoding="utf-8")

    ran = bench.agentctl("run", path, "go", "--trust", trust(bench, path))

    assert ran.code == 0
    assert "The MCP server 'srv' is not there; its tools are not offered" in ran.err


def test_a_server_that_nobody_names_is_a_warning(bench: Bench) -> None:
    path = served(bench)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("[[mcp_servers]]")] + text[text.index("[script]") :], encoding="utf-8")

    ran = bench.agentctl("run", path, "go")

    assert ran.code == 0
    assert "No MCP server is named 'srv', in your config or in the blueprint" in ran.err


def test_mc_027_a_denied_server_is_not_offered(bench: Bench) -> None:
    """MC-027: what a rule forbids is not sent to the model."""
    path = served(bench)

    ran = bench.agentctl("run", path, "go", "--deny", "srv__*", "--trust", trust(bench, path))

    assert "There is no tool 'srv__echo' in this stage. Tools here: none." in ran.err


def test_a_server_of_the_users_config_needs_no_trust_and_hides_its_secrets(
    bench: Bench, agentctl_home: Path
) -> None:
    path = served(bench, "sys.exit('token ' + os.environ['TOKEN'])")
    text = path.read_text(encoding="utf-8")
    start, end = text.index("[[mcp_servers]]"), text.index("[script]")
    home = agentctl_home / "agentctl" / "config"
    home.mkdir(parents=True, exist_ok=True)
    server = text[start:end].replace('"server.py"', json.dumps(str(bench.folder / "server.py")))
    config = f'{server}\nenv = {{ TOKEN = "${{MY_TOKEN}}" }}\n'
    (home / "config.toml").write_text(config, encoding="utf-8")
    path.write_text(text[:start] + text[end:], encoding="utf-8")

    ran = bench.agentctl("run", path, "go", "--json", MY_TOKEN="abc-secret")
    unset = bench.agentctl("run", path, "go", "--json")

    assert ran.code == 8
    assert "token ${MY_TOKEN}" in str(ran.result["reason"])
    assert "abc-secret" not in ran.out + ran.err
    assert "MY_TOKEN is not set" in str(unset.result["reason"])


def test_a_servers_question_gets_no_answer_where_nobody_is_there(bench: Bench) -> None:
    path = served(bench, textwrap.dedent(FORM) + ASKING)
    hash_ = trust(bench, path)

    ran = bench.agentctl("run", path, "go", "--allow", "srv__*", "--jsonl", "--trust", hash_)
    paused = bench.agentctl("run", path, "go", "--allow", "srv__*", "--on-ask", "pause", "--trust", hash_)

    assert results(ran) == [("ok", '{"action": "cancel"}')]
    assert paused.code == 4


def test_a_servers_model_call_is_judged_and_paid_by_the_run(bench: Bench) -> None:
    reply = '[[script.replies]]\nstage = "srv__sampling"\ntext = "four"'
    path = served(bench, textwrap.dedent(SAMPLING) + ASKING, more="sampling = true", between=reply)
    hash_ = trust(bench, path)

    denied = bench.agentctl(
        "run", path, "go", "--jsonl", "--allow", "srv__*", "--deny", "srv__sampling", "--trust", hash_
    )
    allowed = bench.agentctl("run", path, "go", "--jsonl", "--allow", "srv__*", "--trust", hash_)
    asked = bench.agentctl("run", path, "go", "--jsonl", "--allow", "srv__echo", "--trust", hash_)

    assert "Refused" in results(denied)[0][1]
    assert '"text": "four"' in results(allowed)[0][1]
    assert "needs a person's approval" in results(asked)[0][1]
    assert "--allow 'srv__sampling'" in asked.err


def test_a_sub_agent_has_servers_of_its_own_and_one_process_serves_both(bench: Bench) -> None:
    path = served(bench, "open('starts', 'a').write('x'); serve(echo)")
    text = path.read_text(encoding="utf-8").replace(
        'available_connectors = ["srv"]',
        'available_connectors = ["srv"]\navailable_tools = ["spawn_agent", "wait_agent"]',
    )
    start = text.index("[script]")
    path.write_text(
        text[:start]
        + """
[stages.helper]
prompt = "Help."
allow_as_worker = true
available_connectors = ["srv"]
[script]
[[script.replies]]
agent = "served"
tool_calls = [{ tool = "spawn_agent", arguments = { agent = "helper", task = "help" } }]
[[script.replies]]
agent = "served"
tool_calls = [{ tool = "wait_agent", arguments = {} }]
[[script.replies]]
agent = "helper"
tool_calls = [{ tool = "srv__echo", arguments = { text = "from below" } }]
[[script.replies]]
agent = "helper"
text = "helped"
[[script.replies]]
agent = "served"
text = "done"
""",
        encoding="utf-8",
    )

    ran = bench.agentctl("run", path, "go", "--yolo", "--jsonl", "--trust", trust(bench, path))

    assert ran.code == 0, ran.err
    assert ("ok", "from below") in results(ran)
    assert (bench.workdir / "starts").read_text("utf-8") == "x"


def test_the_sdk_is_not_loaded_before_a_server_is_started() -> None:
    program = (
        "import agentctl.cli.launch, agentctl.cli.mcp, sys;"
        "print([name for name in ('mcp', 'mcp_types', 'httpx2', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
