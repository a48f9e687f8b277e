"""Eigenvalues, eigenvectors and singular values by Jacobi's methods."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from shape_inference import refuse, s32

from .. import ops
from ..core.builder import Value
from ..derived.control_flow import while_
from ..derived.elementwise import eq, maximum, select
from ..derived.ordering import sort
from ..derived.reduction import reduce_all
from ..derived.shaping import concatenate, pad
from ..derived.slicing import slice as sliced
from ..derived.slicing import slice_in_dim
from ..derived.support import as_value, dressed
from .matrices import (
    adjoint,
    along,
    conj,
    dims_of,
    divide_by_scale,
    dtype_of,
    epsilon,
    like,
    loop,
    no_rotation,
    places,
    record_call,
    scale_of,
    square,
    squares,
    total,
)
from .triangular import _qr

# ----------------------------------------------------------------------------
# Shared parts of the two Jacobi methods: the rotations, and the round-robin order of pairs of columns.
#
# The columns are arranged in two rows, and the two columns above each other form a pair. After a round all columns
# but the first move on by one place. In n - 1 rounds each two columns are paired once, and the first order is
# restored.
#
# Source: Brent and Luk, The solution of singular-value and symmetric eigenvalue problems on multiprocessor arrays
# (1985).


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


# ----------------------------------------------------------------------------
# Eigenvalues and eigenvectors of symmetric and Hermitian matrices, by the Jacobi method.


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
    """Return the tuple (v, w) for symmetric or Hermitian matrices: a v = v diag(w), and v has orthonormal columns.

    Only the triangle that `lower` selects is read. Sweeps of rotations stop when the Frobenius norm of the off-diagonal
    part is at most `epsilon` (default: that of the element type) times the norm of the matrix, or after `max_iter`
    sweeps.
    Shapes: takes floats or complex numbers of shape [..., n, n]. `v` has the same shape. `w` is real, has the shape
    [..., n], and is in ascending order if `sort_eigenvalues` is true. Floats narrower than f32 are computed in f32 and
    rounded once.
    Accuracy: a v equals v diag(w) within 16 n eps times the largest element of a. The columns of v are orthonormal
    within the same bound.
    Raises: not_array, rank_too_small, element_type_unsupported, dimension_mismatch or invalid_attribute.

    >>> import xbuild as xb
    >>> v, w = xb.evaluate(xb.computation(xb.f64[2, 2])(xb.eigh), [[2.0, 0.0], [1.0, 2.0]])
    >>> w
    array([1., 3.])

    Source: XlaBuilder's math library, Eigh; Golub and Van Loan, Matrix Computations, 8.5.
    """
    square("a", a)
    check_sweeps(max_iter, epsilon)
    return record_call(
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
        refuse("invalid_attribute", f"max_iter={max_iter!r}: the number of sweeps must be an int that is 0 or more")
    if epsilon is not None and not (isinstance(epsilon, int | float) and epsilon >= 0):
        refuse("invalid_attribute", f"epsilon={epsilon!r}: expected a number that is 0 or more, or None")


def _eigh(a: Value, *, lower: bool, max_iter: int, limit: float | None, sort_eigenvalues: bool) -> tuple[Value, Value]:
    batch, n, _ = dims_of(a)
    scale = scale_of(a := _mirror_triangle(a, lower))
    odd = n % 2
    matrix = pad(divide_by_scale(a, scale), 0, ((0, 0), (0, odd), (0, odd)))
    matrix, vectors = _diagonal(matrix, max_iter, epsilon(a) if limit is None else limit)
    values = total(select(_on_diagonal(matrix), ops.real(matrix), 0), 1)
    # The column that pads an odd n is never rotated (its products are zero), and stays the last.
    values, vectors = sliced(values, (0, 0), (batch, n)), sliced(vectors, (0, 0, 0), (batch, n, n))
    values = values * along(scale, dims_of(values), 0)
    if sort_eigenvalues and n:
        keys, vectors = sort((along(values, dims_of(vectors), 0, 2), vectors), dimension=2, is_stable=True)
        values = ops.reshape(sliced(keys, (0, 0, 0), (batch, 1, n)), new_sizes=(batch, n))
    return vectors, values


def _mirror_triangle(a: Value, lower: bool) -> Value:
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
        return [count + 1, *loop(n - 1, _rotate_pairs, [a, vectors])]

    begin = (as_value(a.builder, 0, s32), a, no_rotation(a, n))
    _, a, vectors = while_(begin, going, sweep)
    return a, vectors


def _rotate_pairs(j: Value, a: Value, vectors: Value) -> list[Value]:
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


# ----------------------------------------------------------------------------
# Singular value decomposition by the one-sided Jacobi method.


@dressed
def svd(
    a: Value,
    max_iter: int = 30,
    epsilon: float | None = None,
    full_matrices: bool = True,
    *,
    name: str | None = None,
) -> Value:
    """Return the tuple (u, d, v) with a = u diag(d) v^H.

    The elements of d are nonnegative and in descending order. The columns of u and v are orthonormal. Sweeps rotate the
    columns until the cosine of the angle between any two is at most `epsilon` (default: that of the element type times
    the square root of the number of rows), or until `max_iter` sweeps are done. `u` is the q of the rotated matrix's QR
    decomposition.
    Shapes: takes floats or complex numbers of shape [..., m, n]. `u` is [..., m, m], `d` is real [..., k] with k =
    min(m, n), and `v` is [..., n, n]. Without `full_matrices`, `u` is [..., m, k] and `v` is [..., n, k]. Floats
    narrower than f32 are computed in f32 and rounded once.
    Accuracy: u diag(d) v^H equals a within 16 (m + n) eps times the largest element of a. The columns of u and v are
    orthonormal within the same bound.
    Raises: not_array, rank_too_small, element_type_unsupported, dimension_mismatch or invalid_attribute.

    >>> import xbuild as xb
    >>> u, d, v = xb.evaluate(xb.computation(xb.f64[2, 2])(xb.svd), [[0.0, 2.0], [3.0, 0.0]])
    >>> d
    array([3., 2.])

    Source: XlaBuilder's math library, SVD; Golub and Van Loan, Matrix Computations, 8.6.
    """
    check_sweeps(max_iter, epsilon)
    return record_call(
        _svd, {"a": (a, 2)}, name, max_iter=int(max_iter), limit=epsilon, full_matrices=bool(full_matrices)
    )


def _svd(a: Value, *, max_iter: int, limit: float | None, full_matrices: bool) -> tuple[Value, Value, Value]:
    _, rows, columns = dims_of(a)
    if rows < columns:
        v, d, u = _svd(adjoint(a), max_iter=max_iter, limit=limit, full_matrices=full_matrices)
        return u, d, v
    scale = scale_of(a)
    limit = epsilon(a) * max(rows, 1) ** 0.5 if limit is None else limit
    turned = pad(divide_by_scale(a, scale), 0, ((0, 0), (0, 0), (0, columns % 2)))
    turned, v = _orthogonal(turned, max_iter, limit)
    turned, d, v = _sort_columns(turned, v, columns)
    q, r = _qr(turned, full_matrices=full_matrices)
    u = q * along(_phases(r, dims_of(q)[2]), dims_of(q), 0, 2)
    return u, d * along(scale, dims_of(d), 0), v


def _orthogonal(a: Value, max_iter: int, limit: float) -> tuple[Value, Value]:
    """The matrix with orthogonal columns, and the product of the rotations."""
    columns = dims_of(a)[2]

    def sweep(values: Value) -> list[Value]:
        count, _, a, vectors = values
        worst = as_value(a.builder, 0.0, dtype_of(values[1]))
        return [count + 1, *loop(columns - 1, _rotate_columns, [worst, a, vectors])]

    real = reduce_all(abs(a), 0, ops.maximum) * 0 + 1
    begin = (as_value(a.builder, 0, s32), real, a, no_rotation(a, columns))
    _, _, a, vectors = while_(begin, lambda values: (values[0] < max_iter) & (values[1] > limit), sweep)
    return a, vectors


def _rotate_columns(j: Value, worst: Value, a: Value, vectors: Value) -> list[Value]:
    """One round: update the largest cosine, make each pair of columns orthogonal, permute to the next round."""
    left, right = halves(a, 2)
    first, last = total(squares(left), 1), total(squares(right), 1)
    between = total(conj(left) * right, 1)
    lengths = ops.sqrt(first) * ops.sqrt(last)
    cosine = select(eq(lengths, 0), 0.0, abs(between) / select(eq(lengths, 0), 1.0, lengths))
    by = rotation(first, last, between)
    worst = maximum(worst, reduce_all(cosine, 0, ops.maximum))
    return [worst, moved_on(rotated_columns(a, by), 2), moved_on(rotated_columns(vectors, by), 2)]


def _sort_columns(a: Value, v: Value, columns: int) -> tuple[Value, Value, Value]:
    """The columns sorted by norm, largest first; a column that pads an odd number of columns is removed."""
    batch, rows, _ = dims_of(a)
    lengths = ops.sqrt(total(squares(a), 1))
    keys = select(places(lengths, 1) < columns, -lengths, 1.0)
    if columns > 1:
        _, a = sort((along(keys, dims_of(a), 0, 2), a), dimension=2, is_stable=True)
        _, v = sort((along(keys, dims_of(v), 0, 2), v), dimension=2, is_stable=True)
        keys = sort(keys, dimension=1)
    found = -sliced(keys, (0, 0), (batch, columns))
    return sliced(a, (0, 0, 0), (batch, rows, columns)), abs(found), sliced(v, (0, 0, 0), (batch, columns, columns))


def _phases(r: Value, width: int) -> Value:
    """For each column of q the phase of r's diagonal element; 1 where the element is zero or missing."""
    columns = dims_of(r)[2]
    diagonal = total(select(eq(places(r, 1), places(r, 2)), r, 0), 1)
    phases = ops.sign(diagonal)
    return pad(select(eq(diagonal, 0), 1, phases), 1, ((0, 0), (0, width - columns)))
