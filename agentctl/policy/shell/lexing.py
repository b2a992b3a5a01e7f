"""Reads the words of a line as bash does: quotes, escapes, expansions. Anything unsure is refused."""

import re
from abc import ABC, abstractmethod

from agentctl.policy.shell.arithmetic import arithmetic_names
from agentctl.policy.shell.draft import Draft
from agentctl.policy.shell.words import AnyWord, Refused, Word, ansi_c, expand_braces, may_expand_braces

PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=^-]+(?=[ \t\n;&|<>()]|\Z)")
BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RUN = re.compile(r"[^ \t\n;&|<>()'\"\\$`*?\[\]{}~]+")
_DOUBLE_RUN = re.compile(r"[^\"\\$`]+")
_BODY_RUN = re.compile(r"[^\\$`]+")
_ANSI_BODY = re.compile(r"(?:[^'\\]|\\[\s\S])*")
_SPECIAL = re.compile(r"[0-9@*#?$!_-]")
_ODD_BLANKS = re.compile(
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180e\u2000-\u200f\u2028\u2029\u202f"
    "\u205f-\u2064\u206a-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_NUMERIC = "#?$!"
_REPEATS = re.compile(r"\s*cat[ \t]+<<[ \t]*(['\"])(\w+)\1[ \t]*\n((?:[\s\S]*\n)??)\2\s*")
"""`cat` of a quoted heredoc: the text as it stands there."""
_FIRM = re.compile(
    r"\s*(?:pwd(?: -[LP])?|nproc|whoami|hostname|id -[ugn]+|uname(?: -[a-z]+)?"
    r"|date(?: \+[%A-Za-z0-9_:./]+)?|mktemp(?: -d)?"
    r"|git merge-base(?: [A-Za-z0-9@^~/._]\S*)+|git branch --show-current|git rev-parse(?: --show-toplevel"
    r"| --abbrev-ref| --short| --verify| --git-dir| [A-Za-z0-9@^~/._][^\s$`\"';|&<>()]*)+)\s*"
)
"""Commands whose output cannot begin with a dash."""
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_TILDE_ENDS = {"", "/", " ", "\t", "\n", ";", "&", "|", "<", ">", "(", ")"}
MAX_DEPTH = 24


class Lexer(ABC):
    """A position in a text, and the reading of words from there."""

    def __init__(self, text: str, *, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise Refused("it is nested too deep")
        self.text = text
        self.pos = 0
        self.end = len(text)
        self.depth = depth

    @abstractmethod
    def commands_in_parentheses(self) -> None:
        """Read commands up to and with `)`; the position is behind the opening parenthesis."""

    @abstractmethod
    def commands_in_text(self, text: str) -> None:
        """Read all of `text` as commands."""

    @abstractmethod
    def flag(self, reason: str) -> None:
        """Note that the line is opaque because of `reason`, and go on for what else it runs."""

    @abstractmethod
    def known(self, name: str) -> str | None:
        """Return the value of variable `name` where it is certain (HOME, PWD)."""

    @abstractmethod
    def bound(self, name: str) -> str | None:
        """Return what a loop's variable holds in this reading of the loop's body."""

    @abstractmethod
    def evaluates(self, used: set[str], changed: set[str]) -> None:
        """Note that arithmetic evaluates the variables `used`, and sets those in `changed` to a number."""

    @abstractmethod
    def counts(self, word: AnyWord) -> bool:
        """Whether `word` is a number, or a variable that holds nothing else in this line."""

    def blanks(self) -> None:
        """Skip blanks and line continuations."""
        pos = self.pos
        if pos < self.end and self.text[pos] in " \t\\":
            self.pos = BLANKS.match(self.text, pos).end()  # type: ignore[union-attr] # matches empty text too

    def word(self) -> AnyWord:
        """Read one word; empty text where none begins here."""
        match = PLAIN.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
            return match[0]
        return self._slow_word()

    def _slow_word(self) -> AnyWord:
        draft = Draft()
        start = self.pos
        text = self.text
        while self.pos < self.end:
            run = _RUN.match(text, self.pos)
            if run is not None:
                self._plain(draft, run[0])
                continue
            if not self._piece(draft, text[self.pos]):
                break
        if self.text.startswith(("<(", ">("), self.pos) and self.pos > start:
            raise Refused("a process substitution is glued to a word")
        return self._finish(draft, text[start : self.pos])

    def _plain(self, draft: Draft, run: str) -> None:
        if not run.isascii() and _ODD_BLANKS.search(run):
            self.flag("an invisible character or an odd blank stands outside quotes")
        draft.out.append(run)
        draft.numeric = draft.numeric and run.isdecimal()
        self.pos += len(run)

    def _piece(self, draft: Draft, char: str) -> bool:
        """Read one piece that begins with a special character; False where the word ends."""
        if char in " \t\n;&|<>()":
            return False
        if char == "'":
            self._single(draft)
        elif char == '"':
            self.double(draft)
        elif char == "\\":
            self._escape(draft)
        elif char == "$":
            self._dollar(draft, quoted=False)
        elif char == "`":
            self._backtick(draft, quoted=False)
        else:
            self._lone(draft, char)
        return True

    def _lone(self, draft: Draft, char: str) -> None:
        draft.numeric = False
        self.pos += 1
        if char == "~":
            self._tilde(draft)
            return
        if char in "*?" or (char == "]" and draft.bracket):
            draft.glob = True
            if draft.lead is None:
                draft.lead = "".join(draft.out).partition("[")[0] if char == "]" else "".join(draft.out)
        elif char == "[":
            draft.bracket = True
        elif char == "{":
            draft.brace = True
        draft.out.append(char)

    def _tilde(self, draft: Draft) -> None:
        """`~` at the start of a word, or behind `=` or `:` in one, names a home directory."""
        before = "".join(draft.out)
        ends = self.text[self.pos : self.pos + 1] in _TILDE_ENDS
        fresh = not draft.quoted and draft.lead is None
        if fresh and not before:
            home = self.known("HOME") if ends else None
            draft.firm = True
        elif fresh and _ASSIGNS.fullmatch(before):
            home = self.known("HOME") if ends else None
        elif (before.endswith((":", "=")) and before != "=") or not before:
            home = None
        else:
            draft.out.append("~")
            return
        if home is None:
            draft.unknown(numeric=False, spread=False)
        draft.out.append("~" if home is None else home)

    def _single(self, draft: Draft) -> None:
        close = self.text.find("'", self.pos + 1)
        if close < 0:
            raise Refused("a quote is not closed")
        self._literal(draft, self.text[self.pos + 1 : close])
        self.pos = close + 1

    def _literal(self, draft: Draft, value: str) -> None:
        draft.quoted = True
        draft.numeric = draft.numeric and value.isdecimal()
        draft.out.append(value)

    def _escape(self, draft: Draft) -> None:
        following = self.text[self.pos + 1 : self.pos + 2]
        if not following:
            raise Refused("it ends in a backslash")
        self.pos += 2
        if following != "\n":
            self._literal(draft, following)

    def double(self, draft: Draft) -> None:
        """Read a double-quoted text."""
        draft.quoted = True
        self.pos += 1
        while True:
            char = self.text[self.pos : self.pos + 1]
            if char == '"':
                self.pos += 1
                return
            if not char:
                raise Refused("a quote is not closed")
            self.quoted_piece(draft, char, _DOUBLE_RUN, '$`"\\')

    def quoted_piece(self, draft: Draft, char: str, run: re.Pattern[str], escapable: str) -> None:
        """Read one piece of a double-quoted text or of a heredoc's body."""
        if char == "$":
            self._dollar(draft, quoted=True)
        elif char == "`":
            self._backtick(draft, quoted=True)
        elif char == "\\":
            following = self.text[self.pos + 1 : self.pos + 2]
            if not following:
                if run is _DOUBLE_RUN:
                    raise Refused("a quote is not closed")
                self._literal(draft, char)
                self.pos += 1
                return
            self.pos += 2
            if following != "\n":
                self._literal(draft, following if following in escapable else char + following)
        else:
            match = run.match(self.text, self.pos)
            value = match[0] if match else char
            self._literal(draft, value)
            self.pos += len(value)

    def read_body(self) -> None:
        """Read all of the text as the body of an unquoted heredoc."""
        draft = Draft()
        while self.pos < self.end:
            self.quoted_piece(draft, self.text[self.pos], _BODY_RUN, "$`\\")

    def _dollar(self, draft: Draft, *, quoted: bool) -> None:
        following = self.text[self.pos + 1 : self.pos + 2]
        self.pos += 1
        if following == "(":
            self.pos += 1
            self._in_parentheses(draft, quoted=quoted)
        elif following == "{":
            self.pos += 1
            self._braced(draft, quoted=quoted)
        elif following == "[":
            raise Refused("it uses the old form of arithmetic, `$[`")
        elif following in {"'", '"'} and following and not quoted:
            self._dollar_quote(draft, following)
        elif following == "\\" and self.text.startswith("\n", self.pos + 1):
            raise Refused("a line continuation stands behind `$`")
        else:
            self._variable(draft, quoted=quoted)

    def _in_parentheses(self, draft: Draft, *, quoted: bool) -> None:
        start = self.pos
        numeric = self.text.startswith("(", start)
        if numeric:
            self.pos += 1
            self.arithmetic("))")
        else:
            self.commands_in_parentheses()
            inside = self.text[start : self.pos - 1]
            repeated = _REPEATS.fullmatch(inside) if quoted else None
            if repeated:
                self._literal(draft, repeated[3].rstrip("\n"))
                return
            if _FIRM.fullmatch(inside) and not draft.out and draft.lead is None:
                draft.firm = True
        draft.unknown(numeric=numeric, spread=not quoted)

    def arithmetic(self, closer: str) -> None:
        """Read an arithmetic text up to and with `closer`."""
        from_ = self.pos
        level = 0
        draft = Draft()
        while self.pos < self.end:
            char = self.text[self.pos]
            if level == 0 and self.text.startswith(closer, self.pos):
                inside = self.text[from_ : self.pos]
                self.pos += len(closer)
                names = arithmetic_names(inside)
                if names is None:
                    self.flag("arithmetic evaluates what a variable holds")
                else:
                    self.evaluates(*names)
                return
            if char in "$`":
                self.quoted_piece(draft, char, _DOUBLE_RUN, "")
                continue
            if char in "'\"\\{};#":
                break
            level += (char == "(") - (char == ")")
            if level < 0:
                break
            self.pos += 1
        raise Refused("an arithmetic expression cannot be read")

    def _dollar_quote(self, draft: Draft, quote: str) -> None:
        if quote == '"':
            raise Refused('it uses a translated string, `$"`')
        match = _ANSI_BODY.match(self.text, self.pos + 1)
        if match is None or not self.text.startswith("'", match.end()):
            raise Refused("a quote is not closed")
        self.pos = match.end() + 1
        value = ansi_c(match[0])
        if value is None:
            draft.quoted = True
            draft.unknown(numeric=False, spread=False)
        else:
            self._literal(draft, value)

    def _variable(self, draft: Draft, *, quoted: bool) -> None:
        """`$NAME`, `$1`, `$?`; a dollar sign in front of anything else is itself."""
        match = NAME.match(self.text, self.pos) or _SPECIAL.match(self.text, self.pos)
        if match is None:
            self._literal(draft, "$") if quoted else self._plain_dollar(draft)
            return
        self.pos = match.end()
        if self.text.startswith("\\\n", self.pos):
            raise Refused("a line continuation stands behind a variable's name")
        name = match[0]
        if self._known_variable(draft, name, quoted=quoted):
            return
        self._unknown(draft, name, numeric=name in _NUMERIC, spread=not quoted or name == "@")
        draft.out.append("$" + name)

    def _unknown(self, draft: Draft, name: str, *, numeric: bool, spread: bool) -> None:
        draft.unknown(numeric=numeric, spread=spread)
        # Until something was started in the background there is no number in `$!`, and no word is left.
        draft.spread = draft.spread or (spread and name == "!")

    def _plain_dollar(self, draft: Draft) -> None:
        draft.numeric = False
        draft.out.append("$")

    def _known_variable(self, draft: Draft, name: str, *, quoted: bool) -> bool:
        """Add what the variable holds where that is certain, without making the word a literal one."""
        value = self.bound(name)
        if value is not None:
            draft.bind(value)
            return True
        value = self.known(name)
        if value is not None:
            self._home(draft, value, quoted=quoted)
        return value is not None

    def _home(self, draft: Draft, value: str, *, quoted: bool) -> None:
        """$HOME or $PWD: the value is known well enough for a path, not for the words it makes."""
        if draft.lead is None:
            draft.lead = "".join(draft.out)
        draft.firm = draft.firm or not draft.lead
        draft.numeric = False
        draft.spread = draft.spread or not quoted
        draft.out.append(value)

    def _braced(self, draft: Draft, *, quoted: bool) -> None:
        name, numeric, many = self.parameter(quoted=quoted)
        if not name or not self._known_variable(draft, name, quoted=quoted):
            self._unknown(draft, name, numeric=numeric, spread=many or not quoted)

    @abstractmethod
    def parameter(self, *, quoted: bool) -> tuple[str, bool, bool]:
        """Read `${…}` from behind the brace: the name where it stands alone, numeric, many words."""

    def _backtick(self, draft: Draft, *, quoted: bool) -> None:
        at = self.pos + 1
        while at < self.end and self.text[at] != "`":
            at += 2 if self.text[at] == "\\" else 1
        if at >= self.end:
            raise Refused("a backtick is not closed")
        inside = self.text[self.pos + 1 : at]
        if "\\" in inside:
            self.flag("a backslash stands inside backticks")
            inside = re.sub(r'\\([`\\$"])' if quoted else r"\\([`\\$])", r"\1", inside)
        self.pos = at + 1
        self.commands_in_text(inside)
        draft.unknown(numeric=False, spread=not quoted)

    def _finish(self, draft: Draft, raw: str) -> AnyWord:
        if draft.brace and may_expand_braces(raw):
            return self._braces(draft, raw)
        if draft.lead is None:
            value = "".join(draft.out)
            return Word(value, literal=True, quoted=True) if draft.quoted else value
        word = Word(raw, quoted=draft.quoted)
        word.lead = draft.lead
        word.spread = draft.spread or draft.glob
        word.glob = draft.glob and not draft.dollar
        word.numeric = draft.numeric and (draft.dollar or draft.bound) and not draft.glob
        word.firm = draft.firm
        if not draft.dollar:
            word.path = "".join(draft.out)
        return word

    def _braces(self, draft: Draft, raw: str) -> Word:
        word = Word(raw, quoted=draft.quoted)
        word.spread = True
        if draft.lead is None and not draft.quoted:
            word.alts = expand_braces(raw)
            # A word that braces make may begin with anything; a bare name cannot be taken for its path.
        return word
