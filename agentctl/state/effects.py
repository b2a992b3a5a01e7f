"""State effects: what a tool's successful call writes into the state document."""

import copy
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import anyio
import anyio.to_thread

from agentctl.protocol.messages import ToolResult
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.state.document import (
    MAX_DEPTH,
    PatchError,
    add_with_parents,
    apply_patch,
    depth_of,
    places_of,
    size_bytes,
)
from agentctl.state.pointer import PointerError, covers, resolve
from agentctl.state.templates import fill
from agentctl.state.typed import NotJson, to_json

EFFECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEffectCall:
    """What a mapper receives: one successful tool call, and the document as the effect before left it."""

    tool: str
    input: JsonObject
    result: JsonValue
    """The tool's structured result; else its text, parsed where it is JSON."""
    agent: str = ""
    run: str = ""
    state: JsonObject = field(default_factory=dict)
    """A copy: changing it changes nothing."""


Mapped: TypeAlias = Iterable[JsonObject] | None
Mapper: TypeAlias = Callable[[StateEffectCall], Mapped | Awaitable[Mapped]]
"""Returns JSON Patch operations. None counts as a failure: an empty list says that nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEffect:
    """One effect: which tools, and exactly one of `path`, `mapper` and `ops`."""

    tool: str
    """A name, or a glob over whole names in which `*` crosses everything."""
    path: str | None = None
    """Where the whole result goes; missing parents are made."""
    mapper: Mapper | None = None
    ops: tuple[JsonObject, ...] = ()
    """Operations in which `{name}` takes a member of the result, or of each of its items."""
    each: str = ""
    """For `ops`: the place of a list in the result; empty for the result itself."""
    on_error: Literal["warn", "fail"] = "warn"
    name: str = ""
    """How warnings and the log name it; its mapper, path or tool where empty."""

    def __post_init__(self) -> None:
        given = (self.path is not None, self.mapper is not None, bool(self.ops))
        if sum(given) != 1:
            raise ValueError(f"a state effect for {self.tool!r} takes one of path, mapper and ops")
        if not self.tool:
            raise ValueError("a state effect names a tool")

    @property
    def label(self) -> str:
        """How the effect is named for people."""
        if self.name:
            return self.name
        if self.mapper is not None:
            return str(getattr(self.mapper, "__qualname__", "mapper"))
        return self.path or self.tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Where effects may write, and how large the document may be."""

    pointers: tuple[str, ...] = ("",)
    """Places that effects own, with all below them; the whole document by default."""
    max_bytes: int = 262144
    """Bytes of the document's compact JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPatch:
    """A patch that took effect, and whose it is."""

    patch: tuple[JsonValue, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsOutcome:
    """What the effects of one call did to the document."""

    document: JsonObject
    patches: tuple[AppliedPatch, ...] = ()
    warnings: tuple[str, ...] = ()
    failed: str = ""
    """The failure of an effect with `on_error = "fail"`, which ends the run; empty otherwise."""


class EffectRefused(ValueError):
    """An effect's patch was not taken; the document is as it was."""


async def run_effects(
    effects: Sequence[StateEffect],
    call: StateEffectCall,
    document: JsonObject,
    ownership: Ownership | None = None,
) -> EffectsOutcome:
    """Return the document after all matching effects, in their order, each seeing what the one before left.

    A patch takes effect whole or not at all; a failed effect is a warning and does not keep the next from
    running. For successful calls only: the caller does not ask for others. `call.state` is filled in here.
    """
    owned = ownership or Ownership()
    patches: list[AppliedPatch] = []
    warnings: list[str] = []
    for effect in effects:
        if not fnmatchcase(call.tool, effect.tool):
            continue
        try:
            operations = await _operations(effect, call, document)
            document = check_patch(document, operations, owned)
        except EffectRefused as error:
            text = f"state effect {effect.label!r} on {call.tool!r} was left out: {error}"
            warnings.append(text)
            if effect.on_error == "fail":
                return EffectsOutcome(
                    document=document, patches=tuple(patches), warnings=tuple(warnings), failed=text
                )
            continue
        if operations:
            patches.append(AppliedPatch(patch=tuple(operations), source=effect.label))
    return EffectsOutcome(document=document, patches=tuple(patches), warnings=tuple(warnings))


