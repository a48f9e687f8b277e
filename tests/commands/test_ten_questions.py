"""The ten questions of docs/ten_questions.md: each command prints what the document says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import ten_questions


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("questions") / "runs"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ten_questions.ROOT)
        ten_questions.kept_runs(folder)
        yield folder


@pytest.mark.parametrize("number", range(len(ten_questions.QUESTIONS)))
def test_the_answer_is_that_of_the_document(runs: Path, number: int) -> None:
    question, command, about = ten_questions.QUESTIONS[number]
    document = ten_questions.PAGE.read_text()
    assert f"## {number + 1}. {question}\n\n{about}\n" in document
    assert f"$ {command}\n{ten_questions.answer(command, runs)}\n```" in document


def test_each_is_one_command() -> None:
    assert len(ten_questions.QUESTIONS) == 10
    assert not any(sign in command for _, command, _ in ten_questions.QUESTIONS for sign in "|;&")
