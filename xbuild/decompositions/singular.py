"""Singular value decomposition by the one-sided Jacobi method."""

from __future__ import annotations

from shape_inference import s32

from .. import ops
from ..core.builder import Value
from ..derived.control_flow import while_
from ..derived.elementwise import eq, maximum, select
from ..derived.ordering import sort
from ..derived.reduction import reduce_all
from ..derived.shaping import pad
from ..derived.slicing import slice as sliced
from ..derived.support.dressing import dressed
from ..derived.support.operands import as_value
from .eigen import check_sweeps
from .form import recorded
from .jacobi import halves, moved_on, rotated_columns, rotation
from .matrices import (
    adjoint,
    along,
    conj,
    dims_of,
    divided,
    dtype_of,
    epsilon,
    loop,
    no_rotation,
    places,
    scale_of,
    squares,
    total,
)
from .orthogonal import _qr


@dressed
def svd(
    a: Value,
    max_iter: int = 30,
    epsilon: float | None = None,
    full_matrices: bool = True,
    *,
    name: str | None = None,
) -> Value:
    """The tuple (u, d, v) with a = u diag(d) v^H: d descending and not negative, the columns of u and v orthonormal.

    At most `max_iter` sweeps rotate the columns, until the cosine of the angle between each two is at most `epsilon`
    (default: that of the element type times the square root of the rows); u is the q of the rotated matrix's QR.
    Shapes: floats or complex [..., m, n]; [..., m, m], real [..., k] with k = min(m, n), and [..., n, n]; without
    `full_matrices` u is [..., m, k] and v [..., n, k]. Narrower floats than f32 are computed in f32 and rounded once.
    Accuracy: u diag(d) v^H - a within 16 (m + n) eps of a's largest element, the columns orthonormal within as much.
    Raises: not_array; rank_too_small; element_type_unsupported; dimension_mismatch; invalid_attribute.

    >>> import xbuild as xb
    >>> u, d, v = xb.evaluate(xb.computation(xb.f64[2, 2])(xb.svd), [[0.0, 2.0], [3.0, 0.0]])
    >>> d
    array([3., 2.])

    Source: XlaBuilder's math library, SVD; Golub and Van Loan, Matrix Computations, 8.6.
    """
    check_sweeps(max_iter, epsilon)
    return recorded(_svd, {"a": (a, 2)}, name, max_iter=int(max_iter), limit=epsilon, full_matrices=bool(full_matrices))


def _svd(a: Value, *, max_iter: int, limit: float | None, full_matrices: bool) -> tuple[Value, Value, Value]:
    _, rows, columns = dims_of(a)
    if rows < columns:
        v, d, u = _svd(adjoint(a), max_iter=max_iter, limit=limit, full_matrices=full_matrices)
        return u, d, v
    scale = scale_of(a)
    limit = epsilon(a) * max(rows, 1) ** 0.5 if limit is None else limit
    turned = pad(divided(a, scale), 0, ((0, 0), (0, 0), (0, columns % 2)))
    turned, v = _orthogonal(turned, max_iter, limit)
    turned, d, v = _sorted(turned, v, columns)
    q, r = _qr(turned, full_matrices=full_matrices)
    u = q * along(_phases(r, dims_of(q)[2]), dims_of(q), 0, 2)
    return u, d * along(scale, dims_of(d), 0), v


def _orthogonal(a: Value, max_iter: int, limit: float) -> tuple[Value, Value]:
    """The matrix with orthogonal columns, and the product of the rotations."""
    columns = dims_of(a)[2]

    def sweep(values: Value) -> list[Value]:
        count, _, a, vectors = values
        worst = as_value(a.builder, 0.0, dtype_of(values[1]))
        return [count + 1, *loop(columns - 1, _round, [worst, a, vectors])]

    real = reduce_all(abs(a), 0, ops.maximum) * 0 + 1
    begin = (as_value(a.builder, 0, s32), real, a, no_rotation(a, columns))
    _, _, a, vectors = while_(begin, lambda values: (values[0] < max_iter) & (values[1] > limit), sweep)
    return a, vectors


def _round(j: Value, worst: Value, a: Value, vectors: Value) -> list[Value]:
    """One round: update the largest cosine, make each pair of columns orthogonal, permute to the next round."""
    left, right = halves(a, 2)
    first, last = total(squares(left), 1), total(squares(right), 1)
    between = total(conj(left) * right, 1)
    lengths = ops.sqrt(first) * ops.sqrt(last)
    cosine = select(eq(lengths, 0), 0.0, abs(between) / select(eq(lengths, 0), 1.0, lengths))
    by = rotation(first, last, between)
    worst = maximum(worst, reduce_all(cosine, 0, ops.maximum))
    return [worst, moved_on(rotated_columns(a, by), 2), moved_on(rotated_columns(vectors, by), 2)]


def _sorted(a: Value, v: Value, columns: int) -> tuple[Value, Value, Value]:
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
