"""Builds the hooks of a run: those of its blueprint, then those of the user's config."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentctl.agent.hook import Hook
from agentctl.agent.hook_command import CommandHook, Ran
from agentctl.agent.hook_events import EVENT_NAMES
from agentctl.agent.hook_stack import Acted, HookFailed, HookStack, Member
from agentctl.agent.hooks import Hooks, NoHooks, RunHooks
from agentctl.agent.shipped_hooks import Audit, Notify, ReadBeforeWrite, Redact
from agentctl.blueprint.code import CodeLoader
from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.trust import Trust
from agentctl.errors import InvalidInput, Position, Problem, ToolError
from agentctl.executor.api import CommandRequest, Roots, SandboxKind, SandboxPolicy
from agentctl.executor.api import Processes as ProcessRunner
from agentctl.locations import config_dir
from agentctl.run.beside import beside
from agentctl.run.recorder import RunRecorder
from agentctl.settings.settings import Settings
from agentctl.state.cells import CellView
from agentctl.tables.declared import HookTable
from agentctl.toml.table import Table

_SHIPPED: dict[str, type[Hook]] = {
    "redact": Redact,
    "audit": Audit,
    "notify": Notify,
    "read_before_write": ReadBeforeWrite,
}


def hook_members(
    blueprint: Blueprint, settings: Settings, code: CodeLoader, processes: ProcessRunner, roots: Roots
) -> tuple[Member, ...]:
    """Return all hooks in order, the blueprint's first, so that the user's have the last word. May block.

    Raises:
        InvalidInput: a hook cannot be loaded or made from its table.
    """
    program = _Program(processes, roots)
    own = _Maker(blueprint.source.table, code, program, roots, blueprint.source.path.parent)
    users = _Maker(settings.table, CodeLoader(config_dir(), Trust()), program, roots, config_dir())
    return (*own.members(blueprint.hooks), *users.members(settings.config.hooks))


def run_hooks(members: tuple[Member, ...], recorder: RunRecorder, cells: CellView) -> Hooks:
    """Return the hooks of one run, with the scratchpad that was saved with it."""
    if not members:
        return NoHooks()
    acted: list[Acted] = []
    hooks = RunHooks(
        stack=HookStack(members, report=acted.append),
        snapshot=recorder.snapshot,
        agent=recorder.agent,
        run_id=recorder.run_id,
        thread_id=recorder.thread_id,
        commit=recorder.commit,
        acted=acted,
    )
    hooks.restore(cells)
    notifiers = [member.hook for member in members if isinstance(member.hook, Notify)]
    recorder.watchers = (*recorder.watchers, *(notify.show for notify in notifiers))
    return hooks


class _Maker:
    """Makes hooks from the tables of one file."""

    def __init__(
        self, table: Table, code: CodeLoader, program: "_Program", roots: Roots, folder: Path
    ) -> None:
        self._table = table
        self._folder = folder
        self._code = code
        self._program = program
        self._roots = roots

    def members(self, hooks: Sequence[HookTable]) -> list[Member]:
        return [self._member(hook, index) for index, hook in enumerate(hooks)]

    def _member(self, table: HookTable, index: int) -> Member:
        return Member(
            hook=self._hook(table, index),
            name=table.name,
            events=table.events,
            tools=table.tools,
            timeout_s=table.timeout,
            on_error=table.on_error,
        )

    def _hook(self, table: HookTable, index: int) -> Hook:
        if table.command:
            command = beside(self._folder, table.command)
            return CommandHook(
                table.name,
                command,
                run=replace(self._program, pinned=self._code.pinned(command)),
                timeout_s=table.timeout,
                events=table.events,
            )
        params: dict[str, object] = dict(table.params)
        if table.builtin:
            if table.builtin == "read_before_write":
                params = {"workdir": str(self._roots.workdir), **params}
            told = table.params.get("command")
            if table.builtin == "notify" and isinstance(told, list | tuple):
                words = beside(self._folder, [str(word) for word in told])
                params |= {"command": words, "pinned": self._code.pinned(words)}
            return self._made(_SHIPPED[table.builtin], params, ("hooks", index))
        position = self._table.value_position("hooks", index, "use")
        return self._made(self._code.load(table.use, position=position), params, ("hooks", index, "use"))

    def _made(self, kind: object, params: dict[str, object], path: tuple[str | int, ...]) -> Hook:
        if isinstance(kind, Hook):
            return kind
        try:
            made = kind(**params) if isinstance(kind, type) else None
        except Exception as error:
            raise self._invalid(path, f"the hook cannot be made: {type(error).__name__}: {error}") from error
        if not isinstance(made, Hook):
            raise self._invalid(path, "that is no hook: write a subclass of agentctl.api.Hook")
        for name in dir(type(made)):
            if name.startswith("on_") and name.removeprefix("on_") not in EVENT_NAMES:
                raise self._invalid(path, f"{name} is for no event; the events are {', '.join(EVENT_NAMES)}")
        return made

    def _invalid(self, path: tuple[str | int, ...], message: str) -> InvalidInput:
        position: Position = self._table.value_position(*path)
        return InvalidInput((Problem(position=position, key=self._table.key(*path), message=message),))


@dataclass(frozen=True, slots=True)
class _Program:
    """Starts a hook's program: a person's own, so outside the sandbox, but without credentials."""

    processes: ProcessRunner
    roots: Roots
    pinned: Mapping[Path, str] = field(default_factory=dict)
    """Its trusted files, which must still be what they were."""

    async def __call__(self, argv: tuple[str, ...], stdin: bytes, timeout_s: float) -> Ran:
        request = CommandRequest(
            command=argv,
            roots=self.roots,
            pinned=self.pinned,
            timeout_s=timeout_s,
            sandbox=SandboxPolicy(kind=SandboxKind.NONE, network=True),
            stdin=stdin,
            split_stderr=True,
            head_bytes=4 * 1024 * 1024,
            spill_name="hook",
        )
        try:
            result = await self.processes.run(request)
        except ToolError as error:
            raise HookFailed(str(error)) from error
        if result.timed_out:
            raise HookFailed(f"it took longer than {timeout_s:g} s")
        stderr = result.stderr.text if result.stderr else ""
        return Ran(exit_code=result.exit_code, stdout=result.output.head, stderr=stderr)
