"""A word of the shell while it is read, piece by piece."""


class Draft:
    """A word while it is read."""

    __slots__ = (
        "bound",
        "brace",
        "bracket",
        "dollar",
        "firm",
        "glob",
        "lead",
        "numeric",
        "out",
        "quoted",
        "spread",
    )

    def __init__(self) -> None:
        self.out: list[str] = []
        self.lead: str | None = None
        """Literal text before the first expansion; None while there is none."""
        self.quoted = self.spread = self.glob = self.brace = self.bracket = False
        self.dollar = False
        """An expansion that is neither $HOME nor $PWD is in it."""
        self.numeric = True
        self.firm = self.bound = False

    def unknown(self, *, numeric: bool, spread: bool) -> None:
        """Add an expansion whose value is not known."""
        if self.lead is None:
            self.lead = "".join(self.out)
        self.dollar = True
        self.numeric = self.numeric and numeric
        self.spread = self.spread or (spread and not numeric)

    def bind(self, value: str) -> None:
        """Add a loop's variable: a plain word that neither splits nor begins with a dash."""
        if self.lead is None:
            self.lead = "".join(self.out)
        self.firm = self.firm or not self.lead
        self.bound = True
        self.numeric = self.numeric and value.isdecimal()
        self.out.append(value)
