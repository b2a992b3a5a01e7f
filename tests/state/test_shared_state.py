"""One behaviour of shared state over every backend."""

import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.state.backends.files import FileBackend, file_name
from agentctl.state.backends.memory import MemoryBackend
from agentctl.state.backends.redis import RedisBackend
from agentctl.state.backends.sqlite import SqliteBackend
from agentctl.state.shared_backend import (
    CapacityExceeded,
    ConditionFailed,
    InvalidKey,
    SharedStateBackend,
    SharedStateError,
    StoreUnreadable,
    parts_of,
    stored_key,
)
from agentctl.state.shared_state import SharedState, size_text

pytestmark = pytest.mark.anyio

Store = Callable[..., SharedState]
_spaces = itertools.count()


@pytest.fixture(params=["memory", "file", "sqlite", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: list[SharedStateBackend] = []

    def open_store(max_bytes: int = 10 * 1024 * 1024) -> SharedState:
        space = f"s{next(_spaces)}"
        backend: SharedStateBackend
        match request.param:
            case "memory":
                backend = MemoryBackend()
            case "file":
                backend = FileBackend(tmp_path / space)
            case "sqlite":
                backend = SqliteBackend(tmp_path / "shared.db", space)
            case _:
                url = request.getfixturevalue("redis_url")
                if not url:
                    pytest.skip("redis-server is not installed; `make test` installs it where it may")
                backend = RedisBackend(url, space)
        opened.append(backend)
        return SharedState(max_bytes, backend=backend)

    yield open_store
    for backend in opened:
        await backend.aclose()


async def test_a_value_is_set_read_and_removed(store: Store) -> None:
    state = store()

    assert await state.get("x") is None
    await state.set("x", "hello")
    assert await state.get("x") == "hello"
    assert await state.remove("x") is True
    assert await state.get("x") is None
    assert await state.remove("x") is False


async def test_keys_are_sorted_and_any_text_is_a_key(store: Store) -> None:
    state = store()
    odd = ["b", "a", "A", ".env", "..", "a—b", "é a", "summary:src/main.rs", "summary_src_main.rs", "a%2Fb"]
    odd += ["x" * 300, "x" * 299 + "y", "line\nbreak", "\x1f\x1e", "0"]
    for key in odd:
        await state.set(key, f"value of {key}")

    assert await state.keys() == sorted(odd)
    for key in odd:
        assert await state.get(key) == f"value of {key}"


async def test_values_keep_every_character(store: Store) -> None:
    state = store()
    for value in ("", "a\r\nb\n", "\x00", "é€😀", "\ufeffx", '{"key": 1}\n'):
        await state.set("k", value)
        assert await state.get("k") == value


@pytest.mark.parametrize("key", ["", "\ud800"])
async def test_what_cannot_be_a_key_is_refused(store: Store, key: str) -> None:
    with pytest.raises(InvalidKey):
        await store().set(key, "x")
    with pytest.raises(InvalidKey):
        await store().get(key)


async def test_half_a_character_is_refused_as_a_value(store: Store) -> None:
    with pytest.raises(SharedStateError):
        await store().set("k", "\ud83d")


async def test_exactly_full_fits_and_one_more_does_not(store: Store) -> None:
    await store(6).set("a", "12345")

    state = store(20)
    await state.set("a", "12345")
    with pytest.raises(CapacityExceeded, match=r"'b' \(20 bytes\) would bring the total to 27 of 20"):
        await state.set("b", "12345678901234567890")
    assert await state.get("a") == "12345"
    with pytest.raises(CapacityExceeded):
        await store(3).set("k", "€")
    await store(3).set("k", "é")


async def test_an_overwritten_value_does_not_count(store: Store) -> None:
    state = store(30)
    await state.set("k", "a" * 10)
    await state.set("k", "b" * 18)

    assert await state.get("k") == "b" * 18


async def test_stashes_are_recycled_oldest_first_and_callers_keys_never(store: Store) -> None:
    state = store(500)
    await state.set("plan", "p" * 80)
    for number in range(40):
        await state.set(f"tool-out-tc{number}-aaaa-b0", "x" * 100)

    assert await state.get("plan") == "p" * 80
    assert await state.get("tool-out-tc39-aaaa-b0") == "x" * 100
    assert await state.get("tool-out-tc0-aaaa-b0") is None


async def test_a_scoped_stash_is_recycled_too(store: Store) -> None:
    state = store(500)
    await state.set("plan", "p" * 80)
    worker = state.scoped("worker-1")
    for number in range(20):
        await worker.set(f"tool-out-tc{number}-aaaa-b0", "x" * 100)

    assert await state.get("plan") == "p" * 80
    assert len(await worker.keys()) == 3


async def test_a_stash_written_again_is_the_newest(store: Store) -> None:
    state = store(40)
    for key, value in (("tool-out-a", "1" * 5), ("tool-out-b", "2" * 5), ("tool-out-a", "3" * 5)):
        await state.set(key, value)
    await state.set("zz", "4" * 9)

    assert await state.keys() == ["tool-out-a", "zz"]


async def test_a_pinned_stash_goes_last(store: Store) -> None:
    state = store(50)
    await state.set("tool-out-a", "1" * 5)
    await state.set("tool-out-b", "2" * 5)
    state.pin(["tool-out-a"])
    await state.set("zz", "4" * 20)
    assert await state.keys() == ["tool-out-a", "zz"]

    await state.set("yy", "5" * 20)
    assert await state.keys() == ["yy", "zz"]


async def test_an_unpinned_stash_is_as_any_other(store: Store) -> None:
    state = store(50)
    await state.set("tool-out-a", "1" * 5)
    await state.set("tool-out-b", "2" * 5)
    state.pin(["tool-out-a"], owner="r-1")
    state.pin([], owner="r-1")
    await state.set("zz", "4" * 20)

    assert await state.keys() == ["tool-out-b", "zz"]


async def test_a_write_that_cannot_fit_recycles_nothing(store: Store) -> None:
    state = store(30)
    await state.set("tool-out-a", "12345")
    await state.set("plan", "1234567890")
    with pytest.raises(CapacityExceeded):
        await state.set("big", "x" * 27)

    assert await state.keys() == ["plan", "tool-out-a"]


async def test_scopes_are_apart_and_the_whole_store_sees_all(store: Store) -> None:
    root = store()
    researcher, writer = root.scoped("researcher"), root.scoped("writer")
    await researcher.set("notes", "secret research")
    await writer.set("notes", "draft prose")
    await root.set("plan", "p")

    assert await researcher.get("notes") == "secret research"
    assert await researcher.keys() == ["notes"]
    assert await root.keys() == ["plan", "researcher/notes", "writer/notes"]
    assert await root.get("notes") is None
    assert await root.get("researcher/notes") == "secret research"
    assert await writer.remove("notes") is True
    assert await researcher.get("notes") == "secret research"
    assert await researcher.summary() == "notes (15 bytes)"


@pytest.mark.parametrize("key", ["root_secret", "\x1froot_secret", "../root_secret", "/root_secret"])
async def test_no_key_leads_out_of_a_scope(store: Store, key: str) -> None:
    root = store()
    await root.set("root_secret", "topsecret")

    assert await root.scoped("sub").get(key) is None
    assert await root.scoped("sub").remove(key) is False


async def test_a_scope_within_a_scope_narrows(store: Store) -> None:
    root = store()
    inner = root.scoped("a").scoped("b")
    await inner.set("k", "v")

    assert inner.scope == "a/b"
    assert await root.scoped("a/b").get("k") == "v"
    assert await root.scoped("a").get("k") is None
    assert await root.scoped("a").get("b/k") == "v"
    assert await root.scoped("a").keys() == ["b/k"]
    assert root.scope is None


async def test_a_separator_in_a_key_is_no_way_into_an_inner_scope(store: Store) -> None:
    root = store()
    await root.scoped("a").set("b\x1fk", "1")

    assert await root.scoped("a").scoped("b").get("k") is None
    assert await root.scoped("a").keys() == ["b\x1fk"]


@pytest.mark.parametrize("name", ["", "/", "a//b", "a/", "x\x1fy"])
async def test_what_cannot_be_a_scope_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidKey):
        store().scoped(name)


async def test_a_granted_key_that_the_scope_has_itself_is_listed_once_as_its_own() -> None:
    root = SharedState(max_bytes=1000)
    await root.set("plan", "theirs")
    worker = root.scoped("worker").granting(["plan"])
    await worker.set("plan", "mine")

    assert await worker.keys() == ["plan"]
    assert await worker.get("plan") == "mine"
    await worker.remove("plan")
    assert [(one.key, one.granted) for one in await worker.listing()] == [("plan", True)]


async def test_grants_let_a_scope_read_named_keys_and_nothing_else(store: Store) -> None:
    root = store()
    for key in ("plan", "inputs/a", "secret"):
        await root.set(key, key)
    await root.scoped("other").set("out", "o")
    worker = root.scoped("worker").granting(["plan", "inputs/*", "other/out"])
    await worker.set("own", "w")

    assert [await worker.get(key) for key in ("plan", "inputs/a", "other/out", "own")] == [
        "plan",
        "inputs/a",
        "o",
        "w",
    ]
    assert await worker.get("secret") is None
    assert await worker.keys() == ["own", "inputs/a", "other/out", "plan"]
    await worker.set("plan", "mine")
    assert (await worker.get("plan"), await root.get("plan")) == ("mine", "plan")
    assert await worker.remove("inputs/a") is False
    assert await worker.scoped("deeper").get("secret") is None


async def test_conditions_keep_writers_from_overwriting_each_other(store: Store) -> None:
    state = store()
    first = await state.set("k", "1", if_absent=True)
    with pytest.raises(ConditionFailed) as failed:
        await state.set("k", "2", if_absent=True)
    assert failed.value.version == first.info.version

    second = await state.set("k", "2", if_version=first.info.version)
    with pytest.raises(ConditionFailed):
        await state.set("k", "3", if_version=first.info.version)
    await state.set("new", "n", if_version=0)
    assert await state.get("k") == "2"
    assert second.info.version > first.info.version


async def test_a_version_never_comes_back(store: Store) -> None:
    state = store()
    first = await state.set("k", "1")
    await state.remove("k")
    again = await state.set("k", "1")

    assert again.info.version > first.info.version


async def test_parts_appended_at_once_are_all_there(store: Store) -> None:
    state = store()

    async def append(number: int) -> None:
        await state.append("log", f"line {number}\n")

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(append, number)

    value = await state.get("log")
    assert value is not None
    assert sorted(value.splitlines()) == sorted(f"line {number}" for number in range(10))
    with pytest.raises(CapacityExceeded):
        await store(10).append("log", "x" * 9)


async def test_writers_at_once_stay_under_the_capacity(store: Store) -> None:
    state = store(100)
    refused = 0

    async def write(number: int) -> None:
        nonlocal refused
        try:
            await state.set(f"k{number}", "x" * 18)
        except CapacityExceeded:
            refused += 1

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(write, number)

    assert refused == 5
    assert len(await state.keys()) == 5


async def test_each_entry_says_who_wrote_it_and_when(store: Store) -> None:
    state = store().by(run="r-1", stage="plan").by(call="c-1", agent="")
    await state.set("k", "v")
    entry = await state.entry("k")

    assert entry is not None
    assert entry.info.writer == {"run": "r-1", "stage": "plan", "call": "c-1"}
    assert entry.info.at.endswith("Z")
    assert entry.info.value_bytes == 1
    assert len(entry.sha256) == 64


async def test_summaries_are_sorted_and_the_prompts_has_no_stashes(store: Store) -> None:
    state = store()
    assert await state.summary() == "(empty)"
    await state.set("tool-out-tc1-00-b0", "x" * 9000)
    assert await state.prompt_summary() == "(empty)"
    await state.set("plan", "abc")
    await state.set("b", "22")

    assert await state.prompt_summary() == "b (2 bytes), plan (3 bytes)"
    assert await state.summary() == "b (2 bytes), plan (3 bytes), tool-out-tc1-00-b0 (8.8 KB)"


def test_sizes_are_written_for_people() -> None:
    assert [size_text(size) for size in (1, 1023, 1024, 1572864)] == [
        "1 bytes",
        "1023 bytes",
        "1.0 KB",
        "1.5 MB",
    ]


class Broken(MemoryBackend):
    async def get(self, key: str) -> None:
        raise StoreUnreadable("the disk is gone")


async def test_a_store_that_cannot_be_read_is_no_absent_key() -> None:
    with pytest.raises(StoreUnreadable):
        await SharedState(backend=Broken()).get("k")


async def test_files_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    state = SharedState(backend=FileBackend(folder))
    await state.set("k", "v")
    path = folder / file_name("k")
    path.write_text("no header", encoding="utf-8")
    with pytest.raises(StoreUnreadable):
        await state.get("k")

    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnreadable):
        await state.get("k")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreUnreadable):
        await SharedState(backend=FileBackend(tmp_path / "file")).set("k", "v")
    with pytest.raises(StoreUnreadable):
        await SharedState(backend=SqliteBackend(tmp_path / "file" / "x.db", "s")).get("k")


