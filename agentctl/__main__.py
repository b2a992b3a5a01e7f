"""`python -m agentctl` and the console script. `--version` is answered before anything is imported."""

import sys

from agentctl import __version__


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"agentctl {__version__}\n")
        return
    from agentctl.cli.app import run_app  # noqa: PLC0415 - start-up: nothing heavy before --version

    sys.exit(run_app())


if __name__ == "__main__":
    main()
