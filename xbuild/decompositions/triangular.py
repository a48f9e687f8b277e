"""LU decomposition with partial pivoting, and QR decomposition by Householder reflections."""

from __future__ import annotations

from shape_inference import refuse, s32

from .. import ops
from ..core.builder import Value
from ..derived.elementwise import eq, select
from ..derived.reduction import reduce
from ..derived.shaping import pad
from ..derived.slicing import slice as sliced
from ..derived.support import as_value, dressed, shape_of
from .matrices import (
    along,
    column,
    conj,
    dims_of,
    divide_by_scale,
    dtype_of,
    entry,
    identity,
    is_complex,
    like,
    loop,
    matrix,
    places,
    product,
    record_call,
    row,
    scale_of,
    squares,
    total,
)

# ----------------------------------------------------------------------------
# LU decomposition with partial pivoting.


@dressed
def lu(a: Value, *, name: str | None = None) -> Value:
    """Return the tuple (lu, pivots, permutation) with a[permutation] = l u.

    The method is Gaussian elimination with partial pivoting. The strict lower triangle of `lu` stores l without its
    unit diagonal; the upper triangle, with the diagonal, stores u. Step j exchanges rows j and pivots[j]. A column
    without a non-zero pivot is unchanged.
    Shapes: takes floats or complex numbers of shape [..., m, n]. `lu` has the same shape. `pivots` is s32[..., min(m,
    n)] and `permutation` is s32[..., m], both counted from 0. Floats narrower than f32 are computed in f32 and rounded
    once. Complex pivots have the largest |re| + |im|, as in LAPACK.
    Accuracy: l u equals a[permutation] within 8 (m + n) eps times the largest element of a, if no element of u is
    larger.
    Raises: not_array, rank_too_small or element_type_unsupported; dimension_mismatch for dynamic dimensions.

    >>> import xbuild as xb
    >>> xb.evaluate(xb.computation(xb.f32[2, 2])(xb.lu), [[1.0, 2.0], [4.0, 4.0]])
    (array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), array([1, 1], dtype=int32), array([1, 0], dtype=int32))

    Source: XlaBuilder's math library, LU; Golub and Van Loan, Matrix Computations, 3.4.
    """
    return record_call(_lu, {"a": (a, 2)}, name)


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
    a = _eliminate_below(_swap_rows(a, j, best), j)
    return [a, select(eq(places(pivots, 1), j), along(best, dims_of(pivots), 0), pivots), order]


def _largest(x: Value, at: Value, j: Value) -> Value:
    """The first row from j on with the largest element of the column; j if all of these elements are NaN."""
    sizes = abs(ops.real(x)) + abs(ops.imag(x)) if is_complex(x) else abs(x)
    open_ = select(at >= j, sizes, -1.0)
    top = along(reduce(open_, -1.0, ops.maximum, (1,)), dims_of(x), 0)
    last = dims_of(x)[1] - 1
    found = reduce(select(eq(open_, top), at, last + 1), last + 1, ops.minimum, (1,))
    return select(found > last, along(j, dims_of(found)), found)


def _swap_rows(a: Value, j: Value, best: Value) -> Value:
    at, wanted = places(a, 1), along(best, dims_of(a), 0)
    here, there = eq(at, j), eq(at, wanted)
    taken = total(select(there, a, 0), 1)
    return select(here, along(taken, dims_of(a), 0, 2), select(there, along(row(a, j), dims_of(a), 0, 2), a))


def _eliminate_below(a: Value, j: Value) -> Value:
    """The matrix after elimination of column j below row j, with the multipliers stored in column j."""
    x, top = column(a, j), row(a, j)
    pivot = along(entry(x, j), dims_of(x), 0)
    factor = select(eq(pivot, 0), x, x / pivot)
    below, right = places(a, 1) > j, places(a, 2) > j
    factors = along(factor, dims_of(a), 0, 1)
    changed = a - factors * along(top, dims_of(a), 0, 2)
    return select(below & eq(places(a, 2), j), factors, select(below & right, changed, a))


