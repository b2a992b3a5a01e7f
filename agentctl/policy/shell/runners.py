"""Programs that can run anything: their own rule covers it, deny and ask rules still reach into it."""

from collections.abc import Callable, Sequence

from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.options import Grammar, names, take_apart
from agentctl.policy.shell.special import ssh_settings
from agentctl.policy.shell.words import AnyWord, Word
from agentctl.policy.shell.wrappers import Wrapper, pass_on_anything, pass_on_guess


def _shell(sink: Sink, call: Call) -> None:
    """`sh -c TEXT`: the text is a script of its own; a file or standard input is what the rule must name."""
    sink.emit(call)
    words = call.words[1:]
    at = 0
    has_text = False
    while at < len(words):
        word = words[at]
        if not isinstance(word, str):
            sink.flag(f"an expansion could be an option of `{call.program}`, or the script that it runs")
            break
        if not word.startswith(("-", "+")) or word in {"-", "--"}:
            at += word in {"-", "--"}
            break
        long = word.startswith("--")
        has_text = has_text or (not long and word.startswith("-") and "c" in word)
        takes_value = word in {"--rcfile", "--init-file"} or (not long and word[-1] in "oO")
        at += 2 if takes_value else 1
    if has_text and at < len(words):
        _script(sink, call, words[at])
    elif at < len(words) and isinstance(words[at], str):
        sink.read(words[at])


def _script(sink: Sink, call: Call, word: AnyWord) -> None:
    if isinstance(word, Word):
        sink.flag(f"the text that `{call.program}` runs is known only to the shell")
        sink.script(word.text.strip('"'), call)
    else:
        sink.script(word, call)


def _joined(sink: Sink, call: Call, words: Sequence[AnyWord], *, needs_rule: bool = False) -> None:
    """Words that are put together and given to a shell."""
    if any(isinstance(word, Word) for word in words):
        sink.flag(f"the text that `{call.program}` runs is known only to the shell")
    if words:
        sink.script(" ".join(text_of(word) for word in words), call, needs_rule=needs_rule)


def _behind(grammar: Grammar, *, operands: int = 0, text: bool = False) -> Wrapper:
    """A runner whose command follows its options and `operands` others; `text`: a shell gets it joined."""

    def runner(sink: Sink, call: Call) -> None:
        parsed = take_apart(call.words[1:], grammar, first_ends=True)
        rest = parsed.rest[operands:]
        if parsed.unsure or parsed.by_wildcard:
            sink.flag(f"an expansion could be an option of `{call.program}`, or what it runs")
            pass_on_guess(sink, call, list(call.words[1:]))
        elif text:
            sink.emit(call)
            _joined(sink, call, rest, needs_rule=True)
        else:
            pass_on_anything(sink, call, rest)

    return runner


def _sudo(sink: Sink, call: Call) -> None:
    parsed = take_apart(call.words[1:], _SUDO, first_ends=True)
    rest = parsed.rest
    while rest and "=" in text_of(rest[0]) and not text_of(rest[0]).startswith("/"):
        rest = rest[1:]
    if parsed.has("e", "edit"):
        sink.emit(call)
        sink.write_all(rest)
        return
    pass_on_anything(sink, call, rest)


_SUDO = Grammar(
    values="ugphCDRrtTU",
    long_values=names("user group prompt host close-from chdir chroot role type command-timeout other-user"),
    long_flags=names(
        "askpass background bell preserve-env edit set-home login remove-timestamp reset-timestamp"
        " list non-interactive preserve-groups stdin shell validate"
    ),
)
_SSH = Grammar(values="BbcDEeFIiJLlmOopQRSWw")


def _ssh(sink: Sink, call: Call) -> None:
    """`ssh [options] host command …`: the command is joined and run by a shell over there."""
    parsed = take_apart(call.words[1:], _SSH, first_ends=True)
    sink.emit(call)
    for name, value in parsed.options:
        if name == "J":
            sink.reach(text_of(value) if value is not None else "")
        elif name == "F" and value is not None:
            sink.read(value)
    ssh_settings(sink, call)
    rest = parsed.rest
    if not rest:
        return
    if isinstance(rest[0], Word):
        sink.flag("the host that it reaches is known only to the shell")
    else:
        sink.reach(rest[0].removeprefix("ssh://").partition("/")[0])
    # Options may stand behind the host too.
    _joined(sink, call, take_apart(rest[1:], _SSH, first_ends=True).rest)


