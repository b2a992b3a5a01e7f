"""`git`: global options in front of the sub-command, and the options that write files or run programs."""

import re

from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.hosts import host_of
from agentctl.policy.shell.options import Grammar, Parsed, abbreviates, names, take_apart
from agentctl.policy.shell.words import AnyWord, Word

_GLOBALS = Grammar(
    values="Cc",
    long_values=names("git-dir work-tree namespace exec-path config-env super-prefix attr-source list-cmds"),
    long_flags=names(
        "no-pager paginate no-optional-locks literal-pathspecs glob-pathspecs noglob-pathspecs"
        " icase-pathspecs bare no-replace-objects no-lazy-fetch no-advice html-path man-path"
        " info-path version help"
    ),
)
_INERT_FLAGS = names(
    "P no-pager no-optional-locks literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs"
    " no-replace-objects no-advice no-lazy-fetch"
)
_INERT_SETTING = re.compile(
    r"(?:color\.[a-z.]+|advice\.[a-zA-Z]+|core\.quotepath|core\.abbrev|log\.[a-z]+|status\.[a-zA-Z]+"
    r"|column\.[a-z]+|user\.(?:name|email)|commit\.gpgsign=false|tag\.gpgsign=false|core\.(?:pager|editor)=(?:cat|true|)"
    r"|core\.fsmonitor=(?:false|)|diff\.renames|diff\.renamelimit|core\.hooksPath=/dev/null|gc\.auto=0"
    r"|init\.defaultbranch|pull\.rebase|merge\.conflictstyle|diff\.external=|grep\.[a-zA-Z]+)(?:=.*)?",
    re.IGNORECASE | re.DOTALL,
)
_PROGRAM_SETTING = re.compile(
    r"alias\..*|core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy|alternaterefscommand)|pager\..*"
    r"|diff\.(?:external|.*\.(?:command|textconv))|sequence\.editor|credential\..*helper|credential\.helper"
    r"|gpg\..*program|gpg\.program|filter\..*|merge\..*\.driver|(?:diff|merge)tool\..*\.cmd|uploadpack\..*"
    r"|browser\..*\.cmd|man\..*\.cmd|interactive\.difffilter|sendemail\..*cmd|remote\..*\.(?:uploadpack|receivepack)",
    re.IGNORECASE | re.DOTALL,
)


_CHANGING_SETTING = re.compile(
    r"core\.(?:hookspath|attributesfile|excludesfile|worktree)|include(?:if)?\..*|filter\..*|protocol\..*|url\..*"
    r"|http\.(?:.*\.)?(?:proxy|sslverify|cookiefile|extraheader)|https\..*|remote\..*|credential.*|gpg\..*|submodule\..*|safe\..*|receive\..*|uploadpack.*",
    re.IGNORECASE | re.DOTALL,
)


def git(sink: Sink, call: Call) -> None:
    """Look through the global options to the sub-command."""
    words = call.words[1:]
    if not words or not text_of(words[0]).startswith("-"):
        sink.emit(call)
        _subcommand(sink, call, list(words))
        return
    parsed = take_apart(words, _GLOBALS, first_ends=True)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `git`, or its sub-command")
    if not parsed.rest:
        sink.emit(call)
        return
    places = sink.places
    before = places.now
    inert = _globals(sink, call, parsed)
    inside, places.now = places.now, before
    sink.emit(call, needs_rule=not inert)
    places.now = inside
    inner = call.inner([call.words[0], *parsed.rest], needs_rule=inert)
    sink.emit(inner)
    _subcommand(sink, inner, list(parsed.rest))
    places.now = before


def _globals(sink: Sink, call: Call, parsed: Parsed) -> bool:
    """Follow the global options; returns whether they leave the sub-command's meaning alone."""
    inert = not (parsed.unsure or parsed.by_wildcard) and "--" not in call.words[: -len(parsed.rest)]
    places = sink.places
    for name, value in parsed.options:
        if name == "C" and isinstance(value, str) and value:
            places.now = places.target(value)
            if not all(place and places.inside(place) for place in places.now):
                inert = False
                for place in places.now:
                    sink.read(place)
        elif name in {"c", "config-env"}:
            inert = _setting(sink, call, name, value) and inert
        elif name not in _INERT_FLAGS:
            inert = False
            if name in {"git-dir", "work-tree"} and isinstance(value, str):
                sink.read(value)
            elif name == "exec-path" and value is not None:
                sink.flag("`git --exec-path` runs programs from another place")
    return inert


