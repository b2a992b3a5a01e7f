"""Reads compound commands: loops, conditionals, cases, groups, subshells, functions."""

import re
from abc import abstractmethod

from agentctl.policy.shell.conditions import read_condition
from agentctl.policy.shell.lexing import MAX_DEPTH, NAME
from agentctl.policy.shell.places import UNKNOWN, Dirs
from agentctl.policy.shell.redirects import read_redirect
from agentctl.policy.shell.simple import SimpleReader
from agentctl.policy.shell.words import AnyWord, Refused, Word

_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|while|until|do|done|for|case|esac|select|function|coproc|time|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|<>()]|\Z)"
)
_REDIRECTION = re.compile(r"[0-9]{0,4}[<>]|&>|\{[A-Za-z_][A-Za-z0-9_]*\}[<>]")
_DESCRIPTOR = re.compile(r"[0-9]{0,4}(?=[<>])")
_FUNCTION = re.compile(r"[ \t]+([A-Za-z_][A-Za-z0-9_.:-]*)[ \t]*(?:\([ \t]*\))?")
_COPROCESS = re.compile(r"[ \t]+(?:[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=[{(]))?")
_IN = re.compile(r"in(?=[ \t\n])")
_DO_WORD = re.compile(r"do(?=[ \t\n])")
_ESAC = re.compile(r"esac(?=[ \t\n;&|<>()]|\Z)")
_DONE = frozenset({"done"})
_DO = frozenset({"do"})
_THEN = frozenset({"then"})
_BRANCH = frozenset({"elif", "else", "fi"})
_FI = frozenset({"fi"})
_BRACE = frozenset({"}"})
_CLAUSE = frozenset({";;", "esac"})


_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_./@%+][A-Za-z0-9_./@%+=:,-]*")
_MAX_ROUNDS = 12
_MAX_REREAD = 4096


