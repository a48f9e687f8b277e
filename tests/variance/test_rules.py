"""Types of ordinary ops: what varies with what, and which ops sums may wait through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.core.op import OPS
from xbuild.properties.variances import Variance
from xbuild.variance.types import variance

from .support import INVARYING, made

m = xb.mesh
MESH = xb.Mesh(i=2, j=2)
V, U, R = Variance("i"), Variance(unreduced="i"), Variance(reduced="i")
F = xb.f32[2, 4]


def test_every_op_has_a_rule() -> None:
    assert variance.keys() == OPS.keys()


def wide(x: xb.Value) -> xb.Value:
    return xb.convert(x, xb.f64)


def to_complex(x: xb.Value) -> xb.Value:
    return xb.convert(x, xb.c64)


def index(x: xb.Value) -> xb.Value:
    return xb.constant(x.builder, 1)


# Ops of one value that sums go through.
LINEAR: list[Callable[[xb.Value], xb.Value]] = [
    lambda x: -x,
    lambda x: xb.reshape(x, (8,)),
    lambda x: xb.transpose(x, (1, 0)),
    lambda x: xb.rev(x, (0,)),
    lambda x: xb.broadcast(x, (3,)),
    lambda x: x[:, 1:3],
    lambda x: xb.reduce(x, 0.0, xb.add, (1,)),
    lambda x: xb.reduce_window(x, 0.0, xb.add, (1, 2), (1, 1), "SAME"),
    lambda x: xb.dynamic_slice(x, (index(x), index(x)), (1, 2)),
    lambda x: xb.pad(x, 0.0, [(1, 0, 0), (0, 2, 1)]),
    lambda x: xb.concatenate([x, x], 0),
    lambda x: xb.concatenate([x, xb.broadcast(xb.constant(x.builder, np.float32(0)), (2, 4))], 0),
    lambda x: xb.select(xb.broadcast(xb.constant(x.builder, True), (2, 4)), x, -x),
    lambda x: xb.select(xb.broadcast(xb.constant(x.builder, True), (2, 4)), x, 0.0),
    lambda x: xb.dynamic_update_slice(x, x[:1, :2], (index(x), index(x))),
    lambda x: x - xb.rev(x, (0,)),
    wide,
    to_complex,
    lambda x: xb.real(to_complex(x)),
    lambda x: xb.complex(x, -x),
    lambda x: xb.opt_barrier(x),
    lambda x: xb.conditional(xb.constant(x.builder, True), x, lambda y: -y, x, lambda y: y + y),
    lambda x: xb.while_((0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + s[1]))[1],
    lambda x: xb.call(x, lambda y: y + y),
    lambda x: m.all_gather_invariant(m.pvary(x, "j"), "j"),
    lambda x: m.psum(m.pvary(x, "j"), "j"),
]  # fmt: skip
NONLINEAR: list[tuple[Callable[[xb.Value], xb.Value], str]] = [
    (lambda x: xb.cos(x) + 0.0, "nonlinear_on_unreduced"),
    (lambda x: x * x, "bilinear_on_unreduced"),
    (lambda x: xb.dot(x, xb.transpose(x, (1, 0))), "bilinear_on_unreduced"),
    (lambda x: x * 2.0, "state_mismatch"),
    (lambda x: x + 1.0, "state_mismatch"),
    (lambda x: x > 0.0, "nonlinear_on_unreduced"),
    (lambda x: xb.max(x, -x), "nonlinear_on_unreduced"),
    (lambda x: xb.reduce(x, -np.inf, xb.max, (1,)), "nonlinear_on_unreduced"),
    (lambda x: xb.reduce(x, 1.0, xb.mul, (1,)), "nonlinear_on_unreduced"),
    (lambda x: xb.reduce(x, 1.0, xb.add, (1,)), "state_mismatch"),
    (lambda x: xb.sort(x), "nonlinear_on_unreduced"),
    (lambda x: xb.reduce_precision(x, 5, 10), "nonlinear_on_unreduced"),
    (lambda x: xb.convert(x, xb.s32), "nonlinear_on_unreduced"),
    (lambda x: xb.convert(x, xb.bf16), "nonlinear_on_unreduced"),
    (lambda x: xb.pad(x, 1.0, [(1, 0, 0), (0, 0, 0)]), "nonzero_pad_on_unreduced"),
    (lambda x: xb.concatenate([x, xb.broadcast(xb.constant(x.builder, np.float32(1)), (2, 4))], 0), "state_mismatch"),
    (lambda x: xb.select(xb.broadcast(xb.constant(x.builder, True), (2, 4)), x, 1.0), "state_mismatch"),
    (lambda x: xb.dynamic_slice(x, (m.axis_index("i"), index(x)), (1, 2)), "state_mismatch"),
    (lambda x: 1.0 / x, "nonlinear_on_unreduced"),
    (lambda x: xb.map(x, lambda e: e + e), "nonlinear_on_unreduced"),
    (lambda x: xb.conditional(m.axis_index("i") > 0, x, lambda y: y, x, lambda y: -y), "branch_type_mismatch"),
    (lambda x: xb.while_((m.axis_index("i"), x), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]))[1],
     "carry_type_mismatch"),
]  # fmt: skip


@pytest.mark.parametrize("function", LINEAR)
def test_sums_go_through_what_is_linear(function: Callable[[xb.Value], xb.Value]) -> None:
    """The op of the parts, summed, is the op of the sum."""
    found = made(function, MESH, [F], [U])
    assert found.type == U
    parts = np.random.default_rng(0).integers(-8, 9, (2, 2, 4)).astype(np.float32)
    whole = made(function, MESH, [F], [INVARYING]).run([parts.sum(0)] * 4)
    results = found.run([parts[0], parts[0], parts[1], parts[1]])
    np.testing.assert_array_equal(np.asarray(results[0]) + np.asarray(results[2]), whole[0])


@pytest.mark.parametrize(("function", "kind"), NONLINEAR)
def test_what_is_not_linear_is_refused(function: Callable[[xb.Value], xb.Value], kind: str) -> None:
    with pytest.raises(xb.XbuildError, match="unreduced") as caught:
        made(function, MESH, [F], [U])
    assert caught.value.kind == kind
    assert "{U:i}" in str(caught.value)
    assert "test_rules.py" in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [lambda x, r: x * r, lambda x, r: r * x, lambda x, r: x / r, lambda x, r: xb.dot(x, xb.transpose(r, (1, 0))),
     lambda x, r: xb.dot(r, xb.transpose(x, (1, 0))), lambda x, r: x * xb.exp(r)],
)  # fmt: skip
def test_a_factor_is_one_reduced_value(function: Callable[[xb.Value, xb.Value], xb.Value]) -> None:
    found = made(function, MESH, [F, F], [U, R])
    assert found.type == U
    for state in (INVARYING, V, U):
        with pytest.raises(xb.XbuildError) as caught:
            made(function, MESH, [F, F], [U, state])
        assert caught.value.kind in ("state_mismatch", "bilinear_on_unreduced", "nonlinear_on_unreduced")


BINARY: list[Callable[[xb.Value, xb.Value], Any]] = [
    lambda x, y: x + y,
    lambda x, y: xb.atan2(x, y),
    lambda x, y: xb.select(x > y, x, y),
    lambda x, y: xb.dot(x, xb.transpose(y, (1, 0))),
    lambda x, y: xb.concatenate([x, y], 1),
    lambda x, y: xb.dynamic_slice(x, (xb.convert(y[0, 0], xb.s32), index(x)), (1, 2)),
    lambda x, y: xb.reduce([x, y], [0.0, 0.0], lambda a, b, c, d: (a + c, b + d), (0,)),
    lambda x, y: xb.sort([x, y], comparator=lambda a, b, c, d: a < b),
    lambda x, y: xb.map([x, y], lambda a, b: a * b),
    lambda x, y: xb.call((x, y), lambda a, b: a - b),
]  # fmt: skip


@pytest.mark.parametrize("function", BINARY)
def test_what_one_operand_varies_along_the_result_varies_along(function: Callable[..., Any]) -> None:
    both = Variance(("i", "j"))
    for first, second, wanted in [
        (V, INVARYING, V), (INVARYING, V, V), (V, V, V), (INVARYING, INVARYING, INVARYING), (V, Variance("j"), both),
        (R, V, V), (R, R, R),
    ]:  # fmt: skip
        found = made(function, MESH, [F, F], [first, second])
        types = found.type if isinstance(found.type, tuple) else (found.type,)
        assert set(types) == {wanted}
        assert all(cast.op in ("pvary", "to_varying") and cast.reason for cast in found.casts)


def test_reduced_beside_invarying_is_refused_and_the_way_out_works() -> None:
    with pytest.raises(xb.XbuildError, match="to='reduced'") as caught:
        made(lambda r, w: r * w, MESH, [F, F], [R, INVARYING])
    assert caught.value.kind == "state_mismatch"
    found = made(lambda r, w: r * m.pcast(w, "i", to="reduced"), MESH, [F, F], [R, INVARYING])
    assert found.type == R


def test_without_casts_operands_have_to_agree() -> None:
    with pytest.raises(xb.XbuildError, match="pvary") as caught:
        made(lambda x, w: x * w, MESH, [F, F], [V, INVARYING], "none")
    assert caught.value.kind == "state_mismatch"
    with pytest.raises(xb.XbuildError, match="psum over axis i expects an operand"):
        made(lambda w: m.psum(w, "i"), MESH, [F], [INVARYING], "none")
    assert made(lambda x: x * 2.0, MESH, [F], [V], "none").type == V


def test_each_cast_tells_why_and_where() -> None:
    found = made(lambda x, w: xb.mul(x, w, name="scaled"), MESH, [F, F], [V, INVARYING])
    (cast,) = found.casts
    assert (cast.op, cast.axes, cast.operand.name) == ("pvary", ("i",), "parameter.2")
    assert cast.reason == "scaled of {V:i} takes rhs parameter.2"


def test_a_value_that_several_take_is_cast_once() -> None:
    found = made(lambda x, w: x * w + w, MESH, [F, F], [V, INVARYING])
    assert len(found.casts) == 1


def test_what_comes_from_outside_varies_everywhere() -> None:
    everywhere = Variance(MESH.axes)
    made_by = [
        lambda w: xb.rng_uniform(w[0, 0], w[0, 1], xb.f32[2]),
        lambda w: xb.custom_call([w], custom_call_target="f", shape=xb.f32[2]),
        lambda w: xb.convert(xb.partition_id(w.builder), xb.f32),
    ]
    assert [made(function, MESH, [F], [INVARYING]).type for function in made_by] == [everywhere] * 3
    replica = made(lambda w: xb.replica_id(w.builder), MESH, [F], [INVARYING])
    assert replica.type == INVARYING


def test_the_type_of_a_value_can_be_asked() -> None:
    asked: list[Any] = []

    def ask(x: xb.Value, w: xb.Value) -> xb.Value:
        asked.extend([m.type_of(x), m.type_of(w), m.type_of(x + w)])
        return x

    made(ask, MESH, [F, F], [V, INVARYING])
    assert asked[:3] == [V, INVARYING, V]
