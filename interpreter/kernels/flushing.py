"""Flushing of denormal numbers by array operations around each op, for platforms without a processor mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from shape_inference import Shape, leaves
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.core.op import opcodes

from .lifting import common

Rule: TypeAlias = Callable[..., Any]

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
"""The types that are flushed; f16 and smaller types are computed in f32, where their denormal numbers are normal."""

_PART: dict[Any, Any] = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}

_RETURNING = opcodes(lambda op: op.denormals == "returned")
"""Ops that return a denormal real operand unchanged, except tanh in double precision."""

_ARITHMETIC = opcodes(lambda op: op.denormals != "kept")


def flushed(value: Any) -> Any:
    """The value with each denormal number replaced by a zero of the same sign."""
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


def flushing(instruction: Instruction, rule: Rule) -> Rule | None:
    """The rule of an op with denormal numbers flushed as in XLA; None if the op itself flushes none.

    An op that applies a computation leaves flushing to the computation.
    """
    types = {leaf.dtype.dtype for leaf in _arrays(instruction)}
    if not types & {*_UNSIGNED, *_PART}:
        return None
    opcode, is_real = instruction.opcode, not types & {*_PART}
    if opcode == "convert":
        return _around(rule) if _changes_width(instruction) else None
    if opcode == "compare" and instruction.attributes.type == "TOTALORDER":
        return None
    if is_real and opcode in _RETURNING and (opcode, types) != ("tanh", {np.dtype(np.float64)}):
        return None
    if is_real and opcode in _OWN:
        return partial(_OWN[opcode], rule)
    return _around(rule) if opcode in _ARITHMETIC else None


@cache
def _around(rule: Rule) -> Rule:
    """The rule applied to flushed operands, with its result flushed."""
    return lambda *operands, **attributes: flushed(rule(*map(flushed, operands), **attributes))


def _remainder(rule: Rule, lhs: Array, rhs: Array) -> Any:
    """The remainder with only the divisor flushed: the operation is exact, so dividend and result may be denormal."""
    return rule(lhs, flushed(rhs))


def _power(rule: Rule, lhs: Array, rhs: Array) -> Any:
    """The power of operands that are not flushed, with its result flushed."""
    return flushed(rule(lhs, rhs))


def _atan2(rule: Rule, lhs: Array, rhs: Array) -> Any:
    """The arctangent of flushed operands, but ±π/2 where lhs is flushed to zero and rhs is zero."""
    ordinate, abscissa = flushed(lhs), flushed(rhs)
    result = flushed(rule(ordinate, abscissa))
    is_right = (lhs != 0) & (ordinate == 0) & (abscissa == 0)
    return np.where(is_right, np.copysign(np.float64(np.pi / 2), lhs.astype(np.float64)), result).astype(lhs.dtype)[()]


def _dot(rule: Rule, lhs: Array, rhs: Array, **attributes: Any) -> Any:
    """The dot of flushed operands; if products may be denormal, terms are added one by one and each sum is flushed."""
    left, right, total = flushed(lhs), flushed(rhs), None
    if left.dtype not in _UNSIGNED or right.dtype not in _UNSIGNED or not _is_small(left, right):
        return flushed(rule(left, right, **attributes))
    dims = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
    wide = [each.astype(np.promote_types(each.dtype, np.float32)) for each in (left, right)]
    preferred = attributes.pop("preferred_element_type")
    attributes["preferred_element_type"] = None
    result = preferred.dtype if preferred else common(lhs.dtype, rhs.dtype)
    for place in np.ndindex(*(lhs.shape[dim] for dim in dims[0])):
        a, b = (each[_at(each.ndim, dim, place)] for each, dim in zip(wide, dims, strict=True))
        sign = rule(np.sign(a), np.sign(b), **attributes)
        term = flushed(np.copysign(rule(a, b, **attributes), np.where(sign, sign, 1)))
        total = term if total is None else flushed(total + term)
    return flushed(np.asarray(total).astype(result))


_OWN: dict[str, Callable[..., Any]] = {"atan2": _atan2, "dot": _dot, "power": _power, "remainder": _remainder}
"""The ops with their own treatment of denormal real operands; denormal complex operands are always flushed."""


def _arrays(instruction: Instruction) -> list[Shape]:
    shapes = [instruction.shape, *(operand.shape for operand in instruction.operands)]
    return [leaf for shape in shapes for leaf in leaves(shape) if isinstance(leaf, Shape)]


def _is_small(lhs: Array, rhs: Array) -> bool:
    """Whether the product of two nonzero elements may be denormal or nearly so."""
    least = [np.abs(each[each != 0].astype(np.float64)).min(initial=np.inf) for each in (lhs, rhs)]
    bound = float(ml_dtypes.finfo(np.promote_types(lhs.dtype, np.float32)).tiny) * 2  # type: ignore[no-untyped-call]
    return bool(least[0] < bound / least[1])


def _at(rank: int, dims: Sequence[int], place: Sequence[int]) -> tuple[slice, ...]:
    """Slices that select one element along each of `dims` and all elements of the other dimensions."""
    chosen = dict(zip(dims, place, strict=True))
    return tuple(slice(chosen[dim], chosen[dim] + 1) if dim in chosen else slice(None) for dim in range(rank))


def _changes_width(instruction: Instruction) -> bool:
    """Whether a convert flushes: it does not to the same type, and with bf16 on either side only from or to f64."""
    after, before = (shape.dtype.name for shape in _arrays(instruction))
    return after != before and ("bf16" not in (after, before) or "f64" in (after, before))
