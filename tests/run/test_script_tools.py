"""Script tools in whole runs: each of their calls is judged, journaled, and done once."""

import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.trust import trust_needed
from agentctl.errors import InvalidInput
from agentctl.protocol.events import GrantGiven, LaunchFlags, MessageAdded, StateChanged, ToolCallDecided
from agentctl.protocol.messages import ToolMessage
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, Question
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.run.resume import read_snapshot
from agentctl.settings.trust_store import TrustStore
from agentctl.testing.play import Played, Turn, approve, open_stage, play

pytestmark = pytest.mark.anyio
HEADER = '# /// tool\n# description = "A tool of a test."\n# ///\n'
DONE: JsonObject = {"text": "done"}


def calls(tool: str, **arguments: JsonValue) -> JsonObject:
    return {"tool_calls": [{"tool": tool, "arguments": dict(arguments)}]}


def tool_source(body: str) -> str:
    return HEADER + "def run():\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


class Scene:
    """A blueprint with script tools, a workdir, and a person."""

    def __init__(self, root: Path) -> None:
        self.folder, self.workdir = root / "bp", root / "work"
        for folder in (self.folder / "tools", self.workdir):
            folder.mkdir(parents=True)
        self.asked: list[ApprovalQuestion] = []

    def tool(self, name: str, body: str) -> None:
        (self.folder / "tools" / f"{name}.py").write_text(tool_source(body), encoding="utf-8")

    def blueprint(self, *, tools: str, more: str = "", agent: str = "", trust: bool = True) -> Path:
        path = self.folder / "a.toml"
        text = (
            f'[agent]\nname = "a"\n{agent}\n[model]\nuse = "scripted:"\n{more}\n'
            f'[stages.one]\nprompt = "go"\navailable_tools = [{tools}]\n'
        )
        path.write_text(text, encoding="utf-8")
        needed = trust_needed(load_blueprint(path))
        if trust and needed.items:
            TrustStore().add(needed.sha256, blueprint=path)
        return path

    def answering(self, choice: str = "once") -> Callable[[Question], Answer]:
        def answer(question: Question) -> Answer:
            assert isinstance(question, ApprovalQuestion)
            self.asked.append(question)
            return ApprovalAnswer(choice=choice)  # type: ignore[arg-type]

        return answer

    async def play(self, path: Path, *replies: JsonObject, **more: object) -> Played:
        turn = Turn(text="go", replies=[*replies, DONE])
        return await play(path, [turn], workdir=self.workdir, **more)  # type: ignore[arg-type]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_an_inner_call_is_judged_asked_and_journaled_like_any_other(scene: Scene) -> None:
    scene.tool("note", "write_file('out.txt', 'x' * 10)\nreturn 'written'")
    path = scene.blueprint(tools='"note", "write_file"')

    played = await scene.play(path, calls("note"), answers=scene.answering())

    assert [question.tool for question in scene.asked] == ["note", "write_file"]
    assert "+xxxxxxxxxx" in scene.asked[1].preview
    assert played.results[0].text == "written"
    decided = [event.tool for event in played.events if isinstance(event, ToolCallDecided)]
    assert decided == ["note", "write_file"]
    inner, outer = played.calls
    assert inner.call_id.startswith(f"{outer.call_id}/1-")
    assert (inner.bytes_written, inner.files_written) == (10, 1)


async def test_unattended_an_inner_ask_is_refused_and_the_flag_is_named(scene: Scene) -> None:
    scene.tool("note", "write_file('out.txt', 'x')\nreturn 'written'")
    path = scene.blueprint(tools='"note", "write_file"')

    played = await scene.play(path, calls("note"), allow=["note"])

    assert played.results[0].outcome == "failed"
    assert "PermissionError" in played.results[0].text
    assert not (scene.workdir / "out.txt").exists()
    assert played.end.exit_code == 5


@pytest.mark.parametrize(
    ("tools", "permission", "works"),
    [
        ('"look", "read_file"', "", True),
        ('"look"', "", False),
        ('"look"', 'read_file = "allow"', True),
        ('"look", "read_file"', 'read_file = "deny"', False),
        ('"look", "read_file"', 'read_file = "inherit"', True),
    ],
)
async def test_what_scripts_may_call_follows_the_stage_and_the_permissions(
    scene: Scene, tools: str, permission: str, *, works: bool
) -> None:
    (scene.workdir / "in.txt").write_text("hello", encoding="utf-8")
    scene.tool("look", "return read_file('in.txt')")
    path = scene.blueprint(tools=tools, more=f"[tool_script_permissions]\n{permission}")

    played = await scene.play(path, calls("look"), allow=["look"])

    assert (played.results[0].text == "hello") is works
    if not works:
        assert "PermissionError" in played.results[0].text or "OSError" in played.results[0].text
        assert "tool_script_permissions" in played.results[0].text


