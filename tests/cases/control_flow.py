"""Cases of call, while, conditional, map, scan and fusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

CALL, WHILE, CONDITIONAL, MAP = (
    f"Operation Semantics, {heading}" for heading in ("Call", "While", "Conditional", "Map")
)
X = np.array([1.0, 2.5], np.float32)


def less(lhs: xb.Value, number: int) -> xb.Value:
    return xb.ops.compare(
        lhs, xb.constant(lhs.builder, literal=np.array(number, lhs.shape.dtype.dtype)), direction="LT"
    )


def plus(lhs: xb.Value, number: float) -> xb.Value:
    literal = np.full(lhs.shape.dims, number, lhs.shape.dtype.dtype)
    return xb.ops.add(lhs, xb.constant(lhs.builder, literal=literal))


def thousand_times(iteration: xb.Value, vector: xb.Value) -> xb.Value:
    """The document's own loop: a constant vector is added to an accumulator 1000 times."""

    def body(state: xb.Value) -> tuple[xb.Value, xb.Value]:
        count, total = state
        step = xb.constant(state.builder, literal=np.full(10, 0.5, np.float32))
        return plus(count, 1), xb.ops.add(total, step)

    return xb.while_((iteration, vector), lambda state: less(state[0], 1000), body)


def counting(n: xb.Value) -> xb.Value:
    return xb.ops.while_(n, condition=lambda n: less(n, 100), body=lambda n: xb.ops.add(n, n))


def triangle(rows: xb.Value) -> xb.Value:
    """1 + (1 + 2) + (1 + 2 + 3) + ..., by a loop inside a loop."""

    def inner(state: xb.Value) -> xb.Value:
        row, column, total = state
        return xb.tuple_(row, plus(column, 1), xb.ops.add(total, plus(column, 1)))

    def outer(state: xb.Value) -> xb.Value:
        row, total, rows = state
        start = (plus(row, 1), 0, total)
        _, _, total = xb.while_(start, lambda s: xb.ops.compare(s[1], s[0], direction="LT"), inner)
        return xb.tuple_(plus(row, 1), total, rows)

    return xb.while_((0, 0, rows), lambda s: xb.ops.compare(s[0], s[2], direction="LT"), outer)[1]


def magnitude(chosen: xb.Value, x: xb.Value) -> xb.Value:
    return xb.conditional(chosen, x, lambda x: x, x, xb.ops.negate)


def switch(index: xb.Value, x: xb.Value) -> xb.Value:
    branches = [lambda x: plus(x, 10), lambda x: plus(x, 20), lambda x: plus(x, 30)]
    return xb.conditional(index, (x, x, x), branches)


def different_operands(chosen: xb.Value, x: xb.Value, n: xb.Value) -> xb.Value:
    """The branches take values of different shapes, one of them a tuple."""
    return xb.conditional(chosen, [(x, n), n], [lambda t: t[1], lambda n: plus(n, 1)])


def double(n: xb.Value) -> xb.Value:
    return xb.ops.add(n, n)


def add_five(n: xb.Value) -> xb.Value:
    return plus(n, 5)


def seven() -> xb.Computation:
    builder = xb.Builder("seven")
    return builder.build(xb.constant(builder, literal=np.int32(7)))


def switched(index: int, chosen: int) -> Case:
    return Case(f"switch-{index}", switch, (np.int32(index), X), X + chosen, source="numerics, Indexing")


def squared_distance(a: xb.Value, b: xb.Value) -> xb.Value:
    return xb.ops.multiply(xb.ops.subtract(a, b), xb.ops.subtract(a, b))


def mapped(
    name: str, operands: tuple[Any, ...], function: Callable[..., Any], expected: object, oracle: bool = True
) -> Case:
    return Case(
        f"map-{name}",
        lambda *values: xb.ops.map(values, to_apply=function, dimensions=range(values[0].shape.rank)),
        operands,
        expected,
        source=MAP,
        oracle=oracle,
    )


