"""Pictures: what is drawn and what is folded, what the words and lines say, and the kept texts."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xbuild as xb
from tests.golden.kept import FOLDER, TEXTS
from xbuild.core.op import OPS
from xbuild.pictures.drawing import draw, short_shape
from xbuild.pictures.layout import lay_out
from xbuild.pictures.picture import COLLECTIVE, ELEMENTWISE, FLOW, KINDS, OTHER, PARAMETER, Box, Picture, kind_of

from ..golden import programs

o = xb.ops


def box(picture: Picture, name: str) -> Box:
    return next(each for each in picture.all_boxes() if each.name == name)


@pytest.mark.parametrize("file", [file for file in TEXTS if not file.endswith(".hlo")])
def test_kept_pictures(file: str) -> None:
    assert TEXTS[file]() == (FOLDER / file).read_text(encoding="utf-8")


def test_kinds_follow_the_families() -> None:
    assert [kind_of(opcode) for opcode in ("parameter", "add", "while", "all_reduce")] == [
        PARAMETER, ELEMENTWISE, FLOW, COLLECTIVE,
    ]  # fmt: skip
    assert {opcode for opcode in OPS if kind_of(opcode) is OTHER} == {"custom_call"}
    assert len({kind.letter for kind in KINDS}) == len({kind.fill for kind in KINDS}) == len(KINDS)


def test_small_constants_and_their_broadcasts_are_words_in_their_users() -> None:
    picture = draw(programs.training_step())
    opcodes = [each.title for each in picture.all_boxes()]
    assert "constant" not in opcodes
    assert "broadcast" not in opcodes
    maximum = next(each for each in picture.all_boxes() if each.title == "maximum")
    assert maximum.details == ("rhs = 0",)


def test_a_large_constant_and_a_constant_root_have_boxes() -> None:
    builder = xb.Builder("main")
    large = o.constant(builder, literal=np.arange(100, dtype=np.float32))
    picture = draw(builder.build(o.negate(large)))
    constant = next(each for each in picture.all_boxes() if each.title == "constant")
    assert constant.details == ("{0, 1, 2, 3, 4, 5, 6, 7}",)
    assert len(constant.tooltip) < 200
    builder = xb.Builder("main")
    picture = draw(builder.build(o.constant(builder, literal=np.float32(1))))
    assert [each.is_root for each in picture.all_boxes()] == [True]


def test_elements_of_tuples_are_places_on_the_edges() -> None:
    picture = draw(programs.loop())
    assert not any(each.title == "get-tuple-element" for each in picture.all_boxes())
    collective = next(each for each in picture.all_boxes() if each.title == "all-reduce")
    (edge,) = [each for each in picture.edges if each.head == collective.id]
    assert (edge.at_tail, edge.at_head) == ("[1]", "")


def test_operands_are_numbered_where_there_are_several() -> None:
    x = o.parameter(xb.Builder("main"), number=0, shape=xb.f32[2], name="x")
    y = o.negate(x)
    picture = draw(x.builder.build(o.subtract(o.add(x, x), y)))
    assert [(each.tail, each.head, each.at_head) for each in picture.edges] == [
        ("main/x", "main/negate.1", ""),
        ("main/x", "main/add.2", "0,1"),
        ("main/add.2", "main/subtract.3", "0"),
        ("main/negate.1", "main/subtract.3", "1"),
    ]


def test_simple_reducers_are_words_and_other_regions_frames() -> None:
    picture = draw(programs.loop())
    (entry,) = picture.clusters
    assert [cluster.role for cluster in entry.clusters] == ["condition", "body", "branch 0", "branch 1"]
    assert "by add" in next(each for each in picture.all_boxes() if each.title == "reduce").details
    calls = [each for each in picture.edges if each.what == "call"]
    assert {each.head for each in calls} == {cluster.caller for cluster in entry.clusters}


def test_a_computation_that_is_called_twice_is_drawn_once() -> None:
    @xb.computation(xb.f32[()])
    def squashed(v):
        return o.tanh(o.negate(v))

    x = o.parameter(xb.Builder("main"), number=0, shape=xb.f32[()])
    twice = o.call(o.call(x, to_apply=squashed), to_apply=squashed)
    picture = draw(x.builder.build(twice))
    assert len(picture.clusters[0].clusters) == 1
    assert len([each for each in picture.edges if each.what == "call"]) == 2


def test_channels_tokens_and_control_have_lines_of_their_own() -> None:
    picture = draw(programs.ring(3))
    assert [cluster.title for cluster in picture.clusters] == [f"device {device}: ring" for device in range(3)]
    channels = {(each.tail[:2], each.head[:2]) for each in picture.edges if each.what == "channel"}
    assert channels == {("d0", "d1"), ("d1", "d2"), ("d2", "d0")}
    assert {each.what for each in picture.edges} == {"value", "token", "control", "channel"}


def test_equal_names_of_computations_do_not_meet() -> None:
    picture = draw(programs.ring(2))
    ids = [each.id for each in picture.all_boxes()]
    assert len(set(ids)) == len(ids)
    assert {edge.tail for edge in picture.edges} | {edge.head for edge in picture.edges} <= set(ids)


def test_what_a_computation_uses_and_does_not_hold_is_said() -> None:
    x = o.parameter(xb.Builder("main"), number=0, shape=xb.f32[2], name="x")
    y = o.negate(x).instruction
    picture = draw(xb.Computation("raw", [y], y))
    assert [(each.name, each.title) for each in picture.all_boxes()] == [
        ("x", "not in this computation"),
        ("negate.1", "negate"),
    ]
    assert "not in this computation" in xb.Computation("raw", [], y)._repr_svg_()


def test_long_tuples_are_counted() -> None:
    text = short_shape(xb.TupleShape([xb.f32[128, 128]] * 20))
    assert re.fullmatch(r"\(f32\[128,128\], .*… \d+ more\)", text)
    assert len(text) < 60


def test_layouts_are_shown_where_they_are_not_row_by_row() -> None:
    text = """HloModule layouts

