"""Keys of grants: for each part of a call that asks, the narrowest rule that will match it again."""

import re
from dataclasses import replace

from agentctl.policy.patterns import quote_words
from agentctl.policy.programs import (
    EXACT,
    GIT_EXACT,
    MODULES,
    RUNNERS,
    SUB_COMMANDS,
    base_name,
    is_interpreter,
    is_wrapper,
)
from agentctl.protocol.decisions import Judgement
from agentctl.protocol.effects import (
    OpaqueCommand,
    ReachHost,
    ReadPath,
    RunProgram,
    SpawnAgent,
    WritePath,
)

_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_NO_OWN_KEY = frozenset({"shell", "write_file", "read_file", "network", "spawn_agent"})


def key_for(judgement: Judgement) -> str:
    """Return the rule that would remember an approval of this part, or empty where none may be offered."""
    if judgement.held in {"machine", "opaque", "protected"}:
        return ""
    match judgement.effect:
        case None:
            # A bare rule on one of the five would cover everything of its kind, and only a part was shown.
            return "" if judgement.entry in _NO_OWN_KEY else judgement.entry
        case RunProgram() as command:
            words = _command_words(command)
            return f"shell({words})" if words else ""
        case WritePath(path=path, unresolved=False):
            return _path_key("write_file", _folder_of(path))
        case ReadPath(path=path):
            return _path_key("read_file", path)
        case ReachHost(host=host):
            return f"network({host})"
        case SpawnAgent(agent=agent):
            return "" if "*" in agent else f"spawn_agent({agent})"
        case OpaqueCommand() | WritePath():
            return ""


def _path_key(tool: str, path: str) -> str:
    """Return the key of a path; a name that holds a `*` of its own cannot be written as a pattern."""
    return f"{tool}({path})" if path.count("*") == path.endswith("/*") else ""


def _folder_of(path: str) -> str:
    """Return the files beside `path` as a pattern, or `path` itself where it stands at the root."""
    folder = path.rpartition("/")[0]
    return f"{folder}/*" if folder and "*" not in path else path


def _command_words(command: RunProgram) -> str:
    """Return the pattern for a simple command: its program and sub-command, or all of its words."""
    argv = command.argv
    settings = next((at for at, word in enumerate(argv) if not _SETTING.match(word)), len(argv))
    if settings:
        # What is set belongs to the key, and so does the program: `FOO=1 *` would be any program at all.
        if settings == len(argv) or min(command.unknown, default=settings) < settings:
            return ""
        unknown = tuple(at - settings for at in command.unknown)
        inner = _command_words(replace(command, argv=argv[settings:], unknown=unknown))
        return f"{quote_words(argv[:settings])} {inner}" if inner else ""
    program = base_name(argv[0])
    known = min(command.unknown, default=len(argv))
    if known == 0:
        return ""
    prefix = _prefix_length(program, argv[:known])
    if prefix:
        return f"{quote_words(argv[:prefix])} *"
    if known < len(argv) or _reads_its_program(program, argv):
        return ""
    return quote_words(argv)


def _prefix_length(program: str, argv: tuple[str, ...]) -> int:
    """Return how many words a prefix key has, or 0 where only the whole command may be remembered."""
    second = argv[1] if len(argv) > 1 else ""
    if program in RUNNERS:
        return _runner_prefix(program, argv)
    if program.startswith("python") and second == "-m":
        return 3 if len(argv) > 2 and argv[2] in MODULES else 0  # noqa: PLR2004 - python, -m, module
    if program in EXACT or is_interpreter(program) or is_wrapper(program):
        return 0
    if program == "git" and second in GIT_EXACT:
        return 0
    if program in SUB_COMMANDS:
        return 2 if _is_word(second) else 0
    return 1


def _runner_prefix(program: str, argv: tuple[str, ...]) -> int:
    """Return the prefix up to the program, script or sub-command that a package runner is given."""
    at = 1
    if "" not in RUNNERS[program]:
        if len(argv) < 2 or not _is_word(argv[1]):  # noqa: PLR2004 - runner, sub-command
            return 0
        if argv[1] not in RUNNERS[program]:
            return 2
        at = 2
    if len(argv) <= at or argv[at].startswith("-"):
        return 0
    inner = argv[at]
    return 0 if is_interpreter(inner) or is_wrapper(inner) or inner in EXACT else at + 1


def _is_word(text: str) -> bool:
    """Return whether a word looks like a sub-command: no option, path, number or assignment."""
    return text[:1].isalpha() and all(char.isalnum() or char in "-_:" for char in text)


def _reads_its_program(program: str, argv: tuple[str, ...]) -> bool:
    """Return whether what runs is not in the words at all, but comes from input or from another command."""
    if program in {"xargs", "parallel", "entr"}:
        return True
    if not is_interpreter(program) or program in {"make", "gmake", "just", "task", "ninja"}:
        return False
    return all(word.startswith("-") for word in argv[1:]) or "-" in argv[1:] or "-s" in argv[1:]
