"""Hears what a line runs and turns it into effects: programs, files, hosts, and what cannot be told."""

import re
from dataclasses import replace

from agentctl.policy.shell.builders import BUILDERS
from agentctl.policy.shell.builtins import BUILTINS
from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.git import git
from agentctl.policy.shell.grammar import Reader
from agentctl.policy.shell.names import changes_the_shell, inert_before_command, own_variable
from agentctl.policy.shell.programs import PROGRAMS
from agentctl.policy.shell.redirects import Redirect
from agentctl.policy.shell.runners import RUNNERS
from agentctl.policy.shell.simple import Assignment
from agentctl.policy.shell.words import AnyWord, Refused, Word
from agentctl.policy.shell.wrappers import SHELLS, WRAPPERS
from agentctl.protocol.effects import RunProgram

_MAX_VIA = 12
_MAX_TRIED = 500
_RUN_OTHERS = {**WRAPPERS, **RUNNERS, "git": git}
_FLAG_VALUE = re.compile(r"-(?:-[A-Za-z0-9][A-Za-z0-9-]*=.*|[A-Za-z]|[A-Za-z]=.*)", re.DOTALL)
_BRACED_OPTION = re.compile(r"\{[^}]*?(?<=[{,])[\"']*-")
_READ_COMMANDS = SHELLS | {"at", "batch"}
"""They run what they read from standard input."""


