"""What the safe list covers, and above all what it does not."""

import shlex
from pathlib import Path

import pytest

from agentctl.errors import InvalidInput
from agentctl.policy.defaults import BuiltInPolicy
from agentctl.policy.safe_data import safe_list
from agentctl.policy.safe_list import SafeList
from agentctl.protocol.effects import RunProgram
from agentctl.toml.read import parse
from agentctl.toml.table import Table

SHIPPED = Path(__file__).resolve().parents[2] / "config" / "safe_commands.toml"

LOOKS = r"""
ls -la --color=auto src
cat -n notes.md
head -5 f
tail -20 f
wc -l a b
grep -rn --include=*.py needle .
rg -n "foo" -g*.py
rg -iU --hidden -C 3 foo src
find . -name '*.py' -type f -maxdepth 3
find . ( -name a -o -name b ) -not -path './x/*' -print0
sort -t , -k 2,2n -u data.csv
uniq -c in.txt
diff -u a b
test -f test.py
[ -d src ]
[ "$x" = y ]
printf '%s\n' a b
date +%F
date -u -d '2 days ago' +%s
sed -n 1,20p file
sed 's#x#foo;woutput#' file
sed -E -e 's/a+/b/g' -e '/^$/d' file
sed -n '/start/,/end/p' file
sed 's/[[:space:]]*$//' file
awk '{print $1}' file
awk -F: '$3 > 100 {print $1, $NF / 2}' /etc/passwd
awk '/foo|bar/ { n++ } END { print n }' f
awk 'BEGIN { FS="," } NR % 2 == 0 { printf "%s\n", $2 }' f
jq -r '.a[] | select(.x != .y)' a.json
git status --short --branch
git --no-pager log --oneline -5
git log -p -1
git log --format='%h %s' --since=yesterday -- src
git diff main --stat
git diff --cached -U5 -- a b
git show HEAD:src/a.py
git branch -a -vv
git branch --list 'feat/*'
git branch --contains HEAD
git branch --show-current
git tag -l 'v*'
git remote -v
git remote get-url origin
git rev-parse --short HEAD
git blame -L 10,20 a.py
git config --get user.name
git config user.name
git stash list
git stash show -p
git grep -n needle
git ls-files '*.py'
git cat-file -p HEAD
git reflog -5
git worktree list
git --version
node --version
python3 -V
java -version
command -v npm
tree -L 2 -I node_modules
stat f
file --mime-type f
xxd f
base64 -d f
hostname
/usr/bin/ls
"""

ASKS = r"""
curl https://example.com
sort -uo out.txt in.txt
sort --o out.txt in.txt
sort --output=x in
sort -S 1K --compress-program=/tmp/p in.txt
sort -T /tmp in
uniq /tmp/payload /home/u/.bashrc
xxd -r dump.hex out.bin
xxd a b
tree -o /home/u/.bashrc
tree -Cofile .
tree -R .
rg --pre=pwned files
rg --pre pwned files
rg -iz pattern archive.gz
rg --hostname-bin=x y
man -H/tmp/p ls
ag --pager /tmp/p needle
tee output
fd -x touch pwned
fd -Hx touch
date --set 2020-01-01
date -s 2020
date 010203
hostname evil
hostname -f
file -C -m x
file -z x
diff -l a b
find . -delete
find . -name '*.tmp' -delete
find . -fprintf /root/suid.txt '%m %p'
find . -exec rm {} ;
find . -okdir python3 {} ;
find . -name a -ls -fls out
sed -i s/a/b/ f
sed -ni.bak 's/a/b/' file
sed --in-place s/a/b/ f
sed 's/a/touch pwned/e' f
sed '1etouch marker' file
sed 's/a/b/w out' f
sed 'w out' f
sed -n '/x/W out' f
sed 'r /etc/passwd' f
sed -f script f
sed -e p -e 'e id' f
sed 's/[/]/x/e' f
sed 'y/a/b/;e id' f
sed '1!{e id
}' f
awk 'BEGIN { system ( "ls" ) }'
awk '{print | "sh"}' input.txt
awk '{ print>"output" }' file
awk '{ print > "output" }' file
awk 'BEGIN { "id" | getline x; print x }'
awk 'BEGIN { while ((getline line < "f") > 0) print line }'
awk -f prog f
awk -i inplace '{print}' f
awk 'BEGIN{ @load "x" }'
awk 'BEGIN { print /"/ ; system("id") ; print /"/ }'
awk 'BEGIN { if (1) /"/ ; system("id") ; x = /"/ }'
awk 'BEGIN { x = a++ /b | "sh"/c }'
awk '/[/]/ { system("id") } /]/'
awk 'BEGIN { f = "system"; @f("id") }'
printf -v PATH .
printf '%nPATH'
printf %5n PATH
test -v a[0]
[ -v x ]
[ x -a -v y ]
[ -R x ]
command ls
command -p -v ls
git push
git push origin :main
git push --force
git branch foo
git branch -D main
git branch -vD feature
git branch -m a b
git branch --format=%(signature)
git tag v1
git tag -d v1
git tag -v v1
git remote show origin
git remote add x y
git -p status
git -c diff.external=/tmp/evil diff
git --git-dir=/x status
git diff --output=/tmp/x
git diff --outpu=/tmp/x
git log --output /home/u/.bashrc
git show --output=/tmp/x
git diff --ext-diff
git log --show-signature
git log --pretty=format:%GB
git log --pretty=%+G?
git log --format=mine
git cat-file --filters HEAD:file
git cat-file --filt HEAD:file
git grep --open-files-in-pager=./payload pattern
git grep -O./payload pattern
git grep -nO pattern
git config user.name evil
git config --unset user.name
git config edit
git config -e
git stash
git stash drop
git reflog expire --all
git help --web commit
git worktree add x
git symbolic-ref HEAD refs/heads/x
git checkout -- f
javac -version -processorpath p -processor Evil -d out T.java
node --version x
node -e 1
python3 -c 1
python3 --version -c 1
cargo --version
docker --url tcp://203.0.113.5 ps
tar --checkpoint=1 --checkpoint-action=exec=x -cf a.tar .
ssh -oProxyCommand=x host uptime
rm -- -f
./cat x
env
xargs ls
less f
base64 -o out in
"""


