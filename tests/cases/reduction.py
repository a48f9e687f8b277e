"""Cases of reduce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Inferred, Refusal

REDUCE, NUMERICS = "Operation Semantics, Reduce", "numerics, Reductions and windows"
SHAPES = "shape_inference.cc, as XlaBuilder gives it"
CUBE = np.array([[[1, 2, 3], [4, 5, 6]]] * 4, np.float32)
VALUES = np.array([3, -1, 4, 1, -5, 9, 2, 6], np.int64)
BF16 = ml_dtypes.bfloat16


def summed(name: str, dimensions: Any, expected: object) -> Case:
    call: Callable[..., xb.Value] = lambda x: xb.reduce(x, 0.0, xb.add, dimensions)  # noqa: E731
    return Case(f"cube-{name}", call, (CUBE,), expected, source=REDUCE)


def folded(
    name: str, x: np.ndarray, init: object, reducer: Callable[..., Any], expected: object, ulps: int = 0
) -> Case:
    return Case(
        name,
        lambda x, init: xb.ops.reduce(x, init, to_apply=reducer, dimensions=(x.shape.rank - 1,)),
        (x, np.asarray(init, x.dtype)),
        expected,
        tolerance=ulps,
        source=f"{REDUCE}; {NUMERICS}",
    )


def first_largest(best: xb.Value, place: xb.Value, value: xb.Value, index: xb.Value) -> tuple[xb.Value, xb.Value]:
    """The larger of two, and of two that are equal the one of the lower index."""
    larger = xb.ops.compare(value, best, direction="GT")
    tied = xb.ops.compare(value, best, direction="EQ")
    lower = xb.ops.compare(index, place, direction="LT")
    taken = xb.ops.or_(larger, xb.ops.and_(tied, lower))
    return xb.ops.select(taken, value, best), xb.ops.select(taken, index, place)


def arg_max(x: xb.Value, indices: xb.Value) -> xb.Value:
    return xb.reduce((x, indices), (-np.inf, 2**31 - 1), first_largest, (1,))


def sums_and_products(a: xb.Value, b: xb.Value, c: xb.Value, d: xb.Value) -> tuple[xb.Value, xb.Value]:
    return xb.ops.add(a, c), xb.ops.multiply(b, d)


def in_f32(x: xb.Value, init: xb.Value) -> xb.Value:
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    return xb.ops.reduce(x, init, to_apply=adder, dimensions=(0,))


ROWS = np.array([[1, 5, 2, 5], [7, 0, 7, 7]], np.float32)
INDICES = np.array([[0, 1, 2, 3]] * 2, np.int32)

CASES = [
    summed("0", (0,), [[4, 8, 12], [16, 20, 24]]),
    summed("1", (1,), [[5, 7, 9]] * 4),
    summed("2", (2,), [[6, 15]] * 4),
    summed("01", (0, 1), [20, 28, 36]),
    summed("10", (1, 0), [20, 28, 36]),
    summed("int", 2, [[6, 15]] * 4),
    summed("012", (0, 1, 2), 84.0),
    summed("all", None, 84.0),
    summed("none", (), CUBE),
    Case("matrix-0", lambda x: xb.reduce(x, 0.0, xb.add, 0), (CUBE[0],), [5, 7, 9], source=REDUCE),
    Case("matrix-1", lambda x: xb.reduce(x, 0.0, xb.add, 1), (CUBE[0],), [6, 15], source=REDUCE),
    Case("all-of-it", lambda x: xb.reduce_all(x, 0.0, xb.add), (CUBE,), 84.0, source="xla_builder.h, ReduceAll"),
    Case(
        "any-function",
        lambda x: xb.reduce(x, 0, lambda a, b: xb.ops.subtract(xb.ops.add(a, b), xb.ops.xor(b, b))),
        (np.int32([10, 11, 12, 13]),),
        46,
        source=REDUCE,
    ),
    Case("arg-max", arg_max, (ROWS, INDICES), ([5, 7], [1, 0]), source=f"{REDUCE}; {NUMERICS}"),
    Case(
        "arg-max-of-all",
        lambda x, i: xb.reduce((x, i), (-np.inf, 2**31 - 1), first_largest),
        (ROWS, np.arange(8, dtype=np.int32).reshape(2, 4)),
        (7.0, 4),
        source=REDUCE,
    ),
    Case(
        "two-kinds",
        lambda x, y: xb.reduce((x, y), (0, 1.0), sums_and_products),
        (np.int8([1, 2, 3]), np.float64([2, 4, 0.5])),
        (6, 4.0),
        source=REDUCE,
    ),
    *(
        folded(f"add-{dtype.__name__}", VALUES.astype(dtype), 0, xb.ops.add, VALUES.astype(dtype).sum(dtype=dtype))
        for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
    ),
    *(
        folded(f"add-{np.dtype(dtype).name}", VALUES.astype(dtype), 0, xb.ops.add, np.asarray(19, dtype))
        for dtype in (BF16, np.float16, np.float32, np.float64, np.complex64, np.complex128)
    ),
    *(
        folded(f"multiply-{dtype.__name__}", VALUES.astype(dtype), 1, xb.ops.multiply, VALUES.prod().astype(dtype))
        for dtype in (np.int8, np.uint16, np.int32, np.float32, np.complex64)
    ),
    *(
        folded(f"maximum-{np.dtype(dtype).name}", VALUES.astype(dtype), low, xb.ops.maximum, np.asarray(9, dtype))
        for dtype, low in (
            (np.int8, -128),
            (np.int64, -(2**63)),
            (BF16, -np.inf),
            (np.float16, -np.inf),
            (np.float64, -np.inf),
        )
    ),
    folded("minimum", VALUES, 2**63 - 1, xb.ops.minimum, -5),
    folded("and", np.uint8([0b1110, 0b0111]), 255, xb.ops.and_, 0b0110),
    folded("or", np.int16([0b1000, 0b0001]), 0, xb.ops.or_, 0b1001),
    folded("xor", np.uint32([7, 5, 1]), 0, xb.ops.xor, 3),
    folded("pred-and", np.array([[True, True], [True, False]]), True, xb.ops.and_, [True, False]),
    folded("pred-or", np.array([[False, True], [False, False]]), False, xb.ops.or_, [True, False]),
    folded("wraps", np.int8([100, 100]), 0, xb.ops.add, -56),
    folded("nan-in-sum", np.float32([1, np.nan, 2]), 0, xb.ops.add, np.nan),
    folded("nan-in-maximum", np.float32([1, np.nan, 2]), -np.inf, xb.ops.maximum, np.nan),
    folded("empty-gives-init", np.zeros((2, 0), np.float32), 7, xb.ops.add, [7, 7]),
    folded("empty-maximum", np.zeros(0, np.float32), -np.inf, xb.ops.maximum, -np.inf),
    folded("init-counts-once", np.float32([1, 2, 3]), 10, xb.ops.add, 16.0),
    folded("f16-ones", np.ones(4096, np.float16), 0, xb.ops.add, 4096.0),
    folded("bf16-hundredths", np.full(1000, 0.01, BF16), 0, xb.ops.add, np.asarray(10, BF16), ulps=4),
    folded("f32-many", np.full((3, 1000), 0.1, np.float32), 0, xb.ops.add, np.full(3, 100, np.float32), ulps=64),
    Case(
        "bf16-in-f32",
        in_f32,
        (np.array([[1, 256], [2, 1]], BF16), np.float32(0)),
        np.float32([3, 257]),
        source="conformance case reduce.07",
        oracle=False,  # XLA:CPU infers it, and its verifier refuses mixed precision
    ),
    Case(
        "bf16-from-bf16-in-f32",
        in_f32,
        (np.array([[1, 256], [2, 1]], BF16), np.asarray(3, BF16)),
        np.float32([6, 260]),
        source=SHAPES,
        oracle=False,  # as above
    ),
    Case(
        "empty-result",
        lambda x: xb.reduce(x, 0.0, xb.add, 0),
        (np.zeros((3, 0), np.float32),),
        np.zeros(0, np.float32),
        source=REDUCE,
    ),
]


def summed_over(dimensions: tuple[int, ...], result: str, *operands: str) -> Inferred:
    """One operand, or two that are folded side by side; the init values come after them."""
    count = len(operands) // 2
    region = xb.add if count == 1 else sums_and_products
    return Inferred(
        f"{count}-operands-{''.join(map(str, dimensions))}",
        lambda *values: xb.reduce(values[:count], values[count:], region, dimensions),
        operands,
        result,
        SHAPES,
    )


INFERRED = [
    summed_over((0,), "f32[3,<=5]", "f32[<=4,3,<=5]", "f32[]"),
    summed_over((1,), "f32[<=4,<=5]", "f32[<=4,3,<=5]", "f32[]"),
    summed_over((0, 2), "f32[3]", "f32[<=4,3,<=5]", "f32[]"),
    summed_over((), "f32[<=4,3,<=5]", "f32[<=4,3,<=5]{0,1,2}", "f32[]"),
    summed_over((1,), "(f32[<=4], s32[<=4])", "f32[<=4,3]", "s32[<=4,3]", "f32[]", "s32[]"),
]


def reducer(*texts: str) -> Callable[..., xb.Value]:
    """A function that gives its parameters of these numbers, one alone or as a tuple."""
    numbers = [int(text) for text in texts]
    return lambda *scalars: scalars[numbers[0]] if len(numbers) == 1 else tuple(scalars[n] for n in numbers)


def computed(signature: str, *numbers: str) -> xb.Computation:
    return xb.computation(*xb.parse_program_shape(f"{signature} -> f32[]").parameters)(reducer(*numbers))


SCALARS = "(f32[], f32[])"
F, S = xb.f32[()], xb.s32[()]


def refused(
    name: str, operands: tuple[str, ...], kind: str, *names: str, to_apply: Any = None, dimensions: Any = (1,)
) -> Refusal:
    """The first half of the operands is reduced, from the second half on."""
    region = computed(SCALARS, "0") if to_apply is None else to_apply

    def call(*values: xb.Value) -> xb.Value:
        half = (len(values) + 1) // 2
        return xb.reduce(values[:half], values[half:], region, dimensions)

    return Refusal(name, call, operands, kind, names)


ONE = ("f32[2,3]", "f32[]")
TWO = ("f32[2,3]", "s32[2,3]", "f32[]", "s32[]")
PAIRS = "(f32[], s32[], f32[], s32[])"

REFUSALS = [
    refused("dimension", ONE, "dimension_out_of_range", "-3", "f32[2,3]", "0..1", dimensions=(-3,)),
    refused("dimension-high", ONE, "dimension_out_of_range", "2", "f32[2,3]", dimensions=(0, 2)),
    refused(
        "dimension-of-the-first",
        TWO,
        "dimension_out_of_range",
        "for operand f32[2,3]",
        to_apply=computed(PAIRS, "0", "1"),
        dimensions=(2,),
    ),
    refused("dimension-twice", ONE, "duplicate_dimension", "[1, 1]", dimensions=(1, 1)),
    refused(
        "parameters", ONE, "arity_mismatch", "3", "2", "parameter", to_apply=computed("(f32[], f32[], f32[])", "0")
    ),
    refused(
        "type",
        ONE,
        "signature_mismatch",
        "s32[]",
        "requires to_apply to be (f32[], f32[]) -> f32[]",
        to_apply=computed("(s32[], s32[])", "0"),
    ),
    refused("result", ONE, "signature_mismatch", "(f32[], f32[])", "f32[]", to_apply=computed(SCALARS, "0", "1")),
    refused("vectors", ONE, "signature_mismatch", "f32[3]", to_apply=computed("(f32[3], f32[3])", "0")),
    refused("narrower", ONE, "signature_mismatch", "bf16[]", to_apply=computed("(bf16[], bf16[])", "0")),
    refused(
        "mixed-parameters",
        ("bf16[2,3]", "f32[]"),
        "signature_mismatch",
        "bf16[]",
        "parameter 1 of to_apply is bf16[]",
        to_apply=computed("(f32[], bf16[])", "0"),
    ),
    refused(
        "integers-do-not-widen",
        ("s8[3]", "s32[]"),
        "signature_mismatch",
        "s8[3]",
        "s32[]",
        to_apply=computed("(s32[], s32[])", "0"),
        dimensions=(0,),
    ),
    refused("init", ("f32[2,3]", "f32[1]"), "signature_mismatch", "f32[1]", "init"),
    refused("init-type", ("f32[2,3]", "s32[]"), "signature_mismatch", "s32[]", "init"),
    refused("init-wider", ("f32[2,3]", "f64[]"), "signature_mismatch", "f64[]", "init"),
    refused("tuple", ("(f32[2,3])", "f32[]"), "not_array", "expected an array for operand, got (f32[2,3])"),
    refused(
        "extents",
        ("f32[2,3]", "s32[3,2]", "f32[]", "s32[]"),
        "dimension_mismatch",
        "operands[0] is f32[2,3]",
        "operands[1] is s32[3,2]",
        to_apply=computed(PAIRS, "0", "1"),
    ),
    refused(
        "ranks",
        ("f32[2,3]", "s32[3]", "f32[]", "s32[]"),
        "rank_mismatch",
        "f32[2,3]",
        "s32[3]",
        to_apply=computed(PAIRS, "0", "1"),
    ),
    refused("pairs", TWO, "arity_mismatch", "4", "2", "parameter"),
    refused("one-result", TWO, "signature_mismatch", "1", "2", to_apply=computed(PAIRS, "0")),
    refused(
        "swapped",
        TWO,
        "signature_mismatch",
        "s32[]",
        "f32[2,3]",
        "requires to_apply to be (f32[], s32[], f32[], s32[]) -> (f32[], s32[])",
        to_apply=computed(PAIRS, "1", "0"),
    ),
    refused(
        "second-is-a-tuple",
        ("f32[2,3]", "(f32[2,3])", "f32[]", "f32[]"),
        "not_array",
        "expected an array for operands[1], got (f32[2,3])",
    ),
    refused("inits", ("f32[2,3]", "f32[2,3]", "f32[]"), "arity_mismatch", "2", "1"),
    refused(
        "init-is-missing",
        ("f32[2,3]", "s32[2,3]", "f32[]"),
        "arity_mismatch",
        "2 operands and 1 init_values",
        to_apply=computed(PAIRS, "0", "1"),
    ),
    Refusal(
        "nothing",
        lambda x: xb.ops.reduce((), (), to_apply=computed("()"), dimensions=(), builder=x.builder),
        ("f32[2,3]",),
        "arity_mismatch",
        ("at least 1 operand, got 0",),
    ),
    *(
        Refusal(
            f"number-{name}",
            lambda x, to_apply: xb.reduce(x, 0.0, to_apply, 1),
            ("f32[2,3]",),
            kind,
            names,
            {"to_apply": to_apply},
        )
        for name, to_apply, kind, names in (
            ("type", xb.computation(S, S)(xb.add), "signature_mismatch", ("(s32[], s32[]) -> s32[]",)),
            ("result", xb.computation(F, F)(xb.eq), "signature_mismatch", ("the result of to_apply is pred[]",)),
            (
                "parameter",
                xb.computation(F, S)(lambda a, b: a),
                "signature_mismatch",
                ("parameter 1 of to_apply is s32[]",),
            ),
        )
    ),
    Refusal(
        "numbers-of-two",
        lambda x: xb.reduce((x, x), (0.0, 0.0), xb.computation(F, F)(xb.add), 1),
        ("f32[2,3]",),
        "arity_mismatch",
        ("expected 4 parameters for to_apply", "got 2"),
    ),
    refused("no-function", ONE, "not_a_computation", "3", to_apply=3),
]


def summed_together(x: xb.Value, y: xb.Value) -> xb.Value:
    """One of two operands is cut; each is summed for itself."""
    size = xb.constant(x.builder, literal=np.int32(3))
    zero = xb.constant(x.builder, literal=np.float32(0))
    both = (xb.set_dimension_size(x, size, 0), y)
    return xb.ops.reduce(both, (zero, zero), to_apply=lambda a, b, c, d: (a + c, b + d), dimensions=(0,))


FIVE = np.arange(1, 6, dtype=np.float32)
ONE_TUPLE = "real XLA takes a reducer that gives a tuple of one, and gives one"
CASES += [
    Case(
        "dynamic-beside-static", summed_together, (FIVE, 10 * FIVE), (6.0, 150.0), source="real XLA pads with the init"
    ),
    Case("tuple-of-one", lambda x: xb.reduce(x, 0.0, lambda a, b: (a + b,), 0), (FIVE,), (15.0,), source=ONE_TUPLE),
    Case(
        "tuple-of-one-lifted",
        lambda x: xb.reduce(x, 0.0, lambda a, b: (a + b + 0.0,), 0),
        (FIVE,),
        (15.0,),
        source=ONE_TUPLE,
    ),
]
