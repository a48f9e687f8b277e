"""Derivatives in forward mode of programs on a mesh: against the gradients, with types, and on a mesh again."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb

from .gradient_programs import LINE, LOSSES, Loss
from .support import collectives

m, P = xb.mesh, xb.P


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_tangents_agree_with_gradients(loss: Loss) -> None:
    program, arguments = loss.program(), loss.arguments()
    draw = np.random.default_rng(11)
    ways = [draw.normal(size=dims) for dims in loss.dims]
    tangent = xb.jvp(program)
    assert xb.check(tangent).kind == "ok"
    (slope,) = tangent.run(*arguments, *ways, strict=True)
    gradients = xb.grad(program, range(len(arguments))).run(*arguments)
    expected = sum(np.sum(g * way) for g, way in zip(gradients, ways, strict=True))
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-12)


def test_a_tangent_has_the_type_of_its_value() -> None:
    mapped = xb.shard_map(lambda w: m.psum_scatter(w, "i", tiled=True), LINE, P(unreduced="i"), P("i"))
    made = xb.jvp(mapped)(xb.f32[4])
    assert made.in_specs == (P(unreduced="i"), P(unreduced="i"))
    assert made.out_specs == (P("i"),)
    assert collectives(made.module) == ["reduce_scatter"]


def test_a_tangent_of_a_gradient_on_a_mesh() -> None:
    mapped = xb.shard_map(lambda x: m.psum(xb.reduce(x * x * x, 0.0, xb.add), "i"), LINE, P("i"), P())
    x, v = np.arange(4, dtype=np.float32), np.array([1, 2, 3, 4], np.float32)
    (found,) = xb.jvp(xb.grad(mapped))(xb.f32[4]).run(x, v)
    np.testing.assert_array_equal(found, 6 * x * v)


def test_a_cast_to_invarying_is_no_cast() -> None:
    with pytest.raises(xb.XbuildError, match="all_gather_invariant") as caught:
        xb.shard_map(lambda x: m.pcast(x, "i", to="invarying"), LINE, P("i"), P())(xb.f32[4])  # type: ignore[arg-type]
    assert caught.value.kind == "unsupported_cast"


def test_a_program_on_a_mesh_is_no_part_of_another_program() -> None:
    mapped = xb.shard_map(lambda x: x, LINE, P("i"), P("i"))
    with pytest.raises(xb.XbuildError, match=r"argument 0 is the value %parameter\.1"):
        xb.computation(xb.f32[4])(lambda x: mapped(x))


def test_programs_on_a_mesh_are_asked_as_modules_are() -> None:
    mapped = xb.shard_map(lambda x, w: m.psum(xb.reduce(x * w, 0.0, xb.add), "i"), LINE, (P("i"), P()), P())
    gradient = xb.grad(mapped, 1)(xb.f32[4], xb.f32[2])
    assert "propagates cotangents back through pvary.1" in xb.why(gradient, "pvary.1.vjp")
    assert str(xb.replication(gradient)) == str(xb.replication(gradient.module))