CASES = [
    Case("call", lambda x: xb.call(x, lambda y: xb.ops.add(y, y)), (X,), [2, 5], source=CALL),
    Case("call-two", lambda x, y: xb.call((x, y), xb.ops.multiply), (X, X), X * X, source=CALL),
    Case("call-none", lambda x: xb.call((), seven(), builder=x.builder), (X,), 7, source=CALL),
    Case("call-tuple", lambda x, y: xb.call((x, y), lambda a, b: (b, a)), (X, np.int32(3)), (3, X), source=CALL),
    Case("call-twice", lambda x: xb.call(xb.call(x, xb.ops.negate), xb.ops.negate), (X,), X, source=CALL),
    Case(
        "while-1000",
        thousand_times,
        (np.int32(0), np.zeros(10, np.float32)),
        (1000, np.full(10, 500, np.float32)),
        source=WHILE,
    ),
    Case("while-one-value", counting, (np.int32(3),), 192, source=WHILE),
    Case("while-never", counting, (np.int32(100),), 100, source="numerics, Indexing"),
    Case("while-u8", counting, (np.uint8(7),), 112, source=WHILE),
    Case("while-in-while", triangle, (np.int32(4),), 20, source=WHILE),
    Case(
        "while-empty-state",
        lambda x: xb.while_(
            (), lambda s: xb.ops.constant(s.builder, literal=np.array(False)), lambda s: s, builder=x.builder
        ),
        (X,),
        (),
        source="conformance case while.03",
    ),
    Case(
        "while-swaps",
        lambda a, b: xb.while_((a, b, 0), lambda s: less(s[2], 3), lambda s: (s[1], s[0], plus(s[2], 1))),
        (X, -X),
        (-X, X, 3),
        source=WHILE,
    ),
    Case("conditional-true", magnitude, (np.bool_(True), np.float32(3)), 3.0, source=CONDITIONAL),
    Case("conditional-false", magnitude, (np.bool_(False), np.float32(3)), -3.0, source=CONDITIONAL),
    Case("conditional-operands-true", different_operands, (np.bool_(True), X, np.int32(4)), 4, source=CONDITIONAL),
    Case("conditional-operands-false", different_operands, (np.bool_(False), X, np.int32(4)), 5, source=CONDITIONAL),
    Case(
        "conditional-keywords",
        lambda p, x: xb.conditional(p, branch_operands=(x, x), branch_computations=(xb.ops.negate, xb.ops.abs)),
        (np.bool_(True), X),
        -X,
        source=CONDITIONAL,
    ),
    Case(
        "conditional-one-branch",
        lambda i, x: xb.conditional(i, (x,), (xb.ops.negate,)),
        (np.int32(5), X),
        -X,
        source="StableHLO, case",
    ),
    *(switched(index, chosen) for index, chosen in ((0, 10), (1, 20), (2, 30), (3, 30), (-1, 30), (2**31 - 1, 30))),
    Case(
        "conditional-in-while",
        lambda n: xb.while_(n, lambda n: less(n, 50), lambda n: xb.conditional(less(n, 10), n, double, n, add_five)),
        (np.int32(3),),
        52,
        source=f"{WHILE}; {CONDITIONAL}",
    ),
    Case("map", lambda x, y: xb.map((x, y), squared_distance), (X, X * 3), [4, 25], source=MAP),
    mapped("strict", (X,), lambda e: xb.ops.negate(e), [-1, -2.5]),
    mapped("matrix", (np.array([[1, 2, 3], [4, 5, 6]]),), lambda e: plus(e, 10), [[11, 12, 13], [14, 15, 16]]),
    mapped("scalar", (np.int32(7),), lambda e: xb.ops.multiply(e, e), 49),
    mapped("types", (X, np.array([3, 1], np.int32)), lambda e, n: less(n, 2), [False, True]),
    mapped("bf16", (X.astype(ml_dtypes.bfloat16),), lambda e: xb.ops.add(e, e), (X * 2).astype(ml_dtypes.bfloat16)),
    mapped("pred", (np.array([True, False]),), xb.ops.not_, [False, True]),
    mapped("complex", (np.array([1 + 2j, 3j]),), xb.ops.negate, [-1 - 2j, -3j]),
    mapped("narrow", (np.array([3, -8], ml_dtypes.int4),), lambda e: xb.convert(e, xb.s32), [3, -8]),
    mapped("constant", (X,), lambda e: xb.constant(e.builder, literal=np.int8(3)), [3, 3]),
    mapped("bits", (X,), lambda e: xb.bitcast_convert(e, xb.u32), X.view(np.uint32)),
    mapped("empty", (np.zeros((0, 3), np.float32),), lambda e: xb.ops.add(e, e), np.zeros((0, 3), np.float32)),
    mapped("nested", (X,), lambda e: xb.call(e, lambda a: xb.map(a, lambda b: xb.ops.add(b, b))), [2, 5], False),
    mapped("loop", (np.array([3, 60, 100], np.int32),), counting, [192, 120, 100], False),
    mapped("loop-matrix", (np.array([[3], [60]], np.int32),), counting, [[192], [120]], False),
    mapped("branch", (X, -X), lambda a, b: xb.conditional(xb.lt(b, -2.0), (a, b), (first, first)), [-1, 2.5]),
]