# ----------------------------------------------------------------------------
# QR decomposition by Householder reflections: as q and r, and in LAPACK's packed form.


@dressed
def qr(a: Value, full_matrices: bool = True, *, name: str | None = None) -> Value:
    """Return the tuple (q, r) with a = q r, where q has orthonormal columns and r is upper triangular.

    Formula: min(m, n) Householder reflections, as in LAPACK's geqrf; elements of r's diagonal may be negative.
    Shapes: takes floats or complex numbers of shape [..., m, n]. `q` is [..., m, m] and `r` is [..., m, n]. Without
    `full_matrices`, they are [..., m, k] and [..., k, n] with k = min(m, n). Floats narrower than f32 are computed in
    f32 and rounded once.
    Accuracy: q r equals a within 8 (m + n) eps times the largest element of a. The columns of q are orthonormal within
    the same bound.
    Raises: not_array, rank_too_small or element_type_unsupported; dimension_mismatch for dynamic dimensions.

    >>> import xbuild as xb
    >>> q, r = xb.evaluate(xb.computation(xb.f64[2, 2])(xb.qr), [[3.0, 1.0], [4.0, 2.0]])
    >>> r.round(12)
    array([[-5. , -2.2],
           [ 0. ,  0.4]])

    Source: XlaBuilder's math library, QR; Golub and Van Loan, Matrix Computations, 5.2.
    """
    return record_call(_qr, {"a": (a, 2)}, name, full_matrices=bool(full_matrices))


@dressed
def qr_decomposition(a: Value, *, name: str | None = None) -> Value:
    """Return the tuple (packed, taus): packed holds r in its upper triangle and the Householder vectors below it, and
    taus holds their scalar factors.

    The format is that of LAPACK's geqrf.
    Reflection j is I - taus[j] v v^H; v is zero above row j, 1 in row j, and equal to column j of `packed` below row j.
    Shapes: takes floats or complex numbers of shape [..., m, n]. `packed` has the same shape, and `taus` is [...,
    min(m, n)].
    Accuracy: that of xb.qr.
    Raises: the same errors as xb.qr.

    >>> import xbuild as xb
    >>> packed, taus = xb.evaluate(xb.computation(xb.f32[2, 2])(xb.qr_decomposition), [[3.0, 0.0], [4.0, 5.0]])
    >>> taus
    array([1.6, 0. ], dtype=float32)

    Source: XlaBuilder's math library, QrDecomposition; LAPACK, geqrf.
    """
    return record_call(packed_qr, {"a": (a, 2)}, name)


@dressed
def product_of_elementary_householder_reflectors(a: Value, taus: Value, *, name: str | None = None) -> Value:
    """Return the first n columns of the product of the reflections that `a` and `taus` encode, as in LAPACK's orgqr.

    Shapes: takes floats or complex numbers, with shapes `a` [..., m, n] for m >= n and `taus` [..., k] for k <= n.
    Returns an array of shape [..., m, n].
    Accuracy: that of xb.qr.
    Raises: the same errors as xb.qr; also element_type_mismatch, or dimension_mismatch if the extents are inconsistent.

    >>> import xbuild as xb
    >>> @xb.computation(xb.f32[2, 1])
    ... def direction(x):
    ...     packed, taus = xb.qr_decomposition(x)
    ...     return xb.product_of_elementary_householder_reflectors(packed, taus)
    >>> xb.evaluate(direction, [[3.0], [4.0]])
    array([[-0.6],
           [-0.8]], dtype=float32)

    Source: XlaBuilder's math library, ProductOfElementaryHouseholderReflectors; LAPACK, orgqr.
    """
    rows, columns = matrix("a", a).dims[-2:]
    count = getattr(shape_of(taus), "dims", (0,))[-1]
    if rows < columns or count > columns:
        refuse(
            "dimension_mismatch",
            f"a is {a.shape} and taus is {taus.shape}, that is, {count} reflections, {columns} columns and "
            f"{rows} rows; expected reflections <= columns <= rows",
        )
    return record_call(_assemble_q, {"a": (a, 2), "taus": (taus, 1)}, name)


