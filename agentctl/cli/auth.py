"""`agentctl auth`: keys of model services, kept in the desktop's keyring."""

import getpass
import os
import sys

import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.keyring import check_keyring, forget_key, keyring_installed, store_key, stored_key
from agentctl.errors import UsageError
from agentctl.llm.catalogue import load_catalogue
from agentctl.settings.load import load_settings
from agentctl.toml.words import nearest

app = command_app("Keys of model services, in the desktop's keyring.")
_PROVIDER = typer.Argument(
    ..., metavar="PROVIDER", help="The provider: what stands before the colon of its models' names."
)


@app.command("set")
def set_key(provider: str = _PROVIDER) -> None:
    """Ask for a provider's key and keep it. Through a pipe it is read from standard input."""
    _check_known(provider)
    if sys.stdin.isatty():
        check_keyring()
        asked = getpass.getpass(f"Key for {provider}: ")
    else:
        asked = sys.stdin.readline()
    key = asked.strip()
    if not key or any(character.isspace() for character in key):
        raise UsageError(
            "No key was given, or it holds blanks.",
            hint=f"type it when asked, or pipe it: agentctl auth set {provider} < FILE",
        )
    store_key(provider, key)
    sys.stderr.write(f"kept the key for {provider} in the keyring\n")


@app.command("list")
def list_keys() -> None:
    """Tell for each provider where its key comes from. No key is shown."""
    for provider, (variables, required) in _providers().items():
        typer.echo(f"{provider:22} {_source(provider, variables, required=required)}")
    if not keyring_installed():
        sys.stderr.write("agentctl: the keyring is not installed: pip install 'agentctl[keyring]'\n")


@app.command("rm")
def remove_key(provider: str = _PROVIDER) -> None:
    """Delete a provider's key from the keyring."""
    _check_known(provider)
    if not forget_key(provider):
        raise UsageError(
            f"The keyring holds no key for {provider!r}.",
            hint="agentctl auth list shows where keys come from",
        )
    sys.stderr.write(f"deleted the key for {provider} from the keyring\n")


def _source(provider: str, variables: tuple[str, ...], *, required: bool) -> str:
    variable = next((name for name in variables if os.environ.get(name)), "")
    if variable:
        return f"environment {variable}"
    if stored_key(provider):
        return "keyring"
    return f"no key ({' or '.join(variables)})" if required else "none needed"


def _providers() -> dict[str, tuple[tuple[str, ...], bool]]:
    """Every provider with the variables that may hold its key, and whether it needs one."""
    services = load_catalogue({}).services
    found = {name: (service.key_env, service.key_required) for name, service in services.items()}
    for name, table in load_settings().config.providers.items():
        variables, required = found.get(name, ((), False))
        found[name] = (table.key_env or variables, required or bool(table.key_env))
    return found


def _check_known(provider: str) -> None:
    providers = _providers()
    if provider not in providers:
        close = nearest(provider, providers)
        raise UsageError(
            f"There is no provider {provider!r}{f'; did you mean {close!r}?' if close else '.'}",
            hint=f"known are {', '.join(providers)}; others are set up under [providers.NAME] in the config",
        )
