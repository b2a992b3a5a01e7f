"""Paths whose writing needs a person's word each time, whatever the rules say."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import PurePath

from agentctl.policy.paths import Place
from agentctl.records import dataclass

_GIT = "it is inside git's own folder"
_STARTUP = "it runs when a shell or session starts"
_CREDENTIALS = "credentials are kept there"
_GIT_CONFIG = "git takes programs to run from it"

_NAMES: Mapping[str, str] = {
    ".git": _GIT,
    "git~1": _GIT,
    ".hg": "it is inside Mercurial's own folder",
    ".svn": "it is inside Subversion's own folder",
    ".jj": "it is inside Jujutsu's own folder",
    ".env": _CREDENTIALS,
    ".envrc": _STARTUP,
}
"""Names that are protected wherever they stand, with everything under them."""

_IN_HOME: Mapping[str, tuple[str, ...]] = {
    _STARTUP: (
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc"),
        *(".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login"),
        *(".logout", ".inputrc", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".pam_environment"),
        *(".config/fish", ".config/nushell", ".config/powershell", ".config/environment.d"),
        *(".config/autostart", ".config/systemd", ".local/share/systemd", "library/launchagents"),
    ),
    _GIT_CONFIG: (".gitconfig", ".config/git"),
    _CREDENTIALS: (
        *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".password-store", ".mozilla"),
        *(".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".s3cfg"),
        *(".boto", ".vault-token", ".terraformrc", ".terraform.d", ".m2/settings.xml", ".fly", ".netlify"),
        *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".gradle/gradle.properties"),
        *(".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/rclone", ".config/doctl"),
        *(".config/google-chrome", ".config/chromium", ".config/pip", ".local/share/keyrings"),
        "library/keychains",
    ),
}
"""Paths under the home folder, each with everything under it."""

_SYSTEM: Mapping[str, str] = {
    "/etc/profile": _STARTUP,
    "/etc/profile.d": _STARTUP,
    "/etc/bash.bashrc": _STARTUP,
    "/etc/bashrc": _STARTUP,
    "/etc/zsh": _STARTUP,
    "/etc/environment": _STARTUP,
    "/etc/ld.so.preload": _STARTUP,
    "/etc/crontab": _STARTUP,
    "/etc/cron.d": _STARTUP,
    "/etc/systemd": _STARTUP,
    "/etc/sudoers": _CREDENTIALS,
    "/etc/sudoers.d": _CREDENTIALS,
    "/etc/shadow": _CREDENTIALS,
    "/etc/gitconfig": _GIT_CONFIG,
    "/var/spool/cron": _STARTUP,
}

_IGNORED = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))
"""Characters that some file systems leave out of names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedPaths:
    """What is protected on this machine for this run. Names are compared without regard to case."""

    places: Mapping[str, str] = field(default_factory=dict)
    """Path in comparable form → why; each with everything under it."""

    def why(self, path: str) -> str:
        """Return why writing `path`, absolute and resolved, needs a person's word, or empty.

        A folder that holds a protected place is protected as well: to move it is to move the place. Pure.
        """
        parts = [_comparable(part) for part in path.split("/") if part]
        for part in parts:
            reason = _NAMES.get(part) or _NAMES.get(part.partition(":")[0])
            if reason:
                return reason
        place = ""
        for part in parts:
            place = f"{place}/{part}"
            if place in self.places:
                return self.places[place]
        below = f"{place}/"
        return next(
            (f"it holds {name}: {reason}" for name, reason in self.places.items() if name.startswith(below)),
            "",
        )

    def plus(self, paths: Iterable[PurePath], reason: str) -> "ProtectedPaths":
        """Return these and further paths, absolute and resolved; one that is there keeps its reason. Pure."""
        return ProtectedPaths(places={_form(str(path)): reason for path in paths} | dict(self.places))


def protected_paths(place: Place, own: Iterable[tuple[str, str]] = ()) -> ProtectedPaths:
    """Return the protected paths of a run.

    `own` are further absolute paths and why: agentctl's config and data, the blueprint, policy and trusted
    files. `place.home` is the home folder whose start-up files and credentials are meant.
    """
    places = dict(_SYSTEM)
    for reason, names in _IN_HOME.items():
        places |= {f"{place.home.rstrip('/')}/{name}": reason for name in names}
    places |= dict(own)
    return ProtectedPaths(places={_form(path): reason for path, reason in places.items()})


def _form(path: str) -> str:
    return "".join(f"/{_comparable(part)}" for part in path.split("/") if part)


def _comparable(part: str) -> str:
    """Return a component as file systems that are lax about names see it."""
    return part.translate(_IGNORED).casefold().rstrip(". ")