def _parallel(sink: Sink, call: Call) -> None:
    words = list(call.words[1:])
    for mark in (":::", "::::", ":::+", "::::+"):
        if mark in words:
            words = words[: words.index(mark)]
    parsed = take_apart(words, _PARALLEL, first_ends=True)
    sink.emit(call)
    _joined(sink, call, parsed.rest, needs_rule=True)


_PARALLEL = Grammar(
    values="ajnNLlsISTdCEDP",
    long_values=names(
        "arg-file jobs max-args max-replace-args max-lines delay timeout retries joblog results"
        " tmpdir sshlogin sshloginfile workdir env colsep delimiter halt memfree load nice return"
        " basefile shuf tagstring"
    ),
)


def _package_runner(sink: Sink, call: Call) -> None:
    """`npx tool …`, `poetry run tool …`: where the command begins depends on words that differ by tool."""
    words = list(call.words[1:])
    for at, word in enumerate(words):
        if word in {"-c", "--call", "--shell-mode"} and at + 1 < len(words):
            sink.emit(call)
            _joined(sink, call, words[at + 1 : at + 2])
            return
        if word == "--":
            pass_on_anything(sink, call, words[at + 1 :])
            return
    pass_on_guess(sink, call, words)


def _only(subcommands: str) -> Wrapper:
    """A tool of which only some sub-commands run a program."""
    running = names(subcommands)

    def runner(sink: Sink, call: Call) -> None:
        if any(word in running for word in call.words[1:6]):
            _package_runner(sink, call)
        else:
            sink.emit(call)

    return runner


def _busybox(sink: Sink, call: Call) -> None:
    pass_on_anything(sink, call, list(call.words[1:]))


def _value_runs(*options: str, grammar: Grammar) -> Callable[[Sink, Call], None]:
    """A program with options whose value is a command for a shell."""

    def runner(sink: Sink, call: Call) -> None:
        sink.emit(call)
        parsed = take_apart(call.words[1:], grammar)
        for name, value in parsed.options:
            if name in options and value is not None:
                _joined(sink, call, [value], needs_rule=call.program not in {"su", "runuser"})

    return runner


def _tmux(sink: Sink, call: Call) -> None:
    """`tmux new 'rm x'`, `tmux send-keys 'rm x' Enter`: words that a shell reads, one by one or joined."""
    _ONLY_TMUX(sink, call)
    for word in call.words[2:]:
        if isinstance(word, str) and " " in word:
            sink.script(word, call, only_runs=True)


_ONLY_TMUX = _only(
    "new new-session neww new-window splitw split-window respawn-pane run run-shell send send-keys"
)
_SU = Grammar(values="cgGsTw", long_values=names("command session-command group shell whitelist-environment"))
_EMPTY = Grammar()
_HYPERFINE = Grammar(
    values="wmMrpscnuSiPDL", long_values=names("prepare setup cleanup conclude warmup runs shell")
)
_GUESS = _package_runner

