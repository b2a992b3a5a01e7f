from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.pty_screen import Asking
from tests.terminal.samples import person

Ask = Callable[..., Asking]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    opened: list[Asking] = []

    def run(*questions: Any, **more: Any) -> Asking:
        opened.append(Asking(tmp_path, list(questions), **more))
        return opened[-1]

    yield run
    for one in opened:
        one.kill()


@pytest.fixture
def editor(tmp_path: Path) -> str:
    place = tmp_path / "editor"
    place.write_text('#!/bin/sh\nsed -i s/draft/final/ "$1"\n', encoding="utf-8")
    place.chmod(0o755)
    return str(place)


def test_words_are_taken_as_typed(ask: Ask) -> None:
    terminal = ask(person("text"))
    terminal.wait_for("Enter sends")
    assert "│ Which one?" in terminal.text

    terminal.send("the left one, 日本\x7f语!\r")

    assert terminal.answers() == {"q-p": {"type": "PersonAnswer", "text": "the left one, 日语!"}}


def test_a_pasted_text_keeps_its_lines_and_waits_for_enter(ask: Ask) -> None:
    terminal = ask(person("text"))
    terminal.wait_for("Enter sends")

    terminal.send("\x1b[200~first\r\nsecond\r\n\x1b[201~")
    terminal.wait_for("first⏎second⏎")
    terminal.send("third\r")

    assert terminal.answers()["q-p"]["text"] == "first\nsecond\nthird"


def test_escape_sequences_in_what_is_typed_are_shown_written_out(ask: Ask) -> None:
    terminal = ask(person("text"))
    terminal.wait_for("Enter sends")

    terminal.send("\x1b[200~a\u202eb\x1b[201~")
    terminal.wait_for("a\\u{202e}b")
    terminal.send("\r")

    assert terminal.answers()["q-p"]["text"] == "a\u202eb"


@pytest.mark.parametrize("kind", ["text", "choice", "confirm", "review"])
def test_escape_declines(ask: Ask, kind: str) -> None:
    terminal = ask(person(kind, options=() if kind in ("text", "review") else ("yes", "no")))  # type: ignore[arg-type]
    terminal.wait_for("Esc no answer")
    terminal.wait_for(">")

    terminal.send("\x1b")

    assert terminal.answers()["q-p"] == {"type": "PersonAnswer", "no_answer": "declined"}


def test_a_choice_is_one_key(ask: Ask) -> None:
    terminal = ask(person("choice", options=("left", "right")))
    terminal.wait_for("2 right")

    terminal.send("2")

    assert terminal.answers()["q-p"]["option"] == "right"


def test_a_choice_of_many_is_by_number(ask: Ask) -> None:
    terminal = ask(person("choice", options=tuple(f"option {number}" for number in range(1, 13))))
    terminal.wait_for("12 option 12")
    terminal.wait_for("# choose by number")

    terminal.send("1")
    terminal.wait_for("press one of the keys above")
    terminal.send("#")
    terminal.wait_for("number:")
    terminal.send("13\r")
    terminal.wait_for("there are options 1 to 12")
    terminal.send("#")
    terminal.wait_for("number:", times=2)
    terminal.send("12\r")

    assert terminal.answers()["q-p"]["option"] == "option 12"


def test_a_choice_can_be_answered_in_words(ask: Ask) -> None:
    terminal = ask(person("choice", options=("left", "right")))
    terminal.wait_for("t in your words")

    terminal.send("t")
    terminal.wait_for("in your words:")
    terminal.send("neither\r")

    assert terminal.answers()["q-p"] == {"type": "PersonAnswer", "text": "neither"}


@pytest.mark.parametrize(("key", "option"), [("y", "yes"), ("n", "no"), ("1", "yes")])
def test_a_confirmation_is_yes_or_no(ask: Ask, key: str, option: str) -> None:
    terminal = ask(person("confirm", options=("yes", "no")))
    terminal.wait_for("n no")

    terminal.send(key)

    assert terminal.answers()["q-p"]["option"] == option


@pytest.mark.parametrize("keys", ["yes\r", "\r"])
def test_nothing_but_one_key_confirms(ask: Ask, keys: str) -> None:
    terminal = ask(person("confirm", options=("yes", "no")))
    terminal.wait_for("n no")
    terminal.wait_for(">")

    terminal.send(keys)
    terminal.wait_for("press one")
    terminal.send("n")

    assert terminal.answers()["q-p"]["option"] == "no"


def test_a_review_shows_the_document_and_takes_what_should_change(ask: Ask) -> None:
    document = "# Plan\n\n1. look\n2. mend\x1b[31m"
    terminal = ask(person("review", options=("approve", "revise"), document=document))
    terminal.wait_for("2 revise")
    assert "│ 2. mend\\x1b[31m" in terminal.text

    terminal.send("2")
    terminal.wait_for("what should change")
    terminal.send("test first\r")

    answer = terminal.answers()["q-p"]
    assert (answer["option"], answer["text"]) == ("revise", "test first")


def test_an_edit_brings_the_document_back(ask: Ask, editor: str) -> None:
    terminal = ask(person("edit", document="a draft\n"), env={"VISUAL": editor})
    terminal.wait_for("1 edit it")

    terminal.send("1")
    terminal.wait_for("+a final")

    assert terminal.answers()["q-p"]["document"] == "a final\n"


def test_leaving_a_document_as_it_is_gives_it_back(ask: Ask) -> None:
    terminal = ask(person("edit", document="a draft\n"))
    terminal.wait_for("2 leave it as it is")

    terminal.send("2")

    assert terminal.answers()["q-p"] == {"type": "PersonAnswer", "document": "a draft\n"}


def test_a_checkpoint_option_can_open_the_editor(ask: Ask, editor: str) -> None:
    options = ("Approve", "Edit the plan", "Abort")
    point = person(
        "choice", options=options, edit_options=options[1:2], checkpoint="plan", document="a draft\n"
    )
    terminal = ask(point, env={"EDITOR": editor, "VISUAL": ""})
    terminal.wait_for("3 Abort")
    assert "checkpoint plan" in terminal.text

    terminal.send("2")

    answer = terminal.answers()["q-p"]
    assert (answer["option"], answer["document"]) == ("Edit the plan", "a final\n")


def test_no_editor_is_said_and_asked_again(ask: Ask) -> None:
    terminal = ask(
        person("edit", document="a draft\n"), env={"EDITOR": "/nowhere/ed", "VISUAL": "", "PATH": ""}
    )
    terminal.wait_for("1 edit it")

    terminal.send("1")
    terminal.wait_for("no editor: set EDITOR")
    terminal.send("2")

    assert terminal.answers()["q-p"]["document"] == "a draft\n"
