"""Negative dimension numbers of the convenience forms: each records what the positive one does, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

import xbuild as xb

GROUPS = "replica_groups=[(0, 1)]"
FORMS = [
    ("xb.reduce(x, 0.0, xb.add, {})", -1, 2), ("xb.reduce(x, 0.0, xb.add, [0, {}])", -2, 1),
    ("xb.broadcast(v, (4, 2), dimensions=({},))", -2, 0), ("xb.broadcast_in_dim(v, (2, 4), ({},))", -1, 1),
    ("xb.reshape(x, (24,), dimensions=(0, {}, 1))", -1, 2),
    ("xb.collapse(x, ({}, 2))", -2, 1), ("xb.transpose(x, (1, 0, {}))", -1, 2), ("xb.reverse(x, ({},))", -1, 2),
    ("xb.concatenate([x, x], {})", -1, 2), ("xb.get_dimension_size(x, {})", -1, 2),
    ("xb.set_dimension_size(x, 1, {})", -2, 1), ("xb.remove_dynamic_dimension(d, {})", -1, 0),
    ("xb.slice_in_dim(x, 0, 1, dimno={})", -1, 2), ("xb.sort(x, dimension={})", -2, 1),
    ("xb.dot_general(x, x, [{}], [2], [0], [0])", -1, 2), ("xb.dot_general(x, x, [2], [2], [0], [{}])", -3, 0),
    ("xb.ragged_dot(m, w, sizes, lhs_ragged_dims=({},))", -2, 0),
    (f"xb.all_gather(x, {{}}, {GROUPS})", -1, 2), (f"xb.reduce_scatter(x, xb.add, {{}}, {GROUPS})", -1, 2),
    (f"xb.all_to_all(x, {{}}, 0, {GROUPS})", -1, 2), (f"xb.all_to_all(x, 2, {{}}, {GROUPS})", -3, 0),
    (f"xb.all_gather_start(x, {{}}, {GROUPS})", -2, 1), ("xb.map(v, lambda e: e, [{}])", -1, 0),
    ("xb.iota(builder, xb.s32[2, 3], {})", -1, 1), ("xb.batch_norm_training(x, v, v, 0.1, {})", -1, 2),
    ("xb.approx_top_k(x, 0.0, 1, {}, lambda a, b: a > b)", -1, 2), ("xb.sum(x, {})", -1, 2),
    ("xb.softmax(x, {})", -2, 1), ("xb.argmax(x, {})", -3, 0), ("xb.one_hot(i, 3, axis={})", -1, 1),
]  # fmt: skip


def recorded(form: str, dimension: int) -> xb.Computation:
    builder = xb.Builder("b")
    shapes: dict[str, Any] = {
        "x": xb.f32[2, 3, 4], "v": xb.f32[4], "d": xb.parse_shape("f32[<=4]"), "m": xb.f32[5, 2], "w": xb.f32[3, 2, 4],
        "sizes": xb.s32[3], "i": xb.s32[5],
    }  # fmt: skip
    names = {
        name: xb.parameter(builder, number=n, shape=shape, name=name) for n, (name, shape) in enumerate(shapes.items())
    }
    return builder.build(eval(form.format(dimension), {**names, "xb": xb, "builder": builder}))


@pytest.mark.parametrize(("form", "negative", "positive"), FORMS, ids=lambda part: str(part))
def test_a_negative_dimension_counts_from_the_last(form: str, negative: int, positive: int) -> None:
    assert str(recorded(form, negative)) == str(recorded(form, positive))


@pytest.mark.parametrize("form", [form for form, *_ in FORMS])
@pytest.mark.parametrize("dimension", [-9, 9])
def test_a_dimension_out_of_range_is_refused_with_both_numbers(form: str, dimension: int) -> None:
    with pytest.raises(xb.ShapeError) as caught:
        recorded(form, dimension)
    text = str(caught.value)
    assert str(dimension) in text
    words = ("expected", "permutation", "is negative", "consecutive")
    assert any(word in text for word in words), text
