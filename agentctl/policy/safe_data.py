"""Reads the shipped list of safe commands and what the user adds to it."""

from dataclasses import field

from agentctl.errors import InvalidInput, Problem
from agentctl.policy.patterns import PatternError, shell_pattern
from agentctl.policy.programs import is_interpreter, is_wrapper
from agentctl.policy.rules import ToolNames
from agentctl.policy.safe_list import SafeEntry, SafeList, SafeProgram, SafeWords
from agentctl.policy.safe_options import ANY_NUMBER, AnyForm, Form
from agentctl.policy.safe_scripts import CHECKS
from agentctl.records import dataclass
from agentctl.toml.positions import Key
from agentctl.toml.table import EMPTY, Table, TomlValue

_KEYWORDS = frozenset(
    (
        *("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in"),
        *("select", "function", "time", "coproc", "{", "}", "!", "[[", "]]"),
    )
)
_TEXTS = ("flags", "values", "attached", "prefix", "operands_with")
_LISTS = ("long", "long_values", "needs", "without", "words", "words_1", "use", "first")
_KEYS = frozenset((*_TEXTS, *_LISTS, "any", "check", "numbers", "raw", "operands", "or"))


def safe_list(shipped: Table, user: Table = EMPTY, *, names: ToolNames) -> SafeList:
    """Return what needs no prompt: the shipped list unless `defaults = false`, and the user's own entries.

    `user` is `[safe_commands]` as written. A blueprint's table does not come here: it is inert.

    Raises:
        InvalidInput: an entry of the user's that cannot be safe, or is no command or tool; every one at once.
    """
    base = _shipped(shipped) if user.values.get("defaults", True) is True else SafeList()
    problems: list[Problem] = []
    own = tuple(_own_words(user, problems))
    tools = dict(_own_tools(user, names, problems))
    if problems:
        raise InvalidInput(tuple(problems), hint="agentctl tools safe  prints the list in effect")
    return SafeList(programs=base.programs, git=base.git, own=own, tools={**base.tools, **tools})


def _own_words(user: Table, problems: list[Problem]) -> list[SafeWords]:
    found: list[SafeWords] = []
    for index, text in _texts(user, "shell", problems):
        place, key = user.value_position("shell", index), user.key("shell", index)
        words, wrong = _literal_words(text)
        if wrong:
            problems.append(Problem(position=place, key=key, message=f"{text!r} {wrong}"))
            continue
        entry = SafeEntry(text=f"{' '.join(words)} *", position=place, by="user")
        found.append(SafeWords(entry=entry, words=words))
    return found


def _literal_words(text: str) -> tuple[tuple[str, ...], str]:
    """Return the words of a user's entry, and what is wrong with them or empty."""
    try:
        pattern = shell_pattern(text)
    except PatternError as error:
        return (), f"is no command: {error}"
    words = tuple(word for word in pattern.words if isinstance(word, str))
    if not words or len(words) < len(pattern.words):
        return (), "needs plain words without `*`; any further arguments are covered anyway"
    odd = next((word for word in words if set(word) & set("$`;|&<>()\n")), "")
    if odd:
        return (), f"is no single command: {odd!r} means something to the shell"
    if words[0] in _KEYWORDS or "=" in words[0] or words[0].startswith(("env:", "shell:")):
        return (), "does not begin with a program"
    if is_interpreter(words[0]) or is_wrapper(words[0]):
        return (), f"cannot be safe: {words[0]} runs whatever it is given; write a rule in [tool_permissions]"
    if words == ("git",):
        return (), "would cover every git command; name the sub-command"
    return words, ""


def _own_tools(user: Table, names: ToolNames, problems: list[Problem]) -> list[tuple[str, SafeEntry]]:
    found: list[tuple[str, SafeEntry]] = []
    for index, text in _texts(user, "tools", problems):
        place, key = user.value_position("tools", index), user.key("tools", index)
        if not names.accepts(text) or "*" in text:
            problems.append(
                Problem(
                    position=place, key=key, message=f"unknown tool {text!r}", suggestion=names.nearest(text)
                )
            )
            continue
        tool = names.canonical(text)
        found.append((tool, SafeEntry(text=tool, position=place, by="user")))
    return found


def _texts(table: Table, key: str, problems: list[Problem]) -> list[tuple[int, str]]:
    items = table.values.get(key, [])
    items = [items] if isinstance(items, str) else items
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        problems.append(
            Problem(position=table.position(key), key=table.key(key), message="expected a list of texts")
        )
        return []
    return [(index, str(item)) for index, item in enumerate(items)]


