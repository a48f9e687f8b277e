"""Texts without scopes: what repeats in structure is found, folded, and unfolds to what it was."""

from __future__ import annotations

import xbuild as xb
from xbuild.pictures.drawing import draw
from xbuild.pictures.folding import fold_repeats, has_names, unfold
from xbuild.pictures.picture import Picture
from xbuild.pictures.views import View, sheets, shrink


def network(layers: int, *, turn: int = 0) -> xb.Module:
    """A network whose layers are alike, and their sums on the way back, without any scope."""
    builder = xb.Builder("network")
    x = xb.parameter(builder, number=0, shape=xb.f32[8, 8], name="x")
    weights = [xb.parameter(builder, number=1 + n, shape=xb.f32[8, 8]) for n in range(layers)]
    kept = []
    for number, weight in enumerate(weights):
        inner = xb.dot(x, weight)
        kept.append(inner)
        wide = xb.exponential(xb.minimum(inner, 4.0))
        if number == turn and turn:
            wide = xb.abs(wide)
        x = xb.tanh(inner + wide) * xb.logistic(inner) + xb.cosine(x)
    for inner, weight in zip(reversed(kept), reversed(weights), strict=True):
        slope = xb.sine(xb.sine(inner))
        x = xb.all_reduce(xb.dot(x * slope, weight), xb.add) - xb.sqrt(slope)
    return xb.Module("network", builder.build(x), num_replicas=2)


def blocks(picture: Picture) -> list[str]:
    return [box.name for box in picture.all_boxes() if box.name.startswith("block")]


def test_layers_are_recognised_without_names() -> None:
    whole = draw(network(9))
    assert not has_names(whole)
    found, ids = fold_repeats(whole)
    names = blocks(found)
    assert len(ids) == len(names)
    assert names[:2] == ["block A1 of 9", "block A2 of 9"]
    assert sum(name.startswith("block A") for name in names) == 9
    assert sum(name.startswith("block B") for name in names) >= 8
    assert found.notes[0].startswith("repeated structure is drawn as blocks: A 9 times, B ")


def test_many_blocks_are_one_box_that_unfolds_to_blocks_that_unfold_to_ops() -> None:
    whole = draw(network(40))
    picture = shrink(whole, 100)
    runs = [box for box in picture.all_boxes() if box.name.startswith("blocks ")]
    assert runs[0].name == "blocks A: 40 times"
    assert runs[0].details[0].startswith("40 blocks, each 9 ops from ")
    inside = unfold(runs[0])
    assert blocks(inside)[:2] == ["block A1 of 40", "block A2 of 40"]
    first = next(box for box in inside.all_boxes() if box.name == "block A1 of 40")
    assert {box.title for box in unfold(first).all_boxes()} >= {"dot", "tanh", "logistic"}
    drawn = {box.id for sheet in sheets(picture) for box in sheet.picture.all_boxes()}
    assert {box.id for box in whole.all_boxes()} - {box.id for box in picture.all_boxes()} <= drawn


def test_a_layer_that_differs_a_little_is_a_layer() -> None:
    found, _ = fold_repeats(draw(network(9, turn=4)))
    assert sum(name.startswith("block A") for name in blocks(found)) == 9


def test_no_line_is_lost_and_no_cycle_is_made() -> None:
    found, _ = fold_repeats(draw(network(9)))
    place = {box.id: number for number, box in enumerate(found.all_boxes())}
    between = [(edge.tail, edge.head) for edge in found.edges]
    assert between
    assert all(place[tail] < place[head] for tail, head in between)


def test_what_does_not_repeat_is_left_alone() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    for op in (xb.tanh, xb.sine, xb.cosine, xb.exponential, xb.abs, xb.negate, xb.floor, xb.ceil, xb.sqrt) * 2:
        x = op(x)
    picture = draw(builder.build(x))
    assert fold_repeats(picture) == (picture, set())


def test_scopes_go_before_structure() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    for number in range(12):
        with xb.scope(f"layer{number}"):
            x = xb.tanh(xb.sine(xb.cosine(xb.exponential(xb.abs(x))) * x) - x) + x
    picture = View(max_nodes=30).apply(draw(builder.build(x)))
    assert {box.name for box in picture.all_boxes()} >= {"layer0", "layer11"}
    assert not blocks(picture)


def test_ops_between_ops_of_a_scope_belong_to_it() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    for number in range(4):
        with xb.scope(f"net/layer{number}"):
            x = xb.tanh(x)
        x = xb.sine(x)
        with xb.scope(f"net/layer{number}"):
            x = xb.cosine(x)
    picture = View(max_nodes=8).apply(draw(builder.build(x)))
    assert [box.name for box in picture.all_boxes() if box.holds] == [f"net/layer{n}" for n in range(4)]
