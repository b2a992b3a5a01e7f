"""A question of the model or of a checkpoint: words, one of several, yes or no, a document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff

from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.terminal.desk import Desk
from agentctl.terminal.editor import edit_text
from agentctl.terminal.keys import Key
from agentctl.terminal.pager import page
from agentctl.terminal.sheet import Row, framed, paint, person_rows
from agentctl.terminal.visible import exact

_DECLINED = PersonAnswer(no_answer="declined")
_SINGLE_KEYS = 9


@dataclass(slots=True, kw_only=True)
class PersonPrompt:
    """One question in front of a person."""

    desk: Desk
    question: PersonQuestion
    environ: Mapping[str, str] = field(default_factory=dict)
    _options: tuple[str, ...] = ()
    _comment: str = ""

    async def answer(self) -> PersonAnswer:
        """Return the person's answer; Escape declines. Raises TerminalGone when the terminal hangs up."""
        question = self.question
        match question.kind:
            case "text":
                return await self._text()
            case "edit" if not question.options:
                return await self._keys(("edit it", "leave it as it is"))
            case "confirm":
                return await self._keys(question.options or ("yes", "no"))
            case "choice" | "review" | "edit":
                return await self._keys(question.options or ("approve", "revise"))

    async def _text(self) -> PersonAnswer:
        await self.desk.present(self._rows, (Row(style="keys", text="Enter sends · Esc no answer"),), ">")
        line = await self.desk.line("> ")
        return _DECLINED if line is None else PersonAnswer(text=line)

    async def _keys(self, options: tuple[str, ...]) -> PersonAnswer:
        self._options = options
        await self._show_all()
        while True:
            key = await self.desk.one_key(self._show_all)
            answer = await self._take(key)
            if answer is not None:
                return answer

    async def _take(self, key: Key) -> PersonAnswer | None:
        """Return what `key` answers, or None after doing what it asks for."""
        letter = key.text.lower() if key.kind == "char" else ""
        if self._single and letter.isdigit() and 1 <= int(letter) <= len(self._options):
            return await self._chosen(self._options[int(letter) - 1])
        if self.question.kind == "confirm" and letter in ("y", "n"):
            return await self._chosen(self._options[0 if letter == "y" else 1])
        match letter or key.kind:
            case "t":
                return await self._words()
            case "#" if not self._single:
                return await self._number()
            case "v":
                await page(self.desk, self._rows)
                await self._show_all()
            case "escape":
                self.desk.show("declined\r\n")
                return _DECLINED
            case "paste":
                await self._say("several keys at once are not an answer: press one")
            case _:
                await self._say("press one of the keys above")
        return None

    async def _chosen(self, option: str) -> PersonAnswer | None:
        question = self.question
        self.desk.show(exact(option).replace("\n", " ") + "\r\n")
        if option in question.edit_options or (question.kind == "edit" and option == self._options[0]):
            return await self._edited(option if question.options else "")
        if question.kind == "edit" and not question.options:
            return PersonAnswer(document=question.document, text=self._comment)
        wants_words = question.kind == "review" and not question.checkpoint and option != self._options[0]
        if wants_words and not self._comment:
            self._comment = await self.desk.line("what should change (Enter for nothing): ") or ""
        return PersonAnswer(option=option, text=self._comment.strip())

    async def _words(self) -> PersonAnswer | None:
        """Take words: the answer to a choice, else a comment that goes with the key pressed next."""
        self.desk.show("\r\n")
        line = await self.desk.line("in your words: ")
        if line is not None and self.question.kind == "choice":
            return PersonAnswer(text=line.strip())
        self._comment = line if line is not None else self._comment
        await self._say("now choose; your words go with it" if self._comment else "still to be answered")
        return None

    async def _number(self) -> PersonAnswer | None:
        self.desk.show("\r\n")
        line = (await self.desk.line("number: ") or "").strip()
        if line.isascii() and line.isdigit() and 1 <= int(line) <= len(self._options):
            return await self._chosen(self._options[int(line) - 1])
        await self._say(f"there are options 1 to {len(self._options)}")
        return None

    async def _edited(self, option: str) -> PersonAnswer | None:
        before = self.question.document
        columns, colour = self.desk.device.size()[0], self.desk.device.colour
        edited = await edit_text(before, suffix=".md", device=self.desk.device, environ=self.environ)
        if edited.problem:
            await self._say(exact(edited.problem))
            return None
        diff = unified_diff(before.splitlines(), edited.text.splitlines(), "before", "after", lineterm="")
        for row in paint(framed("\n".join(diff) or "(nothing changed)"), columns=columns, colour=colour):
            self.desk.show(f"{row}\r\n")
        return PersonAnswer(option=option, document=edited.text, text=self._comment)

    @property
    def _single(self) -> bool:
        return len(self._options) <= _SINGLE_KEYS

    async def _say(self, text: str) -> None:
        await self.desk.present(lambda: (Row(style="plain", text=text),), self._offered(), ">")

    async def _show_all(self) -> None:
        await self.desk.present(self._rows, self._offered(), ">")

    def _rows(self) -> Iterator[Row]:
        return person_rows(self.question)

    def _offered(self) -> tuple[Row, ...]:
        names = ("y", "n") if self.question.kind == "confirm" else ()
        options = [
            exact(f"{names[index] if names else index + 1} {option}").replace("\n", " ")
            for index, option in enumerate(self._options)
        ]
        more = "t in your words · v view" if self._single else "# choose by number · v view"
        return tuple(Row(style="keys", text=text) for text in (*options, f"{more} · Esc no answer"))
