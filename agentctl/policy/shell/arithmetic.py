"""Reads arithmetic: harmless where every name in it holds a number, as the shell evaluates what it holds."""

import re

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\$(?:\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<value>[A-Za-z_][A-Za-z0-9_]*)|[#?])"
    r"|0[xX][0-9A-Fa-f]+|[0-9]+"
    r"|(?P<step>\+\+|--)|(?P<sets>(?:<<|>>|[-+*/%&|^])?=(?!=))"
    r"|<<|>>|&&|\|\||[<>=!]=|[-+*/%()<>!&|^~?:,])"
)


def arithmetic_names(text: str) -> tuple[set[str], set[str]] | None:
    """Return the names that `text` evaluates and those that it sets; None where it cannot be told."""
    used: set[str] = set()
    changed: set[str] = set()
    at = 0
    name, stepping = "", False
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        at = match.end()
        if match["step"]:
            changed |= {name} if name else set()
            name, stepping = "", True
            continue
        if match["sets"]:
            changed |= {name} if name else set()
        name = match["name"] or ""
        if stepping and name:
            changed.add(name)
        stepping = False
        if found := name or match["braced"] or match["value"]:
            used.add(found)
    return used, changed
