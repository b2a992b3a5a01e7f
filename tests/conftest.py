"""What every test may rely on: no sockets beyond loopback, a home of its own, no keys from outside."""

import os
import socket
from pathlib import Path

import pytest

_real_connect = socket.socket.connect


def _guarded_connect(self: socket.socket, address: object) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple):
        host = str(address[0])
        if not (host.startswith("127.") or host in {"::1", "localhost"}):
            raise AssertionError(f"a test tried to reach {host}")
    _real_connect(self, address)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _guarded_connect)


@pytest.fixture(autouse=True)
def agentctl_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh AGENTCTL_HOME and HOME; provider keys of the machine are hidden."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("AGENTCTL_HOME", str(home / "agentctl"))
    monkeypatch.setenv("HOME", str(home))
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")) or name.startswith("AGENTCTL_MODEL"):
            monkeypatch.delenv(name)
    return home


@pytest.fixture
def anyio_backend() -> str:
    """Tests run on asyncio unless they ask for trio as well."""
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared cases, vectors and cassettes; tests that need it are skipped where it is not."""
    place = Path(__file__).resolve().parents[1].parent / "shared"
    if not place.is_dir():
        pytest.skip("../shared is not beside this checkout; the smaller set under tests/corpus runs instead")
    return place
