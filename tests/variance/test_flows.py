"""Types of loops and branches: the least that holds, with the decision joined in; what JAX accepts and is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.properties.variances import Variance

from .support import INVARYING, made

m = xb.mesh
MESH = xb.Mesh(i=2, j=2)
V, BOTH = Variance("i"), Variance(("i", "j"))
F = xb.f32[2]


def ones(x: xb.Value) -> xb.Value:
    return xb.broadcast(xb.constant(x.builder, np.float32(1)), x.shape.dims)  # type: ignore[union-attr]


def loop(x: xb.Value, w: xb.Value) -> Any:
    """The state begins invarying and takes in what varies."""
    return xb.while_((0, w, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + s[2], s[2]))


def test_what_a_trip_makes_varying_is_carried_varying() -> None:
    found = made(loop, MESH, [F, F], [V, INVARYING])
    assert found.type == (INVARYING, V, V)
    assert [(cast.op, cast.operand.name) for cast in found.casts] == [("pvary", "parameter.2")]
    assert "carries it as ({}, {V:i}, {V:i})" in found.casts[0].reason
    x = [np.full(2, n, np.float32) for n in (1, 1, 2, 2)]
    assert [result[1][0] for result in found.run(x, [np.zeros(2, np.float32)] * 4)] == [3, 3, 6, 6]


def test_it_takes_as_many_rounds_as_there_are_steps_of_the_state() -> None:
    def chain(x: xb.Value, w: xb.Value) -> Any:
        return xb.while_((0, w, w, w, x), lambda s: s[0] < 9, lambda s: (s[0] + 1, s[2], s[3], s[4], s[4]))

    assert made(chain, MESH, [F, F], [V, INVARYING]).type == (INVARYING, V, V, V, V)


def test_a_condition_that_varies_makes_the_whole_state_vary() -> None:
    def run(w: xb.Value) -> Any:
        return xb.while_((m.axis_index("i"), w), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + s[1]))

    found = made(run, MESH, [F], [INVARYING])
    assert found.type == (V, V)
    results = found.run([np.ones(2, np.float32)] * 4)
    assert [result[1][0] for result in results] == [8, 8, 4, 4]


def test_branches_are_cast_to_what_both_are() -> None:
    def choose(x: xb.Value, w: xb.Value, p: xb.Value) -> xb.Value:
        return xb.conditional(p, (x, w), lambda s: s[0], (x, w), lambda s: s[1])

    found = made(choose, MESH, [F, F, xb.pred[()]], [V, INVARYING, INVARYING])
    assert found.type == V
    assert [cast.op for cast in found.casts] == ["pvary"]
    found = made(choose, MESH, [F, F, xb.pred[()]], [V, INVARYING, Variance("j")])
    assert found.type == BOTH


def test_a_decision_that_varies_makes_its_operands_vary_before_the_branches() -> None:
    def choose(w: xb.Value) -> xb.Value:
        return xb.conditional(m.axis_index("i") > 0, w, lambda y: y * 2.0, w, lambda y: -y)

    found = made(choose, MESH, [F], [INVARYING])
    assert found.type == V
    assert {cast.instruction in found.module.entry.instructions for cast in found.casts} == {True}


def test_a_scan_carries_what_its_slices_make_of_it() -> None:
    def total(x: xb.Value, w: xb.Value) -> Any:
        return xb.scan([x], [w], lambda each, carry: (each, each + carry))

    found = made(total, MESH, [xb.f32[3], xb.f32[()]], [V, INVARYING])
    assert found.type == (V, V)
    assert [cast.op for cast in found.casts] == ["pvary"]


@pytest.mark.parametrize("casts", ["operands", "none"])
def test_as_in_jax_loops_and_branches_have_to_agree(casts: Any) -> None:
    with pytest.raises(
        xb.XbuildError, match=r"leaf 1 of the loop state enters the body as invarying but leaves as \{V:i\}"
    ) as caught:
        made(loop, MESH, [F, F], [V, INVARYING], "operands")
    assert caught.value.kind == "carry_type_mismatch"

    def choose(x: xb.Value, w: xb.Value) -> xb.Value:
        return xb.conditional(xb.constant(x.builder, True), x, lambda y: y, w, lambda y: y)

    with pytest.raises(xb.XbuildError, match="branches return different types") as caught:
        made(choose, MESH, [F, F], [V, INVARYING], casts)
    assert caught.value.kind == "branch_type_mismatch"
    assert made(lambda x, w: loop(x, m.pvary(w, "i")), MESH, [F, F], [V, INVARYING], "operands").type[1] == V


def _choice(w: xb.Value) -> xb.Value:
    return xb.conditional(m.axis_index("i") == 0, w, ones, w, lambda y: ones(y) * 0.0)


HOLES = {
    "cond": lambda w: xb.conditional(m.axis_index("i") == 0, w, ones, w, lambda y: ones(y) * 0.0),
    "select": lambda w: xb.select(xb.broadcast(m.axis_index("i") == 0, (2,)), w, w),
    "while": lambda w: xb.while_((m.axis_index("i") * 0, m.axis_index("i"), w), lambda s: s[0] < s[1],
                                 lambda s: (s[0] + 1, s[1], s[2]))[2],
    "nested": lambda w: xb.call(w, _choice),
    "loop of a choice": lambda w: xb.while_((0, w), lambda s: s[0] < 2, lambda s: (s[0] + 1, _choice(s[1])))[1],
    "index": lambda w: xb.dynamic_slice(w, [m.axis_index("i")], [1]),
    "switch": lambda w: xb.conditional(m.axis_index("i"), (w, w, w), (ones, lambda y: y, lambda y: -y)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLES)
def test_a_decision_that_varies_does_not_leave_as_one_value(name: str) -> None:
    """JAX 0.10.2 accepts those that decide in cond and while, and gives device 0's value."""
    with pytest.raises(xb.XbuildError, match="promises that the result is the same along mesh axis 'i'") as caught:
        xb.shard_map(HOLES[name], xb.Mesh(i=2), xb.P(), xb.P())(F)
    assert caught.value.kind == "out_spec_not_replicated"


