"""The command line: which command is in which module, and one place where errors become exit codes."""

import errno
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import typer
from typer import _click as click  # the click that typer carries; typer is pinned
from typer.core import TyperGroup

from agentctl import __version__
from agentctl.errors import (
    AgentctlError,
    ExitCode,
    InvalidInput,
    RunFailed,
    UsageError,
    file_fault,
    known_error,
)
from agentctl.toml.words import nearest

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("agentctl.cli.run", "Run a blueprint."),
    "batch": ("agentctl.cli.batch", "Run a blueprint over many items in one process."),
    "resume": ("agentctl.cli.resume", "Go on with a run that stands still."),
    "approvals": ("agentctl.cli.approvals", "List and answer what waits for a person."),
    "fork": ("agentctl.cli.fork", "Go on from an earlier point of a run, in a new thread."),
    "replay": ("agentctl.cli.replay", "Run a recorded run through today's code and policy, and compare."),
    "runs": ("agentctl.cli.runs", "List, show and remove runs."),
    "log": ("agentctl.cli.log", "Show what a run did."),
    "msg": ("agentctl.cli.msg", "Say something to a run."),
    "pause": ("agentctl.cli.control", "Stop a running run; resume goes on."),
    "cancel": ("agentctl.cli.control", "End a run."),
    # name → (module that has `app`, one line for --help); a module is imported when its command is called
    "check": ("agentctl.cli.check", "Validate a blueprint, lint it, run its policy tests, print its graph."),
    "plan": ("agentctl.cli.plan", "Show what every tool may do in every stage, before a run."),
    "why": ("agentctl.cli.why", "Say which rule decides about a call, or decided about a past one."),
    "grants": ("agentctl.cli.grants", "Show what was approved for a run; take it back."),
    "tools": ("agentctl.cli.tools", "Show what needs no prompt, and which file says so."),
    "new": ("agentctl.cli.new", "Write a blueprint that runs at once, offline."),
    "blueprints": ("agentctl.cli.blueprints", "List and show the blueprints that can be named."),
    "config": ("agentctl.cli.config", "Show and set the user's config, each value with its source."),
    "policy": (
        "agentctl.cli.policy",
        "Try the policy on lines, show a line's effects, import a peer's rules.",
    ),
    "state": ("agentctl.cli.state", "List, read, write, verify and migrate the typed state of a run."),
    "shared": ("agentctl.cli.shared", "List, read, write and search what agents share."),
    "workspace": ("agentctl.cli.workspace", "Show the state document of a run, now and at any point."),
    "scratch": ("agentctl.cli.scratch", "Show what the hooks of a run noted."),
    "hooks": ("agentctl.cli.hooks", "List the hooks of a blueprint, and try an event on them."),
    "mcp": ("agentctl.cli.mcp", "List MCP servers, or serve blueprints as MCP tools."),
    "schema": ("agentctl.cli.schema", "Print the JSON Schema of blueprints or of the user's config."),
    "auth": ("agentctl.cli.auth", "Keep, list and delete the keys of model services."),
    "models": (
        "agentctl.cli.models",
        "Install, list, verify and remove the models that run on this machine.",
    ),
}


