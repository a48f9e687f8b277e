"""Types of values: three disjoint sets of axes, their text, and where programs show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from interpreter import trace
from shape_inference.trees import fill, flatten, unflatten
from xbuild.pages import page_text
from xbuild.properties.variances import Variance, read_type, spelled, type_of

MESH = xb.Mesh(k=2, j=2, i=2)
STATES = ("varying", "unreduced", "reduced", "invarying")


def variance_of(states: tuple[str, ...]) -> Variance:
    axes = dict(zip(MESH.axes, states, strict=True))
    return Variance(**{state: [a for a in axes if axes[a] == state] for state in STATES[:3]})


VARIANCES = st.tuples(*[st.sampled_from(STATES)] * 3).map(variance_of)
TYPES = st.recursive(VARIANCES, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@given(TYPES)
def test_text_reads_as_the_same_type(given_type: Any) -> None:
    assert read_type(spelled(given_type, MESH)) == given_type
    assert read_type(spelled(given_type)) == given_type


@given(VARIANCES, st.sampled_from(MESH.axes), st.sampled_from(STATES))
def test_an_axis_is_in_one_state(variance: Variance, axis: str, state: str) -> None:
    moved = variance.moved((axis,), state)
    assert moved.state(axis) == state
    assert all(moved.state(other) == variance.state(other) for other in MESH.axes if other != axis)
    assert moved.axes == {each for each in MESH.axes if moved.state(each) != "invarying"}


def test_axes_stand_in_the_order_of_the_mesh() -> None:
    assert Variance(varying=[*"ijk"]).text(MESH) == "{V:(k,j,i)}"
    assert Variance(varying="i", reduced="k", unreduced="j").text(MESH) == "{V:i,U:j,R:k}"
    assert Variance().text(MESH) == ""


def test_an_axis_in_two_sets_is_refused() -> None:
    with pytest.raises(xb.XbuildError, match="i is both varying and reduced") as caught:
        Variance(varying="i", reduced="i")
    assert caught.value.kind == "state_mismatch"


@pytest.mark.parametrize(
    "text", ["", "{V:}", "{V:i", "V:i", "({V:i}", "{W:i}", "{V:i}{V:j}", "{V:i,j}", ")", "({V:i},,{})"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(xb.XbuildError):
        read_type(text)


def test_types_follow_shapes() -> None:
    shape = xb.TupleShape([xb.f32[2], xb.TupleShape([xb.s32[()], xb.f32[1]])])
    found = fill(shape, Variance("i"))
    assert found == (Variance("i"), (Variance("i"), Variance("i")))
    assert unflatten(shape, flatten(found)) == found


def program(mesh: xb.Mesh) -> Any:
    def squares(x: xb.Value, w: xb.Value) -> Any:
        state = xb.while_((0, x), lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * s[1]))
        return xb.mesh.psum(x * w, mesh.axes), state[1]

    cut = xb.P(mesh.axes)
    return xb.shard_map(squares, mesh, (cut, xb.P()), (xb.P(), cut))(xb.f32[3 * mesh.num_devices], xb.f32[3])


def test_types_stand_in_the_shapes_of_text() -> None:
    text = program(xb.Mesh(j=2, i=2)).module.to_hlo(style="typed")
    assert "parameter.1 = f32[3]{V:(j,i)} parameter(0)" in text
    assert "(s32[], f32[3]{V:(j,i)}) while(" in text
    assert "parameter.2 = f32[3] parameter(1)" in text
    assert "xbuild.variance" not in text


def test_other_styles_are_hlo_that_keeps_the_types() -> None:
    module = program(xb.Mesh(j=2, i=2)).typed
    for style in ("short", "percent", "full"):
        text = module.to_hlo(style=style)
        again = xb.parse_hlo(text)
        assert again.to_hlo(style=style) == text
        pairs = zip(module.entry.instructions, again.entry.instructions, strict=True)
        assert all(type_of(a) == type_of(b) is not None for a, b in pairs)


def test_pictures_and_pages_show_types() -> None:
    made = program(xb.Mesh(i=2))
    assert "f32[3]{V:i}" in str(xb.viz(made.module, "txt"))
    arguments = made.arguments(np.ones(6, np.float32), np.ones(3, np.float32))
    page = page_text(trace(made.module, arguments))
    assert "f32[3]{V:i}" in page


def test_a_type_that_is_none_of_the_shape_stands_as_it_is() -> None:
    text = 'ENTRY e { ROOT x = f32[2] parameter(0), frontend_attributes={xbuild.variance="({V:i},<b>)"} }'
    computation = xb.parse_hlo(text).entry
    from xbuild.properties.variances import typed_text

    assert typed_text(computation.root) == "f32[2]({V:i},<b>)"