async def test_the_users_word_on_scripts_is_a_ceiling(scene: Scene, agentctl_home: Path) -> None:
    config = agentctl_home / "agentctl" / "config"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        'tool_script_permissions = { read_file = "deny" }\n', encoding="utf-8"
    )
    scene.tool("look", "return read_file('in.txt')")
    path = scene.blueprint(tools='"look"', more='[tool_script_permissions]\nread_file = "allow"')

    played = await scene.play(path, calls("look"), allow=["look"])

    assert "read_file = deny" in played.results[0].text


@pytest.mark.parametrize("place", ["/etc/passwd", "../secret.txt", "link"])
async def test_a_script_stays_in_the_workdir(scene: Scene, place: str) -> None:
    (scene.workdir.parent / "secret.txt").write_text("secret", encoding="utf-8")
    (scene.workdir / "link").symlink_to("../secret.txt")
    scene.tool("look", f"return read_file({place!r})")
    path = scene.blueprint(tools='"look", "read_file"')

    played = await scene.play(path, calls("look"), allow=["look"], answers=approve)

    assert played.results[0].outcome == "failed"
    assert "outside" in played.results[0].text
    assert "secret\n" not in played.results[0].text


async def test_a_rule_that_denies_holds_inside_a_script(scene: Scene) -> None:
    scene.tool("push", "return shell('git push origin x')")
    path = scene.blueprint(
        tools='"push", "shell"', more='[tool_permissions]\nshell = { default = "ask", deny = ["git push *"] }'
    )

    played = await scene.play(path, calls("push"), answers=approve)

    assert "PermissionError" in played.results[0].text


ONCE = """
[[machines]]
name = "once"
initial = "open"
transitions = [{ on = "write_file", from = ["open"], to = "closed", reason = "One file is enough." }]
"""


async def test_a_machine_counts_each_call_of_a_script_for_the_next(scene: Scene) -> None:
    scene.tool(
        "notes",
        """
        write_file('a.txt', 'x')
        try:
            write_file('b.txt', 'x')
        except PermissionError as error:
            return str(error)
        """,
    )
    path = scene.blueprint(tools='"notes", "write_file"', more=ONCE)

    played = await scene.play(
        path, calls("notes"), calls("write_file", path="c.txt", content="x"), allow=["notes", "write_file"]
    )

    assert "One file is enough." in played.results[0].text
    assert [one.name for one in scene.workdir.iterdir()] == ["a.txt"]
    assert played.results[1].outcome == "denied"
    assert "One file is enough." in played.results[1].text


async def test_a_script_that_read_before_it_wrote_keeps_to_a_machine_that_wants_that(scene: Scene) -> None:
    machine = """
    [[machines]]
    name = "look"
    key = "{path}"
    initial = "unread"
    transitions = [
      { on = "read_file", from = ["unread", "read"], to = "read" },
      { on = "write_file", from = ["read"], to = "unread", reason = "Read it first." },
    ]
    """
    (scene.workdir / "a.txt").write_text("a", encoding="utf-8")
    scene.tool("again", "write_file('a.txt', read_file('a.txt') * 2, overwrite=True)")
    path = scene.blueprint(tools='"again", "read_file", "write_file"', more=textwrap.dedent(machine))

    played = await scene.play(path, calls("again"), allow=["again", "write_file"])

    assert played.results[0].outcome == "ok", played.results[0].text
    assert (scene.workdir / "a.txt").read_text(encoding="utf-8") == "aa"


async def test_state_effects_follow_the_calls_of_a_script_too(scene: Scene) -> None:
    effects = """
    [[state_effects]]
    tool = "write_file"
    ops = [{ op = "add", path = "/written/-", value = "{input.path}" }]
    [workspace]
    initial = { written = [] }
    """
    scene.tool("notes", "write_file('a.txt', 'x')\nwrite_file('b.txt', 'x')\nreturn 1 / 0")
    path = scene.blueprint(tools='"notes", "write_file"', more=textwrap.dedent(effects))

    played = await scene.play(path, calls("notes"), allow=["notes", "write_file"])

    assert played.results[0].outcome == "failed"
    written = [
        step["value"] for event in played.events if isinstance(event, StateChanged) for step in event.patch
    ]
    assert written == [{"written": []}, "a.txt", "b.txt"]


