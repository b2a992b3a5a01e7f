"""`agentctl new`: a blueprint to begin with, that runs at once and offline."""

import re
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from agentctl.cli.command_app import command_app
from agentctl.errors import UsageError, file_fault
from agentctl.locations import config_dir, shipped_dir

app = command_app()

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

TEMPLATE = Template('''\
#:schema $schema
# Every key is in docs/blueprints.md; `agentctl check $file` checks this file.

[agent]
name = "$name"
description = "Looks around in a directory and says what it is about."

[model]
# The script at the end answers in place of a model, so this runs offline. For a real one:
# use = ["anthropic:claude-sonnet-4-5", "local:qwen2.5-coder-1.5b"]
use = ["scripted"]

[inputs.focus]
description = "What to look for"
default = "the purpose of the files"

[tool_permissions]
shell = { default = "ask", allow = ["git log *", "git status"], deny = ["git push *"] }

[limits]
steps = 20

[stages.look]
prompt = """
Find out what lies in the workdir, above all {inputs.focus}. Look before you conclude: list the
directory, read what seems to matter. When you know enough, say what you found.
"""
available_tools = ["list_dir", "read_file", "grep", "shell"]
max_steps = 10

[stages.look.transitions.answer]
hint = "you have seen enough to answer"

[stages.look.transitions.give_up]
condition = "max_steps"

[stages.answer]
prompt = "Answer in at most five sentences. Name the files that you rely on."

[stages.give_up]
prompt = "Say what you have found so far, and what is still open."

[[policy_tests]]
call = "shell(git push origin main)"
stage = "look"
expect = "deny"
because = "this agent looks and never publishes"

# The scripted model: replies in order. Delete it together with use = ["scripted"].
[[script.replies]]
text = "Let me see what is here."
tool_calls = [{ tool = "list_dir", arguments = { path = "." } }]

[[script.replies]]
text = "I have seen what lies here."

[[script.replies]]
text = "The scripted answer of $name: it listed the workdir. Name a real model under [model] for more."
''')


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent's name; the file is NAME.toml.")],
    *,
    user: Annotated[
        bool, typer.Option("--user", help="Put it where `agentctl run NAME` finds it from anywhere.")
    ] = False,
) -> None:
    """Write a blueprint with two stages, a rule, a policy test and a scripted model.

    It runs at once and offline: agentctl run ./NAME.toml
    """
    word = name.removesuffix(".toml")
    if not _NAME.fullmatch(word):
        raise UsageError(
            f"{name!r} is not a name for an agent.", hint="a letter, then letters, digits, - or _: my-agent"
        )
    folder = config_dir() / "blueprints" if user else Path()
    path = folder / f"{word}.toml"
    schema = shipped_dir("config") / "blueprint.schema.json"
    text = TEMPLATE.substitute(name=word, file=path, schema=schema)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"{str(path)!r} is there already.", hint="take another name, or move it away"
        ) from None
    except OSError as error:
        raise UsageError(f"{str(path)!r} can't be written: {file_fault(error)}.") from None
    typer.echo(str(path))
    typer.echo(f"  run it:    agentctl run {word if user else f'./{path}'}", err=True)
    typer.echo(f"  check it:  agentctl check {word if user else f'./{path}'}", err=True)
