"""Edits keep what a person wrote, never leave a broken file, and never lose each other."""

import stat
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agentctl.errors import InvalidInput, StateConflict, UsageError
from agentctl.settings.edit import remember, set_value, unset_value
from agentctl.settings.files import locked, replace_file
from agentctl.settings.load import config_file, load_settings

WriteConfig = Callable[[str], Path]

TEXT = """\
# mine
model = "ollama:a"  # the good one

[tool_permissions]
shell = { default = "ask", deny = ["git push *"] } # never push

[limits]
# few
steps = 64_000
"""


def test_a_set_value_stands_in_its_table_and_everything_else_stays(write_config: WriteConfig) -> None:
    file = write_config(TEXT)

    assert set_value(("limits", "steps"), "20") == "limits.steps = 20"

    assert file.read_text("utf-8") == TEXT.replace("64_000", "20")


def test_missing_tables_are_made() -> None:
    set_value(("agents", "coder", "tool_permissions", "github__*"), "ask")
    set_value(("model",), "ollama:b")

    assert load_settings(environment={}).config.model.use == ("ollama:b",)
    assert config_file().read_text("utf-8").count('"github__*" = "ask"') == 1


def test_a_new_config_can_be_read_by_its_owner_alone() -> None:
    set_value(("limits", "steps"), "20")

    assert stat.S_IMODE(config_file().stat().st_mode) == 0o600


def test_mode_and_link_of_the_config_stay(write_config: WriteConfig, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(TEXT)
    real.chmod(0o640)
    link = write_config("")
    link.unlink()
    link.symlink_to(real)

    set_value(("limits", "steps"), "20")

    assert link.is_symlink()
    assert "steps = 20" in real.read_text("utf-8")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("limits", "steps"), "many", "expected a whole number"),
        (("limitz", "steps"), "3", "did you mean 'limits'"),
        (("tool_permissions", "shell", "default"), "alow", "did you mean 'allow'"),
        (("tool_permissions", "shel"), "allow", "did you mean 'shell'"),
    ],
)
def test_what_would_break_the_config_is_refused_and_not_written(
    write_config: WriteConfig, path: tuple[str, ...], value: str, message: str
) -> None:
    file = write_config(TEXT)

    with pytest.raises(InvalidInput, match=message):
        set_value(path, value)

    assert file.read_text("utf-8") == TEXT


def test_a_key_below_a_value_is_refused(write_config: WriteConfig) -> None:
    write_config(TEXT)

    with pytest.raises(UsageError, match="model is not a table"):
        set_value(("model", "use"), "ollama:b")


def test_a_config_that_is_not_toml_is_left_alone(write_config: WriteConfig) -> None:
    file = write_config("model = ")

    with pytest.raises(InvalidInput, match="not valid TOML"):
        remember("shell(pytest *)")

    assert file.read_text("utf-8") == "model = "


def test_unset_takes_a_value_out_once(write_config: WriteConfig) -> None:
    file = write_config(TEXT)

    assert unset_value(("tool_permissions", "shell", "deny"))
    assert not unset_value(("tool_permissions", "shell", "deny"))
    assert not unset_value(("nothing", "here"))

    assert "git push" not in file.read_text("utf-8")
    assert "# never push" in file.read_text("utf-8")


def test_a_remembered_rule_is_added_once_and_comments_stay(write_config: WriteConfig) -> None:
    file = write_config(TEXT)

    assert remember("shell(pytest *)")
    assert not remember("shell(pytest *)")
    assert remember("write_file(src/**)")

    assert file.read_text("utf-8").startswith(TEXT)
    rules = [entry.rule for entry in load_settings(environment={}).config.remembered]
    assert rules == ["shell(pytest *)", "write_file(src/**)"]


def test_remembered_rules_join_an_inline_array(write_config: WriteConfig) -> None:
    write_config('remembered = [{ rule = "shell(a *)" }]\n')

    remember("shell(b *)")

    assert len(load_settings(environment={}).config.remembered) == 2


@pytest.mark.parametrize("rule", ["shel(x)", "shell(x", "current_time(x)", ""])
def test_what_is_no_rule_is_never_remembered(write_config: WriteConfig, rule: str) -> None:
    file = write_config(TEXT)

    with pytest.raises(InvalidInput):
        remember(rule)

    assert file.read_text("utf-8") == TEXT


def test_a_blueprints_script_tool_can_be_remembered(write_config: WriteConfig) -> None:
    write_config("")

    assert remember("count_words", tools=("count_words",))


@pytest.mark.anyio
async def test_edits_of_many_processes_are_all_kept() -> None:
    code = "import sys; from agentctl.settings.edit import remember; remember(f'shell(tool-{sys.argv[1]} *)')"
    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(anyio.run_process, [sys.executable, "-c", code, str(number)])

    rules = {entry.rule for entry in load_settings(environment={}).config.remembered}
    assert rules == {f"shell(tool-{number} *)" for number in range(6)}


def test_a_lock_that_is_held_too_long_is_told(write_config: WriteConfig) -> None:
    file = write_config(TEXT)

    with (
        locked(file),
        pytest.raises(StateConflict, match="being changed by another process"),
        locked(file, timeout_s=0.05),
    ):
        pass


def test_a_write_that_fails_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("old")

    with pytest.raises(UnicodeEncodeError):
        replace_file(file, "\ud800")

    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