async def test_a_redis_that_is_not_there_is_an_error() -> None:
    state = SharedState(backend=RedisBackend("redis://127.0.0.1:1/0", "s"))
    with pytest.raises(StoreUnreadable):
        await state.get("k")
    with pytest.raises(StoreUnreadable):
        await state.keys()
    await state.aclose()


OTHER_PROCESS = """
import sys, anyio
from pathlib import Path
from agentctl.state.backends.files import FileBackend
from agentctl.state.backends.sqlite import SqliteBackend
from agentctl.state.shared_state import SharedState

async def main(kind, place):
    backend = FileBackend(Path(place)) if kind == "FileBackend" else SqliteBackend(Path(place), "x")
    state = SharedState(backend=backend)
    assert await state.get("k") == "v"
    await state.append("k", "w")
    await state.aclose()

anyio.run(main, *sys.argv[1:])
"""


async def test_another_process_sees_what_was_written(tmp_path: Path) -> None:
    for place, backend in (
        (tmp_path / "f", FileBackend(tmp_path / "f")),
        (tmp_path / "s.db", SqliteBackend(tmp_path / "s.db", "x")),
    ):
        state = SharedState(backend=backend)
        await state.set("k", "v")
        await anyio.run_process([sys.executable, "-c", OTHER_PROCESS, type(backend).__name__, str(place)])
        assert await state.get("k") == "vw"
        await state.aclose()