class CompoundReader(SimpleReader):
    """Reads one command of any kind."""

    rounds = 1
    """How often what is read now is read in all, for loops around it."""

    @abstractmethod
    def compound_list(self, stops: frozenset[str]) -> str:
        """Read commands up to a word of `stops` where a command could begin, and return that word.

        The position is in front of `)` and behind any other stop. An empty `stops` reads to the end.
        """

    @abstractmethod
    def nested(self, *, may_be_empty: bool) -> None:
        """Read commands up to and with `)`, in a shell of their own."""

    def command(self) -> None:
        """Read one command."""
        text, pos = self.text, self.pos
        if text.startswith("(", pos):
            self._parenthesis()
            return
        match = _KEYWORD.match(text, pos) if pos < self.end and text[pos] in "itefwudcs{}![" else None
        if match is None:
            self.simple_command()
            return
        self.pos = match.end()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Refused("it is nested too deep")
        self._compound(match[0])
        self.depth -= 1

    def _compound(self, keyword: str) -> None:
        start = self.places.now
        match keyword:
            case "if":
                self._if()
            case "while" | "until":
                self._loop(keyword)
            case "for" | "select":
                self._for(keyword)
            case "case":
                self._case()
            case "{":
                self.compound_list(_BRACE)
            case "[[":
                read_condition(self)
                self.places.plain()
            case "function":
                self._named_function()
                return
            case "coproc":
                self._coprocess()
                return
            case _:
                raise Refused(f"the keyword `{keyword}` stands where a command is expected")
        self._redirections(start)

    def _redirections(self, start: Dirs) -> None:
        """Read what is redirected behind a compound command; names count from where it started."""
        places = self.places
        state = (places.now, places.passed, places.failed)
        places.now = start
        while True:
            self.blanks()
            if not _REDIRECTION.match(self.text, self.pos):
                break
            if self.text.startswith("{", self.pos):
                raise Refused("a redirection stores its descriptor in a variable")
            if not self.text.startswith("&", self.pos):
                self.pos = _DESCRIPTOR.match(self.text, self.pos).end()  # type: ignore[union-attr] # just seen
            self.listener.redirect(read_redirect(self, self.heredocs))
        places.now, places.passed, places.failed = state

    def _parenthesis(self) -> None:
        """A subshell, or arithmetic in double parentheses."""
        start = self.places.now
        if self.text.startswith("((", self.pos):
            self.pos += 2
            self.arithmetic("))")
        else:
            self.pos += 1
            self.nested(may_be_empty=False)
        self.places.at(start)
        self._redirections(start)

    def _if(self) -> None:
        places = self.places
        ends: list[Dirs] = []
        while True:
            self.compound_list(_THEN)
            skipped = places.failed
            places.at(places.passed)
            stop = self.compound_list(_BRANCH)
            ends.append(places.now)
            places.at(skipped)
            if stop != "elif":
                break
        if stop == "else":
            self.compound_list(_FI)
        ends.append(places.now)
        places.merge(*ends)

    def _loop(self, keyword: str) -> None:
        places = self.places
        start = places.now
        self.compound_list(_DO)
        skipped = places.failed if keyword == "while" else places.passed
        places.at(places.passed if keyword == "while" else places.failed)
        self.compound_list(_DONE)
        self._around(start, skipped)

    def _around(self, start: Dirs, skipped: Dirs) -> None:
        """A loop's body has been read: where it moves, later rounds start elsewhere."""
        places = self.places
        if set(places.now) - set(start) or set(skipped) - set(start):
            self.flag("the directory changes inside a loop")
            places.at((UNKNOWN,))
        else:
            places.merge(start, places.now, skipped)

    def _for(self, keyword: str) -> None:
        start = self.places.now
        self.blanks()
        name, words = "", None
        if self.text.startswith("((", self.pos):
            self.pos += 2
            self._three_parts()
        else:
            name, words = self._for_words(keyword)
        self.space()
        if self.text.startswith(";", self.pos):
            self.pos += 1
            self.space()
        if not _DO_WORD.match(self.text, self.pos):
            raise Refused("a loop without `do` cannot be read")
        self.pos += 2
        if not self._rounds(name, words, start):
            self.compound_list(_DONE)
        self._around(start, start)

    def _rounds(self, name: str, words: list[AnyWord] | None, start: Dirs) -> bool:
        """Read the body once for each of a few plain words; False where the words are not of that kind."""
        rounds = self.rounds * len(words or ())
        plain = words and all(isinstance(word, str) and _PLAIN_VALUE.fullmatch(word) for word in words)
        if not plain or rounds > _MAX_ROUNDS or self.end > _MAX_REREAD or self.heredocs:
            return False
        before, self.rounds = self.rounds, rounds
        body, ends = self.pos, start
        for word in words or ():
            self.pos = body
            self.heredocs = []
            self.places.at(start)
            self.listener.bind(name, str(word))
            self.compound_list(_DONE)
            ends = self.places.union(ends, self.places.now)
        self.listener.bind(name, "")
        self.rounds = before
        self.places.at(ends)
        return True

    def _three_parts(self) -> None:
        for closer in (";", ";", "))"):
            self.arithmetic(closer)

    def _for_words(self, keyword: str) -> tuple[str, list[AnyWord] | None]:
        match = NAME.match(self.text, self.pos)
        if match is None or self.text[match.end() : match.end() + 1] not in {" ", "\t", "\n", ";"}:
            raise Refused("a loop's variable cannot be read")
        if keyword == "select":
            self.flag("`select` reads its choice from a person")
        self.pos = match.end()
        self.space()
        words = self._loop_words() if _IN.match(self.text, self.pos) else None
        self.listener.sets(match[0], words)
        return match[0], None if keyword == "select" else words

    def _loop_words(self) -> list[AnyWord]:
        self.pos += 2
        words: list[AnyWord] = []
        while True:
            self.blanks()
            char = self.text[self.pos : self.pos + 1]
            if char in {"\n", ";", "", "#"}:
                return words
            word = self.word()
            if word == "":
                raise Refused("a loop's words cannot be read")
            words += word.alts or [word] if isinstance(word, Word) else [word]

    def _case(self) -> None:
        places = self.places
        self.blanks()
        if self.word() == "":
            raise Refused("a case cannot be read")
        self.space()
        if not _IN.match(self.text, self.pos):
            raise Refused("a case cannot be read")
        self.pos += 2
        start = places.now
        joined = start
        while True:
            self.space()
            if _ESAC.match(self.text, self.pos):
                self.pos += 4
                break
            self._patterns()
            places.at(joined)
            stop = self.compound_list(_CLAUSE)
            joined = places.union(joined, places.now)
            if stop == "esac":
                break
        places.at(joined)

    def _patterns(self) -> None:
        if self.text.startswith("(", self.pos):
            self.pos += 1
        while True:
            self.blanks()
            if self.word() == "":
                raise Refused("a case's pattern cannot be read")
            self.blanks()
            char = self.text[self.pos : self.pos + 1]
            self.pos += 1
            if char == ")":
                return
            if char != "|":
                raise Refused("a case's pattern cannot be read")

    def _named_function(self) -> None:
        match = _FUNCTION.match(self.text, self.pos)
        if match is None:
            raise Refused("a function cannot be read")
        self.flag("it defines a function")
        self.pos = match.end()
        self.function()

    def function(self) -> None:
        """See SimpleReader."""
        start = self.places.now
        self.space()
        self.places.at((UNKNOWN,))
        self.command()
        self.places.at(start)

    def _coprocess(self) -> None:
        match = _COPROCESS.match(self.text, self.pos)
        if match is None:
            raise Refused("a coprocess cannot be read")
        self.flag("it starts a coprocess")
        start = self.places.now
        self.pos = match.end()
        self.command()
        self.places.at(start)