def unmapped(name: str, operands: tuple[str, ...], kind: str, *names: str, **attributes: Any) -> Refusal:
    given = {"to_apply": first, "dimensions": (0, 1)[: operands[0].count(",") + 1], **attributes}
    return Refusal(f"map-{name}", lambda *values, **more: xb.ops.map(values, **more), operands, kind, names, given)


def computed(parameters: str, result: Callable[..., Any]) -> xb.Computation:
    return xb.computation(*xb.parse_program_shape(f"{parameters} -> f32[]").parameters)(result)


def first(*values: xb.Value) -> xb.Value:
    return values[0]


def yes(*values: xb.Value) -> xb.Value:
    return xb.ops.constant(values[0].builder, literal=np.array(True))


def called(name: str, operands: tuple[str, ...], region: Any, kind: str, *names: str) -> Refusal:
    return Refusal(f"call-{name}", lambda *values: xb.call(values, region), operands, kind, names)


def looped(name: str, init: str, condition: Any, body: Any, kind: str, *names: str) -> Refusal:
    return Refusal(f"while-{name}", lambda state: xb.while_(state, condition, body), (init,), kind, names)


def branched(name: str, operands: tuple[str, ...], branches: tuple[Any, ...], kind: str, *names: str) -> Refusal:
    return Refusal(f"conditional-{name}", lambda i, *values: xb.conditional(i, values, branches), operands, kind, names)


def zeros(shape: xb.Shape) -> Callable[[xb.Value], xb.Value]:
    return lambda x: xb.ops.constant(x.builder, literal=np.zeros(shape.dims, shape.dtype.dtype))


ON_F32 = computed("(f32[])", first)

