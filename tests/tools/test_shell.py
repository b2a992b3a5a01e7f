import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import Executor, SandboxKind, SandboxPolicy
from agentctl.protocol.effects import OpaqueCommand, ReadPath, RunProgram, WritePath
from agentctl.protocol.values import JsonObject
from agentctl.testing.recording_executor import RecordingExecutor, answer
from agentctl.tools.definition import ActContext, Tool, ToolOutput, ToolPlace
from agentctl.tools.shell import shell_tools

pytestmark = pytest.mark.anyio
Call = Callable[[Tool, JsonObject], Awaitable[ToolOutput]]


@pytest.fixture
def tools(executor: Executor) -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in shell_tools(executor)}


@pytest.fixture
def effects(tools: dict[str, Tool], place: ToolPlace) -> Callable[[str], Awaitable[list[object]]]:
    async def of(command: str) -> list[object]:
        prepared = await tools["shell"].prepare({"command": command}, place)
        return list(prepared.effects)

    return of


Effects = Callable[[str], Awaitable[list[object]]]


async def test_a_command_gives_its_output(call: Call, tools: dict[str, Tool], shown: list[str]) -> None:
    output = await call(tools["shell"], {"command": "echo one; echo two >&2"})

    assert output.text == "one\ntwo"
    assert not output.failed
    assert isinstance(output.structured, dict)
    assert output.structured["exit_code"] == 0
    assert "".join(shown) == "one\ntwo\n"


async def test_a_failed_command_says_how_it_ended(call: Call, tools: dict[str, Tool]) -> None:
    output = await call(tools["shell"], {"command": "echo oops; exit 3"})

    assert output.text == "oops\n[exit code 3]"
    assert output.failed


async def test_silence_is_not_taken_for_nothing_having_run(call: Call, tools: dict[str, Tool]) -> None:
    output = await call(tools["shell"], {"command": "true"})

    assert output.text == "[exit code 0]"


async def test_time_is_up(call: Call, tools: dict[str, Tool]) -> None:
    with anyio.fail_after(30):
        output = await call(tools["shell"], {"command": "sleep 60", "timeout_s": 1})

    assert "stopped after 1 s" in output.text
    assert output.failed


async def test_a_longer_time_than_the_most_counts_as_the_most(context: ActContext, place: ToolPlace) -> None:
    executor = RecordingExecutor(answers=[answer("done")])
    shell = shell_tools(executor)[0]
    await (await shell.prepare({"command": "true", "timeout_s": 999_999}, place)).act(context)

    assert [request.timeout_s for request in executor.commands] == [3600]


async def test_head_and_tail_of_a_long_output_are_kept(call: Call, tools: dict[str, Tool]) -> None:
    output = await call(tools["shell"], {"command": "seq 1 20000; echo FAILED x"})

    assert output.text.startswith("1\n2\n")
    assert output.text.endswith("FAILED x")
    assert "left out" in output.text
    assert len(output.text.encode()) <= 32_768
    assert output.spill


async def test_what_a_command_writes_is_counted(call: Call, tools: dict[str, Tool], place: ToolPlace) -> None:
    output = await call(
        tools["shell"], {"command": "head -c 1000 /dev/zero > out.bin; mkdir d; echo x > d/y"}
    )

    assert (output.bytes_written, output.files_written) == (1002, 2)
    assert isinstance(output.structured, dict)
    assert output.structured["changed"]