@given(st.lists(st.sampled_from(["a", "b", "\x1f", "\x1e", "0", "1", "/"]), max_size=4), st.text(min_size=1))
@settings(max_examples=200, deadline=None)
def test_a_stored_key_leads_back_to_its_scopes_and_key(parts: list[str], key: str) -> None:
    scope = tuple(part for part in parts if part not in ("\x1f", "/"))
    try:
        stored = stored_key(scope, key)
    except InvalidKey:
        return

    assert parts_of(stored) == (scope, key)
    assert stored.startswith("".join(f"{part}\x1f" for part in scope))


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_two_keys_never_share_a_file(one: str, other: str) -> None:
    try:
        first, second = file_name(one).casefold(), file_name(other).casefold()
    except UnicodeEncodeError:
        return

    assert (first == second) is (one == other)
    assert len(first) <= 200
    assert not set(first) & set("/\x00")


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["set", "set", "set", "append", "remove", "if_absent", "pin"]),
        st.sampled_from(["a", "b", "tool-out-1", "tool-out-2", "tool-out-3"]),
        st.integers(0, 25),
    ),
    max_size=12,
)


async def _play(state: SharedState, operations: list[tuple[str, str, int]]) -> list[object]:
    seen: list[object] = []
    for how, key, size in operations:
        try:
            match how:
                case "remove":
                    seen.append(await state.remove(key))
                case "pin":
                    state.pin([key], owner=key)
                case "append":
                    seen.append((await state.append(key, "é" * (size // 2))).evicted)
                case _:
                    written = await state.set(key, "x" * size, if_absent=how == "if_absent")
                    seen.append((written.info.version, written.evicted))
        except (CapacityExceeded, ConditionFailed) as error:
            seen.append(str(error))
        seen.append(sorted((entry.key, entry.info.value_bytes) for entry in await state.listing()))
    return seen


@given(OPERATIONS)
@settings(max_examples=60, deadline=None)
def test_every_backend_decides_alike(
    redis_url: str, tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, str, int]]
) -> None:
    async def compare() -> None:
        folder = tmp_path_factory.mktemp("parity")
        space = f"p{next(_spaces)}"
        backends: list[SharedStateBackend] = [
            MemoryBackend(),
            SqliteBackend(folder / "s.db", space),
            FileBackend(folder / "files"),
            *([RedisBackend(redis_url, space)] if redis_url else []),
        ]
        played = [await _play(SharedState(60, backend=backend), operations) for backend in backends]
        for backend in backends:
            await backend.aclose()
        assert all(one == played[0] for one in played), json.dumps(played, default=str, indent=1)

    anyio.run(compare)


async def test_runs_that_share_a_file_share_its_descriptor(tmp_path: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("the system does not tell which files are open")
    path = tmp_path / "s.db"

    def opened() -> int:
        return sum(one.is_symlink() and str(one.readlink()) == str(path) for one in folder.iterdir())

    states = [SharedState(backend=SqliteBackend(path, f"run-{number}")) for number in range(50)]
    for number, state in enumerate(states):
        await state.set("k", str(number))

    assert opened() == 1
    assert [await state.get("k") for state in states] == [str(number) for number in range(50)]
    for state in states[1:]:
        await state.aclose()
    assert await states[0].get("k") == "0"
    await states[0].aclose()
    assert opened() == 0