def _qr(a: Value, *, full_matrices: bool) -> tuple[Value, Value]:
    batch, rows, columns = dims_of(a)
    least = min(rows, columns)
    packed, taus = packed_qr(a)
    width = rows if full_matrices else least
    vectors = sliced(packed, (0, 0, 0), (batch, rows, least))
    q = _assemble_q(pad(vectors, 0, ((0, 0), (0, 0), (0, width - least))), taus)
    upper = select(places(packed, 1) <= places(packed, 2), packed, 0)
    return q, sliced(upper, (0, 0, 0), (batch, width, columns))


def packed_qr(a: Value) -> tuple[Value, Value]:
    batch, rows, columns = dims_of(a)
    scale = scale_of(a)
    count = min(rows, columns)
    taus = along(as_value(a.builder, 0, dtype_of(a)), (batch, count))
    packed, taus = loop(count, _reflect, [divide_by_scale(a, scale), taus])
    grown = packed * along(like(scale, packed), dims_of(packed), 0)
    return select(places(packed, 1) <= places(packed, 2), grown, packed), taus


def _reflect(j: Value, a: Value, taus: Value) -> tuple[Value, Value]:
    """Apply the reflection that zeros column j below the diagonal, and store the reflection there."""
    x = column(a, j)
    at = places(x, 1)
    tau, beta, v = _reflection(x, at, j)
    change = _change(a, conj(tau), v)
    kept = select(eq(at, j), along(beta, dims_of(v), 0), select(at > j, v, x))
    here, right = eq(places(a, 2), j), places(a, 2) > j
    a = select(here, along(kept, dims_of(a), 0, 1), select(right, a - change, a))
    return a, select(eq(places(taus, 1), j), along(tau, dims_of(taus), 0), taus)


def _reflection(x: Value, at: Value, j: Value) -> tuple[Value, Value, Value]:
    """The tau, beta and v for which (I - conj(tau) v v^H) x is beta in row j and zero below."""
    alpha, below = entry(x, j), select(at > j, x, 0)
    rest = total(squares(below), 1)
    length = ops.sqrt(squares(alpha) + rest)
    beta = like(select(ops.real(alpha) < 0, length, -length), x)
    flat = eq(rest, 0) & eq(ops.imag(alpha), 0)
    tau = select(flat, 0, (beta - alpha) / beta)
    factor = select(flat, 1, alpha - beta)
    v = select(eq(at, j), 1, below / along(factor, dims_of(x), 0))
    return tau, select(flat, alpha, beta), v


def _change(a: Value, tau: Value, v: Value) -> Value:
    """The product tau v v^H a."""
    batch, rows, columns = dims_of(a)
    rest = ops.reshape(product(along(conj(v), (batch, 1, rows), 0, 2), a), new_sizes=(batch, columns))
    return along(tau, dims_of(a), 0) * along(v, dims_of(a), 0, 1) * along(rest, dims_of(a), 0, 2)


def _assemble_q(a: Value, taus: Value) -> Value:
    _, rows, columns = dims_of(a)
    count = dims_of(taus)[1]

    def step(n: Value, q: Value, a: Value, taus: Value) -> list[Value]:
        j = count - 1 - n
        x = column(a, j)
        at = places(x, 1)
        v = select(at > j, x, select(eq(at, j), along(as_value(a.builder, 1, dtype_of(a)), dims_of(x)), 0))
        return [q - _change(q, entry(taus, j), v)]

    return loop(count, step, [identity(a, rows, columns)], [a, taus])[0]
