"""The environment a command gets: no credentials, nothing that makes git or a shell run more, no prompts.

Pure, except that `chosen_environment` is given the environment to choose from.
"""

import re
from collections.abc import Iterable, Mapping

_CREDENTIAL = re.compile(
    r"(?:^|_)(?:API_?KEY|APIKEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|MASTER_?KEY|SIGNING_?KEY|ENCRYPTION_?KEY|KEY"
    r"|KEYS|TOKEN|TOKENS|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIAL|CREDENTIALS|CREDS"
    r"|AUTH|AUTHORIZATION|BEARER|COOKIE|SESSION_?ID|PAT|DSN|CONNECTION_?STRING|CONN_?STR|WEBHOOK|WEBHOOK_?URL"
    r"|JWT|OTP|SALT|SEED_?PHRASE|MNEMONIC)$"
)
_CREDENTIAL_PART = re.compile(
    r"SECRET|_JWT_|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?TOKEN|PRIVATE_?KEY"
)
_CREDENTIAL_NAMES = frozenset(
    {
        "DATABASE_URL", "DATABASE_URI", "DB_URL", "REDIS_URL", "MONGO_URL", "MONGODB_URI", "AMQP_URL",
        "POSTGRES_URL", "MYSQL_URL", "BROKER_URL", "CELERY_BROKER_URL", "SQLALCHEMY_DATABASE_URI",
        "NETRC", "KUBECONFIG", "PGPASSFILE", "AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_APPLICATION_CREDENTIALS",
        "DOCKER_AUTH_CONFIG", "NPM_CONFIG__AUTH", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS",
    }
)  # fmt: skip
# Not credentials though they end like one: an agent's socket answers, it does not tell.
_KEPT = frozenset({"SSH_AUTH_SOCK", "XDG_SESSION_ID", "PWD", "OLDPWD"})
# Each of these makes a program that was judged run one that was not.
_RUNS_SOMETHING = frozenset(
    {
        "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "CDPATH",
        "GLOBIGNORE", "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "LESSOPEN", "LESSCLOSE",
        "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH",
        "GIT_TEMPLATE_DIR",
        "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
    }
)  # fmt: skip
_PASSWORD_IN_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/@\s:]*:[^/@\s]+@")
_RUNS_SOMETHING_PREFIXES = ("BASH_FUNC_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

NO_PROMPTS: Mapping[str, str] = {
    # A pager waits for keys nobody will press; `cat` shows everything.
    "PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat", "SYSTEMD_PAGER": "cat", "BAT_PAGER": "cat",
    "DELTA_PAGER": "cat", "GH_PAGER": "cat", "PSQL_PAGER": "cat", "AWS_PAGER": "", "LESS": "-FRX",
    # An editor that changes nothing: `git rebase --continue` goes on, `git commit` without a message fails.
    "EDITOR": "true", "VISUAL": "true", "GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true",
    # Whoever wants a password gets none and says so at once; an empty GIT_ASKPASS also hides core.askPass.
    "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive", "PIP_NO_INPUT": "1",
}  # fmt: skip


def credential_shaped(name: str) -> bool:
    """Tell whether a variable's name says that it holds a secret, or the way to one; in any case. Pure."""
    upper = name.upper()
    if upper in _KEPT:
        return False
    return (
        upper in _CREDENTIAL_NAMES
        or _CREDENTIAL.search(upper) is not None
        or _CREDENTIAL_PART.search(upper) is not None
    )


def withheld(name: str, value: str) -> bool:
    """Tell whether a variable is kept from commands: by its name, or by a password in an address. Pure."""
    return credential_shaped(name) or _PASSWORD_IN_URL.search(value) is not None


def runs_something(name: str) -> bool:
    """Tell whether a variable makes a shell, the loader or git run what nobody judged. Pure."""
    return name in _RUNS_SOMETHING or name.startswith(_RUNS_SOMETHING_PREFIXES)


def chosen_environment(
    given: Mapping[str, str],
    *,
    pass_names: Iterable[str] = (),
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return a command's environment: `given` less what is withheld, prompts neutralised, then `extra`.

    Withheld is what `withheld` tells. `pass_names` lets variables through by name, case ignored, without
    wildcards; what makes a program run another is never passed. Pure.
    """
    passed = {name.upper() for name in pass_names}
    kept = {
        name: value
        for name, value in given.items()
        if not runs_something(name) and (name.upper() in passed or not withheld(name, value))
    }
    kept.update({name: value for name, value in NO_PROMPTS.items() if name not in passed})
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    kept.setdefault("TERM", "dumb")
    kept.update(extra or {})
    return kept