class _OnDemand(TyperGroup):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module = import_module(COMMANDS[cmd_name][0])
        if not gc.isenabled():
            collect_from_now_on()
        command = typer.main.get_command(module.app)
        if isinstance(command, TyperGroup) and cmd_name in command.commands:
            command = command.commands[cmd_name]  # a module may hold several commands of a kind
        command.name = cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and (near := nearest(args[0], COMMANDS)):
            ctx.fail(f"There is no command {args[0]!r}; did you mean {near!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        if COMMANDS:
            with formatter.section("Commands"):
                formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def collect_from_now_on() -> None:
    """Turn the collector on, past all that start-up made, and have it look for cycles less often.

    Agents leave hardly any behind; with a thousand of them a tenth of the time went into looking.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


app = typer.Typer(
    cls=_OnDemand,
    name="agentctl",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),  # noqa: FBT003
) -> None:
    """Run LLM agents from TOML blueprints: judged, resumable, never hanging."""
    if version:
        typer.echo(f"agentctl {__version__}")
        raise typer.Exit


def run_app(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; every error becomes a sentence on stderr."""
    if sys.stdout.isatty() or sys.stderr.isatty():
        from agentctl.cli.visible_streams import guard_terminals  # noqa: PLC0415 - only for a terminal

        guard_terminals()
    try:
        result = app(args=arguments, prog_name="agentctl", standalone_mode=False)
        sys.stdout.flush()  # what can't be written is told here, and not by the interpreter's end
    except typer.Abort:
        return int(ExitCode.SIGINT)
    except click.exceptions.ClickException as error:
        from agentctl.cli.usage import show_usage_error  # noqa: PLC0415 - only after a mistake

        show_usage_error(error, sys.stderr)
        return int(ExitCode.USAGE)
    except AgentctlError as error:
        return report(error)
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as ended:
        # typer meets a broken pipe first, and leaves.
        return _reader_gone() if isinstance(ended.__context__, BrokenPipeError) else _code_of(ended)
    except OSError as error:
        return report_machine(error)
    except MemoryError:
        return report(RunFailed("The machine has not enough memory for this.", hint="give it less at once"))
    except BaseExceptionGroup as group:
        known = known_error(group)
        return _bug() if known is None else report(known)
    except Exception:  # noqa: BLE001 - the one place where an unknown error becomes a bug report
        return _bug()
    return result if isinstance(result, int) else int(ExitCode.FINISHED)


def report(error: AgentctlError) -> int:
    """Print `error` for a person on stderr and return its exit code."""
    # Problems of a file begin with its name, line and column, so that editors and terminals can jump there.
    name = "" if isinstance(error, InvalidInput) else "agentctl: "
    for line in error.message.splitlines():
        sys.stderr.write(f"{name}{line}\n")
    if error.hint:
        sys.stderr.write(f"  hint: {error.hint}\n")
    return int(error.exit_code)


def report_machine(error: OSError) -> int:
    """Tell what the machine refused, such as a full disk: no command is to blame, and no bug."""
    if os.environ.get("AGENTCTL_DEBUG"):
        traceback.print_exc()
    if _folder_gone():
        return report(UsageError("The current folder is not there any more.", hint="cd to one that is"))
    where = f": {str(error.filename)!r}" if error.filename else ""
    if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        where = " (while writing to standard output or to a file of its own)"
        _drop_stdout()
    sys.stderr.write(f"agentctl: the machine refused: {file_fault(error)}{where}\n")
    sys.stderr.write("  hint: what was committed is safe in the journal; AGENTCTL_DEBUG=1 shows more\n")
    return int(ExitCode.FAILED)


def _folder_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - Path.cwd() is the same, and more
    except OSError:
        return True
    return False


def _reader_gone() -> int:
    """Leave quietly: the reader of stdout, such as `head`, has seen enough."""
    _drop_stdout()
    return int(ExitCode.FINISHED)


def _drop_stdout() -> None:
    # The interpreter would try to write what is buffered while it exits, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _code_of(ended: SystemExit) -> int:
    return ended.code if isinstance(ended.code, int) else int(ExitCode.FAILED)


def _bug() -> int:
    sys.stderr.write("agentctl: this is a bug in agentctl; what was committed is safe in the journal.\n")
    if os.environ.get("AGENTCTL_DEBUG"):
        traceback.print_exc()
    else:
        sys.stderr.write(f"  {traceback.format_exc().splitlines()[-1]}\n")
        sys.stderr.write("  hint: AGENTCTL_DEBUG=1 shows the traceback; please report it.\n")
    return int(ExitCode.FAILED)
