"""The lectures: 45 minutes each, written as slides, notebooks, notes and pictures; their exercises are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from examples.lecture import __main__ as lecture
from xbuild.learning import shelf


@pytest.mark.parametrize("name", lecture.LECTURES)
def test_form(name: str) -> None:
    cells = lecture.cells(name)
    notes = [cell.text for cell in cells if cell.kind == "notes"]
    minutes = [int(match[1]) for text in notes if (match := re.match(r"(\d+) min\. ", text))]
    assert len(minutes) == len(notes)
    assert sum(minutes) == 45
    slides = [cell for cell in cells if cell.kind == "prose" and cell.text.startswith("#")]
    assert len(slides) == len(notes)
    named = {(kind, int(number)) for text in notes for kind, number in re.findall(r"xbuild (puzzle|learn) (\d+)", text)}
    known = {"puzzle": shelf.entries("puzzles"), "learn": shelf.entries("lessons")}
    assert named
    assert [each for each in named if each[1] not in known[each[0]]] == []


def test_the_lectures_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = lecture.write(tmp_path / "out")
    assert {path.suffix for path in files} == {".html", ".ipynb", ".md", ".svg"}
    for name in lecture.LECTURES:
        book = (tmp_path / "out" / f"{name}.ipynb").read_text()
        assert json.loads(book)["cells"]
        assert " min. " not in book, "the notes are the speaker's"
        notes = (tmp_path / "out" / f"{name}_notes.md").read_text()
        title = notes.partition("\n")[0]
        assert title.startswith(f"# {name.title()}")
        assert len([*(tmp_path / "out").glob(f"{name}_*.svg")]) >= 2
        page = (tmp_path / "out" / f"{name}.html").read_text()
        assert f"<h1>{title[2:]}</h1>" in page
        assert "<script" not in page
        assert " min. " not in page
        headings = [cell for cell in lecture.cells(name) if cell.kind == "prose" and cell.text.startswith("#")]
        assert page.count("<section>") == len(headings) + sum(cell.kind == "rule" for cell in lecture.cells(name))
        assert page.count('class="ask"') == sum(cell.questions for cell in lecture.cells(name))
    assert all(path.read_text().startswith("<svg") for path in files if path.suffix == ".svg")
