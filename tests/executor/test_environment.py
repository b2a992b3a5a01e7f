"""What a command's environment holds and what it does not."""

import json
from pathlib import Path

import pytest

from agentctl.executor.environment import chosen_environment, credential_shaped, runs_something, withheld

SECRET = (
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "NPM_TOKEN", "HF_TOKEN", "DATABASE_URL",
    "OPENAI_KEY", "MASTER_KEY", "GITHUB_PAT", "SENTRY_DSN", "NETRC", "KUBECONFIG", "npm_password",
    "ANTHROPIC_API_KEY", "AZURE_CLIENT_SECRET", "GH_TOKEN", "PGPASSWORD", "MYSQL_PWD", "STRIPE_APIKEY",
    "API_KEY", "TOKEN", "MY_SECRET_VALUE", "GOOGLE_APPLICATION_CREDENTIALS", "SLACK_WEBHOOK_URL", "JWT",
    "SESSION_COOKIE",
    "TF_VAR_db_password", "DOCKER_AUTH_CONFIG", "CI_JOB_JWT_V2", "VAULT_TOKEN", "SSH_PRIVATE_KEY_BASE64",
)  # fmt: skip
PLAIN = (
    "PATH", "HOME", "LANG", "TERM", "TZ", "EDITOR", "OLLAMA_HOST", "MY_APP_REGION", "SSH_AUTH_SOCK",
    "CARGO_HOME", "JAVA_HOME", "VIRTUAL_ENV", "NVM_DIR", "GOPATH", "DOCKER_HOST", "PWD", "OLDPWD", "KEYBOARD",
    "MONKEY", "AUTHOR", "PASSIVE", "XDG_SESSION_ID", "TOKENIZERS_PARALLELISM", "GIT_AUTHOR_NAME",
    "PASSTHROUGH", "COMPASS",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_a_credential_shaped_name_is_withheld(name: str) -> None:
    assert credential_shaped(name)
    assert credential_shaped(name.lower())
    assert name not in chosen_environment({name: "x"})


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_name_is_kept(name: str) -> None:
    assert not credential_shaped(name)


def test_the_vectors_of_names_agree_except_for_the_agents_socket(shared: Path) -> None:
    vectors = json.loads((shared / "vectors" / "tool_state.json").read_text("utf-8"))
    checked = 0
    for vector in vectors:
        if vector["area"] == "env_sensitive":
            for name in vector["input"]["names"]:
                # Kept in the mode that is ours, as TS-428 says: an agent's socket answers, it tells nothing.
                if name != "SSH_AUTH_SOCK":
                    assert credential_shaped(name) is vector["expected"], name
                    checked += 1
        if vector["area"] == "shell_env_withheld" and vector["input"].get("mode") == "filtered":
            for name in vector["expected"]["withheld"]:
                assert credential_shaped(name), name
            for name in vector["expected"]["kept"]:
                assert name in chosen_environment({name: "x"}), name
                checked += 1
    assert checked > 20


def test_a_password_in_an_address_is_withheld_whatever_its_name() -> None:
    assert withheld("PIP_INDEX_URL", "https://user:secret@packages.example/simple")
    assert withheld("HTTPS_PROXY", "http://:pw@proxy.example:3128")
    assert not withheld("PIP_INDEX_URL", "https://packages.example/simple")
    assert not withheld("X", "http://host:8080/a@b")


def test_a_name_can_be_passed_in_any_case_but_not_by_wildcard() -> None:
    given = {"ANTHROPIC_API_KEY": "k", "GITHUB_TOKEN": "t"}

    assert "ANTHROPIC_API_KEY" in chosen_environment(given, pass_names=("anthropic_api_key",))
    assert "GITHUB_TOKEN" not in chosen_environment(given, pass_names=("*", "GITHUB_*"))


@pytest.mark.parametrize(
    "name",
    ["BASH_ENV", "ENV", "BASH_FUNC_ls%%", "LD_PRELOAD", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "PS4",
     "GIT_DIR", "GIT_CONFIG_KEY_0", "GIT_CONFIG_PARAMETERS", "PROMPT_COMMAND", "SHELLOPTS",
     "DYLD_INSERT_LIBRARIES",
     "LESSOPEN"],
)  # fmt: skip
def test_what_makes_a_program_run_another_is_never_passed(name: str) -> None:
    assert runs_something(name)
    assert name not in chosen_environment({name: "x"}, pass_names=(name,))


def test_pagers_editors_and_prompts_are_neutral() -> None:
    chosen = chosen_environment({"PAGER": "less", "EDITOR": "vim", "GIT_ASKPASS": "/usr/bin/ask"})

    assert (chosen["PAGER"], chosen["GIT_PAGER"], chosen["EDITOR"]) == ("cat", "cat", "true")
    assert (chosen["GIT_TERMINAL_PROMPT"], chosen["GIT_ASKPASS"]) == ("0", "")
    assert chosen["PATH"]


def test_what_the_request_sets_wins() -> None:
    assert chosen_environment({"A": "1"}, extra={"A": "2", "PAGER": "more"})["PAGER"] == "more"