REFUSALS = [
    called("arity", ("f32[2]",), computed("(f32[2], s32[])", first), "arity_mismatch", "2", "1"),
    called("type", ("bf16[2]",), computed("(f32[2])", first), "signature_mismatch", "bf16[2]", "f32[2]", "parameter 0"),
    called("tuple", ("(f32[2], s32[])",), computed("((f32[2], u32[]))", first), "signature_mismatch", "tuple index 1"),
    called("no-tuple", ("f32[2]",), computed("((f32[2], u32[]))", first), "signature_mismatch", "(f32[2], u32[])"),
    called("no-function", ("f32[2]",), 3, "not_a_computation", "3"),
    called("no-value", ("f32[2]",), lambda x: 3, "not_a_computation", "3"),
    looped(
        "condition-gives", "s32[]", zeros(xb.pred[1]), first, "signature_mismatch", "pred[1]", "pred[]", "condition"
    ),
    looped("condition-number", "s32[]", first, first, "signature_mismatch", "s32[]", "pred[]", "condition"),
    looped("init", "s64[]", computed("(s32[])", yes), first, "signature_mismatch", "s64[]", "s32[]", "init"),
    looped("condition-arity", "s32[]", computed("(s32[], s32[])", yes), first, "arity_mismatch", "condition", "2", "1"),
    looped("body-arity", "s32[]", yes, computed("(s32[], s32[])", first), "arity_mismatch", "body", "2", "1"),
    looped("body-takes", "s32[]", yes, ON_F32, "signature_mismatch", "body", "f32[]", "s32[]"),
    looped(
        "body-gives",
        "(s32[], f32[2])",
        yes,
        lambda s: (s[0], xb.concatenate((s[1], s[1]), 0)),
        "signature_mismatch",
        "f32[4]",
        "f32[2]",
        "body",
        "tuple index 1",
    ),
    branched(
        "results",
        ("pred[]", "f32[2]", "s32[]"),
        (zeros(xb.f32[3]), zeros(xb.f32[4])),
        "signature_mismatch",
        "f32[3]",
        "f32[4]",
        "false_computation",
    ),
    branched(
        "no-scalar", ("pred[1]", "f32[2]", "s32[]"), (zeros(xb.f32[3]), zeros(xb.f32[3])), "non_scalar", "pred[1]"
    ),
    branched("index", ("u32[]", "f32[]", "f32[]"), (first, first), "element_type_unsupported", "u32[]", "s32"),
    branched("three-of-pred", ("pred[]", "f32[]", "f32[]", "f32[]"), (first, first, first), "arity_mismatch", "2", "3"),
    branched("operands", ("s32[]", "f32[]"), (ON_F32, ON_F32), "arity_mismatch", "2", "1"),
    branched("none", ("s32[]",), (), "arity_mismatch", "0"),
    branched(
        "takes", ("s32[]", "f32[]", "s32[]"), (ON_F32, ON_F32), "signature_mismatch", "branch 1", "f32[]", "s32[]"
    ),
    branched("arity", ("s32[]", "f32[]"), (computed("(f32[], f32[])", first),), "arity_mismatch", "branch 0", "2", "1"),
    Refusal(
        "conditional-form", lambda p, x: xb.conditional(p, x), ("pred[]", "f32[]"), "arity_mismatch", ("2", "3", "5")
    ),
    Refusal("while-number-alone", lambda x: xb.while_(0, yes, first), ("f32[]",), "no_builder", ("builder",)),
    unmapped("extents", ("f32[2,3]", "f32[3,2]"), "dimension_mismatch", "f32[2,3]", "f32[3,2]"),
    unmapped("rank", ("f32[2,3]", "f32[2]"), "rank_mismatch", "f32[2,3]", "f32[2]"),
    unmapped("order", ("f32[2,3]",), "bad_order", "[1, 0]", dimensions=(1, 0)),
    unmapped("some", ("f32[2,3]",), "attribute_length_mismatch", "1", "2", dimensions=(0,)),
    unmapped("outside", ("f32[2,3]",), "dimension_out_of_range", "2", "0..1", dimensions=(0, 2)),
    unmapped("twice", ("f32[2,3]",), "duplicate_dimension", "0", dimensions=(0, 0)),
    unmapped("result", ("f32[2]",), "non_scalar", "f32[2]", to_apply=zeros(xb.f32[2])),
    unmapped("result-tuple", ("f32[2]",), "not_array", "(f32[])", to_apply=lambda e: (e,)),
    unmapped("type", ("f32[2]",), "signature_mismatch", "s32[]", "f32[]", "0", to_apply=computed("(s32[])", first)),
    unmapped("arity", ("f32[2]",), "arity_mismatch", "2", "1", to_apply=computed("(f32[], f32[])", first)),
    unmapped("token", ("token[]",), "not_array", "token[]", dimensions=(), to_apply=yes),
    Refusal(
        "map-none",
        lambda x: xb.ops.map((), to_apply=seven(), dimensions=(), builder=x.builder),
        ("f32[]",),
        "arity_mismatch",
        ("0", "1"),
    ),
]


SCAN, FUSION = (
    "xla/hlo/ir/hlo_instructions.h, HloScanInstruction",
    "xla/hlo/ir/hlo_instructions.h, HloFusionInstruction",
)
ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)
SUMS = np.cumsum(ROWS, 0, dtype=np.float32)
FIVE = np.arange(5, dtype=np.float32)
BF = ml_dtypes.bfloat16


def sum_and_square(x: xb.Value, total: xb.Value) -> tuple[xb.Value, xb.Value]:
    return xb.ops.multiply(s := xb.ops.add(x, total), s), s


def twice(x: xb.Value, total: xb.Value) -> tuple[xb.Value, xb.Value]:
    return (s := xb.ops.add(x, total)), s


def running(opcode: Callable[..., xb.Value]) -> Callable[..., tuple[xb.Value, xb.Value]]:
    return lambda x, total: ((s := opcode(x, total)), s)


