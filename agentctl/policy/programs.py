"""Facts about programs: which run what they are given, and which begin with a sub-command."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = _names("sh bash dash zsh ksh mksh fish csh tcsh ash busybox pwsh powershell")
"""Programs that run a command line or a script of commands."""

INTERPRETERS = SHELLS | _names(
    """python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua luajit tclsh expect Rscript
    R julia osascript awk gawk mawk nawk sed groovy scala kotlin ghci jshell irb gdb lldb vim vi nvim ed
    ex emacs sqlite3 psql mysql gnuplot octave make gmake just task rake ant mvn gradle cmake
    ninja bazel meson dc m4 guile racket sbcl elixir iex erl swift ocaml java"""
)
"""Programs that execute what they read, from their operands, their input or the folder they stand in."""

WRAPPERS = _names(
    """env sudo doas su runuser pkexec nohup nice ionice timeout time stdbuf setsid chroot unshare nsenter
    xargs parallel watch find fd exec eval command builtin source . trap coproc script flock chrt
    taskset setpriv setarch ssh mosh rsh bwrap firejail docker podman kubectl entr strace ltrace gtime
    proot fakeroot systemd-run at batch crontab socat caffeinate unbuffer dbus-run-session xvfb-run
    direnv"""
)
"""Programs that run another program named by their operands."""

RUNNERS: dict[str, frozenset[str]] = {
    "npx": frozenset({""}),
    "bunx": frozenset({""}),
    "uvx": frozenset({""}),
    "pnpx": frozenset({""}),
    "npm": frozenset({"exec", "x", "run", "run-script", "start", "restart"}),
    "pnpm": frozenset({"exec", "dlx", "run"}),
    "yarn": frozenset({"exec", "dlx", "run"}),
    "bun": frozenset({"run", "x"}),
    "uv": frozenset({"run", "tool"}),
    "pipx": frozenset({"run"}),
    "poetry": frozenset({"run"}),
    "pdm": frozenset({"run"}),
    "hatch": frozenset({"run"}),
    "pipenv": frozenset({"run"}),
    "bundle": frozenset({"exec"}),
    "cargo": frozenset(),
    "go": frozenset({"run", "generate", "tool"}),
}
"""Package runners, and the sub-commands behind which the program to run stands (empty: at once)."""

MODULES = _names(
    """pytest unittest ruff mypy black isort flake8 pylint pyright coverage doctest compileall json.tool"""
)
"""Python modules whose `python -m` is a program like any other."""

SUB_COMMANDS = _names(
    """git cargo npm pnpm yarn bun pip pip3 uv poetry pdm hatch go dotnet gh glab terraform tofu helm aws
    gcloud az brew apt apt-get dnf yum pacman systemctl journalctl ruff poe tox nox pre-commit rustup
    conda mamba composer bundle mix rebar3 stack cabal dune opam nix flutter dart rails django-admin
    alembic celery ansible vagrant packer consul vault nomad heroku fly flyctl vercel netlify firebase
    wrangler supabase prisma nest ng vue next vite turbo nx lerna rush cdk serverless sam pulumi
    circleci act hg svn jj bzr fossil agentctl
    gradlew mvnw"""
)
"""Programs whose first operand says what they do: a grant names it, never the program alone."""

EXACT = _names(
    """rm rmdir unlink mv cp ln install dd truncate shred tee split csplit chmod chown chgrp chattr setfacl
    touch mkfifo mknod mount umount mkfs fdisk parted swapon kill pkill killall curl wget http https scp
    sftp rsync ftp nc ncat netcat telnet tar zip unzip gzip gunzip bzip2 xz zstd 7z cpio ar patch
    useradd userdel usermod passwd visudo reboot shutdown halt poweroff init service launchctl defaults
    iptables nft ufw sysctl modprobe insmod export unset set declare typeset local readonly alias
    unalias source hash enable bind shopt ulimit umask openssl gpg ssh-keygen ssh-add base64 xxd git-
    credential"""
)
"""Programs that remove, send or change whatever they are given: a grant names every word."""

GIT_EXACT = _names(
    """config submodule bisect rebase filter-branch filter-repo difftool mergetool hook daemon clean reset
    update-ref gc prune reflog credential instaweb send-email archive bundle fast-import worktree"""
)
"""Git sub-commands that run programs or throw work away: a grant names every word."""


def base_name(program: str) -> str:
    """Return a program's name without its folder."""
    return program.rsplit("/", 1)[-1]


def is_interpreter(program: str) -> bool:
    """Return whether a program executes what it reads; versions such as `python3.12` included."""
    name = base_name(program)
    return name in INTERPRETERS or name.rstrip("0123456789.-") in INTERPRETERS


def is_wrapper(program: str) -> bool:
    """Return whether a program runs another one that its operands name."""
    return base_name(program) in WRAPPERS
