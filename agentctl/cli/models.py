"""`agentctl models`: install, list, verify and remove the embedded models."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from agentctl.cli.command_app import command_app
from agentctl.cli.model_list import print_models
from agentctl.errors import RunFailed
from agentctl.llm.local_catalogue import default_model, known_model, obstacle_to
from agentctl.llm.local_install import Report, install, remove, take_over, verify

app = command_app("Models that run on this machine: install, list, verify, remove.")
_NAME = typer.Argument("", metavar="NAME", help="Which model; the embedded default when left out.")
_PROVIDERS = typer.Option(
    [], "--provider", "-p", metavar="PROVIDER", help="Only these services; they are asked."
)
_JSON = typer.Option(False, "--json", help="Print a JSON list.")  # noqa: FBT003 - typer's way
_FROM = typer.Option(None, "--from", metavar="FILE", help="Take this file instead of fetching the model.")


@app.command("install")
def install_model(
    name: str = _NAME,
    source: Path | None = _FROM,
) -> None:
    """Fetch a model by hash, verify it, and put it into the data directory. Goes on where it was stopped."""
    model = known_model(name or default_model())
    with _shown(f"Installing {model.title} ({model.size_bytes / 1e9:.1f} GB, {model.license})") as report:
        path = take_over(model, source, report) if source else install(model, report)
    typer.echo(str(path))
    obstacle = obstacle_to(model.name)
    if obstacle:
        sys.stderr.write(f"agentctl: installed, but it cannot run yet: {obstacle}\n")


@app.command("verify")
def verify_model(name: str = _NAME) -> None:
    """Hash an installed model's file and compare."""
    model = known_model(name or default_model())
    if not model.installed:
        raise RunFailed(
            f"{model.name} is not installed.", hint=f"agentctl models install {model.name} fetches it."
        )
    with _shown(f"Verifying {model.title}") as report:
        good = verify(model, report)
    if not good:
        raise RunFailed(
            f"{str(model.path)!r} does not have the expected SHA-256.",
            hint=f"agentctl models rm {model.name} && agentctl models install {model.name}",
        )
    typer.echo(f"{model.name}: {model.sha256}")


@app.command("rm")
def remove_model(name: str = typer.Argument(..., metavar="NAME", help="Which model.")) -> None:
    """Delete an installed model's file, and what an interrupted install left. Exit 1 where nothing was."""
    model = known_model(name)
    freed = remove(model)
    if not freed:
        raise RunFailed(f"{model.name} is not installed.", hint="agentctl models list")
    typer.echo(f"{model.name}: {freed / 1e6:,.0f} MB freed")


@app.command("list")
def list_models(
    *,
    provider: list[str] = _PROVIDERS,
    as_json: bool = _JSON,
) -> None:
    """List model services and their models: what is set up, what answers, windows and prices."""
    print_models(provider, as_json=as_json)


@contextmanager
def _shown(title: str) -> Iterator[Report]:
    """Show progress on stderr: a bar on a terminal, else one line for each thing begun."""
    console = Console(file=sys.__stderr__)  # past the gate for terminals: a bar moves the cursor
    console.print(title, highlight=False)
    if not console.is_terminal:
        yield _Lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=None)

        def report(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        yield report


class _Lines:
    """Progress where there is no terminal."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        if what != self._last:
            self._last = what
            sys.stderr.write(f"{what} ({done / 1e6:,.0f} of {total / 1e6:,.0f} MB)\n")
