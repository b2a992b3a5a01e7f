"""Runs recorded command lines against the real policy: real folders and links, and nothing is executed."""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from agentctl.cli.given import given_text
from agentctl.cli.policy_setup import Setup, read_setup
from agentctl.errors import InvalidInput, Position, Problem
from agentctl.executor.api import Executor
from agentctl.executor.local import open_executor
from agentctl.executor.paths import follow
from agentctl.policy.cover import Lifts, cover
from agentctl.policy.decide import decide
from agentctl.policy.defaults import BuiltInPolicy, built_in_policy
from agentctl.policy.grants import GrantBook
from agentctl.policy.layers import Layers
from agentctl.policy.paths import Place
from agentctl.policy.protected import protected_paths
from agentctl.policy.rules import parse_permissions
from agentctl.policy.safe_data import safe_list
from agentctl.policy.safe_list import NO_SAFE_LIST, SafeList
from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.decisions import Decision, Verdict
from agentctl.protocol.effects import Effect, WritePath
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.settings.rules import shipped_table
from agentctl.toml.read import parse
from agentctl.tools.definition import ToolPlace
from agentctl.tools.shell_effects import Locator

_WORKDIR = "/repo/app"
_HOME = "/home/u"
_MADE_UP = re.compile(r"(?<![A-Za-z0-9_.~-])(/repo|/home/u)(?=/|[^A-Za-z0-9_.-]|\Z)")
"""Places of the cases that are put below a temporary folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One recorded line with the policy it met and the decision that is right."""

    id: str
    area: str
    command: str
    workdir: str
    setup: str
    allow: tuple[str, ...]
    ask: tuple[str, ...]
    deny: tuple[str, ...]
    default: str
    expected: str
    """`allow`, `ask`, `deny` or `not-allow`."""
    contested: bool
    """The tools in the field decide it differently on purpose."""
    other: bool
    """It is not about a command line, so that it cannot be tried here."""

    def accepts(self, verdict: Verdict) -> bool:
        """Whether `verdict` is right: an expected ask is met by ask or deny, an allow by allow alone."""
        match self.expected:
            case "allow":
                return verdict is Verdict.ALLOW
            case "deny":
                return verdict is Verdict.DENY
            case _:
                return verdict is not Verdict.ALLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What became of a case."""

    case: Case
    decision: Decision | None = None
    """None where the case was skipped."""
    skipped: str = ""
    """Why it could not be tried, or empty."""

    @property
    def differs(self) -> bool:
        """Whether the policy decided otherwise than expected."""
        return self.decision is not None and not self.case.accepts(self.decision.verdict)

    @property
    def failed(self) -> bool:
        """Whether it did so where there is one right answer; a contested case is told, not failed."""
        return self.differs and not self.case.contested


def read_cases(path: Path) -> tuple[Case, ...]:
    """Return the cases of a JSON Lines file, in order.

    Raises:
        InvalidInput: a line is not a case; every such line at once.
        UsageError: the file cannot be read.
    """
    cases: list[Case] = []
    problems: list[Problem] = []
    for number, line in enumerate(given_text(path, what="cases").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            cases.append(_case(json.loads(line)))
        except (ValueError, TypeError) as error:
            place = Position(file=str(path), line=number, column=1)
            problems.append(Problem(position=place, message=f"this is no policy case: {error}"))
    if problems:
        raise InvalidInput(tuple(problems), hint="a case is one JSON object a line; see docs/policy.md")
    return tuple(cases)


def _case(value: JsonValue) -> Case:
    if not isinstance(value, dict):
        raise TypeError("an object is expected")
    area = str(value.get("area", ""))
    given = _object(value, "input")
    other = "policy" not in given and not area.startswith("shell-")
    policy = _object(given, "policy")
    command = "" if other else given.get("command")
    if not isinstance(command, str):
        raise TypeError("input.command has to be a text")
    decision = value.get("decision") or str(value.get("expected", "")).partition(":")[0].strip()
    decision = "ask" if other else decision
    if decision not in {"allow", "ask", "deny", "not-allow"}:
        raise ValueError(f"{decision!r} is no decision; write allow, ask, deny or not-allow")
    return Case(
        id=str(value.get("id", "")),
        area=area,
        command=command,
        workdir=str(given.get("cwd") or _WORKDIR),
        setup=str(given.get("setup") or ""),
        allow=_texts(policy, "allow"),
        ask=_texts(policy, "ask"),
        deny=_texts(policy, "deny"),
        default=str(policy.get("default") or "ask"),
        expected=decision,
        contested=value.get("contested") is True,
        other=other,
    )


def _object(value: JsonObject, key: str) -> JsonObject:
    found = value.get(key, {})
    if not isinstance(found, dict):
        raise TypeError(f"{key} has to be an object")
    return found


def _texts(policy: JsonObject, key: str) -> tuple[str, ...]:
    found = policy.get(key, [])
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise TypeError(f"policy.{key} has to be a list of texts")
    return tuple(str(text) for text in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """What all cases share."""

    executor: Executor
    built_in: BuiltInPolicy
    safe: SafeList


async def run_cases(cases: Sequence[Case]) -> tuple[CaseResult, ...]:
    """Decide every case and return what became of it, in order. Executes nothing."""
    built_in = built_in_policy(shipped_table("policy.toml"))
    executor = open_executor(environment=dict(os.environ), passed=())
    world = _World(
        executor=executor,
        built_in=built_in,
        safe=safe_list(shipped_table("safe_commands.toml"), names=built_in.names),
    )
    try:
        return tuple([await _result(case, world) for case in cases])
    finally:
        await executor.aclose()


async def _result(case: Case, world: _World) -> CaseResult:
    if case.other:
        return CaseResult(case=case, skipped="it is not about a command line with a policy")
    setup = read_setup(case.setup)
    if setup is None:
        return CaseResult(case=case, skipped=f"its setup cannot be made here: {case.setup}")
    if not case.workdir.startswith("/"):
        return CaseResult(case=case, skipped=f"its directory is not absolute: {case.workdir}")
    with TemporaryDirectory(prefix="case") as folder:
        return await _decided(case, setup, follow(Path(folder)).path, world)


async def _decided(case: Case, setup: Setup, root: Path, world: _World) -> CaseResult:
    def below(text: str) -> str:
        return _MADE_UP.sub(lambda match: f"{root}{match[0]}", text)

    workdir, home = Path(below(case.workdir)), Path(below(_HOME))
    if not workdir.is_relative_to(root):
        workdir = Path(f"{root}{case.workdir}")
    for folder in (workdir, home, root / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    _make_files(setup, workdir, below)
    place = Place(workdir=str(workdir), home=str(home))
    layers = _layers(case, setup, below, place, world.built_in)
    tool_place = ToolPlace(
        workdir=workdir, temp=root / "tmp", why_protected=protected_paths(place).why, home=home
    )
    line = below(case.command)
    analysis = analyse(line, cwd=str(workdir), home=str(home))
    effects = await Locator(executor=world.executor, place=tool_place).located(analysis.effects, line)
    decision = decide("shell", effects, layers)
    if _leaves(effects, (workdir, tool_place.temp)):
        # Containment refuses the call before any rule is asked.
        return CaseResult(case=case, decision=_refused(decision))
    lifts = Lifts(
        safe_list=world.safe if case.area == "shell-safe-list" else NO_SAFE_LIST, grants=GrantBook(place)
    )
    return CaseResult(case=case, decision=cover("shell", decision, lifts))


def _layers(
    case: Case, setup: Setup, below: Callable[[str], str], place: Place, built_in: BuiltInPolicy
) -> Layers:
    """The case's policy as the user's own; hosts are not part of a case, so that they are allowed."""

    def texts(patterns: Sequence[str]) -> str:
        return json.dumps([below(pattern) for pattern in patterns])

    lines = [
        "[tool_permissions]",
        'network = "allow"',
        "[tool_permissions.shell]",
        f"default = {json.dumps(case.default)}",
        f"allow = {texts(case.allow)}",
        f"ask = {texts(case.ask)}",
        f"deny = {texts(case.deny)}",
    ]
    for tool in sorted({tool for tool, _ in setup.rules}):
        lines.append(f"[tool_permissions.{tool}]")
        lines += [f"{into} = {texts(found)}" for (name, into), found in setup.rules.items() if name == tool]
    table = parse("\n".join(lines).encode(), file=f"{case.id or 'case'}.toml")
    return Layers(
        user=parse_permissions(table.table("tool_permissions"), names=built_in.names),
        built_in=built_in.rules,
        place=place,
        loosenable=built_in.loosenable,
        follows=built_in.follows,
    )


def _make_files(setup: Setup, workdir: Path, below: Callable[[str], str]) -> None:
    """Make the links and the repository's configuration that the case names."""
    for name, target in setup.links:
        link = Path(below(name)) if name.startswith("/") else workdir / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(below(target))
    for name, text in setup.files:
        path = Path(below(name)) if name.startswith("/") else workdir / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n", encoding="utf-8")
    for name in setup.repositories:
        _make_repository(workdir / name)
    if not (setup.settings or setup.hooks):
        return
    repository = _make_repository(workdir)
    for name in setup.hooks:
        hook = workdir / name
        hook.parent.mkdir(parents=True, exist_ok=True)
        hook.write_text("#!/bin/sh\n", encoding="utf-8")
        hook.chmod(0o700)
    config = ""
    for key, value in setup.settings:
        section, _, name = key.rpartition(".")
        head, _, sub = section.partition(".")
        config += f"[{head}{f' {json.dumps(sub)}' if sub else ''}]\n\t{name} = {below(value)}\n"
    (repository / "config").write_text(config, encoding="utf-8")


def _make_repository(folder: Path) -> Path:
    """Make an empty repository in `folder`; return where its configuration is."""
    repository = folder / ".git"
    for name in ("objects", "refs"):
        (repository / name).mkdir(parents=True, exist_ok=True)
    (repository / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    return repository


def _leaves(effects: Sequence[Effect], roots: Sequence[Path]) -> bool:
    return any(
        isinstance(effect, WritePath)
        and not effect.unresolved
        and not any(Path(effect.path).is_relative_to(root) for root in roots)
        for effect in effects
    )


def _refused(decision: Decision) -> Decision:
    return replace(
        decision,
        verdict=Verdict.DENY,
        reason="A write leaves the working directory.",
        rule="",
        held="",
        lift="",
    )
