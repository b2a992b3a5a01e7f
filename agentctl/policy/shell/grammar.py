"""The strict grammar: reads a line as bash would, tells a listener what it runs, and refuses the unsure.

Reading goes on behind constructs that are understood but not provable (`eval`, functions); those are flagged.
What is refused ends the reading: bash may have run what stood before it, which the listener has heard.
"""

import re

from agentctl.policy.shell.compounds import CompoundReader
from agentctl.policy.shell.lexing import MAX_DEPTH
from agentctl.policy.shell.places import Dirs
from agentctl.policy.shell.redirects import Heredoc
from agentctl.policy.shell.words import Refused

MAX_TEXT = 64 * 1024
_END: frozenset[str] = frozenset()
_PARENTHESIS = frozenset({")"})
_STOP_WORD = re.compile(r"[a-z}]+(?=[ \t\n;&|<>()]|\Z)")
_COMPOUND = re.compile(r"\[\[|[({]|(?:if|while|until|for|case|select|function|coproc)\b")
_TIME_POSIX = re.compile(r"-(?:\\\n)*p(?:\\\n)*(?=[ \t\n;&|<>()]|\Z)")
_TIME_END = re.compile(r"-(?:\\\n)*-(?:\\\n)*(?=[ \t\n;&|<>()]|\Z)")


