"""A workdir, its surroundings, and an executor that is closed after each test."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentctl.executor.api import (
    CommandRequest,
    CommandResult,
    Edit,
    ResolvedPath,
    Roots,
    SandboxKind,
    SandboxPolicy,
    WriteMode,
    Written,
)
from agentctl.executor.local import LocalExecutor

NO_SANDBOX = SandboxPolicy(kind=SandboxKind.NONE)


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    place = tmp_path / "repo" / "app"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    return place


@pytest.fixture
def roots(workdir: Path, tmp_path: Path) -> Roots:
    home = tmp_path / "user"
    home.mkdir()
    temp = tmp_path / "temp"
    temp.mkdir()
    return Roots(workdir=workdir, temp=temp, home=home)


@dataclass
class Hands:
    """The executor with its roots at hand."""

    executor: LocalExecutor
    roots: Roots

    async def resolve(self, text: str) -> ResolvedPath:
        return await self.executor.resolve(text, self.roots)

    async def edit(self, text: str, *edits: Edit) -> Written:
        planned = await self.executor.plan_edit(await self.resolve(text), edits)
        return await self.executor.apply_write(planned)

    async def write(self, text: str, content: str, mode: WriteMode = WriteMode.REPLACE) -> Written:
        planned = await self.executor.plan_write(await self.resolve(text), content, mode)
        return await self.executor.apply_write(planned)

    async def run(
        self, command: str | tuple[str, ...], sandbox: SandboxPolicy = NO_SANDBOX, **more: object
    ) -> CommandResult:
        request = CommandRequest(command=command, roots=self.roots, sandbox=sandbox, **more)  # type: ignore[arg-type]
        return await self.executor.run(request)


@pytest.fixture
async def hands(roots: Roots, anyio_backend: str) -> AsyncIterator[Hands]:
    del anyio_backend
    executor = LocalExecutor()
    yield Hands(executor, roots)
    await executor.aclose()