def along(
    name: str,
    operands: tuple[Any, ...],
    body: Callable[..., Any],
    expected: object,
    oracle: bool = True,
    **attributes: Any,
) -> Case:
    """A scan of all operands but the last, which is carried."""
    attributes = {"dimension": 0, "num_carries": 1, **attributes}
    return Case(
        f"scan-{name}",
        lambda *values: xb.ops.scan(values, to_apply=body, **attributes),
        operands,
        expected,
        source=SCAN,
        oracle=oracle,
    )


def each_type(dtype: Any) -> Case:
    """A running sum, with its last value, in each kind of type."""
    values, sums = np.array([1, 2, 3]).astype(dtype), np.array([2, 4, 7]).astype(dtype)
    return along(f"type-{np.dtype(dtype)}", (values, np.dtype(dtype).type(1)), twice, (sums, sums[-1]))


def fused(x: xb.Value, y: xb.Value) -> xb.Value:
    return xb.fusion((x, y), lambda a, b: xb.ops.multiply(xb.ops.add(a, b), a))


CASES += [
    along("forward", (ROWS, np.zeros(2, np.float32)), sum_and_square, (SUMS**2, SUMS[-1])),
    along(
        "reverse",
        (ROWS, np.zeros(2, np.float32)),
        sum_and_square,
        (np.float32([[144, 256], [144, 225], [100, 144], [36, 49]]), SUMS[-1]),
        is_reverse=True,
    ),
    along(
        "second-dimension",
        (ROWS.reshape(2, 4), np.zeros(2, np.float32)),
        sum_and_square,
        (np.float32([[0, 1, 9, 36], [16, 81, 225, 484]]), np.float32([6, 22])),
        dimension=1,
    ),
    along("associative", (FIVE, np.float32(10)), twice, ([10, 11, 13, 16, 20], 20), is_associative=True),
    along("running-reverse", (FIVE, np.float32(1)), twice, ([11, 11, 10, 8, 5], 11), is_reverse=True),
    along(
        "running-second", (ROWS, np.ones(4, np.float32)), twice, (1 + np.cumsum(ROWS, 1), 1 + ROWS.sum(1)), dimension=1
    ),
    along("product", (np.int8([5, 6, 7]), np.int8(1)), running(xb.ops.multiply), (np.int8([5, 30, -46]), np.int8(-46))),
    along("maximum", (np.int32([3, 1, 5]), np.int32(2)), running(xb.ops.maximum), ([3, 3, 5], 5)),
    along(
        "maximum-of-floats",
        (np.float32([-0.0, 0.0, np.nan, 1]), np.float32(-0.0)),
        running(xb.ops.maximum),
        (np.float32([-0.0, 0.0, np.nan, np.nan]), np.float32(np.nan)),
    ),
    along("or", (np.array([False, True, False]), np.False_), running(xb.ops.or_), ([False, True, True], True)),
    along("bf16-rounds-each-time", (np.full(4, 1, BF), BF(256)), twice, (np.full(4, 256, BF), BF(256))),
    *(each_type(dtype) for dtype in (np.float16, np.float64, np.int8, np.uint32, np.int64, np.complex64)),
    along("no-output", (FIVE, np.float32(10)), lambda x, t: (xb.ops.add(x, t),), (20.0,)),
    along("bare-carry", (FIVE, np.float32(10)), xb.ops.add, 20.0),
    along("no-carry", (FIVE,), lambda x: (xb.ops.add(x, x),), (2 * FIVE,), num_carries=0),
    along("bare-output", (FIVE,), lambda x: xb.ops.add(x, x), 2 * FIVE, num_carries=0),
    along(
        "more-outputs", (FIVE, np.float32(10)), lambda x, t: (t, x, xb.ops.add(x, t)), ([10, 10, 11, 13, 16], FIVE, 20)
    ),
    along("no-input", (np.float32(1),), lambda t: (xb.ops.add(t, t), xb.ops.add(t, t)), ([2, 4, 8], 8), length=3),
    along(
        "that-meets",
        (FIVE, np.float32(10)),
        lambda x, t: (xb.ops.all_reduce(xb.ops.add(x, t), to_apply=xb.add, replica_groups=[[0]]), xb.ops.add(x, t)),
        ([10, 11, 13, 16, 20], 20),
    ),
    along("no-slices", (FIVE[:0], np.float32(10)), sum_and_square, (FIVE[:0], 10), oracle=False),
    along(
        "two-carries-change-places",
        (FIVE[:3], np.float32(1), np.int32(7), np.int32(8)),
        lambda x, a, m, n: (xb.ops.add(x, a), xb.ops.add(x, a), n, m),
        ([1, 2, 4], 4, 8, 7),
        num_carries=3,
    ),
    along(
        "outputs-of-more-dimensions",
        (FIVE[:2], np.float32(0)),
        lambda x, t: (xb.ops.broadcast(x, sizes=(3,), dimensions=()), t),
        ([[0, 0, 0], [1, 1, 1]], 0),
    ),
    Case(
        "scan-form",
        lambda x: xb.scan(x, 1, lambda e, t: (t, xb.ops.add(e, t)))[0],
        (FIVE,),
        [1, 1, 2, 4, 7],
        source=SCAN,
    ),
    Case("fusion", fused, (X, X), 2 * X * X, source=FUSION),
    Case(
        "fusion-in-fusion",
        lambda x: xb.fusion(x, lambda y: xb.tuple_(xb.fusion((y, y), xb.add, "kInput"), y)),
        (X,),
        (2 * X, X),
        source=FUSION,
        oracle=False,  # which XLA:CPU makes itself, and of its own kinds
    ),
]