async def test_a_budget_holds_inside_a_script(scene: Scene) -> None:
    scene.tool("fill", "for n in range(10):\n    write_file('f' + str(n), 'x' * 100)\nreturn 'all'")
    path = scene.blueprint(tools='"fill", "write_file"', more="[write_budget]\nper_run = 250")

    played = await scene.play(path, calls("fill"), answers=approve)

    assert "per_run" in played.results[0].text
    assert sorted(one.name for one in scene.workdir.iterdir()) == ["f0", "f1"]


async def test_a_script_may_catch_a_refusal_and_go_on(scene: Scene) -> None:
    scene.tool(
        "try_it", "try:\n    shell('id')\nexcept PermissionError as error:\n    return 'no: ' + str(error)"
    )
    path = scene.blueprint(tools='"try_it", "shell"', more='[tool_permissions]\nshell = "deny"')

    played = await scene.play(path, calls("try_it"), answers=approve)

    assert played.results[0].text.startswith("no: ")


async def test_scripts_beside_a_blueprint_need_trust(scene: Scene) -> None:
    scene.tool("look", "return 1")
    path = scene.blueprint(tools='"look"', trust=False)

    with pytest.raises(InvalidInput, match=r"script tool 'tools/look\.py' is not trusted"):
        await scene.play(path, calls("look"))


async def test_a_script_of_the_users_own_is_found_and_wins_over_a_blueprints(
    scene: Scene, agentctl_home: Path
) -> None:
    folder = agentctl_home / "agentctl" / "config" / "tools"
    folder.mkdir(parents=True)
    (folder / "which.py").write_text(tool_source("return 'the user'"), encoding="utf-8")
    scene.tool("which", "return 'the blueprint'")
    path = scene.blueprint(tools='"which"')

    played = await scene.play(path, calls("which"), answers=approve)

    assert played.results[0].text == "the user"


async def test_always_holds_for_a_blueprints_script_tool_in_later_runs_too(scene: Scene) -> None:
    scene.tool("note", "return 'noted'")
    path = scene.blueprint(tools='"note"')

    for _ in range(2):
        played = await scene.play(path, calls("note"), answers=scene.answering("always"))
        assert played.results[0].text == "noted"

    assert [question.tool for question in scene.asked] == ["note"]


async def test_arguments_are_checked_against_the_header(scene: Scene) -> None:
    scene.tool("look", "return 1")
    path = scene.blueprint(tools='"look"')

    played = await scene.play(path, calls("look", other=1), answers=scene.answering())

    assert "Invalid arguments for look" in played.results[0].text
    assert scene.asked == []


