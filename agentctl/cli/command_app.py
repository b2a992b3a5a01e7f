"""How the `app` of every command module is made, so that all commands speak and look alike."""

import typer


def command_app(group_help: str = "") -> typer.Typer:
    """Make the `app` of a command module; with `group_help`, one of several commands."""
    return typer.Typer(
        help=group_help or None,
        no_args_is_help=bool(group_help),
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
