"""Claude Code's `settings.json`: `permissions` with `allow`, `ask` and `deny` lists of `Tool(specifier)`."""

import re
from collections.abc import Mapping

from agentctl.cli.peer_rules import LISTS, Imported, no_texts_of, only_mapping, texts_of
from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.effects import RunProgram

_RULE = re.compile(r"([A-Za-z_][\w.*-]*)(?:\((.*)\))?", re.DOTALL)
_PATH_TOOLS = {
    "Read": "read_file",
    "Edit": "write_file",
    "Write": "write_file",
    "MultiEdit": "write_file",
    "NotebookEdit": "write_file",
}
_PLAIN_TOOLS = {
    "Glob": "glob",
    "Grep": "grep",
    "LS": "list_dir",
    "Task": "spawn_agent",
    "Agent": "spawn_agent",
}
_NO_TOOL = {
    "WebSearch": "there is no search tool; an MCP server's is named server__tool",
    "TodoWrite": "there is no such tool",
    "TodoRead": "there is no such tool",
    "Skill": "there are no skills",
    "SlashCommand": "there are no slash commands",
    "ExitPlanMode": "there is no plan mode; give a stage its own permissions",
    "BashOutput": "reading the output of a background command is allowed where the command was",
    "KillShell": "ending a background command is allowed where the command was",
}


def import_claude(settings: Mapping[str, object]) -> Imported:
    """Return the rules of a settings file. Total; what cannot be read becomes a note."""
    imported = Imported()
    permissions = only_mapping(settings.get("permissions"))
    for name in LISTS:
        for rule in texts_of(permissions.get(name)):
            _rule(imported, name, rule)
        for odd in no_texts_of(permissions.get(name)):
            imported.note(odd, f"{name} holds it, and it is no text", carried=False)
    for path in texts_of(permissions.get("additionalDirectories")):
        imported.read_paths.append(path)
        imported.note(path, "may be read; writes stay inside the workdir")
    mode = permissions.get("defaultMode")
    if isinstance(mode, str) and mode != "default":
        imported.note(f"defaultMode {mode}", _MODES.get(mode, "there is no such mode"), carried=False)
    return imported


_MODES = {
    "acceptEdits": 'write write_file = "allow" for the same',
    "plan": "give a stage read-only tools for the same",
    "bypassPermissions": "start the run with --yolo for the same; denies hold nevertheless",
    "dontAsk": "without a terminal every ask is refused; --on-ask deny",
    "auto": "no model judges calls here",
}


def _rule(imported: Imported, into: str, rule: str) -> None:
    match = _RULE.fullmatch(rule.strip())
    if match is None:
        imported.note(rule, "this is no rule that can be read", carried=False)
        return
    tool, detail = match[1], match[2]
    if tool == "Bash":
        _shell(imported, into, rule, detail)
    elif tool in _PATH_TOOLS:
        _path(imported, into, rule, _PATH_TOOLS[tool], detail)
    elif tool == "WebFetch":
        _host(imported, into, rule, detail)
    elif tool.startswith("mcp__"):
        _server(imported, into, rule, tool)
    elif tool in _PLAIN_TOOLS:
        if detail and _PLAIN_TOOLS[tool] == "spawn_agent":
            imported.pattern("spawn_agent", into, detail, rule=rule)
        else:
            imported.word(_PLAIN_TOOLS[tool], into)
    else:
        imported.note(rule, _NO_TOOL.get(tool, "there is no such tool"), carried=False)


def _shell(imported: Imported, into: str, rule: str, detail: str | None) -> None:
    if detail is None or detail.strip() in {"", "*", ":*"}:
        imported.word("shell", into)
        return
    text = detail.strip()
    if text.endswith(":*"):
        text = f"{text[:-2]} *"
    runs = {
        effect.argv for effect in analyse(text, cwd="/", home="/").effects if isinstance(effect, RunProgram)
    }
    if len(runs) > 1 and re.search(r"&&|\|\||[;|\n]", text):
        imported.note(rule, "a pattern is one command here; write one for each part", carried=False)
        return
    head, star, _ = text.rpartition("*")
    if star and text.endswith("*") and head and not head.endswith(" ") and "*" not in head:
        imported.note(rule, "the star has no blank in front: it covers longer names and any further words")
        imported.pattern("shell", into, f"{text} *", rule=rule)
        return
    if "*" in text.removesuffix(" *"):
        imported.note(rule, _INNER_STAR[into])
    imported.pattern("shell", into, text, rule=rule)


_INNER_STAR = {
    "allow": "a star inside stands for one word, or a part of one, here; it covers less than before",
    "ask": "a star inside stands for one word, or a part of one, here: write a wider one to ask as often",
    "deny": "a star inside stands for one word, or a part of one, here: it DENIES LESS; write a wider one",
}


def _path(imported: Imported, into: str, rule: str, tool: str, detail: str | None) -> None:
    """A path in the style of gitignore, with four anchors."""
    if not detail:
        imported.word(tool, into)
        return
    path = detail.strip()
    if path.startswith("//"):
        path = path[1:]
    elif path.startswith("/"):
        path = path[1:]
        imported.note(rule, "was relative to the settings file; it is relative to the workdir here")
    anchored = path.startswith("./") or path != detail.strip()
    path = path.removeprefix("./")
    if path.startswith("!"):
        imported.note(rule, "a pattern that takes back another has no counterpart", carried=False)
        return
    if path.endswith("/"):
        path += "**"
    if "/" not in path and not anchored:
        path = f"**/{path}"
    imported.pattern(tool, into, path, rule=rule)
    if tool == "read_file" and into == "allow" and path.startswith(("/", "~")):
        imported.read_paths.append(path.partition("*")[0].rstrip("/") or "/")
        imported.note(rule, "reads outside the workdir are granted by [read_paths]; check that table")


def _host(imported: Imported, into: str, rule: str, detail: str | None) -> None:
    if not detail:
        imported.word("network", into)
    elif detail.startswith("domain:"):
        imported.pattern("network", into, detail[7:].strip(), rule=rule)
    else:
        imported.note(rule, "only domain: is known of this tool", carried=False)


def _server(imported: Imported, into: str, rule: str, tool: str) -> None:
    _, server, name = (*tool.split("__", 2), "")[:3]
    if not server:
        imported.note(rule, "names no server", carried=False)
        return
    imported.word(f"{server}__{name or '*'}", into)
