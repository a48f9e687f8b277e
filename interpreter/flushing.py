"""Denormal numbers made zeros by array operations around each op, where the processor has no known mode for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from shape_inference import Shape, leaves
from shape_inference.ops.elementwise import BINARY, UNARY
from xbuild.graph import Instruction

if TYPE_CHECKING:
    from .emit import Emitter, Expr

_UNSIGNED: dict[Any, Any] = {
    np.dtype(np.float32): np.uint32,
    np.dtype(np.float64): np.uint64,
    np.dtype(ml_dtypes.bfloat16): np.uint16,
}
_SIGN: dict[Any, Any] = {dtype: bits(1 << (8 * dtype.itemsize - 1)) for dtype, bits in _UNSIGNED.items()}
_LEAST_NORMAL: dict[Any, Any] = {
    dtype: np.array(ml_dtypes.finfo(dtype).tiny, dtype).view(bits)[()]  # type: ignore[no-untyped-call]
    for dtype, bits in _UNSIGNED.items()
}
"""The types that are flushed; f16 and smaller ones are computed in f32, where their denormal numbers are none."""

_PART: dict[Any, Any] = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}

_MOVING = frozenset({"abs", "imag", "is_finite", "negate", "real"})
"""What leaves the bits below the sign as they are."""

_ARITHMETIC = frozenset({*UNARY, *BINARY} - _MOVING) | {
    "batch_norm_grad", "batch_norm_inference", "batch_norm_training", "cholesky", "clamp", "compare", "convolution",
    "dot", "fft", "ragged_dot", "scaled_dot", "triangular_solve",
}  # fmt: skip


def flushed(value: Any) -> Any:
    """The value with a zero of the same sign for each denormal number."""
    if isinstance(value, tuple):
        return tuple(map(flushed, value))
    if not isinstance(value, np.ndarray | np.generic):
        return value
    if value.dtype in _PART:
        parts: Any = np.ascontiguousarray(value).reshape((*np.shape(value), 1)).view(_PART[value.dtype])
        return flushed(parts).view(value.dtype)[..., 0]
    return _flushed(value) if value.dtype in _UNSIGNED else value


def _flushed(value: Any) -> Any:
    bits = value.view(_UNSIGNED[value.dtype])
    sign = _SIGN[value.dtype]
    small = (bits & ~sign) < _LEAST_NORMAL[value.dtype]
    return np.where(small, bits & sign, bits).view(value.dtype)[()] if small.any() else value


def is_flushing(instruction: Instruction) -> bool:
    """Whether an op takes denormal numbers for zeros; what applies a computation leaves that to the computation."""
    types = {leaf.dtype.dtype for leaf in _arrays(instruction)}
    if not types & {*_UNSIGNED, *_PART}:
        return False
    if instruction.opcode == "compare" and instruction.attributes.type == "TOTALORDER":
        return False
    return instruction.opcode in _ARITHMETIC or (instruction.opcode == "convert" and _changes_width(instruction))


def _arrays(instruction: Instruction) -> list[Shape]:
    shapes = [instruction.shape, *(operand.shape for operand in instruction.operands)]
    return [leaf for shape in shapes for leaf in leaves(shape) if isinstance(leaf, Shape)]


def _changes_width(instruction: Instruction) -> bool:
    """Whether it is between f32 and f64, or to pred; to the same type it only moves, and bf16 keeps them."""
    after, before = (shape.dtype.name for shape in _arrays(instruction))
    return after != before and "bf16" not in (after, before)


def flush_lines(emitter: Emitter, exprs: list[Expr]) -> list[Expr]:
    """The expressions, flushed."""
    from .emit import spell

    name = emitter.bind("r", flushed)
    return [expr if expr == "None" else f"{name}({spell(expr)})" for expr in exprs]