def _setting(sink: Sink, call: Call, name: str, value: AnyWord | None) -> bool:
    """A setting for this command; a program that it names is shown to deny and ask rules."""
    if not isinstance(value, str):
        sink.flag("a setting of `git` is known only to the shell")
        return False
    key, _, program = value.partition("=")
    if name == "config-env" or _CHANGING_SETTING.fullmatch(key):
        sink.flag(f"the setting {key} changes what `git` runs or whom it asks")
    if _PROGRAM_SETTING.fullmatch(key) and program:
        sink.script(program.removeprefix("!"), call, needs_rule=True)
    return _INERT_SETTING.fullmatch(value) is not None


def _subcommand(sink: Sink, call: Call, words: list[AnyWord]) -> None:
    first = words[0] if words else ""
    if isinstance(first, Word):
        sink.flag("an expansion stands where `git` expects a sub-command")
        return
    rest = words[1:]
    if first in _DIFFS:
        _writes_output(sink, call, rest)
    elif first in _CONNECTS:
        _connects(sink, call, first, rest)
        if first == "archive":
            _makes(sink, first, rest)
    elif first in _TREE:
        _changes_tree(sink, first, rest)
    elif first == "config":
        _config(sink, rest)
    elif first in _RUNS:
        _runs(sink, call, first, rest)
    elif first in {"init", "worktree", "bundle", "hash-object"}:
        _makes(sink, first, rest)


_DIFFS = names(
    "diff log show format-patch range-diff shortlog whatchanged diff-tree diff-index diff-files stash"
)
_CONNECTS = names("clone fetch pull push ls-remote remote submodule archive")
_TRANSPORT_RUNS = ("--upload-pack", "--receive-pack", "--exec")
_TREE = names("rm mv clean apply restore checkout am")
_RUNS = names("bisect rebase filter-branch difftool mergetool grep submodule")
_DIFF_GRAMMAR = Grammar(
    values="SGOnU",
    attached="CMBlX",
    long_values=names(
        "output output-indicator-new output-indicator-old output-indicator-context output-directory"
        " format pretty since until author committer grep max-count skip date src-prefix dst-prefix"
        " line-prefix word-diff-regex inter-hunk-context diff-filter"
    ),
    long_flags=frozenset({"ext-diff", "textconv", "no-index"}),
)


def _writes_output(sink: Sink, call: Call, words: list[AnyWord]) -> None:
    parsed = take_apart(words, _DIFF_GRAMMAR)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `git` that writes a file")
    for name, value in parsed.options:
        if name in {"output", "output-directory"} and value is not None:
            sink.write(value)
    if "format-patch" in call.words and "--stdout" not in words:
        sink.write(take_apart(words, Grammar(values="oNv")).value("o") or ".")
    if parsed.has("no-index"):
        sink.read_all(parsed.operands)


def _connects(sink: Sink, call: Call, first: str, words: list[AnyWord]) -> None:
    operands = take_apart(words, _CLONE).operands
    for at, word in enumerate(words):
        name, _, value = text_of(word).partition("=")
        if any(abbreviates(name, option) for option in _TRANSPORT_RUNS):
            sink.script(value or text_of(words[at + 1] if at + 1 < len(words) else ""), call, needs_rule=True)
    place = {"remote": 2, "submodule": 1}.get(first, 0)
    if len(operands) > place:
        address = text_of(operands[place])
        sink.reach(host_of(address))
        if address.startswith("ext::"):
            sink.script(address[5:], call, needs_rule=True)
    if first == "clone":
        _clone(sink, operands)
    if first == "submodule" and words[:1] == ["foreach"]:
        sink.script(
            " ".join(text_of(word) for word in words[1:] if text_of(word) != "--recursive"),
            call,
            needs_rule=True,
        )


