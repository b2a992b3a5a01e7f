"""Path patterns by component, and what is always protected."""

import pytest

from agentctl.policy.paths import Place, contains, normal_path
from agentctl.policy.patterns import PatternError, path_pattern
from agentctl.policy.protected import protected_paths
from agentctl.protocol.effects import WritePath

PLACE = Place(workdir="/repo/app", home="/home/u")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/**", "/repo/app/src/a/b.py", True),
        ("src/**", "/repo/app/src", True),
        ("src/**", "/repo/app/src2/a", False),
        ("src/**", "/repo/app/vendor/src/x.py", False),
        ("src/*", "/repo/app/src/a.py", True),
        ("src/*", "/repo/app/src/a/b.py", False),
        ("*.md", "/repo/app/README.md", True),
        ("*.md", "/repo/app/docs/x.md", False),
        ("**/*.lock", "/repo/app/uv.lock", True),
        ("**/*.lock", "/repo/app/a/b/uv.lock", True),
        ("**/*.lock", "/elsewhere/uv.lock", False),
        ("**", "/repo/app/x", True),
        ("**", "/repo/other", False),
        ("/**", "/etc/passwd", True),
        ("./src/../docs/*", "/repo/app/docs/a", True),
        ("../shared/**", "/repo/shared/a", True),
        ("~/notes/*", "/home/u/notes/a", True),
        ("/data/a*b/**/c", "/data/axb/1/2/c", True),
        ("/data/a*b/**/c", "/data/a/b/c", False),
        ("a+b(c).txt", "/repo/app/a+b(c).txt", True),
        ("build/", "/repo/app/build/out/x", True),
        ("build/", "/repo/app/build", True),
    ],
)
def test_an_allow_pattern_matches_by_component(pattern: str, path: str, *, matches: bool) -> None:
    assert path_pattern(pattern, PLACE).allows(WritePath(path=path)) is matches


def test_a_deny_on_a_folder_is_a_deny_on_its_content_and_an_allow_is_not() -> None:
    pattern = path_pattern("secrets", PLACE)

    assert pattern.restricts(WritePath(path="/repo/app/secrets/key"))
    assert not pattern.allows(WritePath(path="/repo/app/secrets/key"))
    assert not pattern.restricts(WritePath(path="/repo/app/secrets2"))


def test_wildcards_the_shell_has_yet_to_expand_are_covered_only_as_a_whole() -> None:
    glob = WritePath(path="/repo/app/src/*.py", glob=True)

    assert path_pattern("src/**", PLACE).allows(glob)
    assert path_pattern("src/*.py", PLACE).allows(glob)
    assert not path_pattern("src/a.py", PLACE).allows(glob)
    assert not path_pattern("src/*]", PLACE).allows(WritePath(path="/repo/app/src/[ab]", glob=True))
    assert path_pattern("src/secret.py", PLACE).restricts(glob)
    assert path_pattern("**/*.py", PLACE).restricts(glob)
    assert not path_pattern("**/*.lock", PLACE).restricts(glob)
    assert not path_pattern("docs/**", PLACE).restricts(glob)


@pytest.mark.parametrize("pattern", ["", "  ", "~other/x", "src/*/../x", "a\0b"])
def test_a_pattern_that_cannot_be_meant_is_an_error(pattern: str) -> None:
    with pytest.raises(PatternError):
        path_pattern(pattern, PLACE)


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/a//b/./c/../d/", "/a/b/d"),
        ("/../../x", "/x"),
        ("../a/../../b", "../../b"),
        ("./.", "."),
        ("/", "/"),
    ],
)
def test_paths_are_normalised_by_text(path: str, normal: str) -> None:
    assert normal_path(path) == normal


def test_containment_compares_components() -> None:
    assert contains("/repo/app", "/repo/app/x")
    assert contains("/repo/app", "/repo/app")
    assert not contains("/repo/app", "/repo/app-secret/key")
    assert contains("/", "/x")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/repo/app/.git/config",
            "/repo/app/.GIT/config",
            "/repo/app/.git./config",
            "/repo/app/.git /config",
        ),
        *("/repo/app/sub/.git", "/repo/app/.g\u200cit/x", "/repo/app/GIT~1/x", "/repo/app/.env"),
        *("/repo/app/.env::$DATA", "/home/u/.ssh/id", "/home/u/.bashrc", "/home/u/.config/git/config"),
        *("/home/u/.config", "/home/u", "/etc/cron.d/x", "/data/agentctl/journal.db", "/repo/app/blue.toml"),
    ],
)
def test_protected_places_need_a_word(path: str) -> None:
    guard = protected_paths(
        PLACE, [("/data/agentctl", "agentctl's own data"), ("/repo/app/blue.toml", "the running blueprint")]
    )

    assert guard.why(path)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/repo/app/.gitignore",
            "/repo/app/.env.example",
            "/repo/app/.github/workflows/x",
            "/repo/app/a.git",
        ),
        *("/repo/app/git", "/repo/app/.bashrc", "/home/u/notes", "/home/u/.sshx", "/repo/app", "/tmp/x"),
    ],
)
def test_look_alikes_are_not_protected(path: str) -> None:
    assert protected_paths(PLACE).why(path) == ""


def test_a_deny_inside_reaches_a_folder_that_goes_as_a_whole() -> None:
    deny = path_pattern("src/secret/**", PLACE)

    assert deny.restricts(WritePath(path="/repo/app/src", tree=True))
    assert deny.restricts(WritePath(path="/repo/app", tree=True))
    assert not deny.restricts(WritePath(path="/repo/app/src"))
    assert not deny.restricts(WritePath(path="/repo/app/sr", tree=True))
    assert not path_pattern("**/*.lock", PLACE).restricts(WritePath(path="/repo/app/dist", tree=True))
    assert path_pattern("**/*.lock", PLACE).restricts(WritePath(path="/repo/app", tree=True))