class Findings(Sink):
    """What a line does, as far as it has been read. Implements the reader's Listener."""

    def __init__(self, *, cwd: str, home: str) -> None:
        super().__init__(cwd=cwd, home=home)
        self.scripts = 0
        """How deep the scripts given to shells are nested."""
        self._last: tuple[list[AnyWord], list[Redirect]] = ([], [])
        self._fed_redirects: list[Redirect] = []
        self._tried = 0

    def command(self, assignments: list[Assignment], words: list[AnyWord], redirects: list[Redirect]) -> None:
        """See Listener."""
        self.places.plain()
        self._last = (words, redirects)
        for redirect in redirects:
            self.redirect(redirect)
        if not words:
            for assignment in assignments:
                self._bare(assignment)
            return
        first = words[0]
        if type(first) is not str and isinstance(first, Word):
            if not first.literal:
                self.flag("an expansion stands where a program's name is expected")
                self._may_run(first, words[1:])
                return
            words[0] = first.text
        call = Call(words)
        if assignments:
            self._prefix(assignments, call)
        if words == ["cat"] and redirects and all(one.operator in {"<<", "<<-"} for one in redirects):
            self.emit(call, needs_rule=False)  # it repeats text that stands in the line
            return
        self.run(call)
        if call.program in _READ_COMMANDS:
            self._read_by_shell(call, redirects)
        self.fed, self._fed_redirects = [], []

    def pipe(self, *, simple: bool) -> None:
        """See Listener."""
        self.fed, self._fed_redirects = self._last if simple else ([], [])

    def no_pipe(self) -> None:
        """See Listener."""
        self.fed, self._fed_redirects = [], []

    def _may_run(self, first: Word, rest: list[AnyWord]) -> None:
        """A program that a variable of the line names: deny and ask rules reach what it was set to."""
        for value in self.held(first) or ():
            self._tried += 1
            if self._tried > _MAX_TRIED:
                return
            words = text_of(value).split() if first.spread else [text_of(value)]
            if words:
                call = Call([*words, *rest])
                call.inside = True
                self.run(call)

    def _prefix(self, assignments: list[Assignment], call: Call) -> None:
        """Assignments in front: inert ones are looked through, others need a rule that names them."""
        whole = Call([*[_as_word(assignment) for assignment in assignments], *call.words])
        call.prefixed = True
        for assignment in assignments:
            self.holds(assignment.name, None)
        splits = call.program == "read" and all(one.name == "IFS" for one in assignments)
        if splits or all(inert_before_command(one.name, _literal(one.value)) for one in assignments):
            call.outer = (whole.argv(),)
            return
        self.emit(whole)
        call.inside = True
        call.via = tuple(text_of(word) for word in whole.words[: len(assignments)])

    def _bare(self, assignment: Assignment) -> None:
        """An assignment that stays: the line's own variables are free, the shell's state is not told."""
        head = assignment.as_written.partition("=")[0]
        values = [assignment.value] if assignment.value is not None and "[" not in head else None
        self.holds(assignment.name, values, appended=head.endswith("+"))
        self._sets(assignment.name, text_of(_as_word(assignment)))

    def sets(self, name: str, values: list[AnyWord] | None) -> None:
        """See Listener."""
        self.holds(name, values)
        self._sets(name, f"{name}=")

    def _sets(self, name: str, as_written: str) -> None:
        if own_variable(name):
            return
        if changes_the_shell(name):
            self.flag(f"it sets `{name}`, which changes what later commands do")
        self.effects.append(RunProgram(argv=(as_written,)))

    def redirect(self, redirect: Redirect) -> None:
        """See Listener."""
        word = redirect.word
        if word is None or redirect.substitution or redirect.operator == "<<<":
            return
        if isinstance(word, Word) and word.literal:
            word = word.text
        text = text_of(word)
        if text.startswith(("/dev/tcp", "/dev/udp")):
            self.flag("a redirection to `/dev/tcp` or `/dev/udp` opens a connection")
            self.reach(text.split("/")[3] if text.count("/") > 2 else "")  # noqa: PLR2004 - /dev/tcp/HOST/PORT
        elif not redirect.writes:
            self.read(word)
        elif isinstance(word, Word) and (word.spread or not word.path):
            self.write(Word(text))
        else:
            self.write(word)

    def run(self, call: Call) -> None:
        """See Sink."""
        first = call.words[0]
        if not isinstance(first, str):
            self.flag("an expansion stands where a program's name is expected")
            return
        if len(call.via) > _MAX_VIA:
            self.flag("it is nested too deep")
            return
        name = first
        if "/" in first:
            name = call.program
        elif call.direct and first in BUILTINS:
            BUILTINS[first](self, call)
            return
        for word in call.words:
            if (
                not isinstance(word, str)
                and word.lead.startswith("-")
                and not _FLAG_VALUE.fullmatch(word.lead)
            ):
                self.flag("an expansion stands where an option's name is expected")
            elif not isinstance(word, str) and _BRACED_OPTION.match(word.text):
                self.flag("braces could make an option of it")
        wrapper = _RUN_OTHERS.get(name)
        if wrapper is not None:
            wrapper(self, call)
            if name in BUILDERS:
                BUILDERS[name](self, call)
            return
        at = len(self.effects)
        self.emit(call)
        effects = PROGRAMS.get(name)
        if effects is not None:
            self.unseen = False
            self.reader = at
            effects(self, call)
            run = self.effects[at]
            if self.unseen and isinstance(run, RunProgram):
                self.effects[at] = replace(run, distrust="a file that it reads is known only to the shell")

    def script(self, text: str, call: Call, *, needs_rule: bool = False, only_runs: bool = False) -> None:
        """See Sink."""
        inside = Findings(cwd=self.places.start, home=self.home)
        inside.scripts = self.scripts + 1
        if inside.scripts > _MAX_VIA:
            self.flag("it is nested too deep")
            return
        inside.places.at(self.places.now)
        try:
            Reader(text, inside).read_all()
        except Refused as refused:
            inside.flag(refused.reason)
        inside.settle()
        if only_runs:
            inside.effects = [effect for effect in inside.effects if isinstance(effect, RunProgram)]
        else:
            for reason in inside.reasons:
                self.flag(f"what `{call.program}` is given cannot be told: {reason}")
        via = (*call.via, call.program)
        free = call.inside or not needs_rule
        self.effects.extend(
            _seen_inside(effect, via, free=free) if isinstance(effect, RunProgram) else effect
            for effect in inside.effects
        )

    def _read_by_shell(self, call: Call, redirects: list[Redirect]) -> None:
        """A shell that may read its commands from a here-string, a heredoc, or `echo`."""
        if (
            self.fed
            and self.fed[0] in {"echo", "printf"}
            and not any(isinstance(word, Word) for word in self.fed)
        ):
            self.script(" ".join(text_of(word) for word in self.fed[1:]), call)
        for redirect in (*redirects, *self._fed_redirects):
            if redirect.operator == "<<<" and redirect.word is not None:
                value = _literal(redirect.word)
                if value is None:
                    self.flag(f"what `{call.program}` is given is known only to the shell")
                else:
                    self.script(value, call)
            elif redirect.operator in {"<<", "<<-"}:
                redirect.shell = call


def _seen_inside(run: RunProgram, via: tuple[str, ...], *, free: bool) -> RunProgram:
    return RunProgram(
        argv=run.argv,
        via=(*via, *run.via),
        seen_inside=run.seen_inside or free,
        unknown=run.unknown,
        spread=run.spread,
        dashed=run.dashed,
        cwd=run.cwd,
    )


def _literal(word: AnyWord | None) -> str | None:
    if isinstance(word, Word):
        return word.text if word.literal else None
    return word


def _as_word(assignment: Assignment) -> AnyWord:
    value = _literal(assignment.value)
    if value is not None:
        head = assignment.as_written.partition("=")[0]
        return f"{head}={value}"
    word = Word(assignment.as_written)
    word.lead = assignment.name + "="
    return word