def _clone(sink: Sink, operands: list[AnyWord]) -> None:
    if len(operands) > 1:
        sink.write(operands[1])
    elif operands:
        name = text_of(operands[0]).rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2]
        sink.write(operands[0] if isinstance(operands[0], Word) else name)


_CLONE = Grammar(
    values="obucj",
    long_values=names(
        "origin branch upload-pack config depth reference reference-if-able separate-git-dir jobs"
        " filter template server-option shallow-since shallow-exclude bundle-uri"
    ),
)


def _changes_tree(sink: Sink, first: str, words: list[AnyWord]) -> None:
    """Sub-commands that write files of the working tree which they name."""
    parsed = take_apart(words, Grammar(values="eps" if first in {"clean", "apply"} else "sbB"))
    if parsed.has(
        "staged", "cached", "dry-run", "n", "check", "stat", "numstat", "summary"
    ) and not parsed.has("worktree", "W"):
        return
    if first in {"rm", "mv", "restore"}:
        sink.write_all(parsed.operands, tree=True)
    elif first == "checkout" and "--" in words:
        sink.write_all(parsed.rest, tree=True)
    elif first in {"apply", "am", "clean"}:
        sink.write(".")


_READING_CONFIG = re.compile(r"--(?:get.*|list|name-only|show-.*|type.*|default.*)|-l|-z|--null")


def _config(sink: Sink, words: list[AnyWord]) -> None:
    """`git config key value` writes the repository's configuration, which may name programs."""
    parsed = take_apart(words, Grammar(values="ft", long_values=names("file type blob default comment")))
    first = parsed.operands[0] if parsed.operands else ""
    reading = any(isinstance(word, str) and _READING_CONFIG.fullmatch(word) for word in words)
    if first in {"get", "list"} or (reading and not parsed.has("unset", "add", "replace-all")):
        return
    if len(parsed.operands) <= 1 and not parsed.has(
        "unset", "unset-all", "edit", "e", "remove-section", "add"
    ):
        return
    place = parsed.value("file", "f")
    if place is not None:
        sink.write(place)
    elif parsed.has("global"):
        sink.write(f"{sink.home}/.gitconfig")
    elif parsed.has("system"):
        sink.write("/etc/gitconfig")
    else:
        sink.write(".git/config")


def _runs(sink: Sink, call: Call, first: str, words: list[AnyWord]) -> None:
    """Sub-commands that are given a command to run."""
    texts = [text_of(word) for word in words]
    if first == "bisect" and texts[:1] == ["run"] and len(words) > 1:
        sink.run(call.inner(words[1:], needs_rule=True))
    for at, text in enumerate(texts):
        following = texts[at + 1] if at + 1 < len(texts) else ""
        name, equals, value = text.partition("=")
        if (
            (first == "rebase" and (name == "-x" or abbreviates(name, "--exec")))
            or (first == "filter-branch" and name.endswith("-filter"))
            or (first in {"difftool", "mergetool"} and name in {"-x", "--extcmd"})
        ):
            sink.script(value if equals else following, call, needs_rule=True)
        elif first == "grep" and (name.startswith("-O") or abbreviates(name, "--open-files-in-pager")):
            sink.script(value or text[2:] or "less", call, needs_rule=True)


def _makes(sink: Sink, first: str, words: list[AnyWord]) -> None:
    parsed = take_apart(
        words,
        Grammar(values="obB", long_values=names("output template separate-git-dir format")),
    )
    for name in ("o", "output", "separate-git-dir"):
        if first != "hash-object" and parsed.value(name) is not None:
            sink.write(parsed.value(name) or "")
    operands = parsed.operands
    if first == "init":
        sink.write(operands[0] if operands else ".")
    elif (first == "worktree" and operands[:1] == ["add"] and len(operands) > 1) or (
        first == "bundle" and operands[:1] == ["create"] and len(operands) > 1
    ):
        sink.write(operands[1])