def check_patch(document: JsonObject, operations: Sequence[JsonValue], owned: Ownership) -> JsonObject:
    """Return the document after a patch that stays inside what effects own. Pure, atomic.

    Raises:
        EffectRefused: it does not apply, reaches outside, or makes the document too large.
    """
    if not operations:
        return document
    for operation in operations:
        _check_places(operation, owned)
    try:
        after = apply_patch(document, operations)
    except PatchError as error:
        raise EffectRefused(str(error)) from error
    if not isinstance(after, dict):
        raise EffectRefused("the document must stay an object")
    if depth_of(after) > MAX_DEPTH:
        raise EffectRefused(f"the document would nest deeper than {MAX_DEPTH}")
    size = size_bytes(after)
    if size > owned.max_bytes and size > size_bytes(document):
        raise EffectRefused(
            f"the document would have {size} bytes of {owned.max_bytes} (workspace.max_bytes);"
            " keep ids and titles, not rows"
        )
    return after


def parsed_result(result: ToolResult) -> JsonValue:
    """Return what effects see of a result: its structured form, else its text, parsed where it is JSON."""
    if result.structured is not None:
        return result.structured
    try:
        parsed: JsonValue = json.loads(result.text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return result.text
    return parsed


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_places(operation: JsonValue, owned: Ownership) -> None:
    if not isinstance(operation, dict):
        raise EffectRefused("a patch is a list of objects")
    try:
        places = places_of(operation)
        outside = [place for place in places if not any(covers(own, place) for own in owned.pointers)]
    except (PatchError, PointerError) as error:
        raise EffectRefused(str(error)) from error
    if outside:
        raise EffectRefused(
            f"{outside[0]!r} is outside what effects own ({', '.join(owned.pointers)}; workspace.owner)"
        )


async def _operations(effect: StateEffect, call: StateEffectCall, document: JsonObject) -> list[JsonValue]:
    try:
        if effect.path is not None:
            return add_with_parents(document, effect.path, call.result)
        if effect.mapper is None:
            return _from_templates(effect, call)
        seen = StateEffectCall(
            tool=call.tool,
            input=copy.deepcopy(call.input),
            result=copy.deepcopy(call.result),
            agent=call.agent,
            run=call.run,
            state=copy.deepcopy(document),
        )
        return await _mapped(effect.mapper, seen)
    except (PatchError, PointerError, NotJson) as error:
        raise EffectRefused(str(error)) from error


async def _mapped(mapper: Mapper, call: StateEffectCall) -> list[JsonValue]:
    try:
        with anyio.fail_after(EFFECT_TIMEOUT_S):
            # In a thread: a slow mapper must not hold up other agents. An async one only makes its
            # coroutine there.
            mapped = await anyio.to_thread.run_sync(mapper, call, abandon_on_cancel=True)
            operations = await mapped if inspect.isawaitable(mapped) else mapped
    except TimeoutError as error:
        raise EffectRefused(f"its mapper took longer than {EFFECT_TIMEOUT_S:g} s") from error
    except Exception as error:
        raise EffectRefused(f"its mapper raised {type(error).__name__}: {error}") from error
    if operations is None:
        raise EffectRefused("its mapper returned None; return a list of operations, empty for no change")
    if isinstance(operations, str | bytes | dict) or not isinstance(operations, Iterable):
        raise EffectRefused(f"its mapper returned {type(operations).__name__}, not a list of operations")
    return [to_json(operation) for operation in operations]


def _from_templates(effect: StateEffect, call: StateEffectCall) -> list[JsonValue]:
    found = resolve(call.result, effect.each) if effect.each else call.result
    items = found if effect.each and isinstance(found, list) else [found]
    operations: list[JsonValue] = []
    for item in items:
        members: JsonObject = {"item": item, "input": call.input, "agent": call.agent, "tool": call.tool}
        if isinstance(item, dict):
            members |= item
        operations += [_filled(operation, members) for operation in effect.ops]
    return operations


def _filled(operation: JsonObject, members: JsonObject) -> JsonValue:
    try:
        return {
            name: fill(value, members, in_pointer=name in ("path", "from"))
            for name, value in operation.items()
        }
    except KeyError as error:
        raise EffectRefused(f"the result has no member {error.args[0]!r}") from error