class Reader(CompoundReader):
    """Reads all commands of a text and tells the listener what they are."""

    skipped = 0
    """Characters in quoted heredoc bodies, which the size limit does not count."""

    def read_all(self) -> None:
        """Read the whole text.

        Raises:
            Refused: something in it is not in the grammar.
        """
        self.space()
        if self.pos < self.end:
            self.compound_list(_END)
        if self.heredocs:
            raise Refused("a heredoc's end is missing")

    def commands_in_parentheses(self) -> None:
        """See Lexer."""
        start = self.pos
        pending, self.heredocs = self.heredocs, []
        self.nested(may_be_empty=True)
        if self.heredocs:
            raise Refused("a heredoc's end is missing")
        if pending and "\n" in self.text[start : self.pos]:
            raise Refused("a substitution goes over several lines where a heredoc is still to come")
        self.heredocs = pending

    def nested(self, *, may_be_empty: bool) -> None:
        """See CompoundReader."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Refused("it is nested too deep")
        saved = self.places.now
        self.space()
        if not (may_be_empty and self.text.startswith(")", self.pos)):
            self.compound_list(_PARENTHESIS)
        self.pos += 1
        self.places.at(saved)
        self.depth -= 1

    def commands_in_text(self, text: str) -> None:
        """See Lexer."""
        saved = self.places.now
        Reader(text, self.listener, depth=self.depth + 1).read_all()
        self.places.at(saved)

    def space(self) -> None:
        """Skip blanks, comments and newlines; a newline brings the bodies of waiting heredocs."""
        text = self.text
        while True:
            self.blanks()
            if text.startswith("#", self.pos):
                close = text.find("\n", self.pos)
                self.pos = self.end if close < 0 else close
            if not text.startswith("\n", self.pos):
                return
            self.newline()

    def newline(self) -> None:
        """See SimpleReader."""
        self.pos += 1
        if self.pos - self.skipped > MAX_TEXT:
            raise Refused("it is too long")
        waiting, self.heredocs = self.heredocs, []
        for heredoc in waiting:
            self._body(heredoc)

    def _body(self, heredoc: Heredoc) -> None:
        start = self.pos
        tabs = r"\t*" if heredoc.strip else ""
        match = re.compile(rf"^{tabs}{re.escape(heredoc.delimiter)}$", re.MULTILINE).search(self.text, start)
        if match is None:
            raise Refused("a heredoc's end is missing")
        body = self.text[start : match.start()]
        self.pos = min(match.end() + 1, self.end)
        if heredoc.quoted:
            self.skipped += self.pos - start
        elif "\\\n" in body:
            raise Refused("a line continuation stands in a heredoc")
        elif "$" in body or "`" in body:
            Reader(body, self.listener, depth=self.depth + 1).read_body()
        if heredoc.redirect.shell is not None:
            self.listener.script(body, heredoc.redirect.shell)

    def compound_list(self, stops: frozenset[str]) -> str:
        """See CompoundReader."""
        count = 0
        while True:
            self.space()
            stop = self._stop(stops) if count or ";;" in stops else ""
            if stop:
                return stop
            if self.pos >= self.end:
                if stops or not count:
                    raise Refused("a command is not complete")
                return ""
            start = self.places.now
            self.and_or()
            count += 1
            self.blanks()
            self._separator(stops, start)

    def _separator(self, stops: frozenset[str], start: Dirs) -> None:
        """Read `;`, `&`, or nothing in front of a newline, an end or a stop."""
        text, pos = self.text, self.pos
        char = text[pos] if pos < self.end else "\n"
        if char in "\n#" or (char == ")" and ")" in stops):
            self.places.settle()
        elif text.startswith((";;", ";&"), pos):
            if ";;" not in stops:
                raise Refused("`;;` stands outside a case")
            self.places.settle()
        elif char == ";":
            self.pos += 1
            self.places.settle()
        elif char == "&" and not text.startswith(("&&", "&>"), pos):
            self.pos += 1
            self.places.at(start)
        else:
            raise Refused("a command ends in something unexpected")

    def _stop(self, stops: frozenset[str]) -> str:
        text, pos = self.text, self.pos
        char = text[pos] if pos < self.end else ""
        if char == ")" and ")" in stops:
            return ")"
        if char == ";" and ";;" in stops:
            for operator in (";;&", ";;", ";&"):
                if text.startswith(operator, pos):
                    self.pos += len(operator)
                    return operator
        if char and char in "tdfe}":
            match = _STOP_WORD.match(text, pos)
            if match and match[0] in stops:
                self.pos = match.end()
                return match[0]
        return ""

    def and_or(self) -> None:
        """Read pipelines joined by `&&` and `||`."""
        places = self.places
        self.pipeline()
        while True:
            self.blanks()
            operator = self.text[self.pos : self.pos + 2]
            if operator not in {"&&", "||"}:
                return
            self.pos += 2
            self.space()
            before = places.then(operator)
            self.pipeline()
            places.joined(operator, before)

    def pipeline(self) -> None:
        """Read commands joined by `|`."""
        negated = self._prefixes()
        start = self.places.now
        many = False
        heard = self.heard
        self.command()
        while True:
            self.blanks()
            text, pos = self.text, self.pos
            if not text.startswith("|", pos) or text.startswith("||", pos):
                break
            self.pos += 2 if text.startswith("|&", pos) else 1
            self.space()
            many = True
            self.places.at(start)
            self.listener.pipe(simple=self.heard == heard + 1)
            heard = self.heard
            self.command()
        if many:
            self.listener.no_pipe()
            self.places.at(start)
        if negated:
            self.places.negate()

    def _prefixes(self) -> bool:
        """Read `!` and `time` in front of a pipeline; returns whether its status is turned around."""
        negated = timed = False
        while True:
            text, pos = self.text, self.pos
            if text.startswith("!", pos) and text[pos + 1 : pos + 2] in {" ", "\t"}:
                self.pos += 1
                negated = not negated
            elif text.startswith("time", pos) and text[pos + 4 : pos + 5] in {" ", "\t"}:
                self.pos += 4
                timed = True
                # Two words that belong to `time` itself; bash takes them in this order only.
                for option in (_TIME_POSIX, _TIME_END):
                    self.blanks()
                    if (found := option.match(text, self.pos)) is not None:
                        self.pos = found.end()
            else:
                if timed and self.depth and _COMPOUND.match(text, pos):
                    # At the start of a substitution bash 5.2 takes `[[` for a program here, and `>` for a
                    # redirect.
                    raise Refused("`time` stands before a compound command in parentheses")
                return negated
            self.blanks()
