"""Which variables a line may set without changing what its commands are or do."""

import re

_INERT_PREFIX_LIST = """
    ANSI_COLORS_DISABLED CI CLICOLOR CLICOLOR_FORCE COLUMNS DEBIAN_FRONTEND FORCE_COLOR GOARCH GOOS LANG
    LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME LINES NODE_ENV NO_COLOR
    PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED RAILS_ENV RACK_ENV
    RUST_BACKTRACE RUST_LOG TERM TZ GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT GO111MODULE CARGO_TERM_COLOR
    TERM_PROGRAM COLORTERM PY_COLORS PYTEST_DISABLE_PLUGIN_AUTOLOAD NPM_CONFIG_COLOR CARGO_INCREMENTAL
    PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT HOMEBREW_NO_AUTO_UPDATE NEXT_TELEMETRY_DISABLED
    DO_NOT_TRACK
"""
INERT_PREFIX = frozenset(_INERT_PREFIX_LIST.split())
"""Names whose value changes how a program reports, not what it runs, reads or writes."""

_INERT_VALUES = {
    ("GIT_PAGER", "cat"), ("PAGER", "cat"), ("MANPAGER", "cat"), ("GIT_PAGER", ""), ("PAGER", ""),
    ("GIT_EDITOR", "true"), ("GIT_EDITOR", ":"), ("EDITOR", "true"), ("VISUAL", "true"),
    ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("PYTHONWARNINGS", "ignore"), ("PYTHONWARNINGS", "error"), ("PYTHONWARNINGS", "default"),
}  # fmt: skip

_OWN_UPPER_LIST = """
    A B BASE BODY BRANCH C COMMIT COUNT D DEST DIR DIRS DST E END F FILE FILES FOLDER G H HASH I ID INPUT
    ITEM ITEMS J K KEY L LAST LINE LIST M MESSAGE MSG N NAME NAMES NUM O OLD NEW OUT OUTPUT P PATTERN PID
    PR Q QUERY R REPO RESULT RESULTS ROOT S SHA SRC START SUM T TAG TEXT TITLE TMP TOTAL U URL V VALUE VAR
    VERSION W X Y Z ISSUE NUMBER FIRST COLOR RED GREEN BLUE YELLOW RESET NC BOLD
"""
_OWN_UPPER = frozenset(_OWN_UPPER_LIST.split())
"""Upper-case names that scripts use for themselves and that programs do not read."""

_SHELL_STATE = re.compile(
    r"PATH|IFS|ENV|HOME|PWD|OLDPWD|CDPATH|SHELL|GLOBIGNORE|EXECIGNORE|POSIXLY_CORRECT|PS[0-4]|SHELLOPTS"
    r"|BASHOPTS|FIGNORE|FUNCNEST|PROMPT_COMMAND|HISTFILE|INPUTRC|OPT(?:IND|ARG|ERR)|S?RANDOM|SECONDS|LINENO"
    r"|TMOUT|UID|EUID|PPID|DIRSTACK|GROUPS|PIPESTATUS|REPLY_?|MAPFILE|COPROC|TIMEFORMAT|TMPDIR"
    r"|BASH.*|LD_.*|DYLD_.*|GIT_.*|_"
)
_PROGRAM_LOWER = re.compile(r".*_proxy|npm_.*|pip_.*|uv_.*|git_.*|yarn_.*|pnpm_.*|bash_.*|ld_.*|cargo_.*|_.*")


_PROGRAM = re.compile(
    r"(?:[A-Z0-9_]*_)?(?:PAGER|EDITOR|BROWSER|ASKPASS|SHELL|OPTS|OPTIONS|OPT|COMMAND|PROGRAM|PRELOAD|LIBRARY_PATH)"
    r"|VISUAL|LESS(?:OPEN|CLOSE)|PYTHON(?:PATH|STARTUP|HOME|BREAKPOINT)|NODE_PATH|PERL5(?:LIB|OPT|DB)|RUBY(?:LIB|OPT)"
    r"|CLASSPATH|GIT_.*|CC|CXX|LD|AR|MAKEFLAGS|RUSTC(?:_WRAPPER)?|RIPGREP_CONFIG_PATH|XDG_CONFIG_(?:HOME|DIRS)"
    r"|(?:npm|NPM|pip|PIP)_(?:config|CONFIG)_.*|DOCKER_HOST|KUBECONFIG|SSH_AUTH_SOCK|.*_(?:proxy|PROXY)"
)


def names_a_program(name: str) -> bool:
    """Whether programs take from it what to run, where to look for code, or whom to connect to."""
    return _PROGRAM.fullmatch(name) is not None


def inert_before_command(name: str, value: str | None) -> bool:
    """Whether `NAME=value program` runs the same program to the same effect as `program`."""
    return (name in INERT_PREFIX and value is not None) or (
        value is not None and (name, value) in _INERT_VALUES
    )


def changes_the_shell(name: str) -> bool:
    """Whether setting it changes what later commands are, where they run, or what words become."""
    return _SHELL_STATE.fullmatch(name) is not None


def own_variable(name: str) -> bool:
    """Whether a line may set it for itself: no program and no part of the shell reads it."""
    if changes_the_shell(name):
        return False
    if name in _OWN_UPPER or name in INERT_PREFIX:
        return True
    return name.islower() and _PROGRAM_LOWER.fullmatch(name) is None
