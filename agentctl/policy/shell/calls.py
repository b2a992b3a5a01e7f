"""One program to be run, and where its effects are collected."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from agentctl.policy.shell.names import own_variable
from agentctl.policy.shell.places import UNKNOWN, Places
from agentctl.policy.shell.words import AnyWord, Word
from agentctl.protocol.effects import Effect, ReachHost, ReadPath, RunProgram, WritePath

_VARIABLE = re.compile(r'"?\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))"?')
_TILDE = re.compile(r"~([A-Za-z_][A-Za-z0-9_.-]*|[+-])(/[^'\"$`\\*?\[{]*)?")
_MAX_VALUES = 32
_INTEGER = re.compile(r"-?[0-9]+")
_DEVICE_LIST = "null stdin stdout stderr zero full random urandom"
_DEVICES = frozenset(f"/dev/{name}" for name in _DEVICE_LIST.split())


class Call:
    """A command on its way to becoming effects: its words, and what was looked through to find it."""

    __slots__ = ("direct", "inside", "outer", "prefixed", "via", "words")

    def __init__(self, words: list[AnyWord]) -> None:
        self.words = words
        """The program first; a `Word` is one whose value is not known."""
        self.via: tuple[str, ...] = ()
        self.outer: tuple[tuple[str, ...], ...] = ()
        self.inside = False
        """No allow rule is required for it."""
        self.direct = True
        """The shell itself finds it: a builtin of that name is what runs."""
        self.prefixed = False
        """Assignments stand in front of it."""

    @property
    def program(self) -> str:
        """The program's name without its directory."""
        return text_of(self.words[0]).rpartition("/")[2]

    def argv(self) -> tuple[str, ...]:
        """The words as text; those not known as written."""
        return tuple([word if type(word) is str else text_of(word) for word in self.words])

    def inner(self, words: list[AnyWord], *, needs_rule: bool, last: bool = True) -> "Call":
        """Return the call of `words`, for which this one is a wrapper.

        Args:
            words: the inner program and its arguments.
            needs_rule: an allow rule must reach the inner program; else one for the wrapper is enough.
            last: they are the last words of this call, so that a rule may name both.
        """
        call = Call(words)
        call.via = (*self.via, self.program)
        call.inside = self.inside or not needs_rule
        call.direct = False
        if needs_rule and last:
            call.outer = (*self.outer, self.argv())
        return call


def text_of(word: AnyWord) -> str:
    """The word's value, or how it is written."""
    return word if isinstance(word, str) else word.text