DIVERGENT = {
    "branch": lambda x: xb.conditional(m.axis_index("i") > 0, x, lambda y: m.psum(y, "i"), x, lambda y: y * 1.0),
    "body": lambda x: xb.while_((m.axis_index("i"), x), lambda s: s[0] < 3, lambda s: (s[0] + 1, m.psum(s[1], "i"))),
    "condition": lambda x: xb.while_((m.axis_index("i"), x), lambda s: m.psum(s[1][0], "i") + xb.convert(s[0], xb.f32)
                                     < 3.0, lambda s: s),
    "permutation along another axis": lambda x: xb.conditional(
        m.axis_index("j") > 0, x, lambda y: m.ppermute(y, "i", [(0, 1)]), x, lambda y: y * 1.0),
    "called": lambda x: xb.conditional(m.axis_index("i") > 0, x, lambda y: xb.call(y, lambda z: m.pmax(z, ("j", "i"))),
                                       x, lambda y: y),
}  # fmt: skip


@pytest.mark.parametrize("name", DIVERGENT)
def test_a_collective_under_a_decision_that_varies_along_its_axis_is_refused(name: str) -> None:
    with pytest.raises(xb.XbuildError, match="some devices may not reach the op") as caught:
        made(DIVERGENT[name], MESH, [F], [BOTH])
    assert caught.value.kind == "divergent_collective"


def test_a_collective_along_another_axis_may_stand_there() -> None:
    def choose(x: xb.Value) -> xb.Value:
        return xb.conditional(m.axis_index("j") > 0, x, lambda y: m.psum(y, "i"), x, lambda y: -m.psum(y, "i"))

    found = made(choose, MESH, [F], [BOTH])
    assert found.type == Variance("j")
