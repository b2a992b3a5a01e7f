"""Approvals that are remembered: keys by effect, for a stage or the run, some for a number of uses."""

from collections.abc import Iterable
from dataclasses import replace

from agentctl.policy.keys import key_for
from agentctl.policy.layers import BoundRule, bind_rules
from agentctl.policy.paths import Place
from agentctl.policy.rules import Rule
from agentctl.protocol.decisions import Decision, Grant, GrantScope, Judgement, Verdict
from agentctl.protocol.effects import OpaqueCommand, WritePath

_ANYWHERE = Place(workdir="/", home="/")  # proposed keys hold absolute paths only


class GrantBook:
    """The grants of one run. Not shared with children and not between runs.

    Synchronous and without I/O: whoever gives, uses or revokes a grant commits the event first.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stage_index: int | None = None
        self._grants: dict[tuple[str, GrantScope], tuple[Grant, BoundRule]] = {}

    @property
    def active(self) -> tuple[Grant, ...]:
        """The grants that hold now, in the order they were given."""
        return tuple(grant for grant, _ in self._grants.values())

    def enter_stage(self, index: int) -> None:
        """Drop the stage grants of another stage; entering the same one again keeps them. Idempotent."""
        if index != self._stage_index:
            self._stage_index = index
            self._grants = {
                name: held
                for name, held in self._grants.items()
                if held[0].scope != "stage" or held[0].stage_index == index
            }

    def give(self, grant: Grant) -> None:
        """Remember an approval. A grant with the same key and scope is replaced.

        A stage grant of a stage that is not the current one is left out: it ended with its stage.
        """
        if grant.scope == "stage" and grant.stage_index is None:
            grant = replace(grant, stage_index=self._stage_index)
        if (
            grant.scope == "stage"
            and self._stage_index is not None
            and grant.stage_index != self._stage_index
        ):
            return
        (rule,) = bind_rules((key_rule(grant.key),), self._place)
        self._grants[grant.key, grant.scope] = (grant, rule)

    def revoke(self, key: str) -> bool:
        """Forget every grant with this key; return whether there was one."""
        names = [name for name in self._grants if name[0] == key]
        for name in names:
            del self._grants[name]
        return bool(names)

    def use(self, key: str) -> None:
        """Count one covered call against a grant with a number of uses; at none left it is gone."""
        left = {(grant.key, grant.scope): grant for grant in used_once(self.active, key)}
        self._grants = {name: (left[name], rule) for name, (_, rule) in self._grants.items() if name in left}

    def covering(self, judgement: Judgement) -> str:
        """Return the key of a grant that covers what this judgement asks about, or empty.

        Grants without a count come first. No grant covers what cannot be told or a protected write.
        """
        found = ""
        for grant, rule in self._grants.values():
            if rule_covers(rule, judgement):
                if grant.uses is None:
                    return grant.key
                found = found or grant.key
        return found


def key_rule(key: str) -> Rule:
    """Return a grant's key as a rule."""
    tool, bracket, rest = key.partition("(")
    return Rule(tool=tool, pattern=rest.rpartition(")")[0] if bracket else None)


def rule_covers(rule: BoundRule, judgement: Judgement) -> bool:
    """Return whether a grant or remembered rule covers what the judgement asks about."""
    if judgement.held in {"machine", "opaque", "protected"} or rule.tool != judgement.entry:
        return False
    match judgement.effect:
        case OpaqueCommand() | WritePath(unresolved=True):
            return False
        case None:
            return rule.pattern is None
        case effect:
            return rule.pattern is None or rule.pattern.allows(effect)


def propose(decision: Decision) -> tuple[str, ...]:
    """Return the keys that remembering this approval would store: one for each part that asks, each once.

    Every key covers its own part, so the same call asks no second time, and parts that are allowed already
    need none. Empty when a part may not be remembered: then nothing of the call is.
    """
    if decision.verdict is not Verdict.ASK:
        return ()
    keys: dict[str, None] = {}
    for judgement in decision.judgements:
        if judgement.verdict is not Verdict.ASK:
            continue
        key = key_for(judgement)
        if not key or not rule_covers(bind_rules((key_rule(key),), _ANYWHERE)[0], judgement):
            return ()
        keys[key] = None
    return tuple(keys)


def used_once(grants: Iterable[Grant], key: str) -> tuple[Grant, ...]:
    """Return the grants after one covered call: one use less of the first counted grant with this key."""
    left: list[Grant] = []
    counted = False
    for grant in grants:
        if counted or grant.key != key or grant.uses is None:
            left.append(grant)
            continue
        counted = True
        if grant.uses > 1:
            left.append(replace(grant, uses=grant.uses - 1))
    return tuple(left)


def restore(book: GrantBook, grants: Iterable[Grant]) -> None:
    """Give back what a journal says holds; `enter_stage` then drops what belongs to another stage."""
    for grant in grants:
        book.give(grant)
