"""Gemini CLI's policy files (`[[rule]]` in TOML) and the tool lists of its `settings.json`."""

import re
from collections.abc import Mapping

from agentctl.cli.peer_rules import Imported, only_mapping, prefix_pattern, texts_of

_TOOLS = {
    "run_shell_command": "shell",
    "ShellTool": "shell",
    "write_file": "write_file",
    "WriteFileTool": "write_file",
    "replace": "write_file",
    "EditTool": "write_file",
    "read_file": "read_file",
    "ReadFileTool": "read_file",
    "read_many_files": "read_file",
    "glob": "glob",
    "GlobTool": "glob",
    "grep_search": "grep",
    "search_file_content": "grep",
    "GrepTool": "grep",
    "list_directory": "list_dir",
    "LSTool": "list_dir",
    "web_fetch": "network",
    "WebFetchTool": "network",
    "ask_user": "ask_user",
    "*": "*",
}
_DECISIONS = {"allow": "allow", "deny": "deny", "ask_user": "ask"}
_CALL = re.compile(r"([\w-]+)\((.*)\)", re.DOTALL)
_CONDITIONS = {
    "modes": "holds in every mode here",
    "interactive": "holds with and without a person here",
    "subagent": "holds for every agent here; write it into that agent's blueprint instead",
    "toolAnnotations": "annotations of tools are not looked at",
}


def import_gemini(value: Mapping[str, object]) -> Imported:
    """Return the rules of a policy file, or of the tool lists of a settings file. Total."""
    imported = Imported()
    rules = value.get("rule")
    for rule in rules if isinstance(rules, list) else []:
        _rule(imported, only_mapping(rule))
    tools = only_mapping(value.get("tools"))
    for key, into in (("allowed", "allow"), ("exclude", "deny")):
        for name in [
            *texts_of(tools.get(key)),
            *texts_of(value.get({"allowed": "allowedTools"}.get(key, "excludeTools"))),
        ]:
            _listed(imported, into, name)
    for name in [*texts_of(tools.get("core")), *texts_of(value.get("coreTools"))]:
        imported.note(
            name, "list it in a stage's available_tools: it says which tools there are", carried=False
        )
    if _priorities_matter(value):
        imported.note("priority", "the strictest rule that matches decides here, whatever its priority")
    return imported


def _priorities_matter(value: Mapping[str, object]) -> bool:
    rules = value.get("rule")
    found = {only_mapping(rule).get("priority") for rule in rules} if isinstance(rules, list) else set()
    return len(found) > 1


def _rule(imported: Imported, rule: Mapping[str, object]) -> None:
    shown = ", ".join(f"{key} = {item!r}" for key, item in rule.items())
    into = _DECISIONS.get(str(rule.get("decision")))
    if into is None:
        imported.note(shown, f"{rule.get('decision')!r} is no decision", carried=False)
        return
    for key, why in _CONDITIONS.items():
        if key in rule:
            imported.note(shown, f"{key}: {why}", carried=into != "allow" or key == "modes")
            if into == "allow" and key != "modes":
                return
    if "argsPattern" in rule or "commandRegex" in rule:
        imported.note(shown, "a regular expression over arguments has no counterpart", carried=False)
        return
    if rule.get("denyMessage"):
        imported.note(shown, f"the model is not told: {rule['denyMessage']}")
    prefixes = texts_of(rule.get("commandPrefix"))
    if prefixes:
        _prefixes(imported, into, prefixes, rule, shown)
        return
    server = rule.get("mcpName")
    names = texts_of(rule.get("toolName")) or ["*"]
    for name in names:
        if isinstance(server, str):
            imported.word(f"{server}__{name.rpartition('__')[2]}", into)
        else:
            _tool(imported, into, name, shown)


def _prefixes(
    imported: Imported, into: str, prefixes: list[str], rule: Mapping[str, object], shown: str
) -> None:
    for prefix in prefixes:
        imported.pattern("shell", into, prefix_pattern(prefix.split()), rule=shown)
    if rule.get("allowRedirection") and into == "allow":
        imported.note(shown, "a redirection to a file needs write_file besides the command's rule")


def _tool(imported: Imported, into: str, name: str, shown: str) -> None:
    if "__" in name:
        imported.word(name, into)
    elif name in _TOOLS:
        imported.word(_TOOLS[name], into)
    else:
        imported.note(shown, f"there is no tool {name}", carried=False)


def _listed(imported: Imported, into: str, name: str) -> None:
    match = _CALL.fullmatch(name.strip())
    if match is None:
        _tool(imported, into, name.strip(), name)
    elif _TOOLS.get(match[1]) == "shell":
        imported.pattern("shell", into, prefix_pattern(match[2].split()), rule=name)
    else:
        imported.note(name, f"{match[1]} takes no pattern here", carried=False)
