"""Comparison of a program's outputs on two engines: the distance in units in the last place, and the tolerances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from attrs import evolve, frozen

from shape_inference import AnyShape, PrimitiveType, Shape, primitive_type
from xbuild.files.arrays import leaf_values

# ----------------------------------------------------------------------------
# Distance of two arrays in units in the last place, and the tolerance of each element type.

Array: TypeAlias = Any

_UNSIGNED = (ml_dtypes.float8_e8m0fnu,)  # the type has exponents alone: its bits are in the order of its values

# The tolerance by width of the type, in eps relative to the largest magnitude of the array: XLA sums in another order,
# and its elementary functions differ in the last places. Integers and predicates must be equal.
EPS_OF_BITS = {64: 64.0, 32: 64.0, 16: 4.0, 8: 1.0, 6: 1.0, 4: 1.0}


def allowed(dtype: PrimitiveType) -> float:
    """The tolerance of an element type in its own eps; 0 for integers and predicates.

    >>> import xbuild as xb
    >>> allowed(xb.f32), allowed(xb.bf16), allowed(xb.s32), allowed(xb.c64)
    (64.0, 4.0, 0.0, 64.0)
    """
    if dtype.kind == "complex":
        return EPS_OF_BITS[dtype.bits // 2]
    if dtype.dtype in _UNSIGNED:
        return 0.5  # the next smaller value is half of the value
    return EPS_OF_BITS[dtype.bits] if dtype.is_float else 0.0


def distance(a: Array, b: Array) -> Array:
    """The distance of two arrays by element, in values of their type; inf if one is NaN or integers differ."""
    if a.dtype.kind == "c":
        return np.maximum(distance(a.real, b.real), distance(a.imag, b.imag))
    if not is_float(a.dtype):
        return np.where(a == b, 0.0, np.inf)
    left, right = _ordered(a), _ordered(b)
    apart = (np.maximum(left, right) - np.minimum(left, right)).astype(np.float64)
    with np.errstate(invalid="ignore"):  # a signalling NaN would warn
        one, other = np.isnan(a).astype(bool), np.isnan(b).astype(bool)
    return np.where(one & other, 0.0, np.where(one | other, np.inf, apart))


def is_float(dtype: np.dtype[Any]) -> bool:
    return primitive_type(dtype).is_float


def _ordered(values: Array) -> Array:
    """The bits of floats as unsigned ints in the order of the floats; -0 is just below +0."""
    kind = np.dtype(f"u{values.dtype.itemsize}")
    bits = np.ascontiguousarray(values).view(kind).reshape(values.shape)
    if values.dtype in _UNSIGNED:
        return bits
    sign = kind.type(1 << (primitive_type(values.dtype).bits - 1))
    magnitude = bits & (sign - kind.type(1))
    return np.where(bits & sign, sign - kind.type(1) - magnitude, sign + magnitude).astype(kind)


def beyond(a: Array, b: Array, eps: float | None = None) -> Array:
    """Where two arrays differ by more than `eps` (by default their type's tolerance) times their largest magnitude.

    A NaN equals a NaN, and an infinity equals itself; both are beyond any other number.
    """
    dtype = primitive_type(a.dtype)
    factor = allowed(dtype) if eps is None else eps
    if not (dtype.is_float or dtype.kind == "complex"):
        return np.asarray(a != b)
    wide = np.complex128 if dtype.kind == "complex" else np.float64
    with np.errstate(all="ignore"):
        left, right = a.astype(wide), b.astype(wide)
        magnitudes = np.maximum(np.abs(left), np.abs(right))
        finite = magnitudes[np.isfinite(magnitudes)]
        tolerance = factor * _eps(a.real.dtype) * (finite.max() if finite.size else 0.0)
        near = np.abs(left - right) <= tolerance
    both_nan = np.isnan(left) & np.isnan(right)
    return ~(near | both_nan | (left == right))


def _eps(dtype: Any) -> float:
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


# ----------------------------------------------------------------------------
# Comparison of a program's outputs on two engines: the distance of each output, and the first index that differs.


@frozen
class OutputComparison:
    """The comparison of one output of one device: the largest distance in ulps, and the first element that differs.

    `place` is the first index beyond the tolerance (in eps of the element type), None where there is none; `engine` is
    what gave the other value, `our_engine` what gave ours. `note` says why an output that is beyond the tolerance
    counts as the same.
    """

    device: int
    output: int
    shape: Shape
    ulps: float
    eps: float
    place: tuple[int, ...] | None = None
    ours: Any = None
    theirs: Any = None
    engine: str = "xla"
    our_engine: str = "interpreter"
    note: str = ""

    @property
    def same(self) -> bool:
        """Whether both values agree within the tolerance."""
        return self.place is None

    def __str__(self) -> str:
        head = f"device {self.device}  out{self.output}  {self.shape}  max {self.ulps:g} ulp"
        if self.same:
            return f"{head}  {self.note or ('the same' if not self.ulps else f'within {self.eps:g} eps')}"
        where = ", ".join(map(str, self.place or ()))
        values = f"{self.our_engine} {self.ours}, {self.engine} {self.theirs}"
        return f"{head}  differs at [{where}]: {values} (expected within {self.eps:g} eps)"


def compare(
    ours: Sequence[Any],
    theirs: Sequence[Any],
    shapes: Sequence[AnyShape],
    eps: float | None = None,
    *,
    engine: str = "xla",
    our_engine: str = "interpreter",
) -> list[OutputComparison]:
    """Compare the outputs of a program on two engines, by device; each leaf of a tuple is one output.

    The differences call the two sides `our_engine` and `engine`.

    Floats agree where they are at most `eps` eps of their type apart, as parts of the largest magnitude of the output;
    without it, 64 for types of 32 and 64 bits (or two such parts), 4 of 16, 1 of fewer. Others agree where equal.

    >>> import xbuild as xb
    >>> one, other = np.float32([1.0, 2.0]), np.float32([1.0, 2.5])
    >>> print(*compare([one], [other], [xb.f32[2]]))
    device 0  out0  f32[2]  max 2.09715e+06 ulp  differs at [1]: interpreter 2.0, xla 2.5 (expected within 64 eps)
    """
    comparisons = []
    for device, (one, other, shape) in enumerate(zip(ours, theirs, shapes, strict=True)):
        pairs = zip(leaf_values(one, shape), leaf_values(other, shape), strict=True)
        comparisons += [
            evolve(
                _compared(device, number, leaf, np.asarray(a), np.asarray(b), eps), engine=engine, our_engine=our_engine
            )
            for number, ((a, leaf), (b, _)) in enumerate(pairs)
        ]
    return comparisons


def _compared(device: int, number: int, shape: Shape, a: Any, b: Any, eps: float | None) -> OutputComparison:
    within = allowed(shape.dtype) if eps is None else eps
    ulps = float(distance(a, b).max(initial=0.0))
    wrong = beyond(a, b, eps)
    if not wrong.any():
        return OutputComparison(device, number, shape, ulps, within)
    place = tuple(int(position) for position in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return OutputComparison(device, number, shape, ulps, within, place, a[place], b[place])


def lines(compared: Sequence[OutputComparison]) -> Iterator[str]:
    """A line for each output of each device; devices on which the engines agree bit for bit share a line."""
    for output in sorted({row.output for row in compared}):
        rows = [row for row in compared if row.output == output]
        if len(rows) > 1 and not any(row.ulps for row in rows):
            yield f"devices {rows[0].device}-{rows[-1].device}  {str(rows[0]).partition('  ')[2]}"
        else:
            yield from map(str, rows)
