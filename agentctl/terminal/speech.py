"""What a model says while it says it: whole lines as they come, and void when the model is tried again."""

from dataclasses import dataclass

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
