"""The code a blueprint brings is named by one hash, and only the trusted bytes are ever run."""

from pathlib import Path

import pytest

from agentctl.blueprint.code import CodeLoader
from agentctl.blueprint.load import load_blueprint, parse_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.trust import Trust, trust_needed
from agentctl.errors import InvalidInput, Position
from agentctl.locations import shipped_dir

HERE = Position(file="b.toml", line=1, column=1)
TEXT = """
[agent]
name = "a"
views = ["views.py:files"]
[stages.one]
[[hooks]]
name = "audit"
use = "hooks/audit.py:Audit"
[[hooks]]
name = "budget"
command = ["python3", "hooks/budget.py"]
events = "tool_call"
[[state_keys]]
name = "k"
merge = "fold"
fold = "folds.py:most"
[[state_effects]]
tool = "grep"
mapper = "package.effects:found"
[[mcp_servers]]
name = "m"
command = ["server"]
env = { PYTHONPATH = "." }
[model]
use = "openai-chat:x"
base_url = "http://localhost:1/v1"
"""
FILES = ("views.py", "hooks/audit.py", "hooks/budget.py", "folds.py", "tools/count.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"NAME = {name!r}\nseen = []\n")
    (tmp_path / "b.toml").write_text(TEXT)
    return tmp_path


def trust_in(folder: Path) -> Trust:
    return trust_needed(load_blueprint(folder / "b.toml"))


def test_everything_that_is_code_is_named(folder: Path) -> None:
    trust = trust_in(folder)

    assert sorted({item.kind for item in trust.items}) == [
        "MCP server",
        "fold",
        "hook",
        "hook command",
        "mapper",
        "model address",
        "script tool",
        "view",
    ]
    assert sorted(str(path.relative_to(folder)) for path in trust.files) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_change_to_any_file_changes_the_hash(folder: Path, name: str) -> None:
    before = trust_in(folder).sha256

    (folder / name).write_text("NAME = 2\n")

    assert trust_in(folder).sha256 != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["python3", "hooks/budget.py"]', '["sh", "hooks/budget.py"]'),
        ('PYTHONPATH = "."', 'PYTHONPATH = "/tmp"'),
        ("localhost:1", "localhost:2"),
        ("package.effects:found", "package.effects:other"),
    ],
)
def test_a_change_to_a_command_or_an_address_changes_the_hash(folder: Path, old: str, new: str) -> None:
    before = trust_in(folder).sha256

    (folder / "b.toml").write_text(TEXT.replace(old, new))

    assert trust_in(folder).sha256 != before


