"""Programs for the strict mode, each with what must be found in it: one list, read by the tests of the mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from attrs import field, frozen

import xbuild as xb
from shape_inference import primitive_type

NAN, INF = float("nan"), float("inf")
f32, s32, s8, bf16 = np.float32, np.int32, np.int8, ml_dtypes.bfloat16
Index = tuple[int, ...] | None
Row = tuple[str, str, Index, int]


@frozen
class Program:
    """A program of these arguments, and what a strict run finds: kind, opcode, index, how many more."""

    id: str
    call: Callable[..., Any]
    arguments: tuple[np.ndarray[Any, Any], ...] = field(converter=lambda a: tuple(map(np.asarray, a)))
    found: list[Row] = field(factory=list)

    def computation(self) -> xb.Computation:
        builder = xb.Builder("program")
        shapes = (primitive_type(each.dtype)[each.shape] for each in self.arguments)
        parameters = [xb.parameter(builder, number=n, shape=shape) for n, shape in enumerate(shapes)]
        result = self.call(*parameters) if parameters else self.call(builder)
        return builder.build(xb.tuple_(result) if isinstance(result, list | tuple) else result)


def array(dtype: Any, *values: Any) -> np.ndarray[Any, Any]:
    return np.array(values).astype(dtype)


def reciprocal(x: xb.Value) -> xb.Value:
    return 1.0 / x


def squares(a: xb.Value, b: xb.Value) -> xb.Value:
    return a * a + b * b


def until_zero(x: xb.Value) -> xb.Value:
    """1/x, 1/(x-1), ... as long as x is not negative: the loop keeps it from being lifted."""
    return xb.while_([x, x], lambda s: s[0] >= 0.0, lambda s: [s[0] - 1.0, 1.0 / s[0]])[1]


def long(x: xb.Value) -> xb.Value:
    """More instructions than are written out in place."""
    for _ in range(80):
        x = x + 0.0
    return xb.log(x)


def by_reciprocal(a: xb.Value, b: xb.Value) -> xb.Value:
    return 1.0 / a < 1.0 / b


def grow(x: xb.Value, n: xb.Value) -> xb.Value:
    one = xb.constant(n.builder, s32(1))
    return xb.set_dimension_size(xb.set_dimension_size(x, one, dimension=0), n, dimension=0)


def taken(x: xb.Value, i: Any, **promises: bool) -> xb.Value:
    return xb.gather(
        x, i, offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,), slice_sizes=(1,), index_vector_dim=1,
        **promises,
    )  # fmt: skip


def added(x: xb.Value, i: xb.Value, u: xb.Value, **promises: bool) -> xb.Value:
    return xb.scatter(
        x, i, u, xb.add, update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1, **promises,
    )  # fmt: skip


def pooled(x: xb.Value, s: xb.Value) -> xb.Value:
    return xb.select_and_scatter(x, xb.ge, (2,), None, "VALID", s, 0.0, xb.add)


def lower(x: xb.Value) -> xb.Value:
    return xb.cholesky(x)


def ragged(x: xb.Value, y: xb.Value, sizes: xb.Value) -> xb.Value:
    return xb.ops.ragged_dot(
        x, y, sizes, lhs_contracting_dims=(1,), rhs_contracting_dims=(1,), lhs_ragged_dims=(0,), rhs_group_dims=(0,)
    )


@xb.custom_call_target("strict_programs.log")
def logarithm(x: Any) -> Any:
    return np.log(x)


HUGE = f32(3e38)
COLUMN = array(s32, [0], [7], [-1], [2])

PROGRAMS = [
    # NaN and infinity are born
    Program("quotient", lambda x, y: x / y, (array(f32, 0, 1, 2), array(f32, 0, 0, 2)),
            [("nan_born", "divide", (0,), 0), ("inf_born", "divide", (1,), 0)]),
    Program("inf-less-inf", lambda x, y: x - y, (array(f32, INF, INF), array(f32, INF, 1)),
            [("nan_born", "subtract", (0,), 0)]),
    Program("log", xb.log, (array(f32, 1, 0, 0, -1),), [("nan_born", "log", (3,), 0), ("inf_born", "log", (1,), 1)]),
    Program("scalar", xb.log, (f32(0),), [("inf_born", "log", (), 0)]),
    Program("bf16", lambda x: x * x, (array(bf16, 1e20, 1, 1e30),), [("inf_born", "multiply", (0,), 1)]),
    Program("f8-has-only-nan", lambda x: x + x, (array(ml_dtypes.float8_e4m3fn, 1, 448),),
            [("nan_born", "add", (1,), 0)]),
    Program("complex", lambda x: x * x, (array(np.complex64, 1, 1e30),), [("inf_born", "multiply", (1,), 0)]),
    Program("remainder-of-inf", lambda x, y: xb.rem(x, y), (array(f32, INF, 5), array(f32, 2, 0)),
            [("nan_born", "remainder", (0,), 1)]),
    Program("power", xb.pow, (array(f32, -8, 0), array(f32, 0.5, -1)),
            [("nan_born", "power", (0,), 0), ("inf_born", "power", (1,), 0)]),
    Program("dot", lambda x, y: xb.dot(x, y), (array(f32, [HUGE, HUGE], [1, 1]), array(f32, [1, 2], [1, 2])),
            [("inf_born", "dot", (0, 0), 1)]),
    Program("dot-inf-times-0", lambda x, y: xb.dot(x, y), (array(f32, [INF, 1], [1, 1]), array(f32, [0, 1], [1, 1])),
            [("nan_born", "dot", (0, 0), 0)]),
    Program("dot-f16", lambda x, y: xb.dot(x, y), (array(np.float16, 300, 300), array(np.float16, 300, 300)),
            [("inf_born", "dot", (), 0)]),
    Program("convolution", lambda x, k: xb.conv_general_dilated(x, k, (1,), [(0, 0)], dimension_numbers="b0f_0io->b0f"),
            (array(f32, [[1], [HUGE], [HUGE], [2], [3]]), array(f32, [[1]], [[1]])),
            [("inf_born", "convolution", (0, 1, 0), 0)]),
    Program("reduce", lambda x: xb.reduce(x, 0.0, xb.add, [1]), (array(f32, [1, 2], [HUGE, HUGE]),),
            [("inf_born", "reduce", (1,), 0)]),
    Program("reduce-by-own", lambda x: xb.reduce(x, 0.0, squares, [1]), (array(f32, [1, 2], [HUGE, 1]),),
            [("inf_born", "multiply", None, 0)]),
    Program("reduce-window", lambda x: xb.reduce_window(x, 0.0, xb.add, (2,)),
            (array(f32, 1, HUGE, HUGE, INF),), [("inf_born", "reduce_window", (1,), 0)]),
    Program("scatter-sum", added, (array(f32, 1, HUGE, 2), array(s32, [1], [0]), array(f32, HUGE, 1)),
            [("inf_born", "scatter", (1,), 0)]),
    Program("select-and-scatter", pooled, (array(f32, 1, 5, 2), array(f32, HUGE, HUGE)),
            [("inf_born", "select_and_scatter", (1,), 0)]),
    Program("map-of-one-op", lambda x, y: xb.map((x, y), xb.mul), (array(f32, 1, INF), array(f32, 1, 0)),
            [("nan_born", "map", (1,), 0)]),
    Program("map", lambda x: xb.map(x, reciprocal), (array(f32, [1, 2], [0, 0]),), [("inf_born", "divide", (1, 0), 1)]),
    Program("map-in-a-map", lambda x: xb.map(x, lambda e: xb.map(e, reciprocal)), (array(f32, 1, 0),),
            [("inf_born", "divide", (1,), 0)]),
    Program("map-element-by-element", lambda x: xb.map(x, until_zero), (array(f32, 1, 2),),
            [("inf_born", "divide", None, 1)]),
    Program("sort-by-key", lambda x: xb.sort(x, by_reciprocal), (array(f32, 1, 0, 4),),
            [("inf_born", "divide", None, 0)] * 2),
    Program("cholesky", lower, (array(f32, [[1, 0], [0, 1]], [[1, 2], [2, 1]]),),
            [("nan_born", "cholesky", (1, 0, 0), 3)]),
    Program("triangular-solve",
            lambda a, b: xb.triangular_solve(a, b, left_side=True, lower=True), (array(f32, [0]).reshape(1, 1),
                                                                                  array(f32, [2]).reshape(1, 1)),
            [("inf_born", "triangular_solve", (0, 0), 0)]),
    Program("fft", lambda x: xb.fft(x, "RFFT", (2,)), (array(f32, [1, 1], [HUGE, HUGE]),),
            [("inf_born", "fft", (1, 0), 0)]),
    Program("batch-norm", lambda x, v: xb.batch_norm_training(x, v, v, epsilon=0.0, feature_index=1),
            (array(f32, [1, 1], [1, 2]), array(f32, 1, 1)), [("nan_born", "batch_norm_training", (0, 0), 1)]),
    Program("iota", lambda b: xb.iota(b, xb.f16[70000]), (), [("inf_born", "iota", (65520,), 4479)]),
    Program("ragged-dot", ragged, (array(f32, [HUGE, HUGE], [1, 1], [1, 1]), array(f32, [[1], [1]], [[1], [1]]),
                                   array(s32, 1, 1)), [("inf_born", "ragged_dot", (0, 0), 0)]),
    Program("ragged-dot-of-given", ragged, (array(f32, [1, INF], [NAN, 1], [1, 1]), array(f32, [[1], [1]], [[1], [1]]),
                                            array(s32, 1, 1))),
    Program("fusion", lambda x: xb.fusion(x, lambda y: xb.log(y) + 1.0), (array(f32, 1, 0),),
            [("inf_born", "log", (1,), 0)]),
    Program("scan", lambda x: xb.scan(x, 0.0, lambda e, c: (e + c, e + c))[0], (array(f32, 1, HUGE, HUGE, HUGE),),
            [("inf_born", "add", (), 0)] * 2),
    Program("custom-call", lambda x: xb.custom_call(x, "strict_programs.log", xb.f32[2]), (array(f32, 1, 0),),
            [("inf_born", "custom_call", (1,), 0)]),
    # integers
    Program("integer-quotient", lambda x, y: x / y, (array(s8, 7, -128, 7, 0), array(s8, 0, -1, 2, 0)),
            [("division_by_zero", "divide", (0,), 1), ("division_overflow", "divide", (1,), 0)]),
    Program("integer-remainder", xb.rem, (array(s8, 7, -128), array(s8, 0, -1)),
            [("division_by_zero", "remainder", (0,), 0)]),
    Program("integer-power", xb.pow, (array(s32, 0, 2, 0), array(s32, -1, -1, 0)),
            [("division_by_zero", "power", (0,), 0)]),
    Program("shifts", lambda x, y: [xb.shift_left(x, y), xb.shift_right_logical(x, y), xb.shift_right_arithmetic(x, y)],
            (array(s8, 1, 1, 1, 1), array(s8, 7, 8, -1, 0)),
            [("shift_out_of_range", opcode, (1,), 1)
             for opcode in ("shift_left", "shift_right_logical", "shift_right_arithmetic")]),
    Program("s4-shift", xb.shift_left, (array(ml_dtypes.int4, 1, 1), array(ml_dtypes.int4, 3, 4)),
            [("shift_out_of_range", "shift_left", (1,), 0)]),
    # conversions
    Program("float-to-integer", lambda x: xb.convert(x, xb.s8), (array(f32, 127.9, 128, -129, -128.9, NAN, INF),),
            [("nan_converted", "convert", (4,), 0), ("value_out_of_range", "convert", (1,), 2)]),
    Program("ends-of-64-bits", lambda x: xb.convert(x, xb.s64), (array(np.float64, -(2.0**63), 2.0**63),),
            [("value_out_of_range", "convert", (1,), 0)]),
    Program("integer-to-narrower", lambda x: xb.convert(x, xb.u8), (array(s32, 255, 256, -1),),
            [("value_out_of_range", "convert", (1,), 1)]),
    Program("u64-to-s64", lambda x: xb.convert(x, xb.s64), (np.array([2**63 - 1, 2**63], np.uint64),),
            [("value_out_of_range", "convert", (1,), 0)]),
    Program("float-to-narrower", lambda x: xb.convert(x, xb.f16), (array(f32, 65519, 65520, INF, NAN),),
            [("value_out_of_range", "convert", (1,), 0)]),
    Program("integer-to-f16", lambda x: xb.convert(x, xb.f16), (array(s32, 7, 70000),),
            [("value_out_of_range", "convert", (1,), 0)]),
    Program("to-f4-which-has-no-inf", lambda x: xb.convert(x, xb.f4e2m1fn),
            (array(f32, 6, 6.5, 7, 100),), [("value_out_of_range", "convert", (2,), 1)]),
    Program("to-f6-which-has-no-inf", lambda x: [xb.convert(x, xb.f6e2m3fn), xb.convert(x, xb.f6e3m2fn)],
            (array(f32, 7.5, 7.7, 7.75, 28, 30),),
            [("value_out_of_range", "convert", (2,), 2), ("value_out_of_range", "convert", (4,), 0)]),
    Program("stochastic",
            lambda x, r: xb.ops.stochastic_convert(x, r, new_element_type=xb.s8),
            (array(f32, 1, 300, NAN), array(np.uint32, 0, 0, 0)),
            [("nan_converted", "stochastic_convert", (2,), 0), ("value_out_of_range", "stochastic_convert", (1,), 0)]),
    Program("reduce-precision", lambda x: xb.reduce_precision(x, exponent_bits=5, mantissa_bits=10),
            (array(f32, 1, 1e6),), [("value_out_of_range", "reduce_precision", (1,), 0)]),
    Program("bytes-read-as-preds", lambda x: xb.bitcast_convert(x, xb.pred), (array(np.uint16, 256, 512, 1023),),
            [("value_out_of_range", "bitcast_convert", (1, 1), 2)]),
    Program("bytes-laid-as-preds", lambda x: xb.bitcast(x, xb.parse_shape("pred[2,2]{0,1}")),
            (array(np.uint16, 0x0100, 0x0200),), [("value_out_of_range", "bitcast", (1, 1), 0)]),
    Program("preds-read-as-bytes", lambda x: xb.bitcast_convert(x, xb.u8), (np.array([True, False]),), []),
    # indices
    Program("dynamic-slice", lambda x, i, j: xb.dynamic_slice(x, [i, j], (2, 2)),
            (np.zeros((4, 4), f32), s32(3), s32(-1)), [("index_clamped", "dynamic_slice", None, 0)] * 2),
    Program("dynamic-update-slice", lambda x, u, i: xb.dynamic_update_slice(x, u, [i]),
            (np.zeros(4, f32), np.ones(2, f32), np.uint8(250)), [("index_clamped", "dynamic_update_slice", None, 0)]),
    Program("gather", taken, (np.arange(4, dtype=f32), COLUMN), [("index_clamped", "gather", None, 1)]),
    Program("scatter", added, (np.arange(4, dtype=f32), COLUMN, np.ones(4, f32)),
            [("update_dropped", "scatter", None, 1)]),
    Program("branch", lambda i, x: xb.conditional(i, (x, x), (xb.exp, xb.neg)), (s32(5), f32(1)),
            [("index_clamped", "conditional", None, 0)]),
    Program("not-sorted", lambda x, i: taken(x, i, indices_are_sorted=True), (np.ones(4, f32), array(s32, [1], [0])),
            [("promise_broken", "gather", None, 0)]),
    Program("not-unique", lambda x, i, u: added(x, i, u, unique_indices=True),
            (np.ones(4, f32), array(s32, [1], [1]), np.ones(2, f32)), [("promise_broken", "scatter", None, 0)]),
    # sizes
    Program("made-longer", grow, (np.ones(4, f32), s32(2)), [("undefined_read", "set_dimension_size", None, 0)]),
    Program("size-beyond", lambda x, n: xb.set_dimension_size(x, n, dimension=0), (np.ones(4, f32), s32(9)),
            [("index_clamped", "set_dimension_size", None, 0)]),
    # nothing
    Program("given-nan",
            lambda x: [xb.exp(x) + x, xb.reduce(x, 0.0, xb.add), xb.map(x, lambda e: squares(e, e)), xb.sort(x)],
            (array(f32, NAN, 1, INF),)),
    Program("given-to-a-dot", lambda x, y: xb.dot(x, y), (array(f32, [NAN, 1], [1, INF]), array(f32, [1, 1], [1, 1]))),
    Program("given-on-the-right", lambda x, y: xb.dot(x, y), (array(f32, 1, 2), array(f32, INF, 1))),
    Program("given-as-init", lambda x, i: [xb.reduce(x, i, xb.add), xb.reduce_window(x, i, xb.add, (2,))],
            (array(f32, 1, 2), f32(NAN))),
    Program("given-to-windows", lambda x, i, u: [added(x, i, u), pooled(x, u[0:2])],
            (array(f32, 1, 2, NAN), array(s32, [1], [0], [2]), array(f32, INF, NAN, 1))),
    Program("given-to-matrices", lambda x: [lower(x), xb.fft(x, "RFFT", (2,))],
            (array(f32, [[1, 0], [0, 1]], [[NAN, 2], [2, 1]]),)),
    Program("a-branch-not-taken", lambda x: xb.select(x > 0.0, x, xb.neg(x)), (array(f32, 0, -1),)),
    Program("wrapping", lambda x: [x + x, x * x, -x, abs(x)], (array(s8, 127, -128),)),
    Program("nan-is-true", lambda x: xb.convert(x, xb.pred), (array(f32, NAN, 0),)),
    Program("just-inside", lambda x, i: [xb.dynamic_slice(x, [i], (2,)), taken(x, array(s32, [0], [3]))],
            (np.zeros(4, f32), s32(2))),
    Program("kept-promises", lambda x, i, u: added(x, i, u, indices_are_sorted=True, unique_indices=True),
            (np.ones(4, f32), array(s32, [0], [1], [3]), np.ones(3, f32))),
    Program("dead", lambda x: [xb.log(x), x][1], (f32(0),)),
]  # fmt: skip
