"""Shared parts of the two Jacobi methods: the rotations, and the round-robin order of pairs of columns.

The columns are arranged in two rows, and the two columns above each other form a pair. After a round all columns but
the first move on by one place. In n - 1 rounds each two columns are paired once, and the first order is restored.

Source: Brent and Luk, The solution of singular-value and symmetric eigenvalue problems on multiprocessor arrays (1985).
"""

from __future__ import annotations

from attrs import frozen

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, select
from ..derived.shaping import concatenate
from ..derived.slicing import slice_in_dim
from .matrices import along, conj, dims_of, like


@frozen
class Rotation:
    """Rotations of pairs: the cosines, the sines (with the phase of `between`), and the changes of the diagonal."""

    cosine: Value
    sine: Value
    gain: Value


def rotation(first: Value, last: Value, between: Value) -> Rotation:
    """The rotations that make [[first, between], [conj(between), last]] diagonal; first and last are real.

    Source: Golub and Van Loan, Matrix Computations, 8.5.
    """
    length = abs(between)
    none = eq(length, 0)
    safe = select(none, 1.0, length)
    t = (last - first) / (safe * 2)
    tangent = select(t < 0, -1.0, 1.0) / (abs(t) + ops.sqrt(t * t + 1))
    tangent = select(none, 0.0, tangent)
    cosine = ops.rsqrt(tangent * tangent + 1)
    phase = between / like(safe, between)
    return Rotation(like(cosine, between), like(tangent * cosine, between) * phase, tangent * length)


def halves(x: Value, dimension: int) -> tuple[Value, Value]:
    count = dims_of(x)[dimension]
    return slice_in_dim(x, 0, count // 2, dimno=dimension), slice_in_dim(x, count // 2, count, dimno=dimension)


def rotated_columns(x: Value, by: Rotation) -> Value:
    left, right = halves(x, 2)
    cosine, sine = along(by.cosine, dims_of(left), 0, 2), along(by.sine, dims_of(left), 0, 2)
    return concatenate([left * cosine - right * conj(sine), left * sine + right * cosine], 2)


def rotated_rows(x: Value, by: Rotation) -> Value:
    """The product of the adjoint of the rotations and the rows."""
    top, bottom = halves(x, 1)
    cosine, sine = along(by.cosine, dims_of(top), 0, 1), along(by.sine, dims_of(top), 0, 1)
    return concatenate([top * cosine - bottom * sine, top * conj(sine) + bottom * cosine], 1)


def moved_on(x: Value, dimension: int) -> Value:
    """The array with a dimension permuted to the column order of the next round."""
    count = dims_of(x)[dimension]
    half = count // 2
    if half < 2:
        return x
    spans = [(0, 1), (half, half + 1), (1, half - 1), (half + 1, count), (half - 1, half)]
    return concatenate([slice_in_dim(x, start, end, dimno=dimension) for start, end in spans], dimension)
