"""Pictures as pages: what they hold, that they stand alone and read nothing as markup."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import xbuild as xb
from tests.golden import programs
from xbuild.cli import main
from xbuild.viz.drawing import draw
from xbuild.viz.layout import lay_out

DATA = re.compile(r'<script id="data" type="application/json">(.*?)</script>', re.DOTALL)


@pytest.mark.parametrize("name", ["training_step", "loop", "ring"])
def test_a_page_has_every_box_and_every_line(name: str) -> None:
    program = getattr(programs, name)()
    page, picture = str(xb.viz(program, "html")), draw(program)
    data = json.loads(DATA.search(page)[1])  # type: ignore[index]
    assert list(data["boxes"]) == [box.id for box in picture.all_boxes()]
    assert sorted(map(tuple, data["lines"])) == sorted((edge.tail, edge.head) for edge in picture.edges)
    assert data["lines"] == [[route.edge.tail, route.edge.head] for route in lay_out(picture).routes]
    assert page == str(xb.viz(program, "html"))
    assert not re.search(r'https?://(?!www\.w3\.org/2000/svg")|<link|@import|\bsrc=|url\((?!#)', page)


def test_a_page_knows_where_frames_are_and_what_is_in_them() -> None:
    data = json.loads(DATA.search(str(xb.viz(programs.loop(), "html")))[1])  # type: ignore[index]
    picture, layout = draw(programs.loop()), lay_out(draw(programs.loop()))
    names, around, places, boxes = zip(*data["frames"], strict=True)
    assert names == ("loop", "below_ten", "next", "lambda", "lambda.1")
    assert around == (-1, 0, 0, 0, 0)
    assert [each for ids in boxes for each in ids] == [box.id for box in picture.all_boxes()]
    assert [place[2] for place in places] == [pytest.approx(layout.clusters[each].width, abs=0.06) for each in names]
    assert data["places"].keys() == layout.boxes.keys()
    assert data["ends"] == [bool(r.edge.at_tail) + 2 * bool(r.edge.at_head) for r in layout.routes]


def test_a_box_is_found_by_what_it_is_and_not_by_what_it_uses() -> None:
    x = xb.parameter(xb.Builder("main"), number=0, shape=xb.f32[2], name="x")
    with xb.scope("layer"):
        y = xb.maximum(xb.tanh(x), 3.0)
    page = str(xb.viz(x.builder.build(y), "html"))
    boxes = json.loads(DATA.search(page)[1])["boxes"]  # type: ignore[index]
    assert [name for name, box in boxes.items() if "tanh" in box["found"]] == ["main/tanh.1"]
    assert [name for name, box in boxes.items() if "layer" in box["found"]] == ["main/tanh.1", "main/maximum.4"]
    assert [name for name, box in boxes.items() if "test_viewer.py" in box["found"]] == list(boxes)
    assert "rhs = 3" in boxes["main/maximum.4"]["words"]


def test_nothing_in_a_program_is_markup_in_its_page() -> None:
    x = xb.parameter(xb.Builder("main"), number=0, shape=xb.f32[2])
    with xb.scope("</script><script>alert(1)</script>"):
        y = xb.tanh(x)
    page = str(xb.viz(x.builder.build(y), "html"))
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert "alert(1)" in json.loads(DATA.search(page)[1])["boxes"]["main/tanh.2"]["found"]  # type: ignore[index]


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    target = tmp_path / "loop.hlo"
    target.write_text(programs.loop().to_hlo(), encoding="utf-8")
    done = CliRunner().invoke(main, ["viz", str(target), "-o", str(tmp_path / "out.html"), "--theme", "dark"])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.startswith('<!doctype html>\n<html lang="en" class="dark">')
    assert len(page) - len(str(xb.viz(programs.loop(), "svg"))) < 40_000
