"""Gradients by type against numeric derivatives of the loss, and against those for a loss of all devices together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute

from .gradient_programs import LINE, LOSSES, Loss, reduced_outside_a_loop, reduced_weights
from .support import collectives

STEP = 1e-5
TOLERANCE = 2e-6  # of central differences in f64 with this step
m, P = xb.mesh, xb.P


def ids(loss: Loss) -> str:
    return loss.name


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
def test_gradients_are_the_derivatives(loss: Loss) -> None:
    program, arguments = loss.program(), loss.arguments()
    found = xb.value_and_grad(program, range(len(arguments)))
    assert xb.check(found.module).kind == "ok"
    value, gradients = found.run(*arguments, strict=True)
    np.testing.assert_allclose(value, program.run(*arguments), rtol=1e-12)
    draw = np.random.default_rng(7)
    for _ in range(3):
        ways = [draw.normal(size=dims) for dims in loss.dims]
        ahead, behind = ([x + sign * STEP * way for x, way in zip(arguments, ways, strict=True)] for sign in (1, -1))
        slope = (program.run(*ahead) - program.run(*behind)) / (2 * STEP)
        expected = sum(np.sum(g * way) for g, way in zip(gradients, ways, strict=True))
        np.testing.assert_allclose(expected, slope, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
def test_without_types_the_numbers_are_the_same(loss: Loss) -> None:
    """Each device counts the whole loss once, and each has its own copy of what is one value."""
    program, arguments = loss.program(), loss.arguments()
    count = program.mesh.num_devices
    gradients = xb.grad(program, range(len(arguments))).run(*arguments)
    untyped = xb.vjp(program.module)
    rows = [[*row, np.float64(1 / count)] for row in program.arguments(*arguments)]
    results = execute(untyped, rows)
    for n, spec in enumerate(program.in_specs):
        whole = xb.P(*spec.entries, unreduced=[a for a in program.mesh.axes if a not in spec.mentioned])
        summed = _joined(program.mesh, whole, [each[n] for each in results])
        np.testing.assert_allclose(gradients[n], summed, rtol=1e-9, atol=1e-12)


def _joined(mesh: xb.Mesh, spec: xb.P, parts: list[Any]) -> Any:
    from xbuild.variance.program import join_results

    return join_results(mesh, spec, parts)


COUNTS = {
    "invariant gather": ["all_gather"],
    "gather": ["all_gather", "reduce_scatter"],
    "scatter": ["all_gather", "reduce_scatter"],
    "product of a weight": ["all_reduce"],
    "sum, then a power": ["all_reduce"],
    "own part": ["all_gather"],
    "reduced weights": ["all_reduce"],
    "permutation": ["collective_permute", "collective_permute"],
    "exchange": ["all_to_all", "all_to_all"],
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_way_back_communicates_where_types_say(name: str) -> None:
    loss = next(each for each in LOSSES if each.name == name)
    module = xb.grad(loss.program(), range(len(loss.dims))).module
    assert collectives(module) == COUNTS[name]


def test_nothing_communicates_in_a_loop_whose_weights_are_reduced_outside() -> None:
    def in_loops(program: Any) -> list[str]:
        module = xb.grad(program, 1).module
        bodies = [c for c in module.entry.reachable() if c is not module.entry]
        return [i.opcode for c in bodies for i in c.instructions if i.opcode == "all_reduce"]

    losses = {loss.name: loss for loss in LOSSES}
    assert in_loops(losses["loop"].program()) == ["all_reduce"]
    assert in_loops(losses["weights reduced outside a loop"].program()) == []


@pytest.mark.parametrize("function", [reduced_weights, reduced_outside_a_loop])
def test_a_gradient_has_the_type_of_the_cotangent(function: Any) -> None:
    def of_reduced(x: Any, w: Any) -> Any:
        return function(x, w)

    program = xb.grad(xb.shard_map(of_reduced, LINE, (P("i"), P()), P()), (0, 1))(xb.f32[6], xb.f32[3])
    assert program.result == "(f32[3]{V:i}, f32[3])"


def test_the_cotangent_of_a_reduced_value_is_unreduced_and_the_other_way_round() -> None:
    def product(u: Any, r: Any) -> Any:
        return u * r

    specs = (P(unreduced={"i"}), P(reduced={"i"}))
    found = xb.vjp(xb.shard_map(product, LINE, specs, P(unreduced={"i"})))(xb.f32[3], xb.f32[3])
    assert found.in_specs[2] == P(reduced={"i"})
    assert found.result == "(f32[3]{R:i}, f32[3]{U:i})"
    assert collectives(found.module) == []


def test_second_derivatives() -> None:
    """The loss is the sum of (x * w)^3 over all x; its second derivative along w is the sum of 6 x^3 w."""

    def loss(x: Any, w: Any) -> Any:
        return m.psum(xb.reduce((x * w) * (x * w) * (x * w), 0.0, xb.add), "i")

    first = xb.grad(xb.shard_map(loss, LINE, (P("i"), P()), P()), 1)(xb.f64[6], xb.f64[()])
    second = xb.grad(first, 1)
    x, w = np.arange(6.0), np.float64(0.5)
    np.testing.assert_allclose(first.run(x, w), np.sum(3 * x**3 * w**2))
    np.testing.assert_allclose(second.run(x, w), np.sum(6 * x**3 * w))


@pytest.mark.parametrize("name", ["loop", "loop with a collective", "weights reduced outside a loop", "scan"])
def test_what_is_computed_again_is_the_same(name: str) -> None:
    loss = next(each for each in LOSSES if each.name == name)
    program, arguments = loss.program(), loss.arguments()
    kept, again = (xb.grad(program, (0, 1), checkpoint=flag).run(*arguments) for flag in (False, True))
    np.testing.assert_allclose(kept[0], again[0], rtol=1e-12)
    np.testing.assert_allclose(kept[1], again[1], rtol=1e-12)


def test_a_loop_that_runs_differently_often_on_each_device() -> None:
    def loss(x: Any, w: Any) -> Any:
        init = m.axis_index("i"), x, w
        state = xb.while_(init, lambda s: s[0] < 3, lambda s: (s[0] + 1, xb.sin(s[1] * s[2]), s[2]))
        return m.psum(xb.reduce(state[1], 0.0, xb.add), "i")

    program = xb.shard_map(loss, LINE, (P("i"), P()), P()).program(xb.f64[4], xb.f64[()])
    x, w = np.linspace(0.1, 0.9, 4), 1.3
    slope = (program.run(x, w + STEP) - program.run(x, w - STEP)) / (2 * STEP)
    np.testing.assert_allclose(xb.grad(program, 1, max_trips=4).run(x, w), slope, rtol=TOLERANCE)


def test_a_function_on_a_mesh_is_differentiated_as_a_program() -> None:
    mapped = xb.shard_map(lambda x: m.psum(xb.reduce(x * x, 0.0, xb.add), "i"), LINE, P("i"), P())
    value, gradient = xb.value_and_grad(mapped)(xb.f32[4]).run(np.arange(4, dtype=np.float32))
    assert value == 14
    np.testing.assert_array_equal(gradient, [0, 2, 4, 6])


def test_refusals_name_the_way_out() -> None:
    mapped = xb.shard_map(lambda x: x, LINE, P("i"), P("i"))
    with pytest.raises(xb.XbuildError, match="expected a real scalar"):
        xb.grad(mapped)(xb.f32[4])