ENTRY main {
  x = f32[3,2]{1,0} parameter(0)
  y = f32[2,3]{0,1} transpose(x), dimensions={1,0}
  z = f32[2,3]{1,0:T(2,128)} copy(y)
  ROOT both = (f32[3,2]{1,0}, f32[2,3]{0,1}) tuple(x, y)
}
"""
    picture = draw(xb.parse_hlo(text))
    assert [each.shape for each in picture.all_boxes()] == [
        "f32[3,2]", "f32[2,3]{0,1}", "f32[2,3]{1,0:T(2,128)}", "(f32[3,2], f32[2,3]{0,1})",
    ]  # fmt: skip
    assert "f32[3,2]{1,0}" in box(picture, "x").tooltip
    assert picture.edges[0].tooltip == "x -> y: f32[3,2]{1,0}"


def test_parameters_of_called_computations_say_where_they_come_from() -> None:
    @xb.computation(xb.f32[()], xb.f32[()])
    def scaled(v, by):
        return o.negate(o.multiply(v, by))

    x = o.parameter(xb.Builder("main"), number=0, shape=xb.f32[()], name="x")
    first = o.call([x, o.constant(x.builder, literal=np.float32(3))], to_apply=scaled)
    picture = draw(x.builder.build(o.call([first, x], to_apply=scaled)))
    inner = {each.title: each.details for each in picture.clusters[0].clusters[0].boxes}
    assert inner["parameter 0"] == ("from x, call.2",)
    assert inner["parameter 1"] == ("from 3, x",)
    branches = [each for each in draw(programs.loop()).all_boxes() if each.title == "parameter 0" and each.details]
    assert [each.details for each in branches] == [("from while.20[1]",)] * 2


def test_devices_stand_in_their_order() -> None:
    layout = lay_out(draw(programs.ring(4)))
    frames = {each: place for each, place in layout.clusters.items() if each.endswith("/ring")}
    assert sorted(frames, key=lambda each: frames[each].x) == [f"d{n}/ring" for n in range(4)]