RUNNERS: dict[str, Wrapper] = {
    **dict.fromkeys(
        ("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh"), _shell
    ),
    "sudo": _sudo,
    "doas": _behind(Grammar(values="aCu")),
    "pkexec": _behind(Grammar(long_values=names("user"))),
    "su": _value_runs("c", "command", "session-command", grammar=_SU),
    "runuser": _value_runs("c", "command", "session-command", grammar=_SU),
    "ssh": _ssh,
    "watch": _behind(Grammar(values="nqs", long_values=names("interval equexit shotsdir")), text=True),
    "parallel": _parallel,
    "busybox": _busybox,
    "toybox": _busybox,
    "script": _value_runs("c", "command", grammar=Grammar(values="cEIOBmTo", long_values=names("command"))),
    "unshare": _behind(Grammar(values="RwSG", long_values=names("root wd setuid setgid map-user map-group"))),
    "nsenter": _behind(Grammar(values="tSG", long_values=names("target setuid setgid"))),
    "setpriv": _GUESS,
    "firejail": _GUESS,
    "bwrap": _GUESS,
    "proot": _GUESS,
    "fakeroot": _GUESS,
    "systemd-run": _GUESS,
    "dbus-run-session": _GUESS,
    "xvfb-run": _GUESS,
    "catchsegv": _GUESS,
    "valgrind": _GUESS,
    "gdb": _GUESS,
    "perf": _only("stat record trace"),
    "entr": _behind(_EMPTY),
    "caffeinate": _behind(Grammar(values="tw")),
    "arch": _behind(Grammar(values="de", long_values=names("arch"))),
    "setarch": _behind(_EMPTY, operands=1),
    "taskpolicy": _behind(Grammar(values="cdgtlbp")),
    "prlimit": _behind(Grammar(values="p", attached="cdefilmnqrstuvxy")),
    "numactl": _behind(
        Grammar(values="NCmipP", long_values=names("cpunodebind physcpubind membind interleave preferred"))
    ),
    "cpulimit": _behind(Grammar(values="lpePc", long_values=names("limit pid exe path cpu"))),
    "proxychains": _behind(Grammar(values="f")),
    "proxychains4": _behind(Grammar(values="f")),
    "gosu": _behind(_EMPTY, operands=1),
    "su-exec": _behind(_EMPTY, operands=1),
    "setuidgid": _behind(_EMPTY, operands=1),
    "envdir": _behind(_EMPTY, operands=1),
    "softlimit": _behind(Grammar(values="mdslaofprtc")),
    "chpst": _behind(Grammar(values="uUben/CnlLmdofprtc")),
    "faketime": _behind(Grammar(values="pf"), operands=1),
    **dict.fromkeys(
        (
            "linux32",
            "linux64",
            "eatmydata",
            "unbuffer",
            "rlwrap",
            "chronic",
            "torsocks",
            "torify",
            "tini",
            "dumb-init",
            "winpty",
            "ddtrace-run",
            "opentelemetry-instrument",
            "coverage",
            "sg",
            "xterm",
        ),
        _GUESS,
    ),
    "ts-node": _GUESS,
    "npx": _GUESS,
    "bunx": _GUESS,
    "pnpx": _GUESS,
    "uvx": _GUESS,
    "pipx": _only("run"),
    "uv": _only("run tool"),
    "poetry": _only("run"),
    "pipenv": _only("run"),
    "pdm": _only("run"),
    "hatch": _only("run"),
    "rye": _only("run"),
    "pixi": _only("run"),
    "bundle": _only("exec"),
    "npm": _only("exec x"),
    "pnpm": _only("exec dlx"),
    "yarn": _only("exec dlx"),
    "bun": _only("x"),
    "conda": _only("run"),
    "mamba": _only("run"),
    "micromamba": _only("run"),
    "mise": _only("exec x"),
    "asdf": _only("exec"),
    "direnv": _only("exec"),
    "dotenv": _behind(Grammar(values="fepqc", long_values=names("file quote"))),
    **dict.fromkeys(
        ("rbenv", "pyenv", "nodenv", "goenv", "fnm", "nvm", "opam", "stack", "cabal", "dune"), _only("exec")
    ),
    **dict.fromkeys(
        ("lerna", "nx", "aws-vault", "chamber", "heroku", "infisical", "volta"), _only("exec run")
    ),
    "op": _only("run"),
    "doppler": _only("run"),
    "nix": _only("run develop shell"),
    "nix-shell": _value_runs("run", "command", grammar=Grammar(long_values=names("run command"))),
    "docker": _only("run exec"),
    "podman": _only("run exec"),
    "docker-compose": _only("run exec"),
    "kubectl": _only("exec run debug"),
    "tmux": _tmux,
    "screen": _GUESS,
    "cross-env": _GUESS,
    "cross-env-shell": _GUESS,
    "dotenvx": _only("run"),
    "hyperfine": _value_runs("p", "prepare", "setup", "cleanup", grammar=_HYPERFINE),
    "nodemon": _value_runs(
        "x", "exec", grammar=Grammar(values="xwed", long_values=names("exec watch ext delay"))
    ),
}