async def test_commands_side_by_side_are_counted_once(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    outputs: list[ToolOutput] = []

    async def write(name: str) -> None:
        outputs.append(await call(tools["shell"], {"command": f"head -c 1000 /dev/zero > {name}"}))

    async with anyio.create_task_group() as group:
        for name in ("a", "b", "c"):
            group.start_soon(write, name)

    assert sum(output.bytes_written for output in outputs) == 3000


async def test_a_background_command_is_read_and_ended_by_its_id(call: Call, tools: dict[str, Tool]) -> None:
    started = await call(tools["shell"], {"command": "echo up; sleep 60", "background": True})
    assert isinstance(started.structured, dict)
    name = str(started.structured["id"])

    with anyio.fail_after(30):
        text = ""
        while "up" not in text:
            text = (await call(tools["shell_output"], {"id": name})).text
    ended = await call(tools["shell_kill"], {"id": name})

    assert f"{name} is running" in text
    assert isinstance(ended.structured, dict)
    assert ended.structured["running"] is False


async def test_an_unknown_background_id_is_told(call: Call, tools: dict[str, Tool]) -> None:
    with pytest.raises(ToolError):
        await call(tools["shell_output"], {"id": "nothing"})


async def test_the_preview_is_the_whole_command(tools: dict[str, Tool], place: ToolPlace) -> None:
    command = "echo " + "x" * 5000

    prepared = await tools["shell"].prepare({"command": command}, place)

    assert prepared.preview == command
    assert prepared.measures_workdir
    assert not prepared.read_only


async def test_a_redirect_is_a_write_at_its_resolved_path(effects: Effects, place: ToolPlace) -> None:
    (place.workdir / "sub").mkdir()
    (place.workdir / "link").symlink_to("sub")

    found = await effects("echo x > link/../sub/out.txt")

    assert WritePath(path=str(place.workdir / "sub/out.txt")) in found
    assert any(isinstance(effect, RunProgram) and effect.argv[0] == "echo" for effect in found)


async def test_a_write_through_a_link_is_a_write_where_the_link_leads(
    effects: Effects, place: ToolPlace
) -> None:
    target = place.workdir.parent / "elsewhere"
    target.mkdir()
    (place.workdir / "link").symlink_to(target)

    found = await effects("echo x > link/out.txt")

    assert WritePath(path=str(target / "out.txt")) in found


async def test_protected_writes_and_reads_outside_are_marked(effects: Effects, place: ToolPlace) -> None:
    (place.workdir / ".git").mkdir()

    writes = await effects("echo x > .git/config")
    reads = await effects("cat /etc/hostname")

    assert WritePath(path=str(place.workdir / ".git/config"), protected="git internals") in writes
    outside = [effect for effect in reads if isinstance(effect, ReadPath) and effect.outside]
    assert [effect.path for effect in outside] == [os.path.realpath("/etc/hostname")]  # noqa: TID251


async def test_a_wildcard_that_meets_a_link_out_of_the_workdir_is_seen(
    effects: Effects, place: ToolPlace
) -> None:
    (place.workdir / "a.txt").write_text("a")
    (place.workdir / "b.txt").symlink_to("/etc/hostname")

    found = await effects("cat *.txt")

    outside = [effect.path for effect in found if isinstance(effect, ReadPath) and effect.outside]
    assert outside == [os.path.realpath("/etc/hostname")]  # noqa: TID251


async def test_a_linked_directory_in_a_wildcard_path_is_seen(effects: Effects, place: ToolPlace) -> None:
    (place.workdir / "d").symlink_to("/etc")

    found = await effects("cat */hostname")

    assert any(isinstance(effect, ReadPath) and effect.outside for effect in found)


async def test_a_line_that_cannot_be_told_is_opaque(effects: Effects) -> None:
    found = await effects("$(cat list) x")

    assert any(isinstance(effect, OpaqueCommand) for effect in found)


async def test_a_repository_that_starts_programs_is_not_trusted_for_git(
    effects: Effects, place: ToolPlace, call: Call, tools: dict[str, Tool]
) -> None:
    await call(tools["shell"], {"command": "git init -q . && mkdir sub"})
    clean = [effect for effect in await effects("git status") if isinstance(effect, RunProgram)]
    with (place.workdir / ".git/config").open("a") as config:
        config.write("[core]\n\tfsmonitor = ./evil.sh\n")
    dirty = [effect for effect in await effects("git -C sub status") if isinstance(effect, RunProgram)]

    assert [effect.distrust for effect in clean] == [""]
    assert all("fsmonitor" in effect.distrust for effect in dirty)


async def test_leaving_the_sandbox_is_an_ask_that_says_why(tools: dict[str, Tool], place: ToolPlace) -> None:
    arguments: JsonObject = {"command": "echo hi", "unsandboxed": "docker needs its socket"}
    bare = replace(place, sandbox=SandboxPolicy(kind=SandboxKind.NONE))

    leaving = await tools["shell"].prepare(arguments, place)
    nothing_to_leave = await tools["shell"].prepare(arguments, bare)

    assert ReadPath(path="/", outside=True) in leaving.effects
    assert "docker needs its socket" in leaving.preview
    assert not any(isinstance(effect, ReadPath) for effect in nothing_to_leave.effects)


async def test_a_command_leaves_the_sandbox_only_when_it_asked_to(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    inside = await call(tools["shell"], {"command": "true"})
    outside = await call(tools["shell"], {"command": "true", "unsandboxed": "because"})

    assert isinstance(inside.structured, dict)
    assert isinstance(outside.structured, dict)
    assert outside.structured["sandbox"] == "none"
    assert inside.structured["sandbox"] in {"bubblewrap", "landlock", "none"}


async def test_a_nul_byte_is_refused(tools: dict[str, Tool], place: ToolPlace, context: ActContext) -> None:
    with pytest.raises(ToolError, match="NUL"):
        await tools["shell"].prepare({"command": "echo \0"}, place)


async def test_progress_that_is_drawn_over_is_shown_once_and_kept_whole(
    call: Call, tools: dict[str, Tool]
) -> None:
    line = "for n in $(seq 300); do printf '%d of 300\\r' $n; done; echo; printf 'a\\rb\\r\\nc\\r\\n'"

    output = await call(tools["shell"], {"command": line})

    assert output.text == (
        "1 of 300\n[… 298 parts between carriage returns left out …]\n300 of 300\na\rb\r\nc\r"
    )
    assert isinstance(output.structured, dict)
    assert str(output.structured["output"]).count("\r") == 303


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("kill -9 $$", "[exit code 137 (128 + SIGKILL)]"),
        ("exit 128", "[exit code 128]"),
        ("exit 255", "[exit code 255]"),
        ("sleep 60 & exit 0", "[exit code 0; 1 process it left running was ended]"),
    ],
)
async def test_how_a_command_ended_is_said(call: Call, tools: dict[str, Tool], line: str, said: str) -> None:
    assert (await call(tools["shell"], {"command": line})).text == said


async def test_what_a_command_said_stands_though_the_workdir_went_away(
    call: Call, tools: dict[str, Tool], place: ToolPlace, context: ActContext
) -> None:
    bare = replace(place, sandbox=SandboxPolicy(kind=SandboxKind.NONE))
    line = f"echo said; mv {place.workdir} {place.workdir}-gone"

    output = await (await tools["shell"].prepare({"command": line}, bare)).act(context)

    assert output.text.startswith("said\n[")
    assert "could not be counted" in output.text
    with pytest.raises(ToolError, match="is gone"):
        await call(tools["shell"], {"command": "true"})
