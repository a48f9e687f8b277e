"""The prose of the project: phrases that a native writer would not use become fewer, file by file, and never more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import sentences, style


def test_no_file_gains_an_odd_phrase() -> None:
    allowed = json.loads(style.DEBT.read_text())
    gained = {path: count for path, count in style.count_places().items() if count > allowed.get(path, 0)}
    assert gained == {}, "python -m tests.style lists the places; CONTRIBUTING.md says what to write"


@pytest.mark.parametrize(
    "line",
    [
        "a pred[] is wanted",
        "wanted is f32[]",
        "devices never come to psum",
        "waits for ever",
        "mended",
        "which stands in a loop",
    ],
)
def test_an_odd_phrase_is_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"fine\n{line}\n")
    assert [number for number, *_ in style.find_places(tmp_path / "a.md")] == [2]


@pytest.mark.parametrize("line", ["expected pred[], got f32[]", "devices never reach psum", "a standard", "amendment"])
def test_plain_english_passes(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(line)
    assert list(style.find_places(tmp_path / "a.md")) == []


@pytest.mark.parametrize("source", sentences.SOURCES)
def test_what_a_person_reads_has_no_odd_phrase(source: str) -> None:
    assert sentences.flagged(source) == [], "python -m tests.sentences --flagged lists them"


def test_readme_and_documents_have_no_odd_phrase() -> None:
    counts = style.count_places()
    assert {path for path in counts if path.startswith("docs/") or path.endswith(".md")} == set()


def test_a_seed_draws_the_same_sentences() -> None:
    assert sentences.draw(3, 12) == sentences.draw(3, 12)
