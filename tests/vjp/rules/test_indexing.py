"""Rules of gather and scatter: dimension numbers, batching, index vectors out of bounds, repeated, and known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate

from ..numeric import Case, check

ROWS = {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1}
BLOCKS = {"offset_dims": (1, 2), "collapsed_slice_dims": (), "start_index_map": (0, 1), "index_vector_dim": 1}
TURNED = {"offset_dims": (0, 2), "collapsed_slice_dims": (), "start_index_map": (1, 0), "index_vector_dim": 0}
BATCHED = {
    "offset_dims": (2,), "collapsed_slice_dims": (1,), "start_index_map": (1,), "operand_batching_dims": (0,),
    "start_indices_batching_dims": (1,), "index_vector_dim": 2,
}  # fmt: skip
CROSSED = {
    "offset_dims": (1,), "collapsed_slice_dims": (1,), "start_index_map": (1,), "operand_batching_dims": (0, 2),
    "start_indices_batching_dims": (2, 0), "index_vector_dim": 1,
}  # fmt: skip
SCATTER_WORDS = {
    "offset_dims": "update_window_dims",
    "collapsed_slice_dims": "inserted_window_dims",
    "start_index_map": "scatter_dims_to_operand_dims",
    "operand_batching_dims": "input_batching_dims",
    "start_indices_batching_dims": "scatter_indices_batching_dims",
    "index_vector_dim": "index_vector_dim",
}
Roles = dict[str, Any]

# A name, roles of dimensions, extents of the operand and of a slice, index vectors.
PLACES: list[tuple[str, Roles, tuple[int, ...], tuple[int, ...], Any]] = [
    ("rows", ROWS, (5, 3), (1, 3), [4, 0, 2]),
    ("rows again", ROWS, (5, 3), (1, 3), [1, 3, 1, 1]),
    ("parts of rows", ROWS, (5, 3), (1, 2), [1, 3, 1, 1]),
    ("rows out of bounds", ROWS, (5, 3), (1, 3), [7, -2, 2]),
    ("one row", ROWS, (5, 3), (1, 3), [2]),
    ("no row", ROWS, (5, 3), (1, 3), np.zeros(0)),
    ("blocks", BLOCKS, (5, 6), (2, 3), [[0, 1], [3, 3]]),
    ("blocks that overlap", BLOCKS, (5, 6), (3, 3), [[0, 1], [1, 2], [2, 2]]),
    ("blocks out of bounds", BLOCKS, (5, 6), (2, 3), [[0, 1], [4, 1], [1, -1], [1, 5]]),
    ("blocks by the turned vector", TURNED, (5, 6), (2, 3), [[0, 3], [2, 1]]),
    ("blocks by the turned vector, out of bounds", TURNED, (5, 6), (2, 3), [[0, 9], [2, 1]]),
    ("batches", BATCHED, (2, 5, 3), (1, 1, 3), [[[0], [2]], [[1], [2]], [[4], [2]]]),
    ("batches out of bounds", BATCHED, (2, 5, 3), (1, 1, 3), [[[0], [9]], [[-1], [2]], [[4], [2]]]),
    ("crossed batches", CROSSED, (2, 5, 3, 4), (1, 1, 1, 4), np.arange(6).reshape(3, 1, 2)),
]


def gathered(name: str, roles: Roles, extents: Any, sizes: Any, indices: Any, dtype: Any = xb.f64) -> Case:
    where = np.asarray(indices, np.int32)
    function = lambda x, i: xb.ops.gather(x, i, slice_sizes=sizes, **roles)  # noqa: E731
    return Case(f"gather {name}", function, [dtype[extents], xb.s32[where.shape]], {1: where})


def update_shape(roles: Roles, extents: Any, sizes: Any, indices: Any) -> Any:
    where = np.asarray(indices, np.int32)
    shapes = xb.f64[extents], xb.s32[where.shape]
    program = xb.computation(*shapes)(lambda x, i: xb.ops.gather(x, i, slice_sizes=sizes, **roles))
    return program.root.shape


def scattered(name: str, fold: Any, place: Any, given: Any = None, **flags: Any) -> Case:
    word, roles, extents, sizes, indices = place
    where, named = np.asarray(indices, np.int32), {SCATTER_WORDS[key]: value for key, value in roles.items()}

    def function(x: Any, i: Any, updates: Any) -> Any:
        return xb.ops.scatter((x,), i, (updates,), to_apply=fold, **named, **flags)

    shapes = [xb.f64[extents], xb.s32[where.shape], update_shape(roles, extents, sizes, indices)]
    return Case(f"scatter {name} {word}", function, shapes, {1: where, **(given or {})})


def later(current: Any, update: Any) -> Any:
    return update


FOLDS = {
    "add": xb.add,
    "subtract": lambda a, b: a - b,
    "subtract after a copy": lambda a, b: xb.copy(a) - xb.copy(b),
    "multiply": xb.multiply,
    "overwrite": later,
    "keep": lambda a, b: xb.copy(a),
    "greatest": xb.maximum,
    "least": lambda a, b: xb.minimum(b, a),
}
CASES = [
    *(gathered(*place) for place in PLACES),
    gathered("complex", ROWS, (5, 3), (1, 3), [1, 3, 1, 1], xb.c128),
    *(scattered(word, fold, place) for word, fold in FOLDS.items() for place in PLACES),
    *(scattered(f"{word} at unique places,", FOLDS[word], PLACES[0], unique_indices=True) for word in FOLDS),
    scattered(
        "multiply with a zero", xb.multiply, PLACES[1],
        {2: [[0.0, 2.0, 3.0], [0.0, 0.0, 1.5], [0.0, 0.0, 2.5], [3.0, 1.25, 0.5]]},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cotangents_are_those_of_numeric_derivatives(case: Case) -> None:
    check(case)


def scatter_rows(fold: Any) -> Any:
    def function(x: Any, i: Any, u: Any) -> Any:
        return xb.scatter(
            x, i, u, fold, update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
        )  # fmt: skip

    return xb.computation(xb.f64[3], xb.s32[3], xb.f64[3])(function)


def test_the_update_that_stays_takes_the_cotangent() -> None:
    x_ct, u_ct = evaluate(xb.vjp(scatter_rows(later)), [1.0, 2.0, 3.0], [1, 1, 0], [5.0, 7.0, 9.0], [1.0, 10.0, 100.0])
    np.testing.assert_array_equal(x_ct, [0.0, 0.0, 100.0])
    np.testing.assert_array_equal(u_ct, [0.0, 10.0, 1.0])


@pytest.mark.parametrize("fold", [xb.maximum, xb.minimum], ids=["greatest", "least"])
def test_all_that_equal_the_result_share_the_cotangent(fold: Any) -> None:
    x_ct, u_ct = evaluate(xb.vjp(scatter_rows(fold)), [1.0, 2.0, 3.0], [1, 1, 0], [2.0, 2.0, 1.0], [1.0, 9.0, 100.0])
    np.testing.assert_allclose(x_ct, [0.5, 3.0, 100.0])
    np.testing.assert_allclose(u_ct, [3.0, 3.0, 0.5])


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_of_repeated_factors_each_gets_the_product_of_the_others(count: int) -> None:
    """With no zero, one, two and three of them among the factors of one place."""
    factors = np.where(np.arange(3) < count, 0.0, [2.0, 3.0, 5.0])
    x_ct, u_ct = evaluate(xb.vjp(scatter_rows(xb.multiply)), [7.0, 7.0, 7.0], [1, 1, 1], factors, [1.0, 1.0, 1.0])
    wanted = [7 * np.prod(np.delete(factors, n)) for n in range(3)]
    np.testing.assert_allclose(u_ct, wanted)
    np.testing.assert_allclose(x_ct, [1.0, factors.prod(), 1.0])


def test_scatters_of_several_arrays_are_taken_apart() -> None:
    def function(x: Any, y: Any, i: Any, u: Any, v: Any) -> Any:
        return xb.scatter(
            (x, y), i, (u, v), lambda a, b, c, d: (a + c, d), update_window_dims=(), inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
        )  # fmt: skip

    shapes = [xb.f64[4], xb.f64[4], xb.s32[3], xb.f64[3], xb.f64[3]]
    check(Case("two arrays", function, shapes, {2: [0, 2, 9]}))


def opcodes(program: Any) -> list[str]:
    return [i.opcode for i in xb.vjp(program).instructions]


@pytest.mark.parametrize(
    "indices",
    [
        lambda x, i: xb.constant(x.builder, [2, 0, 4], xb.s32),
        lambda x, i: xb.iota(x.builder, xb.s32[5]),
        lambda x, i: xb.clamp(0, i, 4),
        lambda x, i: xb.remainder(xb.convert(i, xb.u16), 5),
    ],
    ids=["constant", "counted", "clamped", "remainder"],
)
def test_index_vectors_that_are_known_to_be_inside_are_not_clamped_again(indices: Any) -> None:
    function = lambda x, i: xb.gather(x, indices(x, i), slice_sizes=(1, 3), **ROWS)  # noqa: E731
    program = xb.computation(xb.f64[5, 3], xb.s32[4])(function)
    assert opcodes(program).count("clamp") == sum(i.opcode == "clamp" for i in program.instructions)


def test_index_vectors_of_a_parameter_are_clamped() -> None:
    program = xb.computation(xb.f64[5, 3], xb.s32[4])(lambda x, i: xb.gather(x, i, slice_sizes=(1, 3), **ROWS))
    assert opcodes(program).count("clamp") == 1


def test_other_scatters_are_refused_with_the_reason() -> None:
    with pytest.raises(xb.XbuildError, match="only a scatter that adds") as caught:
        xb.vjp(scatter_rows(lambda a, b: a * a + b))
    assert caught.value.kind == "not_differentiable"
