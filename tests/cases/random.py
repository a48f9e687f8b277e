"""Cases of random numbers: bits that a state determines, and draws that leave nothing to chance."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

UNIFORM, NORMAL, BITS = "Operation Semantics, RngUniform", "Operation Semantics, RngNormal", "numerics, Random"
XLA = "XLA:CPU, RngBitGenerator"
BF16 = ml_dtypes.bfloat16
HALVES = np.array([1, 2, 3, 4], np.uint32)
WHOLE, LONG = np.array([1, 2], np.uint64), np.array([1, 2, 3], np.uint64)
ALL = np.array([2**64 - 1] * 3, np.uint64)

FRY = [43444564, 2150618427, 3979645651, 3745730563, 1672743891, 4240503393]
FRY_WIDE = [9236835810183407956, 16087790271692313299, 18212823393184779219]
TEXAS = [4031113034, 1366700262, 495645701, 3051723414, 89414891, 1917262711]
TEXAS_WIDE = [5869932932755744586, 13107052260063114245, 8234580641674714347]


def bits(name: str, algorithm: str, state: np.ndarray, after: Any, shape: xb.Shape, words: Any, **more: Any) -> Case:
    """`words` in the order of the elements, of which narrow types have the lowest bits, as an unsigned type."""
    unsigned = xb.primitive_type(f"u{shape.dtype.bits}")
    low = np.array(words, np.uint64).reshape(shape.dims) & np.uint64(2**unsigned.bits - 1)
    attributes = {"algorithm": f"rng_{algorithm}", "shape": shape}
    result = np.array(after, state.dtype), low.astype(unsigned.dtype)
    return Case(f"bits-{name}", xb.ops.rng_bit_generator, (state,), result, attributes, source=XLA, **more)


def narrow() -> list[Case]:
    """Every type takes the lowest bits of a word, in the unsigned type of its width."""
    found = []
    for t in (
        xb.s2,
        xb.s4,
        xb.u4,
        xb.u8,
        xb.s8,
        xb.u16,
        xb.s16,
        xb.s32,
        xb.f16,
        xb.bf16,
        xb.f32,
        xb.f8e5m2,
        xb.f4e2m1fn,
    ):
        runs = t.bits > 2
        found.append(bits(f"fry-{t}", "three_fry", WHOLE, [1, 5], t[6], FRY, oracle=runs))
        found.append(bits(f"philox-{t}", "philox", LONG, [1, 4, 3], t[6], TEXAS, oracle=runs))
        found.append(bits(f"default-{t}", "default", LONG, [1, 4, 3], t[6], TEXAS, oracle=runs))
    for t in (xb.s64, xb.f64):
        found.append(bits(f"fry-{t}", "three_fry", WHOLE, [1, 5], t[3], FRY_WIDE))
        found.append(bits(f"philox-{t}", "philox", LONG, [1, 4, 3], t[3], TEXAS_WIDE))
    return found


def drawn(a: xb.Value, b: xb.Value, shape: xb.Shape, form: str = "uniform") -> xb.Value:
    return xb.ops.rng(a, b, shape=shape, distribution=f"rng_{form}")


def certain(name: str, dtype: Any, a: Any, b: Any, expected: Any, form: str = "uniform", **more: Any) -> Case:
    """A draw that has one result only."""
    ends = np.array(a).astype(dtype), np.array(b).astype(dtype)
    attributes = {"shape": xb.primitive_type(dtype)[3], "form": form}
    result = np.array([expected] * 3).astype(dtype)
    source = UNIFORM if form == "uniform" else NORMAL
    return Case(f"{form}-{name}", drawn, ends, result, attributes, source=source, **more)


def state(builder: xb.Builder, delta: int) -> xb.Value:
    return xb.ops.rng_get_and_update_state(builder, delta=delta, shape=xb.u64[2])


def states(x: xb.Value) -> xb.Value:
    """What the deltas leave behind: the third is used by nobody and counts."""
    first, second = state(x.builder, 5), state(x.builder, -1)
    state(x.builder, 2**63)
    return xb.tuple_(x, second - first, state(x.builder, 0) - second)


def within(x: xb.Value) -> xb.Value:
    """A draw inside of a computation that is applied to each element."""
    return xb.map(x, lambda e: xb.ops.rng(e, e, shape=xb.f32[()], distribution="rng_uniform"))


CASES = [
    bits("fry", "three_fry", WHOLE, [1, 5], xb.u32[6], FRY),
    bits("fry-odd", "three_fry", WHOLE, [1, 5], xb.u32[5], FRY[:5]),
    bits("fry-scalar", "three_fry", WHOLE, [1, 3], xb.u32[()], FRY[:1]),
    bits("fry-none", "three_fry", WHOLE, [1, 2], xb.u32[2, 0], []),
    bits("fry-split-rows", "three_fry", WHOLE, [1, 5], xb.u32[2, 3], FRY[0::2] + FRY[1::2]),
    bits("fry-split-columns", "three_fry", WHOLE, [1, 5], xb.u32[3, 2], FRY),
    bits("fry-split-odd", "three_fry", WHOLE, [1, 4], xb.u32[1, 3], FRY[:3]),
    bits("fry-wide", "three_fry", WHOLE, [1, 5], xb.u64[3], FRY_WIDE),
    bits("fry-wide-scalar", "three_fry", WHOLE, [1, 3], xb.u64[()], FRY_WIDE[:1]),
    bits(
        "fry-around", "three_fry", ALL[:2], [2**64 - 1, 2], xb.u64[3],
        [13474818356711888636, 5645538382004713924, 17621154428984418657],
    ),
    bits(
        "philox-around", "philox", ALL, [2**64 - 1, 1, 0], xb.u64[3],
        [4740103540206151533, 7878011797965096902, 1533272510205032201],
    ),
    bits("philox", "philox", LONG, [1, 4, 3], xb.u32[6], TEXAS),
    bits("philox-plane", "philox", LONG, [1, 4, 3], xb.u32[3, 2], TEXAS),
    bits("philox-scalar", "philox", LONG, [1, 3, 3], xb.u32[()], TEXAS[:1]),
    bits("philox-none", "philox", LONG, [1, 2, 3], xb.u32[0], []),
    bits("philox-wide", "philox", LONG, [1, 4, 3], xb.u64[3], TEXAS_WIDE),
    bits("philox-short-state", "philox", WHOLE, [1, 3], xb.u32[4], [2100602697, 2847456232, 2074354647, 800269529]),
    bits("default", "default", LONG, [1, 4, 3], xb.u32[6], TEXAS),
    *narrow(),
    Case(
        "fry-halves", xb.ops.rng_bit_generator, (HALVES,),
        (np.array([1, 2, 5, 4], np.uint32), np.array([1576285164, 2249660814, 740599976, 2425682526], np.uint32)),
        {"algorithm": "rng_three_fry", "shape": xb.u32[4]}, source=BITS, oracle=False,
    ),
    Case(
        "philox-halves", xb.rng_bit_generator, (HALVES,),
        (np.array([1, 2, 4, 4], np.uint32), np.array([512747620, 1298009047, 1267190206, 761827841], np.uint32)),
        {"algorithm": "rng_philox", "shape": xb.u32[4]}, source=BITS, oracle=False,
    ),
    Case(
        "philox-long-halves", xb.rng_bit_generator, (LONG.view(np.uint32),),
        (np.array([1, 4, 3], np.uint64).view(np.uint32), np.array(TEXAS, np.uint32)), {"shape": xb.u32[6]}, source=XLA,
        oracle=False,
    ),
    certain("same", np.float32, 2.5, 2.5, 2.5),
    certain("same-integer", np.int32, -7, -7, -7, oracle=False),
    certain("step", np.int32, -7, -6, -7),
    certain("step-u64", np.uint64, 2**64 - 2, 2**64 - 1, 2**64 - 2),
    certain("step-s64", np.int64, -(2**63), -(2**63) + 1, -(2**63)),
    certain("step-u32", np.uint32, 2**32 - 2, 2**32 - 1, 2**32 - 2),
    certain("step-down", np.int32, -6, -7, -6, oracle=False),
    certain("step-pred", np.bool_, False, True, False, oracle=False),
    certain("step-s4", ml_dtypes.int4, -8, -7, -8, oracle=False),
    certain("step-s8", np.int8, -128, -127, -128, oracle=False),
    certain("step-u16", np.uint16, 65534, 65535, 65534, oracle=False),
    certain("neighbours", np.float32, 1, np.nextafter(np.float32(1), np.float32(2)), 1, oracle=False),
    certain("neighbours-f64", np.float64, 1, np.nextafter(1, 2), 1, oracle=False),
    certain("neighbours-f16", np.float16, 1024, 1025, 1024, oracle=False),
    certain("neighbours-bf16", BF16, 256, 258, 256, oracle=False),
    certain("neighbours-f8", ml_dtypes.float8_e5m2, 8, 10, 8, oracle=False),
    certain("nan", np.float32, np.nan, 1, np.nan, oracle=False),
    certain("certain", np.float32, 2.5, 0, 2.5, "normal"),
    certain("certain-f64", np.float64, 2.5, 0, 2.5, "normal"),
    certain("certain-f16", np.float16, 2.5, 0, 2.5, "normal"),
    certain("certain-bf16", BF16, 2.5, 0, 2.5, "normal"),
    certain("certain-f8", ml_dtypes.float8_e4m3fn, 2.5, 0, 2.5, "normal", oracle=False),
    Case("uniform-scalar", drawn, (np.float32(1.5),) * 2, np.float32(1.5), {"shape": xb.f32}, source=UNIFORM),
    Case("uniform-none", drawn, (np.float32(0), np.float32(1)), np.zeros((2, 0), np.float32), {"shape": xb.f32[2, 0]},
         source=UNIFORM),
    Case("uniform-numbers", lambda x: xb.tuple_(x, xb.rng_uniform(3, 4, xb.s32[2], builder=x.builder)),
         (np.float32(0),), (0, [3, 3]), source=UNIFORM),
    Case("normal-numbers", lambda x: xb.rng_normal(x, 0, xb.f32[2]), (np.float32(0.5),), [0.5, 0.5], source=NORMAL),
    Case("uniform-within", within, (np.array([1, 2.5], np.float32),), [1, 2.5], source=UNIFORM, oracle=False),
    Case("state", lambda x: xb.tuple_(x, state(x.builder, 1)), (np.float32(0),),
         (np.float32(0), np.array([117515157, 0], np.uint64)), source="XLA:CPU, rng-get-and-update-state"),
    Case("state-moves", states, (np.float32(0),), (0, np.array([5, 0], np.uint64), np.array([2**63 - 1, 0], np.uint64)),
         source="HloOpcode, rng-get-and-update-state", oracle=False),
]  # fmt: skip


def refused(name: str, a: str, b: str, shape: Any, kind: str, *names: str, form: str = "uniform") -> Refusal:
    attributes = {"shape": shape, "distribution": f"rng_{form}"}
    return Refusal(f"{form}-{name}", xb.ops.rng, (a, b), kind, names, attributes)


def unread(name: str, given: str, algorithm: str, shape: Any, kind: str, *names: str) -> Refusal:
    attributes = {"algorithm": algorithm, "shape": shape}
    return Refusal(f"bits-{name}", xb.ops.rng_bit_generator, (given,), kind, names, attributes)


FRY_NAME, PHILOX = "rng_three_fry", "rng_philox"
REFUSALS = [
    refused("ends", "f32[]", "s32[]", xb.f32[2], "element_type_mismatch", "f32", "s32"),
    refused("shape", "f32[]", "f32[]", xb.s32[2], "element_type_mismatch", "f32", "s32", "shape"),
    refused("vector", "f32[2]", "f32[]", xb.f32[2], "non_scalar", "a", "f32[2]"),
    refused("second", "f32[]", "f32[1]", xb.f32[2], "non_scalar", "b", "f32[1]"),
    refused("token", "token[]", "f32[]", xb.f32[2], "not_array", "token[]"),
    refused("complex", "c64[]", "c64[]", xb.c64[2], "element_type_unsupported", "c64"),
    refused("integers", "s32[]", "s32[]", xb.s32[2], "element_type_unsupported", "s32", form="normal"),
    refused("pred", "pred[]", "pred[]", xb.pred[2], "element_type_unsupported", "pred", form="normal"),
    refused("tuple", "f32[]", "f32[]", xb.TupleShape((xb.f32[2],)), "invalid_attribute", "shape"),
    refused("negative", "f32[]", "f32[]", xb.Shape(xb.f32, (-2,)), "negative_size", "-2", "shape"),
    refused("word", "f32[]", "f32[]", xb.f32[2], "invalid_attribute", "rng_uniform", form="poisson"),
    unread("short", "u64[1]", FRY_NAME, xb.u32[2], "dimension_mismatch", "1", "u64[2]"),
    unread("long", "u64[3]", FRY_NAME, xb.u32[2], "dimension_mismatch", "3", "u64[2]"),
    unread("longer", "u64[4]", PHILOX, xb.u32[2], "dimension_mismatch", "4", "u64[2]", "u64[3]"),
    unread("halves", "u32[3]", PHILOX, xb.u32[2], "dimension_mismatch", "3", "u32[4]", "u32[6]"),
    unread("scalar", "u64[]", PHILOX, xb.u32[2], "rank_mismatch", "u64[]", "0", "1"),
    unread("signed", "s64[2]", PHILOX, xb.u32[2], "element_type_unsupported", "s64"),
    unread("pred", "u64[2]", PHILOX, xb.pred[2], "element_type_unsupported", "pred", "shape"),
    unread("complex", "u64[2]", PHILOX, xb.c64[2], "element_type_unsupported", "c64", "shape"),
    unread("one-bit", "u64[2]", PHILOX, xb.u1[2], "element_type_unsupported", "u1", "2"),
    unread("word", "u64[2]", "rng_mt19937", xb.u32[2], "invalid_attribute", "algorithm", "rng_philox"),
    Refusal("state-type", lambda x: xb.ops.rng_get_and_update_state(x.builder, delta=1, shape=xb.s64[2]), ("f32[]",),
            "element_type_unsupported", ("s64[2]", "u64[2]")),
    Refusal("state-size", lambda x: xb.ops.rng_get_and_update_state(x.builder, delta=1, shape=xb.u64[3]), ("f32[]",),
            "dimension_mismatch", ("u64[3]", "u64[2]")),
    Refusal("uniform-no-shape", xb.rng_uniform, ("f32[]", "f32[]"), "invalid_attribute", ("shape",), {"shape": (2, 3)}),
]  # fmt: skip
