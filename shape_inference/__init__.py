"""Shapes and element types of values, and for each op the rule that infers the shape of its result."""

from . import ops as _ops  # noqa: F401  (the import enters the rules in the tables)
from . import regions as _regions  # noqa: F401
from .kinds import KINDS
from .notation import parse_program_shape, parse_shape
from .rules import (
    MissingRule,
    RuleTable,
    ShapeError,
    XbuildError,
    infer,
    refuse,
    region_parameters,
    require,
)
from .trees import leaves
from .types import (  # fmt: skip
    COMPLEX_OF,
    COMPONENT,
    PRIMITIVES,
    AnyShape,
    BufferShape,
    Dims,
    Layout,
    PrimitiveType,
    ProgramShape,
    Shape,
    TokenShape,
    TupleShape,
    array_shape,
    bf16,
    c64,
    c128,
    compatible,
    f4e2m1fn,
    f6e2m3fn,
    f6e3m2fn,
    f8e3m4,
    f8e4m3,
    f8e4m3b11fnuz,
    f8e4m3fn,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f8e8m0fnu,
    f16,
    f32,
    f64,
    pred,
    primitive_type,
    s1,
    s2,
    s4,
    s8,
    s16,
    s32,
    s64,
    token,
    u1,
    u2,
    u4,
    u8,
    u16,
    u32,
    u64,
)

# Written out, so that `from shape_inference import *` imports no submodule.
__all__ = [
    "COMPLEX_OF", "COMPONENT", "KINDS", "PRIMITIVES", "AnyShape", "BufferShape", "Dims", "Layout", "MissingRule",
    "PrimitiveType", "ProgramShape", "RuleTable", "Shape", "ShapeError", "TokenShape", "TupleShape",
    "XbuildError", "array_shape", "bf16", "c64", "c128", "compatible", "f4e2m1fn", "f6e2m3fn",
    "f6e3m2fn", "f8e3m4", "f8e4m3",
    "f8e4m3b11fnuz", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu", "f16", "f32", "f64",
    "infer", "leaves", "parse_program_shape", "parse_shape", "pred", "primitive_type", "refuse",
    "region_parameters", "require", "s1", "s2", "s4", "s8", "s16", "s32", "s64", "token", "u1", "u2", "u4",
    "u8", "u16", "u32", "u64",
]  # fmt: skip