def test_a_moved_folder_keeps_its_trust(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before = trust_in(folder).sha256
    elsewhere = tmp_path_factory.mktemp("moved") / "there"

    folder.rename(elsewhere)

    assert trust_in(elsewhere).sha256 == before


def test_an_address_within_a_models_name_needs_trust() -> None:
    text = b'[agent]\nname = "a"\n[stages.one]\nmodel = "openai-chat:http://10.0.0.1/v1#m"\n'
    blueprint = parse_blueprint(text, path=Path("/x/b.toml"), found_by="path")

    assert [item.kind for item in trust_needed(blueprint).items] == ["model address"]


def test_a_blueprint_without_code_needs_no_trust() -> None:
    blueprint = parse_blueprint(
        b'[agent]\nname = "a"\n[stages.one]\n', path=Path("/x/b.toml"), found_by="path"
    )

    assert trust_needed(blueprint) == Trust()


def test_shipped_blueprints_are_trusted() -> None:
    place = shipped_dir("blueprints") / "any.toml"
    blueprint = parse_blueprint(TEXT.encode(), path=place, found_by="path")

    assert trust_needed(blueprint) == Trust()


def test_the_flag_takes_the_hash_or_its_first_sixteen_digits(folder: Path) -> None:
    trust = trust_in(folder)

    assert trust.is_meant_by(trust.sha256)
    assert trust.is_meant_by(trust.sha256[:16].upper())
    assert not trust.is_meant_by(trust.sha256[:15])
    assert not trust.is_meant_by("0" * 64)
    assert not Trust().is_meant_by("")


def test_finding_out_what_to_trust_runs_nothing(folder: Path) -> None:
    (folder / "views.py").write_text("raise SystemExit('run')\n")

    assert trust_in(folder).items


def loader(folder: Path) -> tuple[CodeLoader, Blueprint]:
    blueprint = load_blueprint(folder / "b.toml")
    return CodeLoader(blueprint.source.path.parent, trust_needed(blueprint)), blueprint


def test_trusted_code_is_loaded_once_for_all_its_names(folder: Path) -> None:
    code, _ = loader(folder)

    assert code.load("views.py:NAME", position=HERE) == "views.py"
    assert code.load("views.py:seen", position=HERE) is code.load("views.py:seen", position=HERE)


def test_a_file_that_changed_after_the_answer_is_refused(folder: Path) -> None:
    code, _ = loader(folder)
    (folder / "views.py").write_text("NAME = 'evil'\n")

    with pytest.raises(InvalidInput, match="is not what was trusted"):
        code.load("views.py:NAME", position=HERE)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("other.py:x", "can't be read"),
        ("views.py:nothing", "has no 'nothing'"),
        ("os:system", "is not trusted"),
    ],
)
def test_what_cannot_be_loaded_says_why(folder: Path, reference: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        loader(folder)[0].load(reference, position=HERE)


@pytest.mark.parametrize(
    ("text", "message"),
    [("def", "is not Python"), ("1 / 0", "fails while it is imported: ZeroDivisionError")],
)
def test_code_that_does_not_import_is_the_blueprints_problem(folder: Path, text: str, message: str) -> None:
    (folder / "views.py").write_text(text)

    with pytest.raises(InvalidInput, match=message):
        loader(folder)[0].load("views.py:NAME", position=HERE)


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (
            '[[hooks]]\nname = "h"\nbuiltin = "notify"\nparams = { command = ["sh", "-c", "id"] }',
            "hook command",
        ),
        ('[[hooks]]\nname = "h"\nbuiltin = "audit"\nparams = { file = "~/.profile" }', "hook"),
        ('[shared_state]\nbackend = "file"\nurl = "/etc/cron.d"', "store address"),
        ('[shared_state]\nbackend = "redis"\nurl = "redis://10.0.0.1/0"', "store address"),
        ('[shared_state]\nbackend = "redis"', "store address"),
        ('[model]\nuse = "local:./weights.GGUF"', "model file"),
        ('[model]\nextra = { model = "dearer" }', "request members"),
        ('[model]\nextra = { mcp_servers = [{ url = "https://elsewhere.example" }] }', "request members"),
        ("[model]\nextra = { top_p = { tools = [] } }", "request members"),
    ],
)
def test_what_a_shipped_part_starts_or_writes_to_needs_trust(table: str, kind: str) -> None:
    text = f'[agent]\nname = "a"\n[stages.one]\n{table}\n'.encode()
    blueprint = parse_blueprint(text, path=Path("/x/b.toml"), found_by="path")

    assert [item.kind for item in trust_needed(blueprint).items] == [kind]


def test_a_shipped_hook_without_a_place_of_its_own_needs_none() -> None:
    text = b'[agent]\nname = "a"\n[stages.one]\n[[hooks]]\nname = "h"\nbuiltin = "redact"\n'
    blueprint = parse_blueprint(text, path=Path("/x/b.toml"), found_by="path")

    assert trust_needed(blueprint).items == ()


def test_what_only_changes_how_a_reply_is_drawn_needs_no_trust() -> None:
    text = b'[agent]\nname = "a"\n[model]\nextra = { top_p = 0.9, seed = 7 }\n[stages.one]\n'

    assert trust_needed(parse_blueprint(text, path=Path("/x/b.toml"), found_by="path")) == Trust()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('use = "hooks/audit.py:Audit"', 'use = "hooks/audit.py:Audit"\nparams = { to = "elsewhere" }'),
        ('command = ["server"]', 'command = ["server"]\nsampling = true'),
        ('command = ["server"]', 'command = ["server"]\nsandbox = true'),
    ],
)
def test_what_code_is_told_and_what_holds_it_is_trusted_with_it(folder: Path, old: str, new: str) -> None:
    before = trust_in(folder).sha256

    (folder / "b.toml").write_text(TEXT.replace(old, new))

    assert trust_in(folder).sha256 != before