def unscanned(
    name: str, operands: tuple[str, ...], kind: str, *names: str, body: Any = first, **attributes: Any
) -> Refusal:
    attributes = {"dimension": 0, "num_carries": 1, **attributes}
    call = lambda *values, **given: xb.ops.scan(values, to_apply=body, **given)  # noqa: E731
    return Refusal(f"scan-{name}", call, operands, kind, names, attributes)


REFUSALS += [
    unscanned("carries", ("f32[3]",), "arity_mismatch", "num_carries=2", "1", num_carries=2),
    unscanned("scalar", ("f32[]", "f32[]"), "rank_too_small", "operands[0]", "f32[]"),
    unscanned("dimension", ("f32[3]", "f32[]"), "dimension_out_of_range", "1", "0..0", dimension=1),
    unscanned("extents", ("f32[3]", "f32[4]", "f32[]"), "dimension_mismatch", "3", "4", body=lambda a, b, c: (a, c)),
    unscanned("no-length", ("f32[]",), "invalid_attribute", "length", body=lambda t: (t, t)),
    unscanned("length", ("f32[3]", "f32[]"), "dimension_mismatch", "length=4", "3", length=4),
    unscanned("arity", ("f32[3]", "f32[]"), "arity_mismatch", "1", "2", body=computed("(f32[])", first)),
    unscanned(
        "kept-dimension", ("f32[3]", "f32[]"), "signature_mismatch", "f32[1]", body=computed("(f32[1], f32[])", first)
    ),
    unscanned("carry", ("f32[3]", "s32[]"), "signature_mismatch", "s32[]", "f32[]", body=lambda x, t: (x, x)),
    unscanned(
        "too-few", ("f32[3]", "s32[]", "s32[]"), "signature_mismatch", "2", body=lambda x, a, b: (x,), num_carries=2
    ),
    unscanned("output", ("f32[2,3]", "f32[]"), "signature_mismatch", "f32[2]", body=lambda x, t: (t, x), dimension=1),
    unscanned(
        "output-rank",
        ("f32[2,3]", "f32[]"),
        "dimension_out_of_range",
        "2",
        "0..1",
        body=lambda x, t: (t, t),
        dimension=2,
    ),
    Refusal(
        "fusion-type",
        lambda x: xb.fusion(x, computed("(s32[])", first)),
        ("f32[]",),
        "signature_mismatch",
        ("calls", "s32[]", "f32[]"),
    ),
    Refusal(
        "fusion-arity",
        lambda x: xb.fusion((x, x), computed("(f32[])", first)),
        ("f32[]",),
        "arity_mismatch",
        ("1", "2"),
    ),
    Refusal(
        "fusion-alias",
        lambda x: xb.fusion(x, lambda y: y, output_to_operand_aliasing=[((), 1, ())]),
        ("f32[]",),
        "index_out_of_range",
        ("output_to_operand_aliasing", "1"),
    ),
    Refusal(
        "fusion-kind", lambda x: xb.fusion(x, lambda y: y, "kBig"), ("f32[]",), "invalid_attribute", ("kBig", "kLoop")
    ),
]
