"""`agentctl config`: what is set, by whom, and how to change it."""

import json as json_text
from typing import Annotated

import typer

from agentctl.cli.command_app import command_app
from agentctl.errors import ExitCode
from agentctl.protocol.values import JsonObject
from agentctl.settings.edit import set_value, unset_value
from agentctl.settings.effective import effective
from agentctl.settings.load import config_file, load_settings, read_key
from agentctl.settings.settings import Setting
from agentctl.toml.words import nearest

app = command_app("Show and set the user's config, each value with its source.")

Key = Annotated[str, typer.Argument(metavar="KEY", help="A dotted TOML key: limits.steps")]


@app.command()
def path() -> None:
    """Print where config.toml is, whether or not it exists."""
    typer.echo(str(config_file()))


@app.command()
def show(
    key: Annotated[str, typer.Argument(metavar="[KEY]", help="Only this key, or what is below it.")] = "",
    *,
    json: Annotated[bool, typer.Option("--json", help="One JSON array on stdout.")] = False,
) -> int:
    """Print every value in effect with the place it came from.

    That is a FILE:LINE:COLUMN of config.toml, a variable of the environment, or "built-in".
    Exit 1: nothing is set at KEY.
    """
    wanted = read_key(key) if key else ()
    every = effective(load_settings())
    found = [one for one in every if one.path[: len(wanted)] == wanted]
    if wanted and not found:
        near = nearest(key, {".".join(one.path[:depth]) for one in every for depth in (1, len(one.path))})
        meant = f"; did you mean {near!r}?" if near else ""
        typer.echo(f"nothing is set at {key!r}{meant}", err=True)
    if json:
        typer.echo(json_text.dumps([_row(one) for one in found], indent=2, ensure_ascii=False, default=str))
    else:
        lines = [(f"{one.key} = {_words(one.value)}", one.source) for one in found]
        width = min(max((len(line) for line, _ in lines), default=0), 60)
        for line, source in lines:
            typer.echo(f"{line.ljust(width)}  # {source}")
    return int(ExitCode.FINISHED if found or not wanted else ExitCode.FAILED)


@app.command("set")
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="A TOML value, or a text without quotes.")],
) -> None:
    """Set a value in config.toml; its comments and layout stay.

    Quote a key that is more than a name: agentctl config set 'tool_permissions."github__*"' ask
    """
    typer.echo(f"{set_value(read_key(key), value)}  # {config_file()}")


@app.command()
def unset(key: Key) -> int:
    """Take a value out of config.toml. Exit 1: nobody had set it."""
    if unset_value(read_key(key)):
        typer.echo(f"{key} is out of {config_file()}", err=True)
        return int(ExitCode.FINISHED)
    typer.echo(f"{key} is not set in {config_file()}", err=True)
    return int(ExitCode.FAILED)


def _words(value: object) -> str:
    """Return a value as TOML writes it, near enough to read: JSON differs in nothing but tables."""
    return json_text.dumps(value, ensure_ascii=False, default=str)


def _row(setting: Setting) -> JsonObject:
    value = json_text.loads(_words(setting.value))
    return {"key": setting.key, "value": value, "source": setting.source}
