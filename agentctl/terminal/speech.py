"""What a model says while it says it: whole lines as they come, and void when the model is tried again."""

from dataclasses import dataclass, field

from agentctl.protocol.messages import AssistantMessage, ReasoningPart
from agentctl.terminal.visible import prose


@dataclass(slots=True)
class Speech:
    """The streamed text of one reply."""

    text: str = ""
    """All of it so far, raw."""
    _shown: int = 0

    def add(self, piece: str) -> tuple[str, ...]:
        """Take in a piece; return the lines that it completes, made visible."""
        self.text += piece
        end = self.text.rfind("\n") + 1
        if end <= self._shown:
            return ()
        lines = self.text[self._shown : end - 1].split("\n")
        self._shown = end
        return tuple(prose(line) for line in lines)

    @property
    def partial(self) -> str:
        """The last line, which has no end yet, made visible."""
        return prose(self.text[self._shown :])

    def end(self) -> tuple[str, ...]:
        """Close the reply; return its last line if it has one that was not returned."""
        rest = self.partial
        self.text, self._shown = "", 0
        return (rest,) if rest else ()

    def void(self) -> bool:
        """Forget the reply; return whether some of its lines had been returned."""
        shown = self._shown > 0
        self.text, self._shown = "", 0
        return shown


@dataclass(slots=True)
class Thoughts:
    """The thinking before a reply, for who wants to see it."""

    shown: bool
    """Whether anything is returned at all."""
    _speech: Speech = field(default_factory=Speech)
    _streamed: bool = False

    def add(self, piece: str) -> tuple[str, ...]:
        """Take in a piece; return the lines that it completes."""
        self._streamed = True
        return self._speech.add(piece) if self.shown else ()

    def end(self) -> tuple[str, ...]:
        """Return the last line, if it was not returned: the reply's text begins."""
        return self._speech.end()

    def close(self, message: AssistantMessage) -> tuple[str, ...]:
        """Return what of the whole message's thinking was not returned, and be ready for the next."""
        rest = self._speech.end()
        if self.shown and not self._streamed:
            whole = "\n".join(part.text for part in message.parts if isinstance(part, ReasoningPart))
            rest = tuple(prose(line) for line in whole.split("\n")) if whole else ()
        self._streamed = False
        return rest

    def void(self) -> bool:
        """Forget it all; return whether some of its lines had been returned."""
        self._streamed = False
        return self._speech.void()
