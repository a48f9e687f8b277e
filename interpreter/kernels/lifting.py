"""Extension of kernels on native types to every element type: operands are widened, and the result is rounded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from shape_inference.dims import wider
from shape_inference.types import (
    PRIMITIVES,
    f4e2m1fn,
    f6e2m3fn,
    f6e3m2fn,
    f8e4m3b11fnuz,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f8e8m0fnu,
    primitive_type,
)
from xbuild.core.attributes import Array

Kernel: TypeAlias = Callable[..., Any]
"""A function of arrays or scalars of one native type."""

ByKind: TypeAlias = Mapping[str, Kernel]
"""The kernels of an op by the kind of the element type (NumPy's letters b, i, u, f, c)."""

WIDE: dict[np.dtype[Any], np.dtype[Any]] = {
    t.dtype: np.dtype({"float": np.float32, "signed": np.int8, "unsigned": np.uint8}[t.kind])
    for t in PRIMITIVES.values()
    if not t.is_native
}
"""For each type that NumPy lacks, the native type that represents all of its values."""


def by_kind(**kernels: Kernel) -> ByKind:
    """The mapping with one entry for each letter of a keyword: `by_kind(iu=a, fc=b)`."""
    return {kind: kernel for kinds, kernel in kernels.items() for kind in kinds}


def widened(array: Array) -> Array:
    """The same values in a native type."""
    return array if array.dtype.isbuiltin == 1 else array.astype(WIDE[array.dtype])


ONE_NAN = {f8e5m2.dtype: 0x7F, f4e2m1fn.dtype: 0x8, f6e2m3fn.dtype: 0x20, f6e3m2fn.dtype: 0x20}
"""Types in which XLA:CPU rounds every NaN to the same bits; in types without NaN these are the bits of -0."""


def narrowed(array: Array, dtype: np.dtype[Any]) -> Array:
    """Values rounded, or wrapped, to the type `dtype`."""
    if array.dtype == dtype:
        return array
    if dtype in ONE_NAN and array.dtype.kind == "f":
        return _with_one_nan(array, dtype)
    return array.astype(dtype)


def _with_one_nan(array: Array, dtype: np.dtype[Any]) -> Array:
    rounded = array.astype(dtype)
    nans = np.isnan(array)
    if not nans.any():
        return rounded
    return np.where(nans, np.array(ONE_NAN[dtype], np.uint8).view(dtype), rounded)


def quieted(array: Array) -> Any:
    """Floats with every NaN made quiet (highest mantissa bit set), as processors convert NaNs and NumPy does not."""
    nans = np.isnan(array)
    if not nans.any():
        return array
    bits = array.view(f"u{array.dtype.itemsize}")
    return np.where(nans, bits | bits.dtype.type(1 << np.finfo(array.dtype).nmant - 1), bits).view(array.dtype)


def common(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which operands of two float types are computed."""
    return a if a == b else wider(primitive_type(a), primitive_type(b)).dtype


def together(*arrays: Array) -> tuple[Array, ...]:
    """Arrays of one kind converted to one native type that represents all their values."""
    native = [widened(array) for array in arrays]
    dtype = max((array.dtype for array in native), key=lambda each: each.itemsize)
    return tuple(narrowed(array, dtype) for array in native)


def total_order(operand: Array) -> Any:
    """Integers that sort as the total order of floats: the bits below the sign are inverted in negative numbers."""
    if primitive_type(operand.dtype) in _SIGNED_OTHERWISE:
        operand = widened(operand)
    below = 8 * operand.dtype.itemsize - 1
    bits = operand.view(f"i{operand.dtype.itemsize}")
    return bits ^ ((bits >> below) & (2**below - 1))


_SIGNED_OTHERWISE = (f4e2m1fn, f6e2m3fn, f6e3m2fn, f8e4m3b11fnuz, f8e4m3fnuz, f8e5m2fnuz, f8e8m0fnu)
"""Types without a sign in the top bit of a byte, or in which -0 is the NaN."""


def lift_unary(kernels: ByKind) -> Kernel:
    def rule(operand: Array) -> Any:
        dtype = operand.dtype
        if dtype.isbuiltin == 1:
            return kernels[dtype.kind](operand)
        wide = WIDE[dtype]
        return narrowed(kernels[wide.kind](operand.astype(wide)), dtype)

    return rule


def lift_binary(kernels: ByKind) -> Kernel:
    def rule(lhs: Array, rhs: Array) -> Any:
        dtype = lhs.dtype
        if dtype is rhs.dtype and dtype.isbuiltin == 1:
            return kernels[dtype.kind](lhs, rhs)
        left, right = together(lhs, rhs)
        return narrowed(kernels[left.dtype.kind](left, right), common(dtype, rhs.dtype))

    return rule


def in_single(kernel: Kernel) -> Kernel:
    """The kernel, with f16 operands computed in f32 and the result rounded once."""

    def precise(operand: Array) -> Any:
        if operand.dtype == np.float16:
            return kernel(operand.astype(np.float32)).astype(np.float16)
        return kernel(operand)

    return precise
