"""What the prose of a recorded case says about the place it was met in: rules, links, files, settings."""

import re
from dataclasses import field

from agentctl.records import dataclass


@dataclass(slots=True, kw_only=True)
class Setup:
    """What a case's `setup` says, as rules and files."""

    rules: dict[tuple[str, str], list[str]]
    """Patterns by tool and list (`deny`, `ask`, `allow`)."""
    links: list[tuple[str, str]]
    settings: list[tuple[str, str]]
    """Of the repository's configuration."""
    files: list[tuple[str, str]]
    """Names and contents; a name that ends in `/` is a folder."""
    hooks: list[str] = field(default_factory=list)
    """Names of executable files in the repository."""
    repositories: list[str] = field(default_factory=list)
    """Folders that are repositories of their own."""


_DENIED = r"(?:is|are) denied|deny"
_OUTSIDE = r"outside (?:of )?(?:the )?(?:workspace|workdir|project)"
_INSIDE = r"(?:inside|in|within) (?:the )?(?:workspace|workdir|project)"
_LINK = r"(?:a |the )?(?:symlink|symbolic link|link)"
_SENTENCES = (
    (re.compile(rf"writ(?:e|es|ing) (?:to |under )?(?P<path>\S+):? (?:{_DENIED})"), "write_file deny"),
    (re.compile(rf"read(?:s|ing)? (?:of |from )?(?P<path>\S+):? (?:{_DENIED})"), "read_file deny"),
    (
        re.compile(r"writ(?:e|es|ing) (?:to |under )?(?P<path>\S+):? (?:is |are )?(?:allow|allowed)"),
        "write_file allow",
    ),
    (re.compile(r"(?:den(?:y|ied)) writ(?:e|es|ing)(?: to)? (?P<path>\S+)"), "write_file deny"),
    (re.compile(r"(?:den(?:y|ied)) read(?:s|ing)?(?: of)? (?P<path>\S+)"), "read_file deny"),
    (re.compile(r"allow(?:ed)? writ(?:e|es|ing)(?: to)? (?P<path>\S+)"), "write_file allow"),
    (
        re.compile(r"writ(?:e|es|ing) (?:to |under )?(?P<path>\S+):? (?:is |are )?(?:ask|asks|asked)"),
        "write_file ask",
    ),
    (
        re.compile(
            rf"(?:writ(?:e|es|ing)|reads?|reading) {_OUTSIDE}:? (?:is |are )?(?:denied|deny|asks?|asked)"
        ),
        "",
    ),
    (re.compile(rf"(?:writ(?:e|es|ing)) {_INSIDE}:? (?:is |are )?(?:asked|asks?)"), ""),
    (re.compile(rf"reads? {_INSIDE}:? (?:is |are )?allow(?:ed)?"), ""),
    (
        re.compile(rf"(?:all )?writ(?:e|es|ing) {_INSIDE}:? (?:is |are )?(?:denied|deny)"),
        "write_file deny inside",
    ),
    (re.compile(rf"writ(?:e|es|ing) {_INSIDE}:? (?:is |are )?allow(?:ed)?"), "inside"),
    (
        re.compile(r"\.git/config (?:has|sets|contains) (?P<key>[A-Za-z0-9_.*-]+)\s*=\s*(?P<value>.*)"),
        "setting",
    ),
    (
        re.compile(
            r"(?:\.git/config|(?:the )?(?:local |git |repo(?:sitory)? )+config(?:uration)?)"
            r"(?: has| sets| contains|:)? (?P<key>[A-Za-z0-9_.*-]+)\s*=\s*(?P<value>.*)"
        ),
        "setting",
    ),
    (
        re.compile(
            r"(?P<key>[A-Za-z0-9_*-]+\.[A-Za-z0-9_.*-]+)\s*=\s*(?P<value>\S*) (?:is )?(?:set )?in"
            r" (?:\.git/config|(?:the )?(?:local |git |repo(?:sitory)? )+config(?:uration)?)"
        ),
        "setting",
    ),
    (re.compile(r"(?:an )?executable (?:hook )?(?P<path>\.git/hooks/\S+)(?: exists)?"), "hook"),
    (re.compile(r"(?P<path>\.git/hooks/\S+) (?:exists and )?is executable"), "hook"),
    (re.compile(r"(?P<path>\S+) is (?:a|its own|another) (?:git )?repository(?: of its own)?"), "repository"),
    (re.compile(r"(?P<path>\.gitattributes) (?:has|contains) (?P<text>.*)"), "file"),
    (re.compile(r"(?:a |the )?(?:file )?(?P<path>\S+) (?:contains|holds) (?P<text>.*)"), "file"),
    (re.compile(r"(?:a |the )?(?:file )?(?P<path>\S+) exists"), "file"),
    (re.compile(r"(?P<path>\S+) is a (?:directory|folder)"), "folder"),
    (re.compile(rf"{_LINK} (?P<link>[^\s>]+) ?(?:->|links to) ?(?P<target>\S+)(?: \(.*\))?"), "link"),
    (re.compile(r"(?P<link>[^\s>]+) ?(?:->|links to) ?(?P<target>\S+)(?: \(.*\))?"), "link"),
    (re.compile(r"(?P<link>\S+) is a (?:symlink|symbolic link|link) to (?P<target>\S+)"), "link"),
)


def read_setup(text: str) -> Setup | None:
    """Return what `text` asks for, or None where it says something that cannot be set up here."""
    setup = Setup(rules={}, links=[], settings=[], files=[])
    for sentence in (part.strip().rstrip(".") for part in re.split(r";\s+|\.\s+|\n", text)):
        if not sentence:
            continue
        found = [(kind, match) for pattern, kind in _SENTENCES if (match := pattern.fullmatch(sentence))]
        if not found:
            return None
        _take_sentence(setup, *found[0])
    return setup


def _take_sentence(setup: Setup, kind: str, match: re.Match[str]) -> None:
    if kind == "inside":
        setup.rules.setdefault(("write_file", "allow"), []).append("**")
    elif kind == "setting":
        setup.settings.append((match["key"], match["value"].strip()))
    elif kind == "link":
        setup.links.append((match["link"], match["target"]))
    elif kind == "file":
        setup.files.append((match["path"], match.groupdict().get("text") or ""))
    elif kind == "hook":
        setup.hooks.append(match["path"])
    elif kind == "repository":
        setup.repositories.append(match["path"])
    elif kind == "write_file deny inside":
        setup.rules.setdefault(("write_file", "deny"), []).append("**")
    elif kind == "folder":
        setup.files.append((match["path"].rstrip("/") + "/", ""))
    elif kind:
        tool, into = kind.split()
        setup.rules.setdefault((tool, into), []).append(match["path"])