def lines(text: str) -> list[list[str]]:
    found: list[list[str]] = []
    pending = ""
    for line in text.strip().splitlines():
        pending = f"{pending}\n{line}" if pending else line
        try:
            found.append(shlex.split(pending))
        except ValueError:
            continue
        pending = ""
    return found


@pytest.fixture(scope="module")
def safe(built_in: BuiltInPolicy) -> SafeList:
    return safe_list(shipped(), names=built_in.names)


def shipped() -> Table:
    return parse(SHIPPED.read_bytes(), file="safe_commands.toml")


@pytest.mark.parametrize("argv", lines(LOOKS), ids=shlex.join)
def test_an_everyday_look_needs_no_prompt(safe: SafeList, argv: list[str]) -> None:
    assert safe.covers(RunProgram(argv=tuple(argv)))


@pytest.mark.parametrize("argv", lines(ASKS), ids=shlex.join)
def test_what_can_write_run_or_connect_is_not_covered(safe: SafeList, argv: list[str]) -> None:
    assert safe.covers(RunProgram(argv=tuple(argv))) == ""


def test_a_word_that_may_become_an_option_is_covered_only_where_no_option_harms(safe: SafeList) -> None:
    spread = {"unknown": (1,), "spread": (1,), "dashed": (1,)}

    assert safe.covers(RunProgram(argv=("cat", "$f"), **spread))
    assert not safe.covers(RunProgram(argv=("sort", "$f"), **spread))
    assert safe.covers(RunProgram(argv=("sort", "src/*.txt"), unknown=(1,), spread=(1,)))
    assert not safe.covers(RunProgram(argv=("uniq", "src/*.txt"), unknown=(1,), spread=(1,)))
    assert not safe.covers(RunProgram(argv=("git", "$x"), **spread))
    assert not safe.covers(RunProgram(argv=("git", "diff", "$x"), unknown=(2,), spread=(2,), dashed=(2,)))
    assert safe.covers(RunProgram(argv=("git", "diff", "--", "$x"), unknown=(3,), spread=(3,), dashed=(3,)))
    assert not safe.covers(RunProgram(argv=("$x",), unknown=(0,)))


def test_git_is_not_covered_where_the_repository_could_run_a_program(safe: SafeList) -> None:
    reason = ".git/config sets core.fsmonitor"

    assert not safe.covers(RunProgram(argv=("git", "status"), distrust=reason))


def own(text: str, built_in: BuiltInPolicy) -> SafeList:
    table = parse(f"[safe_commands]\n{text}\n".encode(), file="config.toml").table("safe_commands")
    return safe_list(shipped(), table, names=built_in.names)


def test_a_users_entry_covers_its_words_with_any_further_arguments(built_in: BuiltInPolicy) -> None:
    safe = own('shell = ["terraform fmt", "./gradlew"]\ntools = ["linear__search"]', built_in)

    assert (
        safe.covers(RunProgram(argv=("terraform", "fmt", "-diff", "$x"), unknown=(3,))) == "terraform fmt *"
    )
    assert safe.covers(RunProgram(argv=("./gradlew",)))
    assert not safe.covers(RunProgram(argv=("terraform", "apply")))
    assert not safe.covers(RunProgram(argv=("terraform", "fmt"), unknown=(1,)))
    assert safe.covers_tool("linear__search")
    assert not safe.covers_tool("linear__delete")
    assert safe.covers_tool("shell_output")
    assert safe.covers(RunProgram(argv=("ls",)))


def test_defaults_false_leaves_the_users_entries_only(built_in: BuiltInPolicy) -> None:
    safe = own('defaults = false\nshell = ["rg"]', built_in)

    assert [(entry.text, entry.by) for entry in safe.entries] == [("rg *", "user")]
    assert safe.entries[0].position.line == 3
    assert not safe.covers(RunProgram(argv=("ls",)))


@pytest.mark.parametrize(
    "entry",
    [
        *("", "ls; curl evil", "ls > /tmp/x", ">out", "$CMD", "for", "FOO=1 ls", "ls | sh", "git"),
        *("python3", "sh", "bash -c", "env", "sudo ls", "xargs", "find", "timeout 5 ls", "awk", "make test"),
    ],
)
def test_an_entry_that_cannot_be_safe_is_a_load_error_with_its_place(
    built_in: BuiltInPolicy, entry: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        own(f'shell = ["rg", "{entry}"]', built_in)

    (problem,) = caught.value.problems
    assert (problem.position.file, problem.position.line) == ("config.toml", 2)
    assert problem.key == "safe_commands.shell[1]"


def test_an_unknown_tool_in_the_safe_list_is_a_load_error(built_in: BuiltInPolicy) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'read_file'"):
        own('tools = ["read_fil"]', built_in)


def test_every_entry_says_where_it_stands(safe: SafeList) -> None:
    assert len(safe.entries) > 100
    assert all(entry.position.line for entry in safe.entries)
