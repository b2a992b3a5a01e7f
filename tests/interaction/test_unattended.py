from typing import get_args

import pytest

from agentctl.interaction.unattended import (
    RefusedAsk,
    Suspend,
    after_deadline,
    quoted,
    refusal_lines,
    suspends,
    what_instead,
    without_person,
)
from agentctl.protocol.decisions import Held
from agentctl.protocol.questions import ApprovalAnswer, PersonAnswer, Question
from tests.terminal.samples import approval, person


def test_an_unattended_ask_is_a_refusal_with_a_reason_for_the_model() -> None:
    answer = without_person(approval(), on_ask="deny")

    assert isinstance(answer, ApprovalAnswer)
    assert (answer.choice, answer.by) == ("no", "unattended")
    assert answer.reason


def test_an_unattended_question_gets_no_answer() -> None:
    assert without_person(person("text"), on_ask="deny") == PersonAnswer(
        no_answer="unattended", by="unattended"
    )


@pytest.mark.parametrize("question", [approval(), person("confirm"), person("choice", insists=True)])
def test_pause_saves_every_question(question: Question) -> None:
    assert isinstance(without_person(question, on_ask="pause"), Suspend)


def test_a_checkpoint_that_insists_stands_still_whatever_happens() -> None:
    question = person("choice", checkpoint="plan", insists=True)

    assert isinstance(without_person(question, on_ask="deny"), Suspend)
    assert suspends(question, after_deadline(question))
    assert not suspends(question, PersonAnswer(option="Approve"))
    assert not suspends(person("choice", checkpoint="plan"), after_deadline(question))
    assert not suspends(approval(), after_deadline(approval()))


@pytest.mark.parametrize("held", get_args(Held))
def test_every_held_ask_says_what_to_write_instead(held: Held) -> None:
    assert bool(what_instead(held)) == (held not in ("", "pattern"))


def test_each_refusal_is_listed_once_with_quoted_rules() -> None:
    ask = RefusedAsk(tool="shell", shown='\necho "it\'s"\nmore', allow=("shell(echo *)", "write_file(a b)"))

    assert refusal_lines((ask, ask)) == (
        'refused, nobody to ask: shell: echo "it\'s" … and 1 more line',
        "  let it through with: --allow 'shell(echo *)' --allow 'write_file(a b)'",
    )


def test_a_refused_edit_is_named_by_its_file_and_not_by_the_head_of_its_diff() -> None:
    ask = RefusedAsk(tool="write_file", shown="--- /dev/null\n+++ NOTES.md\n@@ -0,0 +1 @@\n+hi")

    assert refusal_lines((ask,))[0] == "refused, nobody to ask: write_file: NOTES.md"


def test_a_refusal_that_no_flag_lifts_says_what_to_do() -> None:
    held = RefusedAsk(tool="write_file", shown=".git/config", instead="make this change yourself")
    bare = RefusedAsk(tool="submit", shown="")

    assert refusal_lines((held, bare)) == (
        "refused, nobody to ask: write_file: .git/config",
        "  no flag lets it through; make this change yourself",
        "refused, nobody to ask: submit: submit",
        "  no flag lets it through; answer it on a terminal",
    )


def test_a_rule_is_always_one_quoted_word() -> None:
    assert quoted("read_file") == "'read_file'"
    assert quoted("shell(echo 'x')") == "'shell(echo '\"'\"'x'\"'\"')'"