async def test_a_credential_is_kept_from_scripts_and_a_value_from_the_journal(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.tool("look", "return [env('AGENTCTL_NOT_SET'), env('SOME_TOKEN')]")
    path = scene.blueprint(tools='"look"')

    played = await scene.play(path, calls("look"), answers=scene.answering())

    assert [question.tool for question in scene.asked] == ["look", "env"]
    assert "SOME_TOKEN may hold a credential" in played.results[0].text


async def test_arguments_that_a_person_mends_are_judged_as_the_scripts_call(scene: Scene) -> None:
    scene.tool("look", "return [env('SHELL_COLOUR'), read_file('long.txt')]")
    (scene.workdir / "long.txt").write_text("x\n" * 5000, encoding="utf-8")
    path = scene.blueprint(tools='"look"', more="[tool_script_permissions]\nread_file = 'allow'")
    mended: list[str] = []

    def answer(question: Question) -> Answer:
        assert isinstance(question, ApprovalQuestion)
        scene.asked.append(question)
        if question.tool == "env" and not mended:
            mended.append(question.tool)
            return ApprovalAnswer(choice="edit", arguments={"name": "AGENTCTL_NOT_SET"})
        return ApprovalAnswer(choice="once")

    played = await scene.play(path, calls("look"), answers=answer)

    assert [(question.tool, question.called_by) for question in scene.asked] == [
        ("look", ""),
        ("env", "look"),
        ("env", "look"),
    ]
    assert played.results[0].outcome == "ok", played.results[0].text
    assert played.results[0].structured == [None, "x\n" * 5000]


async def test_a_paused_script_goes_on_and_does_nothing_twice(scene: Scene) -> None:
    scene.tool(
        "steps",
        "shell('echo one >> log.txt')\nwrite_file('last.txt', 'x')\nreturn read_file('log.txt')",
    )
    path = scene.blueprint(tools='"steps", "shell", "read_file", "write_file"')

    async with open_stage(path, workdir=scene.workdir) as stage:
        flags = LaunchFlags(allow=("steps", "write_file(log.txt)"), on_ask="pause")
        run_id, end = await replace(stage, flags=flags).begin(Turn(text="go", replies=[calls("steps"), DONE]))
        assert end.exit_code == 4
        flags = LaunchFlags(allow=("steps", "write_file"))
        end = await replace(stage, flags=flags).resume(run_id, [calls("steps"), DONE])

    results = [one.event for one in stage.published if isinstance(one.event, MessageAdded)]
    assert end.exit_code == 0
    assert (scene.workdir / "last.txt").read_text(encoding="utf-8") == "x"
    assert (scene.workdir / "log.txt").read_text(encoding="utf-8") == "one\n"
    assert any(isinstance(one.message, ToolMessage) and one.message.result.text == "one\n" for one in results)


async def test_a_script_that_takes_another_way_after_a_pause_is_stopped(scene: Scene) -> None:
    body = "shell('echo ' + read_file('word.txt') + ' >> log.txt')\nwrite_file('last.txt', 'x')"
    scene.tool("steps", body)
    path = scene.blueprint(tools='"steps", "shell", "read_file", "write_file"')
    (scene.workdir / "word.txt").write_text("one", encoding="utf-8")

    async with open_stage(path, workdir=scene.workdir) as stage:
        flags = LaunchFlags(allow=("steps", "write_file(log.txt)"), on_ask="pause")
        run_id, _ = await replace(stage, flags=flags).begin(Turn(text="go", replies=[calls("steps"), DONE]))
        scene.tool("steps", body.replace("read_file('word.txt')", "'two'"))
        scene.blueprint(tools='"steps", "shell", "read_file", "write_file"')
        flags = LaunchFlags(allow=("steps", "write_file"))
        await replace(stage, flags=flags).resume(run_id, [calls("steps"), DONE])

    results = [one.event for one in stage.published if isinstance(one.event, MessageAdded)]
    texts = [one.message.result.text for one in results if isinstance(one.message, ToolMessage)]
    assert "takes another way than it did then" in texts[0]
    assert (scene.workdir / "log.txt").read_text(encoding="utf-8") == "one\n"


DYNAMIC = "dynamic_tools = true"


async def test_a_tool_written_during_the_run_is_offered_from_the_next_step(scene: Scene) -> None:
    path = scene.blueprint(tools='"write_file", "made"', agent=DYNAMIC)
    source = tool_source("return 'made'")
    write = calls("write_file", path="tools/made.py", content=source)

    played = await scene.play(path, calls("made"), write, calls("made"), answers=scene.answering("run"))

    assert "There is no tool 'made'" in played.results[0].text
    assert played.results[2].text == "made"
    (question,) = [question for question in scene.asked if question.tool == "made"]
    assert source in question.preview


@pytest.mark.parametrize("choice", ["run", "always"])
async def test_a_changed_source_asks_again_whatever_was_granted(scene: Scene, choice: str) -> None:
    path = scene.blueprint(tools='"write_file", "made"', agent=DYNAMIC)
    first, second = tool_source("return 1"), tool_source("return 2")

    played = await scene.play(
        path,
        calls("write_file", path="tools/made.py", content=first),
        calls("made"),
        calls("made"),
        calls("write_file", path="tools/made.py", content=second, overwrite=True),
        calls("made"),
        answers=scene.answering(choice),
    )

    asked = [question.preview for question in scene.asked if question.tool == "made"]
    assert [result.text for result in played.results if result.tool == "made"] == ["1", "1", "2"]
    assert len(asked) == 2
    assert second in asked[1]
    keys = [event.grant.key for event in played.events if isinstance(event, GrantGiven)]
    assert len([key for key in keys if key.startswith("made@")]) == 2


@pytest.mark.parametrize("rule", ['made = "allow"', '"m*" = "allow"'])
async def test_no_rule_lets_a_source_through_that_nobody_has_seen(
    scene: Scene, agentctl_home: Path, rule: str
) -> None:
    config = agentctl_home / "agentctl" / "config"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[security]\nallow_blueprint_permissions = true\n", encoding="utf-8")
    path = scene.blueprint(tools='"made"', agent=DYNAMIC, more=f"[tool_permissions]\n{rule}")
    (scene.workdir / "tools").mkdir()
    (scene.workdir / "tools" / "made.py").write_text(tool_source("return 1"), encoding="utf-8")

    played = await scene.play(path, calls("made"))

    assert played.results[0].outcome == "denied"
    assert played.end.exit_code == 5


async def test_a_launch_flag_lets_a_written_tool_through(scene: Scene) -> None:
    path = scene.blueprint(tools='"m*"', agent=DYNAMIC)
    (scene.workdir / "tools").mkdir()
    (scene.workdir / "tools" / "made.py").write_text(tool_source("return 1"), encoding="utf-8")

    played = await scene.play(path, calls("made"), allow=["made"])

    assert played.results[0].text == "1"


async def test_a_written_tool_gets_no_more_than_the_stage_offers(scene: Scene) -> None:
    path = scene.blueprint(tools='"made"', agent=DYNAMIC)
    body = """
        said = []
        for attempt in (lambda: shell('id'), lambda: env('HOME'), lambda: http_get('http://127.0.0.1:9/')):
            try:
                attempt()
            except OSError as error:
                said.append(str(error)[:60])
        return said
    """
    (scene.workdir / "tools").mkdir()
    (scene.workdir / "tools" / "made.py").write_text(tool_source(body), encoding="utf-8")

    played = await scene.play(path, calls("made"), answers=scene.answering())

    assert [question.tool for question in scene.asked] == ["made"]
    said = played.results[0].structured
    assert isinstance(said, list)
    assert len(said) == 3


async def test_a_stage_that_does_not_list_it_does_not_offer_it(scene: Scene) -> None:
    path = scene.blueprint(tools='"read_file"', agent=DYNAMIC)
    (scene.workdir / "tools").mkdir()
    (scene.workdir / "tools" / "made.py").write_text(tool_source("return 1"), encoding="utf-8")

    played = await scene.play(path, calls("made"), answers=scene.answering())

    assert "There is no tool 'made' in this stage" in played.results[0].text


async def test_a_written_file_can_not_stand_for_another_tool_nor_lead_out(scene: Scene) -> None:
    scene.tool("mine", "return 'trusted'")
    path = scene.blueprint(tools='"mine", "read_file", "far"', agent=DYNAMIC)
    folder = scene.workdir / "tools"
    folder.mkdir()
    for name in ("mine", "read_file"):
        (folder / f"{name}.py").write_text(tool_source("return 'taken'"), encoding="utf-8")
    (scene.workdir.parent / "far.py").write_text(tool_source("return 'far'"), encoding="utf-8")
    (folder / "far.py").symlink_to("../../far.py")

    played = await scene.play(path, calls("mine"), calls("far"), answers=approve)

    assert played.results[0].text == "trusted"
    assert "There is no tool 'far'" in played.results[1].text


async def test_the_model_is_told_what_is_wrong_with_the_header_it_wrote(scene: Scene) -> None:
    path = scene.blueprint(tools='"made"', agent=DYNAMIC)
    (scene.workdir / "tools").mkdir()
    (scene.workdir / "tools" / "made.py").write_text("# /// tool\n# nam = 1\n# ///\n", encoding="utf-8")

    played = await scene.play(path, calls("made"), answers=approve)

    assert "tools/made.py:2:3: nam: unknown key" in played.results[0].text


async def test_what_was_seen_of_a_source_survives_a_resume(scene: Scene) -> None:
    path = scene.blueprint(tools='"made", "ask_user"', agent=DYNAMIC)
    (scene.workdir / "tools").mkdir()
    (scene.workdir / "tools" / "made.py").write_text(tool_source("return 1"), encoding="utf-8")
    async with open_stage(path, workdir=scene.workdir, answers=scene.answering("run")) as stage:
        with anyio.fail_after(60):
            run_id, _ = await stage.begin(Turn(text="go", replies=[calls("made"), DONE]))
            snapshot = await read_snapshot(stage.journal, run_id)

    assert [grant.key.partition("@")[0] for grant in snapshot.grants] == ["made", "made"]
