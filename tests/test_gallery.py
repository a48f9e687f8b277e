"""The gallery: every picture in the documentation is the one that its program gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import xbuild as xb
from examples.gallery import deadlocks
from examples.gallery.pages import PAGES
from examples.gallery.pictures import FOLDER, PICTURES, TEXTS

ROOT = Path(__file__).parents[1]
# Which line a call of several lines has differs from one Python to another.
LINE = re.compile(r"(\n|&#10;)\S+\.py:\d+ in \S+?(?=<|\"|\n|&#10;)")


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_up_to_date(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    kept = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert LINE.sub("", PICTURES[name]()) == LINE.sub("", kept), "`make gallery` draws them anew"


@pytest.mark.parametrize("file", TEXTS)
def test_texts_are_up_to_date(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert LINE.sub("", TEXTS[file]()) == LINE.sub("", (FOLDER / file).read_text(encoding="utf-8"))


def test_no_picture_is_left_behind() -> None:
    drawn = (
        {f"{name}.svg" for name in PICTURES}
        | set(TEXTS)
        | {f"page_{name}.png" for name, (_, place) in PAGES.items() if place is not None}
    )
    assert {path.name for path in FOLDER.iterdir()} == drawn


def test_pages_show_only_pictures_of_the_gallery() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {
        match
        for page in pages
        for match in re.findall(r"(?<!xbuild/)pictures/([\w.]+)", page.read_text(encoding="utf-8"))
    }
    assert shown <= {path.name for path in FOLDER.iterdir()}
    assert "example.svg" in shown


def test_the_verdicts_are_what_the_gallery_says() -> None:
    verdicts = {
        "deadlock": (deadlocks.both_send_first(), deadlocks.both_wait_first(), deadlocks.swapped_collectives(),
                     deadlocks.crossed_tokens()),
        "error": (deadlocks.unlike_shapes(),),
        "depends": (deadlocks.loop_of_unknown_length(),),
    }  # fmt: skip
    for kind, found in verdicts.items():
        assert {verdict.kind for verdict in found} == {kind}
    assert all(isinstance(verdict, xb.Verdict) and verdict.asked for found in verdicts.values() for verdict in found)