class Sink(ABC):
    """Collects the effects of a line."""

    def __init__(self, *, cwd: str, home: str) -> None:
        self.effects: list[Effect] = []
        self.reasons: list[str] = []
        self.places = Places(cwd)
        self.home = home
        self.reader = 0
        """Where the run whose files are being added stands among the effects."""
        self.unseen = False
        """A program reads a file whose name is not known."""
        self.fed: list[AnyWord] = []
        """The simple command whose output the next one reads; empty where that is not known."""
        self._numbers: set[str] = set()
        """Variables that hold a number somewhere in the line."""
        self._others: set[str] = set()
        """Variables that may hold something else."""
        self._evaluated: set[str] = set()
        self._values: dict[str, list[AnyWord] | None] = {}
        self._used: list[tuple[str, int, int]] = []
        """Variables that were taken for files: the name, how many values it had, which effect is the run."""
        self._bound: dict[str, str] = {}
        """What the variables of loops over plain words hold while a loop's body is read."""

    def holds(self, name: str, values: Sequence[AnyWord] | None, *, appended: bool = False) -> None:
        """Note what variable `name` may hold besides what it held; None where that is not in the line.

        With `appended` the values are put behind what it held.
        Only the files that a program is seen to read follow from it: never a program, an option or a write.
        """
        if name in self._bound:
            self.flag("a loop's variable is set in the loop")
        if values is not None and all(_is_number(value) for value in values):
            self._numbers.add(name)
        else:
            self._others.add(name)
        before = self._values.get(name, [])
        unknown = (
            appended
            or len(before or ()) > _MAX_VALUES
            or values is None
            or before is None
            or any(_is_open(value) for value in values)
        )
        if unknown:
            self._values[name] = None
        else:
            held = list(before or ())
            self._values[name] = held + [value for value in values or () if value not in held]

    def may_be_array(self, name: str) -> bool:
        """Whether the line gave `name` a value that is not told: an array, or what a program said."""
        return name in self._values and self._values[name] is None

    def evaluates(self, used: set[str], changed: set[str]) -> None:
        """Note that arithmetic evaluates the variables `used`, and sets those in `changed` to a number."""
        for name in changed:
            if not own_variable(name) or name in self._bound:
                self.flag(f"arithmetic sets `{name}`")
        self._evaluated |= used
        self._numbers |= changed

    def counts(self, word: AnyWord) -> bool:
        """Whether `word` is a number, or a variable that holds nothing else in this line."""
        if _is_number(word):
            return True
        match = _VARIABLE.fullmatch(word.text) if isinstance(word, Word) and not word.literal else None
        name = (match[1] or match[2]) if match else ""
        if name not in self._numbers or name in self._others:
            return False
        self._evaluated.add(name)
        return True

    def settle(self) -> None:
        """At the end of the line: what a variable held when it was used may not be all that it ever holds."""
        if any(name not in self._numbers or name in self._others for name in self._evaluated):
            self.flag("arithmetic evaluates what a variable holds")
        if self._used:
            self._settle_files()

    def _settle_files(self) -> None:
        """A variable that was read as a file's name may be set anew behind that, in a loop."""
        for name, count, at in self._used:
            values = self._values[name]
            if values is not None:
                self.read_all(values[count:])
                continue
            run = self.effects[at] if at < len(self.effects) else None
            if isinstance(run, RunProgram):
                self.effects[at] = replace(run, distrust="a file that it reads is known only to the shell")

    def held(self, word: Word) -> list[AnyWord] | None:
        """What `word`, a variable and nothing else, may hold; None where that is not known."""
        match = _VARIABLE.fullmatch(word.text)
        return self._values.get(match[1] or match[2]) if match else None

    def bind(self, name: str, value: str) -> None:
        """A loop's variable holds `value` while the body is read once; empty: the loop is over."""
        if value:
            self._bound[name] = value
        else:
            self._bound.pop(name, None)

    def bound(self, name: str) -> str | None:
        """What a loop's variable holds in this reading of the body."""
        return self._bound.get(name)

    @abstractmethod
    def run(self, call: Call) -> None:
        """Collect what `call` does, looking through wrappers."""

    @abstractmethod
    def script(self, text: str, call: Call, *, needs_rule: bool = False, only_runs: bool = False) -> None:
        """Collect what a shell does that `call` gives `text` to; deny and ask rules reach it.

        With `needs_rule` an allow rule has to reach it, too: the program is one that should not run others,
        but has an option that does (`sort --compress-program`). With `only_runs` it may be no script at all,
        or one for another machine: what it seems to run is shown to deny and ask rules, no more.
        """

    def flag(self, reason: str) -> None:
        """Note that the line is opaque because of `reason`."""
        if reason not in self.reasons:
            self.reasons.append(reason)

    def known(self, name: str) -> str | None:
        """Return the value of a variable where it is certain."""
        if name == "HOME":
            return self.home or None
        if name == "PWD" and len(self.places.now) == 1 and self.places.now[0] != UNKNOWN:
            return self.places.now[0]
        return None

    def emit(self, call: Call, *, needs_rule: bool = True) -> None:
        """Add the run of `call` itself; without `needs_rule` for deny and ask rules only."""
        words = call.words
        argv = call.argv()
        odd = [
            (at, word) for at, word in enumerate(words) if type(word) is not str and isinstance(word, Word)
        ]
        now = self.places.now
        run = RunProgram(
            argv=argv,
            via=call.via,
            outer=call.outer,
            seen_inside=call.inside or not needs_rule,
            unknown=tuple([at for at, _ in odd]),
            spread=tuple([at for at, word in odd if word.spread]),
            dashed=tuple([at for at, word in odd if word.dashed]),
            cwd=() if now == (self.places.start,) or UNKNOWN in now else now,
        )
        self.effects.append(run)

    def read(self, word: AnyWord) -> None:
        """Add the read of the file or directory that `word` names; `-` is standard input."""
        if isinstance(word, Word):
            if word.below:
                word = word.below
            elif not word.path:
                held = self.held(word)
                if held is not None:
                    match = _VARIABLE.fullmatch(word.text)
                    name = (match[1] or match[2]) if match else ""
                    self._used.append((name, len(held), self.reader))
                    self.read_all(held)
                    return
                self.unseen = True
        text = word if isinstance(word, str) else word.path or _directory(word) or self._other_home(word)
        glob = isinstance(word, Word) and bool(word.path)
        if text and text != "-":
            for path in self.absolute(text):
                self.effects.append(ReadPath(path=path, glob=glob and _wild(path)))

    def _other_home(self, word: Word) -> str:
        """Where `~user/x` most likely is; empty where the word is none of that form."""
        match = _TILDE.fullmatch(word.text)
        if match is None:
            return ""
        homes = self.home.rpartition("/")[0] or "/home"
        return ("/root" if match[1] == "root" else f"{homes}/{match[1]}") + (match[2] or "")

    def write(self, word: AnyWord, *, tree: bool = False, into: Sequence[AnyWord] = ()) -> None:
        """Add the write of what `word` names, with `tree` of all under it.

        `into` are files of which the names are made in it, should it be a directory. A name that only the
        shell will know is flagged.
        """
        names = tuple(name for source in into if (name := _last_name(source)))
        if isinstance(word, Word) and word.below:
            word, tree = word.below, True
        text, glob = (word, False) if isinstance(word, str) else (word.path, True)
        paths = self.absolute(text) if text else []
        if not text or (UNKNOWN in self.places.now and not text.startswith("/")):
            if not isinstance(word, str) or text:
                self.flag("the name of a file that it writes is known only to the shell")
                self.effects.append(WritePath(path=text_of(word), unresolved=True))
            return
        for path in paths:
            wild = glob and _wild(path)
            self.effects.append(WritePath(path=path, glob=wild, tree=tree, into=names))
            if text.endswith("/") and not wild:
                self.effects += [WritePath(path=path + name, tree=tree) for name in names]

    def write_beside(self, word: AnyWord) -> None:
        """Add the write of files whose names begin with what `word` names: backups, parts, packed copies."""
        text = word if isinstance(word, str) else word.path
        for path in self.absolute(text.rstrip("/")) if text else []:
            self.effects.append(WritePath(path=f"{path}*", glob=True))

    def absolute(self, text: str) -> list[str]:
        """Return the absolute paths `text` may stand for; harmless devices and unknown places left out."""
        if text.startswith("/"):
            return [] if text in _DEVICES or text.startswith(("/dev/fd/", "/proc/self/fd/")) else [text]
        while text.startswith("./"):
            text = text[2:].lstrip("/")
        bases = [base for base in self.places.directories() if base != UNKNOWN]
        return [f"{base.rstrip('/')}/{text}" if text not in {"", "."} else base for base in bases]

    def reach(self, host: str) -> None:
        """Add a connection to `host`, which may carry a user and a port."""
        name = host.rpartition("@")[2].lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name:
            self.effects.append(ReachHost(host=name))

    def read_all(self, words: Sequence[AnyWord]) -> None:
        """Add the reads of all `words`."""
        for word in words:
            self.read(word)

    def write_all(self, words: Sequence[AnyWord], *, tree: bool = False) -> None:
        """Add the writes of all `words`."""
        for word in words:
            self.write(word, tree=tree)


def _is_number(word: AnyWord) -> bool:
    text = word if isinstance(word, str) else word.text if word.literal else ""
    return _INTEGER.fullmatch(text) is not None or (isinstance(word, Word) and word.numeric)


def _is_open(value: AnyWord) -> bool:
    """Whether more than wildcards is unknown of `value`."""
    return isinstance(value, Word) and not (value.literal or value.path)


def _last_name(word: AnyWord) -> str:
    text = word if isinstance(word, str) else word.path
    return text.rstrip("/").rpartition("/")[2]


def _directory(word: Word) -> str:
    """The directory part that is known of a name; empty where nothing is."""
    return word.lead.rpartition("/")[0] + "/" if "/" in word.lead else ""


def _wild(path: str) -> bool:
    return any(char in path for char in "*?[")
