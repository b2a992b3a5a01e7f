"""The code that a blueprint brings, and the one hash by which a person trusts all of it.

Nothing is imported, started or resolved through a link here: files are read and hashed.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from agentctl.blueprint.model import Blueprint
from agentctl.errors import Position, Problem
from agentctl.locations import shipped_dir
from agentctl.protocol.values import compact_json
from agentctl.records import dataclass
from agentctl.tables.declared import HookTable, McpServerTable, ModelTable
from agentctl.tables.outside_tools import script_tools
from agentctl.toml.positions import Path as KeyPath

CodeKind: TypeAlias = Literal[
    "hook",
    "mapper",
    "view",
    "fold",
    "script tool",
    "hook command",
    "MCP server",
    "model address",
    "model file",
    "request members",
    "store address",
]

_SHOWN_DIGITS = 16
_MAX_FILE_BYTES = 16 * 2**20
_STORES_OF_OUR_OWN = (None, "memory", "file", "sqlite")
_SAMPLING = frozenset(
    {
        *("top_p", "top_k", "top_a", "min_p", "typical_p", "seed", "temperature", "mirostat", "mirostat_tau"),
        *("presence_penalty", "frequency_penalty", "repetition_penalty", "repeat_penalty", "mirostat_eta"),
    }
)
"""Members of a request that change how a reply is drawn, and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustItem:
    """One piece of code, or one address, that a blueprint brings."""

    kind: CodeKind
    reference: str
    """As the blueprint writes it: `hooks/audit.py:Audit`, a command line, an address."""
    key: str
    """Dotted TOML key; `tools/NAME.py` for a script tool, which is found without being named."""
    position: Position
    path: Path | None = None
    """The file that was hashed, absolute; None for a command or an installed module."""
    sha256: str = ""
    """Of the file's bytes; empty without a file, and where the file is missing or can't be read."""

    @property
    def is_missing(self) -> bool:
        """Whether it names a file that is not there or can't be read: nothing that anybody could trust."""
        return self.path is not None and not self.sha256

    def problem(self) -> Problem:
        """Return it as the problem that it is missing, or not trusted."""
        if self.is_missing:
            message = f"{self.kind} {self.reference!r}: there is no file {str(self.path)!r} that can be read"
            return Problem(position=self.position, key=self.key, message=message)
        digest = f", sha256 {self.sha256[:_SHOWN_DIGITS]}" if self.sha256 else ""
        message = f"{self.kind} {self.reference!r} is not trusted{digest}"
        return Problem(position=self.position, key=self.key, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """All that has to be trusted before a blueprint runs."""

    items: tuple[TrustItem, ...] = ()
    """In file order; empty when the blueprint brings no code, or ships with agentctl."""
    sha256: str = ""
    """Over all items; changes with any of them. Empty without items."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files whose content is trusted: protected from every write while the run lasts."""
        return tuple(item.path for item in self.items if item.path is not None)

    def missing(self) -> tuple[Problem, ...]:
        """Return the files that are not there as problems of the blueprint."""
        return tuple(item.problem() for item in self.items if item.is_missing)

    def problems(self) -> tuple[Problem, ...]:
        """Return what is not trusted as problems of the blueprint."""
        return tuple(item.problem() for item in self.items)

    def is_meant_by(self, text: str) -> bool:
        """Tell whether `text`, from `--trust`, is this hash or at least its first 16 digits."""
        word = text.strip().lower()
        return len(word) >= _SHOWN_DIGITS and bool(self.sha256) and self.sha256.startswith(word)


def trust_needed(blueprint: Blueprint) -> Trust:
    """Return what the blueprint brings that must be trusted, hashed as it is now. May block.

    A blueprint that ships with agentctl needs no trust. The hash covers references, commands and contents,
    not where the blueprint lies, so a moved checkout keeps its trust.
    """
    if _ships(blueprint):
        return Trust()
    items = tuple(_items(blueprint))
    if not items:
        return Trust()
    facts = [[item.kind, item.reference, item.sha256] for item in items]
    text = compact_json(facts)
    return Trust(items=items, sha256=hashlib.sha256(text.encode()).hexdigest())


def _ships(blueprint: Blueprint) -> bool:
    if blueprint.source.found_by == "shipped":
        return True
    return blueprint.source.path.resolve().is_relative_to(shipped_dir("blueprints").resolve())


def _items(blueprint: Blueprint) -> Iterator[TrustItem]:
    for index, hook in enumerate(blueprint.hooks):
        yield from _hook(blueprint, index, hook)
    for index, effect in enumerate(blueprint.state_effects):
        if effect.mapper:
            yield _code(blueprint, "mapper", effect.mapper, ("state_effects", index, "mapper"))
    for index, key in enumerate(blueprint.state_keys):
        if ":" in key.fold:
            yield _code(blueprint, "fold", key.fold, ("state_keys", index, "fold"))
    for index, view in enumerate(blueprint.agent.views):
        yield _code(blueprint, "view", view, ("agent", "views", index))
    for stage in blueprint.in_order:
        for index, view in enumerate(stage.views or ()):
            yield _code(blueprint, "view", view, ("stages", stage.name, "views", index))
    for index, server in enumerate(blueprint.mcp_servers):
        yield from _server(blueprint, index, server)
    folder = blueprint.source.path.parent
    for path in script_tools(folder / "tools"):
        name = str(path.relative_to(folder))
        position = Position(file=str(path))
        yield TrustItem(
            kind="script tool", reference=name, key=name, position=position, path=path, sha256=_digest(path)
        )
    yield from _addresses(blueprint)
    yield from _store(blueprint)


def _store(blueprint: Blueprint) -> Iterator[TrustItem]:
    store = blueprint.shared_state
    if store.url:
        # A path anywhere on this machine that is written to, or a host that gets what the agents share.
        yield _item(blueprint, "store address", store.url, ("shared_state", "url"))
    elif store.backend not in _STORES_OF_OUR_OWN:
        yield _item(blueprint, "store address", str(store.backend), ("shared_state", "backend"))


def _hook(blueprint: Blueprint, index: int, hook: HookTable) -> Iterator[TrustItem]:
    if hook.use:
        yield _code(blueprint, "hook", hook.use, ("hooks", index, "use"))
        if hook.params:  # what the code is told to do is part of what it does
            yield _item(blueprint, "hook", compact_json(hook.params), ("hooks", index, "params"))
    if hook.command:
        yield from _command(blueprint, "hook command", hook.command, ("hooks", index, "command"))
    # Shipped hooks are ours, but not what they are told to start, and where they are told to write.
    at: KeyPath = ("hooks", index, "params")
    command, file = hook.params.get("command"), hook.params.get("file")
    if hook.builtin == "notify" and command is not None:
        words = command if isinstance(command, list | tuple) else [command]
        yield from _command(blueprint, "hook command", tuple(map(str, words)), (*at, "command"))
    if hook.builtin == "audit" and file is not None:
        yield _item(blueprint, "hook", f"audit writes to {file}", (*at, "file"))


def _server(blueprint: Blueprint, index: int, server: McpServerTable) -> Iterator[TrustItem]:
    at: KeyPath = ("mcp_servers", index)
    if server.url:
        yield _item(blueprint, "MCP server", f"{server.name}: {server.url}", (*at, "url"))
    else:
        yield from _command(blueprint, "MCP server", server.command, (*at, "command"))
    # What a server gets to see decides what its command does: `env = { PYTHONPATH = … }` is code as well.
    # So does whether a sandbox holds it, and whether it may have the model answer.
    settings: dict[str, object] = {"env": server.env, "headers": server.headers, "cwd": server.cwd}
    settings |= {name: True for name in ("sandbox", "sampling") if getattr(server, name)}
    if any(settings.values()):
        text = json.dumps(settings, ensure_ascii=False, sort_keys=True)
        yield _item(blueprint, "MCP server", f"{server.name}: {text}", at)


def _command(
    blueprint: Blueprint, kind: CodeKind, command: tuple[str, ...], at: KeyPath
) -> Iterator[TrustItem]:
    """Yield the command itself, and each file beside the blueprint that one of its words names."""
    yield _item(blueprint, kind, json.dumps(command, ensure_ascii=False), at)
    folder = blueprint.source.path.parent
    for index, word in enumerate(command):
        path = folder / word
        if word and path.is_file():
            yield _file_item(blueprint, kind, word, (*at, index), path)


def _code(blueprint: Blueprint, kind: CodeKind, reference: str, at: KeyPath) -> TrustItem:
    file, _, _ = reference.rpartition(":")
    if not file.endswith(".py"):
        return _item(blueprint, kind, reference, at)
    return _file_item(blueprint, kind, reference, at, blueprint.source.path.parent / file)


def _addresses(blueprint: Blueprint) -> Iterator[TrustItem]:
    """Yield where the blueprint would have models, and what it would have their services do.

    That is every address, in `base_url` or within a model's name; every model file, which a native parser
    reads; and members of requests by which a service could be told to call tools of its own, reach another
    server, or answer with another model than the one that was allowed and priced.
    """
    tables: list[tuple[KeyPath, ModelTable]] = [(("model",), blueprint.model)]
    tables += [
        (("stages", stage.name, "model"), stage.model)
        for stage in blueprint.in_order
        if stage.model is not None
    ]
    for at, table in tables:
        if table.base_url:
            yield _item(blueprint, "model address", table.base_url, (*at, "base_url"))
        for index, name in enumerate(table.use):
            if "://" in name:
                yield _item(blueprint, "model address", name, (*at, "use", index))
            elif name.startswith("local:") and name.lower().endswith(".gguf"):
                yield _item(blueprint, "model file", name, (*at, "use", index))
        if telling := {name: value for name, value in table.extra.items() if not _only_samples(name, value)}:
            yield _item(blueprint, "request members", compact_json(telling), (*at, "extra"))


def _only_samples(name: str, value: object) -> bool:
    return name in _SAMPLING and (value is None or isinstance(value, bool | int | float))


def _item(blueprint: Blueprint, kind: CodeKind, reference: str, at: KeyPath) -> TrustItem:
    file = blueprint.source.table
    return TrustItem(kind=kind, reference=reference, key=file.key(*at), position=file.value_position(*at))


def _file_item(blueprint: Blueprint, kind: CodeKind, reference: str, at: KeyPath, path: Path) -> TrustItem:
    file = blueprint.source.table
    return TrustItem(
        kind=kind,
        reference=reference,
        key=file.key(*at),
        position=file.value_position(*at),
        path=path,
        sha256=_digest(path),
    )


def _digest(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
