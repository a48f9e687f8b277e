"""Pictures as pages: what they hold, that they stand alone and read nothing as markup."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import xbuild as xb
from examples.gallery import programs as shown
from tests.pictures.test_views import chain, nested
from xbuild.cli import main
from xbuild.pictures.drawing import draw
from xbuild.pictures.layout import lay_out
from xbuild.pictures.views import View, sheets, shrink

from ..golden import programs

DATA = re.compile(r'<script id="data" type="application/json">(.*?)</script>', re.DOTALL)
INSIDE = re.compile(r'<script id="inside" type="application/octet-stream">(.*?)</script>', re.DOTALL)


def packed(page: str) -> dict[str, Any]:
    found = INSIDE.search(page)
    assert found
    return dict(json.loads(zlib.decompress(base64.b64decode(found[1])))) if found[1] else {"sheets": [], "links": []}


def insides(page: str) -> list[dict[str, Any]]:
    """What the folded boxes of a page unfold to."""
    return list(packed(page)["sheets"])


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
    assert page.count("<script") == page.count("</script>") == 3
    assert "alert(1)" in json.loads(DATA.search(page)[1])["boxes"]["main/tanh.2"]["found"]  # type: ignore[index]


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    target = tmp_path / "loop.hlo"
    target.write_text(programs.loop().to_hlo(), encoding="utf-8")
    done = CliRunner().invoke(main, ["viz", str(target), "-o", str(tmp_path / "out.html"), "--theme", "dark"])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.startswith('<!doctype html>\n<html lang="en" class="dark">')
    assert len(page) - len(str(xb.viz(programs.loop(), "svg"))) < 47_000


def test_every_instruction_is_in_the_page_of_a_large_program() -> None:
    program = shown.tower(60)
    page = str(xb.viz(program, "html"))
    root, sheets = json.loads(DATA.search(page)[1]), insides(page)  # type: ignore[index]
    held = {sheet["of"] for sheet in sheets}
    ids = [id for each in (root, *sheets) for id in each["boxes"]]
    assert len(ids) == len(set(ids))
    assert set(ids) - held == {box.id for box in draw(program).all_boxes()}
    for sheet in sheets:
        assert sheet["places"].keys() == sheet["boxes"].keys()
        assert sheet["size"] == [pytest.approx(each, abs=0.06) for each in sheet["frames"][0][2][2:]]
        assert all(tail in sheet["boxes"] and head in sheet["boxes"] for tail, head in sheet["lines"])
        assert sheet["svg"].count('<g class="line') == len(sheet["lines"])
        assert "<title>" not in re.sub(r'<g class="line.*?</g>', "", sheet["svg"])
    assert page == str(xb.viz(program, "html"))


def test_lines_out_of_a_folded_box_are_words_in_what_it_holds() -> None:
    (sheet,) = insides(str(xb.viz(programs.training_step(), "html", fold=("forward",))))
    boxes = {box["name"]: box["words"] for box in sheet["boxes"].values()}
    assert {"0 ← x", "1 ← first"} <= {*boxes["dot.3"].splitlines()}
    assert any(line.startswith("→ ") for line in boxes["maximum.5"].splitlines())


def test_a_folded_computation_is_in_the_page_with_its_first_caller() -> None:
    @xb.computation(xb.f32[()])
    def squashed(v: xb.Value) -> xb.Value:
        return xb.ops.tanh(xb.ops.negate(v))

    x = xb.ops.parameter(xb.Builder("main"), number=0, shape=xb.f32[()])
    program = x.builder.build(xb.ops.call(xb.ops.call(x, to_apply=squashed), to_apply=squashed))
    (sheet,) = insides(str(xb.viz(program, "html", fold=("squashed",))))
    assert sheet["of"] == "main/call.2"
    assert [frame[0] for frame in sheet["frames"]] == ["main/call.2", "squashed"]


def test_what_is_folded_twice_unfolds_to_both() -> None:
    page = str(xb.viz(programs.loop(), "html", fold=("next", "below_ten")))
    (sheet,) = insides(page)
    assert sheet["of"] == "loop/while.20"
    assert {frame[0] for frame in sheet["frames"]} == {"loop/while.20", "next", "below_ten"}


def test_boxes_in_boxes_in_boxes() -> None:
    page = str(xb.viz(nested(60, per=20), "html"))
    sheets = {sheet["of"]: sheet for sheet in insides(page)}
    inner = [of for of, sheet in sheets.items() if any(of in other["boxes"] for other in sheets.values())]
    assert inner
    assert len(json.loads(DATA.search(page)[1])["boxes"]) <= 300  # type: ignore[index]


@pytest.mark.slow
def test_a_page_has_its_limits_and_says_how_to_see_the_rest() -> None:
    page = str(xb.viz(chain(40_000), "html"))
    sheets, root = insides(page), json.loads(DATA.search(page)[1])  # type: ignore[index]
    boxes = {id: box for each in (root, *sheets) for id, box in each["boxes"].items()}
    closed = {id: box["lacking"] for id, box in boxes.items() if "lacking" in box}
    assert 3_000 < len(boxes) <= 4_300
    assert len(page) < 4_000_000
    assert closed
    assert not closed.keys() & {sheet["of"] for sheet in sheets}
    name = re.search(r"--around '(chain/[\w.-]+)'", next(iter(closed.values())))
    assert name
    assert View(around=name[1]).apply(draw(chain(40_000))).size > 1


def test_what_a_view_leaves_out_is_told_with_the_command_that_shows_it() -> None:
    page = str(xb.viz(programs.training_step(), "html", around="dot.3", radius=1))
    boxes = json.loads(DATA.search(page)[1])["boxes"]  # type: ignore[index]
    assert boxes["training_step/maximum.5"]["lacking"] == (
        "not in this page: +3 after\nto see the box: xbuild viz TARGET --around 'training_step/maximum.5' -o "
        "near.html\n"
        "or draw more boxes with --max-nodes"
    )
    assert "lacking" not in boxes["training_step/dot.3"]


@pytest.mark.parametrize("program", [shown.tower(60), chain(900), nested(60, per=20), programs.ring()])
def test_every_line_of_a_program_is_drawn_or_told(program: xb.Module) -> None:
    page = str(xb.viz(program, "html"))
    root, inside = json.loads(DATA.search(page)[1]), packed(page)  # type: ignore[index]
    order = [id for each in (root, *inside["sheets"]) for id in each["boxes"]]
    told = {(order[tail], order[head]) for tail, head in inside["links"]}
    drawn = {(tail, head) for each in (root, *inside["sheets"]) for tail, head in each["lines"]}
    assert not told & drawn
    calls = {(edge.tail, edge.head) for edge in draw(program).edges if edge.what == "call"}
    held = {sheet["of"] for sheet in inside["sheets"]}
    inner = {*order}
    lacking = {(e.tail, e.head) for e in draw(program).edges if e.tail in inner and e.head in inner} - told - drawn
    assert all(edge in calls and edge[1] in held for edge in lacking)


def test_nothing_of_a_large_box_is_cut_away() -> None:
    builder = xb.Builder("main")
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    with xb.scope("all"):
        for _ in range(700):
            x = xb.tanh(x)
    program = builder.build(xb.negate(x))
    page = str(xb.viz(program, "html", fold=("all",)))
    sheets = insides(page)
    held = {sheet["of"] for sheet in sheets}
    found = {id for sheet in sheets for id in sheet["boxes"]} - held
    assert len(found) == 700
    assert "main/all" in held
    assert not any("lacking" in box for sheet in sheets for box in sheet["boxes"].values())


def test_what_a_box_unfolds_to_is_more_than_one_box() -> None:
    """Many ops of one scope on parameters of many scopes: as a fold of scopes that is one box, again and again."""
    builder = xb.Builder("moments")
    products = []
    for number in range(500):
        with xb.scope(f"first['layers'][{number}]"):
            x = xb.parameter(builder, number=number, shape=xb.f32[2])
        with xb.scope("jit/mul"):
            products.append(xb.negate(x) * 0.1)
    found = [*sheets(shrink(draw(builder.build(xb.tuple_(products))), 100))]
    assert found
    assert len(found) < 40
    assert all(sheet.picture.size > 1 for sheet in found)


def test_a_program_without_scopes_unfolds_whole() -> None:
    """In a form that does not unfold, it is cut off where it is far from the root."""
    program = chain(600)
    page = str(xb.viz(program, "html"))
    there = {box["name"] for sheet in insides(page) for box in sheet["boxes"].values()}
    assert {each.name for each in program.entry.instructions if each.opcode == "tanh"} <= there
    assert "nearest to the root" in str(xb.viz(program, "svg"))
