"""Options that several commands share, and how their values are read."""

from typing import Annotated, Literal, TypeAlias

import typer

from agentctl.cli.given import given_text
from agentctl.errors import UsageError
from agentctl.protocol.events import LaunchFlags

Output: TypeAlias = Literal["", "json", "jsonl", "quiet"]

_RULE = "RULE is a tool, a glob or tool(pattern); quote it for your shell."


def not_empty(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """Refuse an option whose value is empty, as that of a variable which is not set: it would do nothing.

    Raises:
        BadParameter: it is given and empty.
    """
    source = ctx.get_parameter_source(param.name or "")
    if not value and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter("it is empty; leave the option out, or say a value.", ctx=ctx, param=param)
    return value


BlueprintName: TypeAlias = Annotated[
    str, typer.Argument(metavar="BLUEPRINT", help="A blueprint's name, or the path of its TOML file.")
]
Run: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="The run, `last`, or RUN/CHILD for a sub-agent.")
]
WholeRun: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="The run: its id, a unique beginning of it, or `last`.")
]
Trust: TypeAlias = Annotated[
    str, typer.Option("--trust", metavar="HASH", help="Trust the code this blueprint brings.")
]
Model: TypeAlias = Annotated[
    str,
    typer.Option("--model", metavar="PROVIDER:NAME", help="Take this model everywhere.", callback=not_empty),
]
Yolo: TypeAlias = Annotated[
    bool, typer.Option("--yolo", help="Ask nobody: an ask becomes allow. Denies and limits hold.")
]
Allow: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="RULE", help=f"Turn asks into allow: --allow 'shell(pytest *)'. {_RULE}"),
]
Ask: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--ask", metavar="RULE", help="Ask, whatever else would allow it: --ask write_file."),
]
Deny: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--deny", metavar="RULE", help="Refuse, whatever else allows it: --deny 'shell(git push *)'."
    ),
]
OnAsk: TypeAlias = Annotated[
    str, typer.Option("--on-ask", metavar="deny|pause", help="What an ask becomes when nobody is there.")
]
Limit: TypeAlias = Annotated[
    list[str] | None, typer.Option("--limit", metavar="KEY=VALUE", help="A ceiling: --limit steps=20.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object on stdout at the end.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
Jsonl: TypeAlias = Annotated[bool, typer.Option("--jsonl", help="Every event as a JSON line on stdout.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Only the answer.")]


def launch_flags(
    *,
    yolo: bool,
    allow: list[str] | None,
    ask: list[str] | None,
    deny: list[str] | None,
    on_ask: str,
    limit: list[str] | None,
) -> LaunchFlags:
    """Return what the permission options say.

    Raises:
        UsageError: `--on-ask` is neither deny nor pause.
    """
    if on_ask not in {"deny", "pause"}:
        raise UsageError(f"--on-ask is deny or pause, not {on_ask!r}.")
    return LaunchFlags(
        yolo=yolo,
        allow=tuple(allow or ()),
        ask=tuple(ask or ()),
        deny=tuple(deny or ()),
        on_ask="pause" if on_ask == "pause" else "deny",
        limits=tuple(limit or ()),
    )


def output_of(*, json: bool, jsonl: bool, quiet: bool) -> Output:
    """Return the form of output.

    Raises:
        UsageError: two forms at once.
    """
    if json + jsonl + quiet > 1:
        raise UsageError("--json, --jsonl and --quiet exclude each other.", hint="keep one of them")
    return "json" if json else "jsonl" if jsonl else "quiet" if quiet else ""


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Return `NAME=VALUE` texts as a dict; `@FILE` as a value is the file's text.

    Raises:
        UsageError: a text has no `=`, or a file cannot be read.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r} is not NAME=VALUE.", hint=f"write {option} NAME={text}")
        if value.startswith("@"):
            value = given_text(value[1:], what=f"{option} {name}")
        found[name] = value
    return found
