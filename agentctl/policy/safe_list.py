"""Commands known to be harmless: programs with the options and operands under which they only look."""

from collections.abc import Collection, Mapping
from dataclasses import field

from agentctl.errors import Position
from agentctl.policy.safe_options import AnyForm, Form, Words
from agentctl.protocol.effects import RunProgram
from agentctl.records import dataclass

_GIT_GLOBALS = frozenset({"--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"})
_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeEntry:
    """One line of the list as it is shown: what it covers and which file put it there."""

    text: str
    """`git status`, `terraform fmt *`, or a tool's name."""
    position: Position
    by: str
    """`shipped` or `user`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeProgram:
    """A program, or a git sub-command, with the forms that are accepted."""

    entry: SafeEntry
    forms: tuple[Form | AnyForm, ...]
    first: tuple[tuple[str, ...], ...] = ()
    """For each form, the words of which one must stand first; empty where none has to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeWords:
    """A user's entry: these words, with any further arguments."""

    entry: SafeEntry
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeList:
    """What needs no prompt although a rule says ask. Never lifts a deny or a held ask."""

    programs: Mapping[str, SafeProgram] = field(default_factory=dict)
    git: Mapping[str, SafeProgram] = field(default_factory=dict)
    """By sub-command."""
    own: tuple[SafeWords, ...] = ()
    tools: Mapping[str, SafeEntry] = field(default_factory=dict)
    _answers: dict[tuple[str, ...], str] = field(default_factory=dict, compare=False, repr=False)
    """What was answered for commands of known words: the same ones come again and again."""

    @property
    def entries(self) -> tuple[SafeEntry, ...]:
        """Everything in effect: the user's first, then programs and git sub-commands by name."""
        return (
            *(words.entry for words in self.own),
            *self.tools.values(),
            *(self.programs[name].entry for name in sorted(self.programs)),
            *(self.git[name].entry for name in sorted(self.git)),
        )

    def covers(self, command: RunProgram) -> str:
        """Return the entry under which `command` is harmless, or empty. Pure and total."""
        if 0 in command.unknown or command.distrust:
            return ""
        if command.unknown:
            return self._covers(command)
        answer = self._answers.get(command.argv)
        if answer is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            answer = self._answers[command.argv] = self._covers(command)
        return answer

    def _covers(self, command: RunProgram) -> str:
        for own in self.own:
            if command.argv[: len(own.words)] == own.words and min(
                command.unknown, default=len(command.argv)
            ) >= len(own.words):
                return own.entry.text
        name = _system_name(command.argv[0])
        if name == "git":
            return self._covers_git(command)
        program = self.programs.get(name)
        return program.entry.text if program is not None and _accepted(program, command, 1) else ""

    def covers_tool(self, tool: str) -> str:
        """Return the entry that covers a tool as a whole, or empty."""
        entry = self.tools.get(tool)
        return entry.text if entry is not None else ""

    def _covers_git(self, command: RunProgram) -> str:
        at = 1
        while at < len(command.argv) and at not in command.unknown and command.argv[at] in _GIT_GLOBALS:
            at += 1
        if at >= len(command.argv) or at in command.unknown:
            return ""
        if command.argv[at:] in _GIT_SAYS:
            return self.git["version"].entry.text if "version" in self.git else ""
        program = self.git.get(command.argv[at])
        return program.entry.text if program is not None and _accepted(program, command, at + 1) else ""


_MOST_ANSWERS = 512
_GIT_SAYS = frozenset({("--version",), ("--help",), ("help",)})
NO_SAFE_LIST = SafeList()
"""`[safe_commands] defaults = false` and nothing else."""


def _system_name(program: str) -> str:
    """Return the program's name where it is called by name, or from a folder of the system."""
    for folder in _SYSTEM_FOLDERS:
        if program.startswith(folder):
            return program[len(folder) :]
    return program


def _accepted(program: SafeProgram, command: RunProgram, start: int) -> bool:
    if isinstance(program.forms[0], AnyForm):
        return True
    words = _words_from(command.argv, (command.unknown, command.spread, command.dashed), start)
    for form, first in zip(program.forms, program.first, strict=True):
        rest = words
        if first:
            if not words.words or 0 in words.unknown or words.words[0] not in first:
                continue
            rest = _words_from(words.words, (words.unknown, words.spread, words.dashed), 1)
        if form.accepts(rest):
            return True
    return False


_Positions = Collection[int]


def _words_from(
    words: tuple[str, ...], positions: tuple[_Positions, _Positions, _Positions], start: int
) -> Words:
    unknown, spread, dashed = positions
    if not unknown:
        return Words(words=words[start:])
    return Words(
        words=words[start:],
        unknown=frozenset(position - start for position in unknown),
        spread=frozenset(position - start for position in spread),
        dashed=frozenset(position - start for position in dashed),
    )
