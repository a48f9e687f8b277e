"""Implementations of one op agree: a scalar computation element by element, on whole arrays, and in other orders.

Element by element is the plainest reading; on whole arrays each op does the same in the same order, so that even floats
agree bit for bit, but for functions of which NumPy's vectors round otherwise than its scalars. Where a fold may choose
its order (one known op, an associative computation), integers agree bit for bit and floats within the bound of a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from attrs import frozen
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import evaluate
from interpreter.ops import ordering
from interpreter.rules.region import AppliedComputation
from shape_inference import PRIMITIVES, PrimitiveType, ShapeError
from tests.support.compare import assert_same

Array = np.ndarray[Any, Any]
Step = tuple[str, int, int, int]

UNARY = ("abs", "negate", "not", "sign", "sqrt", "floor")
BINARY = (
    "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift_left",
    "shift_right_logical", "shift_right_arithmetic", "power",
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from((*UNARY, *BINARY, "select", "clamp", "constant")), *[st.integers(0, 7)] * 3),
    min_size=1,
    max_size=6,
)
TYPES = [*PRIMITIVES.values()]


@frozen
class Scalars:
    """A computation of scalars by the steps of a random list; what the element type has no step for is left out."""

    dtype: PrimitiveType
    steps: tuple[Step, ...]

    def __call__(self, *parameters: xb.Value) -> xb.Value:
        values = [*parameters]
        for opcode, *places in self.steps:
            try:
                values.append(self._step(opcode, [values[place % len(values)] for place in places]))
            except ShapeError:
                continue
        return values[-1]

    def _step(self, opcode: str, operands: list[xb.Value]) -> xb.Value:
        a, b, c = operands
        if opcode == "constant":
            return xb.ops.constant(a.builder, literal=np.array(1).astype(self.dtype.dtype))
        if opcode == "select":
            return xb.ops.select(xb.ops.compare(a, b, direction="NE"), b, c)
        if opcode == "clamp":
            return xb.ops.clamp(a, b, c)
        ops = vars(xb.ops)
        record = ops.get(opcode) or ops[f"{opcode}_"]
        return record(a) if opcode in UNARY else record(a, b)  # type: ignore[no-any-return]

    def test(self, *parameters: xb.Value) -> xb.Value:
        """The same of each side, compared: an order that is consistent, whatever the computation."""
        first, second = parameters[::2], parameters[1::2]
        kind = "TOTALORDER" if self.dtype.kind == "float" else None
        return xb.ops.compare(self(*first), self(*second), direction="LT", type=kind)

    def chooses(self, a: xb.Value, b: xb.Value) -> xb.Value:
        return xb.ops.compare(self(a, b), b, direction="NE")


def drawn(rng: np.random.Generator, dtype: PrimitiveType, extents: tuple[int, ...]) -> Array:
    if dtype.kind == "pred":
        return rng.integers(0, 2, extents).astype(bool)
    if dtype.kind == "complex":
        return (rng.integers(-4, 5, extents) + 1j * rng.integers(-4, 5, extents)).astype(dtype.dtype)
    if dtype.kind == "float":
        return (rng.integers(-8, 9, extents) / 2).astype(dtype.dtype)
    low = 0 if dtype.kind == "unsigned" else -(2 ** (dtype.bits - 1))
    return rng.integers(low, high=low + 2**dtype.bits - 1, size=extents, dtype=_drawn_in(dtype)).astype(dtype.dtype)


def _drawn_in(dtype: PrimitiveType) -> type[Any]:
    return np.uint64 if dtype.kind == "unsigned" else np.int64


Program = Callable[[np.random.Generator, PrimitiveType, Scalars], tuple[xb.Computation, list[Array]]]


def made(arguments: list[Array], call: Callable[..., Any]) -> tuple[xb.Computation, list[Array]]:
    shapes = [xb.primitive_type(each.dtype)[each.shape] for each in arguments]
    return xb.computation(*shapes)(call), arguments


def mapped(rng: np.random.Generator, dtype: PrimitiveType, scalars: Scalars) -> tuple[xb.Computation, list[Array]]:
    arguments = [drawn(rng, dtype, (3, 4)) for _ in range(2)]
    return made(arguments, lambda x, y: xb.ops.map((x, y), to_apply=scalars, dimensions=(0, 1)))


def reduced(rng: np.random.Generator, dtype: PrimitiveType, scalars: Scalars) -> tuple[xb.Computation, list[Array]]:
    dims = [(0,), (1,), (0, 2)][rng.integers(3)]
    arguments = [drawn(rng, dtype, (3, 2, 5)), drawn(rng, dtype, ())]
    return made(arguments, lambda x, i: xb.ops.reduce(x, i, to_apply=scalars, dimensions=dims))


def windowed(rng: np.random.Generator, dtype: PrimitiveType, scalars: Scalars) -> tuple[xb.Computation, list[Array]]:
    window = f"size={rng.integers(1, 4)}x{rng.integers(1, 3)} stride=2x1 pad=1_0x0_1"
    arguments = [drawn(rng, dtype, (5, 4)), drawn(rng, dtype, ())]
    return made(arguments, lambda x, i: xb.ops.reduce_window(x, i, to_apply=scalars, window=window))


def scattered(rng: np.random.Generator, dtype: PrimitiveType, scalars: Scalars) -> tuple[xb.Computation, list[Array]]:
    indices = rng.integers(-1, 6, (7, 1)).astype(np.int32)
    arguments = [drawn(rng, dtype, (6, 3)), indices, drawn(rng, dtype, (7, 3))]
    dims = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
    return made(
        arguments,
        lambda x, i, u: xb.ops.scatter(
            x, i, u, to_apply=scalars, index_vector_dim=1, input_batching_dims=(), scatter_indices_batching_dims=(),
            indices_are_sorted=False, unique_indices=False, **dims,
        ),
    )  # fmt: skip


def ordered(rng: np.random.Generator, dtype: PrimitiveType, scalars: Scalars) -> tuple[xb.Computation, list[Array]]:
    arguments = [drawn(rng, dtype, (2, 9)), drawn(rng, dtype, (2, 9))]
    return made(
        arguments, lambda x, y: xb.ops.sort((x, y), to_apply=scalars.test, dimension=1, is_stable=True)
    )  # fmt: skip


def selected(rng: np.random.Generator, dtype: PrimitiveType, scalars: Scalars) -> tuple[xb.Computation, list[Array]]:
    arguments = [drawn(rng, dtype, (7, 4)), drawn(rng, dtype, (3, 3)), drawn(rng, dtype, ())]
    return made(
        arguments,
        lambda x, s, i: xb.ops.select_and_scatter(
            x, s, i, select=scalars.chooses, scatter=scalars, window="size=3x2 stride=2x1"
        ),
    )


PROGRAMS: dict[str, Program] = {
    "map": mapped, "reduce": reduced, "reduce_window": windowed, "scatter": scattered, "sort": ordered,
    "select_and_scatter": selected,
}  # fmt: skip


def element_by_element(computation: xb.Computation, arguments: list[Array]) -> Any:
    """No computation is lifted to whole arrays, none is recognised, no key is read off a comparator."""
    with (
        mock.patch.object(AppliedComputation, "lifted", None),
        mock.patch.object(AppliedComputation, "opcode", None),
        mock.patch.object(ordering, "keys_of", return_value=None),
    ):
        return evaluate(computation, *arguments, sequential=True)


@pytest.mark.parametrize("opcode", PROGRAMS)
@given(dtype=st.sampled_from(TYPES), steps=STEPS, seed=st.integers(0, 999))
@settings(max_examples=120, deadline=None)
def test_whole_arrays_give_what_single_elements_give(opcode: str, dtype: Any, steps: Any, seed: int) -> None:
    try:
        computation, arguments = PROGRAMS[opcode](np.random.default_rng(seed), dtype, Scalars(dtype, tuple(steps)))
    except ShapeError:
        assume(False)
    expected = element_by_element(computation, arguments)
    uses_power = any(step[0] in ("power", "sqrt") for step in steps)
    ulps = 4 if uses_power and dtype.kind in ("float", "complex") else 0
    assert_same(evaluate(computation, *arguments, sequential=True), expected, ulps)


def one_op(opcode: str) -> Callable[..., xb.Value]:
    return lambda a, b: getattr(xb.ops, opcode)(a, b)


def circle(a: xb.Value, b: xb.Value) -> xb.Value:
    """(1 + a)(1 + b) - 1, which is associative where numbers wrap."""
    return xb.ops.add(xb.ops.add(a, b), xb.ops.multiply(a, b))


def last(a: xb.Value, b: xb.Value) -> xb.Value:
    return xb.ops.select(xb.ops.compare(b, b, direction="EQ"), b, a)


ASSOCIATIVE: dict[str, Callable[..., xb.Value]] = {
    **{name: one_op(name) for name in ("add", "multiply", "maximum", "minimum", "and_", "or_", "xor")},
    "circle": circle,
    "last": last,
}
WHOLE = [each for each in TYPES if each.is_integer or each.kind == "pred"]


@pytest.mark.parametrize("name", ASSOCIATIVE)
@pytest.mark.parametrize("opcode", ["reduce", "reduce_window", "scatter"])
@given(dtype=st.sampled_from(WHOLE), seed=st.integers(0, 999))
@settings(max_examples=15, deadline=None)
def test_integers_agree_bit_for_bit_in_any_order(opcode: str, name: str, dtype: PrimitiveType, seed: int) -> None:
    try:
        computation, arguments = PROGRAMS[opcode](np.random.default_rng(seed), dtype, ASSOCIATIVE[name])  # type: ignore[arg-type]
    except ShapeError:
        assume(False)
    expected = element_by_element(computation, arguments)
    assert_same(evaluate(computation, *arguments), expected)
    assert_same(evaluate(computation, *arguments, sequential=True), expected)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("opcode", ["reduce", "reduce_window", "scatter"])
@given(
    dtype=st.sampled_from([each for each in TYPES if each.name in ("bf16", "f16", "f32", "f64")]),
    seed=st.integers(0, 999),
)
@settings(max_examples=15, deadline=None)
def test_floats_agree_within_the_bound_of_their_order(opcode: str, name: str, dtype: PrimitiveType, seed: int) -> None:
    """At most 16 terms: each of two orders rounds 16 times, so positive terms are apart by 32 units at the most."""
    rng = np.random.default_rng(seed)
    computation, arguments = PROGRAMS[opcode](rng, dtype, ASSOCIATIVE[name])  # type: ignore[arg-type]
    arguments = [
        each if each.dtype.kind == "i" else rng.uniform(0.5, 1.5, each.shape).astype(each.dtype) for each in arguments
    ]
    expected = element_by_element(computation, arguments)
    assert_same(evaluate(computation, *arguments), expected, 0 if name in ("maximum", "minimum") else 32)
