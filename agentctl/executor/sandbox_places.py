"""What of this machine a sandboxed command sees: from the policy, and from what exists at this moment."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentctl.executor.git_places import GitPlaces, git_places
from agentctl.executor.paths import follow
from agentctl.executor.prepare import output_directory
from agentctl.executor.process_types import CommandRequest
from agentctl.records import dataclass

CREDENTIAL_STORES = (
    "~/.ssh", "~/.gnupg", "~/.aws", "~/.azure", "~/.config/gcloud", "~/.kube", "~/.docker/config.json",
    "~/.netrc", "~/.git-credentials", "~/.config/git/credentials", "~/.config/gh", "~/.config/glab-cli",
    "~/.npmrc", "~/.yarnrc.yml", "~/.pypirc", "~/.config/pypoetry/auth.toml", "~/.cargo/credentials",
    "~/.cargo/credentials.toml", "~/.gem/credentials", "~/.m2/settings.xml", "~/.gradle/gradle.properties",
    "~/.password-store", "~/.local/share/keyrings", "~/.vault-token", "~/.terraform.d/credentials.tfrc.json",
    "~/.config/op", "~/.config/hub", "~/.pgpass", "~/.my.cnf", "~/.config/rclone", "~/.boto", "~/.s3cfg",
    "~/.mozilla", "~/.config/google-chrome", "~/.config/chromium", "~/.thunderbird", "~/.bash_history",
    "~/.zsh_history", "~/.python_history", "~/.psql_history", "~/.mysql_history", "~/.local/share/fish",
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
    "/etc/ssl/private",
)  # fmt: skip
"""Hidden unless `read` names one. What does not exist costs nothing."""

SYSTEM_PLACES = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/snap", "/sys",
)  # fmt: skip
"""Read by programs to be programs; what is mounted when `read` is narrower than everything."""

PRIVATE_PLACES = ("/tmp", "/run", "/var/tmp")  # noqa: S108 - these are covered by empty ones, not used
"""Each command gets these empty: sockets and other people's files live there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Absolute, resolved, existing; shorter paths may contain longer ones, and the longer one decides."""

    everything: bool
    """The whole machine can be read but for what is hidden."""
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    emptied: tuple[Path, ...]
    writable: tuple[Path, ...]
    kept: tuple[Path, ...]
    """Read-only inside what is writable: git's hooks and configuration."""
    held: tuple[Path, ...]
    """Writable directories that can't be moved away, so that what is kept in them stays where it is."""
    links: tuple[tuple[str, Path], ...]
    """System places that are links, target first; made anew where not everything is shown."""
    workdir_owner: int
    git: GitPlaces | None
    own: tuple[Path, ...] = ()
    """Files inside what is writable that run outside of a sandbox: they stay as they are."""


def places_for(
    request: CommandRequest, workdir: Path, environment: Mapping[str, str], private: Iterable[Path]
) -> Places:
    """Return what a command sees. `private` are agentctl's own folders. Looks at the file system; blocks.

    A place named in `read` that is hidden by default is shown again; one in `hide` never is.
    """
    policy, home = request.sandbox, request.roots.home
    named = _existing(_absolute(place, home) for place in policy.read if place != "/")
    revealed = set(named)
    default = _existing([*(_absolute(place, home) for place in CREDENTIAL_STORES), *private])
    hidden = [place for place in default if place not in revealed]
    hidden += _existing(_absolute(place, home) for place in policy.hide)
    everything = "/" in policy.read
    programs = _existing(_program_places(request, environment))
    temp = _existing([request.roots.temp])
    git = git_places(workdir)
    writable = [] if request.read_only else [workdir]
    writable += temp + _existing(_absolute(place, home) for place in policy.write)
    kept = tuple(_existing([output_directory(request.roots.temp)]))
    held: tuple[Path, ...] = ()
    if git is not None and not request.read_only:
        writable += [place for place in git.outside if place.exists()]
        kept, held = (*kept, *git.kept), git.held
    own, above = _own(request, writable, hidden)
    kept, held = (*kept, *own), (*held, *above)
    readable = [*named, *programs, *_existing(request.roots.read_paths), *_resolver(network=policy.network)]
    if not everything:
        readable += _existing(Path(place) for place in SYSTEM_PLACES)
    if request.read_only:
        readable.append(workdir)
    return Places(
        everything=everything,
        readable=tuple(dict.fromkeys(readable)),
        hidden=tuple(dict.fromkeys(hidden)),
        emptied=tuple(place for place in _existing(Path(place) for place in PRIVATE_PLACES)),
        writable=tuple(dict.fromkeys(writable)),
        kept=kept,
        held=held,
        links=() if everything else _links(),
        workdir_owner=workdir.stat().st_uid,
        git=git,
        own=own,
    )


def _own(
    request: CommandRequest, writable: list[Path], hidden: list[Path]
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the run's files to keep that a command could write, and the folders above them, to be held."""
    own: list[Path] = []
    above: list[Path] = []
    for place in _existing(request.roots.kept):
        roots = [root for root in writable if place.is_relative_to(root) and place != root]
        if not roots or any(place.is_relative_to(closed) for closed in hidden):
            continue
        root = max(roots, key=lambda one: len(one.parts))
        own.append(place)
        above += [folder for folder in place.parents if folder != root and folder.is_relative_to(root)]
    return tuple(dict.fromkeys(own)), tuple(dict.fromkeys(above))


def _absolute(place: str, home: Path) -> Path:
    return home / place[2:] if place == "~" or place.startswith("~/") else Path("/", place)


def _existing(places: Iterable[Path]) -> list[Path]:
    """Return where places lead, those that are there and are files or directories."""
    found: list[Path] = []
    for place in places:
        try:
            mode = os.stat(place).st_mode
        except OSError:
            continue
        led = follow(place).path
        if (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and led != Path("/"):
            found.append(led)
    return found


def _links() -> tuple[tuple[str, Path], ...]:
    links = (Path(place) for place in SYSTEM_PLACES if os.path.islink(place))  # noqa: TID251 - fixed names
    return tuple((os.readlink(link), link) for link in links)


def _program_places(request: CommandRequest, environment: Mapping[str, str]) -> list[Path]:
    """Return where programs come from if an emptied place would cover it."""
    parts = [Path(part) for part in environment.get("PATH", "").split(":") if part.startswith("/")]
    if isinstance(request.command, tuple) and request.command[:1] and request.command[0].startswith("/"):
        parts.append(Path(request.command[0]).parent)
    covered = [
        part for part in parts if any(follow(part).path.is_relative_to(place) for place in PRIVATE_PLACES)
    ]
    # Of a virtual environment its libraries are wanted too.
    return [part.parent if (part.parent / "pyvenv.cfg").exists() else part for part in covered]


def _resolver(*, network: bool) -> list[Path]:
    """Return the name resolver's file, which often lies in /run, where there is a network to use it."""
    return _existing([Path("/etc/resolv.conf")]) if network else []
