"""How servers describe their tools: an approval is for a tool as it was described then, and for no other."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentctl.policy.layers import BoundRule
from agentctl.protocol.messages import ToolSpec
from agentctl.tools.outside import Note, OutsideTool


def digest(spec: ToolSpec) -> str:
    """Return what tells one description of a tool from another. Pure."""
    text = json.dumps([spec.description, spec.parameters], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(slots=True, kw_only=True)
class Descriptions:
    """What servers said of their tools in this run, those included that are gone."""

    _known: dict[str, str] = field(default_factory=dict)

    def of(self, tool: str) -> str:
        """Return the digest of a server's tool as it is described now; empty for any other tool."""
        return self._known.get(tool, "")

    def learn(self, outside: Sequence[OutsideTool], remembered: Iterable[BoundRule]) -> tuple[str, ...]:
        """Take in what is there now; return the tools that are described otherwise than when approved.

        That is otherwise than before in this run, or, when they are seen first, than a remembered approval
        says that they were.
        """
        pinned: dict[str, set[str]] = {}
        for rule in remembered:
            pinned.setdefault(rule.tool, set()).add(rule.described)
        otherwise: list[str] = []
        for one in outside:
            name, now = one.tool.spec.name, digest(one.tool.spec)
            before = self._known.get(name)
            if not one.connector or before == now:
                continue
            self._known[name] = now
            if before is not None or (name in pinned and not pinned[name] & {now, ""}):
                otherwise.append(name)
        return tuple(otherwise)

    def holds(self, rule: BoundRule, otherwise: Iterable[str]) -> bool:
        """Tell whether a remembered approval is for the tool as it is described now."""
        now = self._known.get(rule.tool, "")
        if rule.described and now:
            return rule.described == now
        return rule.tool not in otherwise


def told(name: str) -> Note:
    """Return what a person should know of a tool that is described otherwise."""
    text = f"{name} is described otherwise than when it was approved; the next call of it asks again"
    return Note(level="warning", text=text)
