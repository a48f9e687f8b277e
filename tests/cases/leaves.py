"""Cases of parameters, constants and iota, and of who the device is."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from shape_inference import PRIMITIVES, PrimitiveType
from tests.cases.case import Case, Refusal

NOT_RUN = ("s1", "u1", "f6e2m3fn", "f6e3m2fn")  # types that real XLA:CPU does not run


def sample(dtype: PrimitiveType) -> np.ndarray:
    """Six elements of a type, as different as it can hold."""
    if dtype.kind in ("signed", "unsigned"):
        top, low = 2 ** (dtype.bits - 1) - 1, -(2 ** (dtype.bits - 1))
        values = [low, top, 0, 0, -1, low] if dtype.kind == "signed" else [0, 2 * top + 1, 0, 1, 1, top]
        return np.array(values, np.int64 if dtype.kind == "signed" else np.uint64).astype(dtype.dtype)
    if dtype.kind == "complex":
        return np.array([1 + 2j, -3j, 0, 4, -1 - 1j, 0.5]).astype(dtype.dtype)
    return np.array([1.0, 2.0, 0.5, 4.0, 1.0, 2.0] if dtype.is_float else [1, 0, 0, 1, 1, 0]).astype(dtype.dtype)


def constant_of(dtype: PrimitiveType) -> Case:
    values = sample(dtype).reshape(2, 3)
    return Case(
        f"constant-{dtype}",
        lambda x: xb.tuple_(x, xb.ops.constant(x.builder, literal=values)),
        (np.float32(0),),
        (0.0, values),
        source="xla_builder.h, ConstantLiteral",
        oracle=dtype.name not in NOT_RUN,
    )


def iota_of(dtype: PrimitiveType) -> Case:
    count = min(2**dtype.bits, 4) if dtype.is_integer else 4
    first = 1 if dtype.name == "f8e8m0fnu" else 0  # which has no zero
    return Case(
        f"iota-{dtype}",
        lambda x: xb.slice(xb.ops.iota(x.builder, shape=dtype[4], iota_dimension=0), (first,), (count,)),
        (np.float32(0),),
        np.arange(first, count).astype(dtype.dtype),
        source="Operation Semantics, Iota",
        oracle=dtype.name not in NOT_RUN,
    )


def iota(dtype: PrimitiveType, dims: tuple[int, ...], dimension: int, expected: np.ndarray, name: str) -> Case:
    return Case(
        f"iota-{name}",
        lambda x: xb.ops.iota(x.builder, shape=dtype[dims], iota_dimension=dimension),
        (np.float32(0),),
        expected.astype(dtype.dtype),
        source="StableHLO, iota; numerics, Integers",
    )


def literal(name: str, values: np.ndarray, oracle: bool = True) -> Case:
    return Case(
        f"constant-{name}",
        lambda x: xb.ops.constant(x.builder, literal=values),
        (np.float32(0),),
        values,
        source="xla_builder.h, ConstantLiteral",
        oracle=oracle,
    )


TOP = float(np.finfo(np.float32).max)
SQUARE = np.arange(6).reshape(2, 3)

CASES = [
    Case(
        "parameters-by-number",
        lambda x, y: xb.tuple_(y, x),
        (np.float32(1), np.array([2, 3], np.int32)),
        ([2, 3], 1.0),
        source="xla_builder.h, Parameter",
    ),
    Case(
        "parameter-unused",
        lambda x, y: y,
        (np.zeros(3, np.float32), np.array([True, False])),
        [True, False],
        source="xla_builder.h, Parameter",
    ),
    *(constant_of(dtype) for dtype in PRIMITIVES.values()),
    literal("scalar", np.float32(2.5)),
    literal("empty", np.zeros((2, 0), np.float32)),
    literal("special", np.array([np.inf, -np.inf, np.nan, 1e-30, -1e30], np.float32)),
    literal("negative-zero", np.array([-0.0, 0.0]), oracle=False),  # XLA's own text loses the sign
    literal("complex-ends", np.array([complex(TOP, -TOP), complex(-TOP, TOP), complex(np.inf, -np.inf)], np.complex64)),
    literal("rank-4", np.arange(16, dtype=np.int16).reshape(2, 2, 2, 2)),
    *(iota_of(dtype) for dtype in PRIMITIVES.values() if dtype.kind != "pred"),
    iota(xb.s32, (2, 3), 0, SQUARE // 3, "down"),
    iota(xb.s32, (2, 3), 1, SQUARE % 3, "across"),
    iota(xb.f32, (0, 3), 1, np.zeros((0, 3)), "empty"),
    iota(xb.s8, (300,), 0, np.arange(300), "wraps"),
    iota(xb.bf16, (300,), 0, np.arange(300, dtype=np.float32), "rounds-each"),
    Case(
        "ids-of-one-device",
        lambda x: xb.tuple_(xb.replica_id(x.builder), xb.partition_id(x.builder)),
        (np.float32(0),),
        (np.uint32(0), np.uint32(0)),
        source="StableHLO, replica_id, partition_id",
    ),
]


def attempt_iota(shape: xb.Shape, dimension: int) -> Refusal:
    return Refusal(
        f"iota-{shape}-{dimension}",
        lambda x: xb.ops.iota(x.builder, shape=shape, iota_dimension=dimension),
        ("f32[]",),
        "element_type_unsupported" if shape.dtype is xb.pred else "dimension_out_of_range",
        ("pred",) if shape.dtype is xb.pred else (str(dimension),),
    )


REFUSALS = [
    attempt_iota(xb.f32[2, 3], 2),
    attempt_iota(xb.f32[2, 3], -1),
    attempt_iota(xb.s32[()], 0),
    attempt_iota(xb.pred[2], 0),
    Refusal(
        "iota-negative",
        lambda x: xb.ops.iota(x.builder, shape=xb.Shape(xb.f32, (2, -1)), iota_dimension=0),
        ("f32[]",),
        "negative_size",
        ("-1", "1"),
    ),
    Refusal(
        "parameter-negative",
        lambda x: xb.ops.parameter(x.builder, number=-1, shape=xb.f32[2]),
        ("f32[]",),
        "invalid_attribute",
        ("-1",),
    ),
    Refusal(
        "parameter-twice",
        lambda x: xb.ops.parameter(x.builder, number=0, shape=xb.f32[2]),
        ("f32[]",),
        "duplicate_parameter",
        ("0",),
    ),
    Refusal(
        "parameter-shape-missing",
        lambda x: xb.ops.parameter(x.builder, number=1),
        ("f32[]",),
        "invalid_attribute",
        ("shape",),
    ),
    Refusal(
        "constant-of-text",
        lambda x: xb.ops.constant(x.builder, literal="two"),
        ("f32[]",),
        "invalid_attribute",
        ("literal", "two"),
    ),
]