def _shipped(table: Table) -> SafeList:
    reader = _Reader(table=table)
    programs: dict[str, SafeProgram] = {}
    for index, name in enumerate(reader.texts(("any",))):
        entry = SafeEntry(text=name, position=table.value_position("any", index), by="shipped")
        programs[name] = SafeProgram(entry=entry, forms=(AnyForm(),), first=((),))
    for name in table.table("form"):
        programs[name] = reader.program(name, ("form", name))
    versions: dict[str, list[str]] = {}
    for option in table.table("version"):
        for name in reader.texts(("version", option)):
            versions.setdefault(name, []).append(option)
    for name, options in versions.items():
        form = Form(words=dict.fromkeys(options, 0), operands=0, needs=frozenset(options), only=1)
        known = programs.get(name)
        if known is None:
            text = f"{name} {' or '.join(options)}"
            entry = SafeEntry(text=text, position=table.position("version"), by="shipped")
            programs[name] = SafeProgram(entry=entry, forms=(form,), first=((),))
        else:
            programs[name] = SafeProgram(
                entry=known.entry, forms=(*known.forms, form), first=(*known.first, ())
            )
    git = {name: reader.program(f"git {name}", ("git", name)) for name in table.table("git")}
    tools = {
        name: SafeEntry(text=name, position=table.value_position("tools", index), by="shipped")
        for index, name in enumerate(reader.texts(("tools",)))
    }
    return SafeList(programs=programs, git=git, tools=tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the shipped file, which is part of the program: anything odd in it is an error at once."""

    table: Table
    groups: dict[str, Form] = field(default_factory=dict)

    def at(self, path: tuple[Key, ...]) -> "TomlValue | None":
        value: TomlValue = dict(self.table.values)
        for part in path:
            match value, part:
                case dict(), str():
                    if part not in value:
                        return None
                    value = value[part]
                case list(), int() if part < len(value):
                    value = value[part]
                case _:
                    return None
        return value

    def fail(self, path: tuple[Key, ...], message: str) -> InvalidInput:
        return InvalidInput(
            (Problem(position=self.table.position(*path), key=self.table.key(*path), message=message),)
        )

    def texts(self, path: tuple[Key, ...]) -> tuple[str, ...]:
        value = self.at(path)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fail(path, "expected a list of texts")
        return tuple(str(item) for item in value)

    def text(self, path: tuple[Key, ...]) -> str:
        value = self.at(path)
        if value is not None and not isinstance(value, str):
            raise self.fail(path, "expected a text")
        return value or ""

    def program(self, name: str, path: tuple[Key, ...]) -> SafeProgram:
        paths: list[tuple[Key, ...]] = [path]
        others = self.at((*path, "or"))
        if isinstance(others, list):
            paths += [(*path, "or", index) for index in range(len(others))]
        return SafeProgram(
            entry=SafeEntry(text=name, position=self.table.position(*path), by="shipped"),
            forms=tuple(self.form(one) for one in paths),
            first=tuple(self.texts((*one, "first")) for one in paths),
        )

    def form(self, path: tuple[Key, ...]) -> Form | AnyForm:
        value = self.at(path)
        if not isinstance(value, dict):
            raise self.fail(path, "expected a table")
        for key in value:
            if key not in _KEYS:
                raise self.fail((*path, key), f"unknown key {key!r}")
        if value.get("any") is True:
            return AnyForm()
        used = [self.form(("group", name)) for name in self.texts((*path, "use"))]
        groups = [form for form in used if isinstance(form, Form)]
        flags, values, attached, prefix, operands_with = (self.text((*path, key)) for key in _TEXTS)
        long, long_values, needs, without, words, words_1, _, _ = (self.texts((*path, key)) for key in _LISTS)
        check = self.text((*path, "check"))
        if check and check not in CHECKS:
            raise self.fail((*path, "check"), f"unknown check {check!r}")
        operands = value.get("operands", ANY_NUMBER)
        return Form(
            flags=flags + "".join(form.flags for form in groups),
            values=values + "".join(form.values for form in groups),
            attached=attached + "".join(form.attached for form in groups),
            long=frozenset(long).union(*(form.long for form in groups)),
            long_values=frozenset(long_values).union(*(form.long_values for form in groups)),
            operands=operands if isinstance(operands, int) else 0,
            prefix=prefix,
            operands_with=operands_with,
            numbers=value.get("numbers") is True or any(form.numbers for form in groups),
            raw=value.get("raw") is True,
            words=dict.fromkeys(words, 0) | dict.fromkeys(words_1, 1),
            needs=frozenset(needs),
            without=without,
            checks=(
                *((CHECKS[check],) if check else ()),
                *(one for form in groups for one in form.checks),
            ),
        )
