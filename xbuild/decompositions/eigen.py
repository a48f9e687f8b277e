"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices, by the Jacobi method."""

from __future__ import annotations

from typing import Any

from shape_inference import refuse, s32

from .. import ops
from ..core.builder import Value
from ..derived.control_flow import while_
from ..derived.elementwise import eq, select
from ..derived.ordering import sort
from ..derived.shaping import pad
from ..derived.slicing import slice as sliced
from ..derived.support.dressing import dressed
from ..derived.support.operands import as_value
from .form import recorded, square
from .jacobi import halves, moved_on, rotated_columns, rotated_rows, rotation
from .matrices import (
    adjoint,
    along,
    dims_of,
    divided,
    epsilon,
    like,
    loop,
    no_rotation,
    places,
    scale_of,
    squares,
    total,
)


@dressed
def eigh(
    a: Value,
    lower: bool = True,
    max_iter: int = 30,
    epsilon: float | None = None,
    sort_eigenvalues: bool = True,
    *,
    name: str | None = None,
) -> Value:
    """The tuple (v, w) of symmetric or Hermitian matrices: a v = v diag(w), the columns of v orthonormal.

    Only the triangle that `lower` selects is read. At most `max_iter` sweeps of rotations are done, until the Frobenius
    norm of the off-diagonal part is at most `epsilon` (default: that of the element type) times the norm of the matrix.
    Shapes: floats or complex [..., n, n]; the same, and real [..., n], ascending with `sort_eigenvalues`. Narrower
    floats than f32 are computed in f32 and rounded once.
    Accuracy: a v - v diag(w) within 16 n eps of a's largest element, v's columns orthonormal within as much.
    Raises: not_array; rank_too_small; element_type_unsupported; dimension_mismatch; invalid_attribute.

    >>> import xbuild as xb
    >>> v, w = xb.evaluate(xb.computation(xb.f64[2, 2])(xb.eigh), [[2.0, 0.0], [1.0, 2.0]])
    >>> w
    array([1., 3.])

    Source: XlaBuilder's math library, Eigh; Golub and Van Loan, Matrix Computations, 8.5.
    """
    square("a", a)
    check_sweeps(max_iter, epsilon)
    return recorded(
        _eigh,
        {"a": (a, 2)},
        name,
        lower=bool(lower),
        max_iter=int(max_iter),
        limit=epsilon,
        sort_eigenvalues=bool(sort_eigenvalues),
    )


def check_sweeps(max_iter: Any, epsilon: Any) -> None:
    if not isinstance(max_iter, int) or max_iter < 0:
        refuse("invalid_attribute", f"max_iter={max_iter!r}; a number of sweeps of 0 or more is wanted")
    if epsilon is not None and not (isinstance(epsilon, int | float) and epsilon >= 0):
        refuse("invalid_attribute", f"epsilon={epsilon!r}; a number of 0 or more, or None, is wanted")


def _eigh(a: Value, *, lower: bool, max_iter: int, limit: float | None, sort_eigenvalues: bool) -> tuple[Value, Value]:
    batch, n, _ = dims_of(a)
    scale = scale_of(a := _whole(a, lower))
    odd = n % 2
    matrix = pad(divided(a, scale), 0, ((0, 0), (0, odd), (0, odd)))
    matrix, vectors = _diagonal(matrix, max_iter, epsilon(a) if limit is None else limit)
    values = total(select(_on_diagonal(matrix), ops.real(matrix), 0), 1)
    # The column that pads an odd n is never rotated (its products are zero), and stays the last.
    values, vectors = sliced(values, (0, 0), (batch, n)), sliced(vectors, (0, 0, 0), (batch, n, n))
    values = values * along(scale, dims_of(values), 0)
    if sort_eigenvalues and n:
        keys, vectors = sort((along(values, dims_of(vectors), 0, 2), vectors), dimension=2, is_stable=True)
        values = ops.reshape(sliced(keys, (0, 0, 0), (batch, 1, n)), new_sizes=(batch, n))
    return vectors, values


def _whole(a: Value, lower: bool) -> Value:
    """The Hermitian matrix of the selected triangle; the imaginary part of the diagonal is dropped."""
    i, j = places(a, 1), places(a, 2)
    real = like(ops.real(a), a)
    return select(eq(i, j), real, select(i > j if lower else i < j, a, adjoint(a)))


def _on_diagonal(a: Value) -> Value:
    return eq(places(a, 1), places(a, 2))


def _diagonal(a: Value, max_iter: int, limit: float) -> tuple[Value, Value]:
    """The diagonalized matrix, and the product of the rotations."""
    _, n, _ = dims_of(a)

    def going(values: Value) -> Value:
        sweep, a, _ = values
        sizes = squares(a)
        off, whole = total(select(_on_diagonal(a), 0.0, sizes), 1, 2), total(sizes, 1, 2)
        open_ = off > whole * (limit * limit)
        return (sweep < max_iter) & ops.reduce(
            (open_,), (as_value(a.builder, False),), to_apply=ops.or_, dimensions=(0,)
        )

    def sweep(values: Value) -> list[Value]:
        count, a, vectors = values
        return [count + 1, *loop(n - 1, _round, [a, vectors])]

    begin = (as_value(a.builder, 0, s32), a, no_rotation(a, n))
    _, a, vectors = while_(begin, going, sweep)
    return a, vectors


def _round(j: Value, a: Value, vectors: Value) -> list[Value]:
    """One round: rotate each pair to zero its off-diagonal element, then permute to the order of the next round."""
    top, bottom = halves(a, 1)
    (first, between), (_, last) = halves(top, 2), halves(bottom, 2)
    here = _on_diagonal(between)
    low, high = (total(select(here, ops.real(each), 0.0), 1) for each in (first, last))
    by = rotation(low, high, total(select(here, between, 0), 1))
    a = _exact(rotated_columns(rotated_rows(a, by), by), low - by.gain, high + by.gain)
    return [moved_on(moved_on(a, 1), 2), moved_on(rotated_columns(vectors, by), 2)]


def _exact(a: Value, low: Value, high: Value) -> Value:
    """The rotated matrix with the exact diagonal values and zeros of each pair in place of the rounded results."""
    half = dims_of(low)[1]
    i, j = places(a, 1), places(a, 2)
    values = ops.concatenate((like(low, a), like(high, a)), dimension=1)
    zero = eq(abs(i - j), half)
    return select(zero, 0, select(eq(i, j), along(values, dims_of(a), 0, 2), a))
