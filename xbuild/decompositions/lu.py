"""LU decomposition with partial pivoting."""

from __future__ import annotations

from shape_inference import s32

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, select
from ..derived.reduction import reduce
from ..derived.support.dressing import dressed
from .form import recorded
from .matrices import along, column, dims_of, entry, is_complex, loop, places, row, total


@dressed
def lu(a: Value, *, name: str | None = None) -> Value:
    """The tuple (lu, pivots, permutation) with a[permutation] = l u, by Gaussian elimination with partial pivoting.

    l is stored below the diagonal of `lu`, without its unit diagonal, and u on and above it. Step j exchanges rows j
    and pivots[j]. A column without a non-zero pivot is unchanged.
    Shapes: floats or complex [..., m, n]; the same, s32[..., min(m, n)] and s32[..., m], counted from 0. Narrower
    floats than f32 are computed in f32 and rounded once. Complex pivots have the largest |re| + |im|, as in LAPACK.
    Accuracy: l u - a[permutation] within 8 (m + n) eps of a's largest element if u has no larger element.
    Raises: not_array; rank_too_small; element_type_unsupported; dimension_mismatch for dynamic dimensions.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2, 2])(xb.lu), [[1.0, 2.0], [4.0, 4.0]])
    (array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), array([1, 1], dtype=int32), array([1, 0], dtype=int32))

    Source: XlaBuilder's math library, LU; Golub and Van Loan, Matrix Computations, 3.4.
    """
    return recorded(_lu, {"a": (a, 2)}, name)


def _lu(a: Value) -> tuple[Value, ...]:
    batch, rows, columns = dims_of(a)
    pivots = ops.iota(a.builder, shape=s32[batch, min(rows, columns)], iota_dimension=1)
    order = ops.iota(a.builder, shape=s32[batch, rows], iota_dimension=1)
    return tuple(loop(min(rows, columns), _eliminate, [a, pivots, order]))


def _eliminate(j: Value, a: Value, pivots: Value, order: Value) -> list[Value]:
    at = places(order, 1)
    best = _largest(column(a, j), at, j)
    wanted = along(best, dims_of(order), 0)
    old = along(entry(order, j), dims_of(order), 0)
    new = along(total(select(eq(at, wanted), order, 0), 1), dims_of(order), 0)
    order = select(eq(at, j), new, select(eq(at, wanted), old, order))
    a = _reduced(_exchanged(a, j, best), j)
    return [a, select(eq(places(pivots, 1), j), along(best, dims_of(pivots), 0), pivots), order]


def _largest(x: Value, at: Value, j: Value) -> Value:
    """The first row from j on with the largest element of the column; j if all of these elements are NaN."""
    sizes = abs(ops.real(x)) + abs(ops.imag(x)) if is_complex(x) else abs(x)
    open_ = select(at >= j, sizes, -1.0)
    top = along(reduce(open_, -1.0, ops.maximum, (1,)), dims_of(x), 0)
    last = dims_of(x)[1] - 1
    found = reduce(select(eq(open_, top), at, last + 1), last + 1, ops.minimum, (1,))
    return select(found > last, along(j, dims_of(found)), found)


def _exchanged(a: Value, j: Value, best: Value) -> Value:
    at, wanted = places(a, 1), along(best, dims_of(a), 0)
    here, there = eq(at, j), eq(at, wanted)
    taken = total(select(there, a, 0), 1)
    return select(here, along(taken, dims_of(a), 0, 2), select(there, along(row(a, j), dims_of(a), 0, 2), a))


def _reduced(a: Value, j: Value) -> Value:
    """The matrix after elimination of column j below row j, with the multipliers stored in column j."""
    x, top = column(a, j), row(a, j)
    pivot = along(entry(x, j), dims_of(x), 0)
    factor = select(eq(pivot, 0), x, x / pivot)
    below, right = places(a, 1) > j, places(a, 2) > j
    factors = along(factor, dims_of(a), 0, 1)
    changed = a - factors * along(top, dims_of(a), 0, 2)
    return select(below & eq(places(a, 2), j), factors, select(below & right, changed, a))
