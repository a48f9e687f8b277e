"""Cotangents of matrix decompositions, solvers and Fourier transforms; matrices are in the last two dimensions.

Sections:

    cholesky and triangular_solve
    Cotangents of triangular factors and of solutions
    fft
    LAPACK
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from shape_inference import Dims, Shape

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ...core.graph import Instruction
from ..arrays import (
    array_shape,
    broadcast_to,
    compare,
    conjugate,
    convert_to,
    index_along,
    is_complex,
    keep_where,
    to_complex,
    transpose_unless_same,
    triangle_mask,
)
from ..rules import Cotangents, Pullback, full, refuse_derivative, vjp

# ----------------------------------------------------------------------------
# cholesky and triangular_solve


@vjp
def cholesky(back: Pullback, a: Value, *, lower: bool) -> Cotangents:
    if not array_shape(a).size:
        return (None,)
    return (cholesky_cotangent(back.result, back.ct, lower),)


@vjp
def triangular_solve(
    back: Pullback, a: Value, b: Value, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Cotangents:
    if not array_shape(b).size:
        return None, None
    return solver_cotangents(
        a, back.result, back.ct, left_side, lower, unit_diagonal, transpose_a, (back.wants(0), back.wants(1))
    )


# ----------------------------------------------------------------------------
# Cotangents of triangular factors and of solutions
#
# For stacks of matrices, whichever op or custom call computes them.


def transpose_matrices(value: Value) -> Value:
    """The transpose of each matrix."""
    rank = array_shape(value).rank
    return transpose_unless_same(value, (*range(rank - 2), rank - 1, rank - 2))


def adjoint(value: Value) -> Value:
    """The conjugate transpose of each matrix."""
    return conjugate(transpose_matrices(value))


def multiply_matrices(lhs: Value, rhs: Value, lhs_dim: int, rhs_dim: int) -> Value:
    """Products of matrices, contracted over a dimension (-1 or -2) of each."""
    rank = array_shape(lhs).rank
    batch = tuple(range(rank - 2))
    return ops.dot(
        lhs,
        rhs,
        lhs_contracting_dims=(rank + lhs_dim,),
        rhs_contracting_dims=(rank + rhs_dim,),
        lhs_batch_dims=batch,
        rhs_batch_dims=batch,
    )


def solve_triangular(
    a: Value, b: Value, left_side: bool, lower: bool, transpose_a: Any, unit_diagonal: bool = False
) -> Value:
    return ops.triangular_solve(
        a, b, left_side=left_side, lower=lower, unit_diagonal=unit_diagonal, transpose_a=transpose_a
    )


def cholesky_cotangent(factor: Value, ct: Value, lower: bool) -> Value:
    """The symmetric (Hermitian) cotangent of the matrix: half of the two-sided solution of a mirrored triangle.

    With a = L L^H and P the lower triangle of L^T t, its diagonal halved: L^-T (P + P^H) conj(L)^-1, halved; for an
    upper factor U = L^H likewise.
    """
    inner = multiply_matrices(factor, ct, -2, -2) if lower else multiply_matrices(ct, factor, -1, -1)
    mirrored = ops.select(triangle_mask(inner, "GE" if lower else "LE"), inner, adjoint(inner))
    conjugated = conjugate(factor)
    if lower:
        left = solve_triangular(factor, mirrored, True, True, "TRANSPOSE")
        solution = solve_triangular(conjugated, left, False, True, "NO_TRANSPOSE")
    else:
        left = solve_triangular(conjugated, mirrored, True, False, "NO_TRANSPOSE")
        solution = solve_triangular(factor, left, False, False, "TRANSPOSE")
    half = ops.multiply(solution, full(solution.builder, 0.5, array_shape(solution)))
    if not is_complex(solution):
        return half
    return ops.multiply(ops.add(half, adjoint(half)), full(solution.builder, 0.5, array_shape(solution)))


def solver_cotangents(
    a: Value,
    x: Value,
    ct: Value,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: str,
    wants: tuple[bool, bool],
) -> Cotangents:
    """For op(a) x = b or x op(a) = b: the solution with the transposed triangle, and its product with x."""
    is_conjugated = transpose_a == "ADJOINT" and is_complex(a)
    is_flipped = transpose_a != "NO_TRANSPOSE"
    matrix = conjugate(a) if is_conjugated else a
    other: Any = "NO_TRANSPOSE" if is_flipped else "TRANSPOSE"
    b_ct = solve_triangular(matrix, ct, left_side, lower, other, unit_diagonal)
    if not wants[0]:
        return None, b_ct
    product = _triangle_slope(b_ct, x, left_side, is_flipped)
    direction = {(True, False): "GE", (True, True): "GT", (False, False): "LE", (False, True): "LT"}
    a_ct = ops.negate(keep_where(triangle_mask(product, direction[lower, unit_diagonal]), product))
    return conjugate(a_ct) if is_conjugated else a_ct, b_ct if wants[1] else None


def _triangle_slope(b_ct: Value, x: Value, left_side: bool, is_flipped: bool) -> Value:
    """The negated derivative of the solution by each element of the triangle."""
    if left_side:
        return multiply_matrices(x, b_ct, -1, -1) if is_flipped else multiply_matrices(b_ct, x, -1, -1)
    return multiply_matrices(b_ct, x, -2, -2) if is_flipped else multiply_matrices(x, b_ct, -2, -2)


# ----------------------------------------------------------------------------
# fft


@vjp
def fft(back: Pullback, operand: Value, *, fft_type: str, fft_length: Dims) -> Cotangents:
    """The transform is a symmetric matrix; in its half forms, the other half is zero or counts twice."""
    if not array_shape(back.ct).size or not array_shape(operand).size:
        return (None,)
    if fft_type == "RFFT":
        return (_pull_back_rfft(back.ct, array_shape(operand), fft_length),)
    if fft_type == "IRFFT":
        return (_pull_back_irfft(back.ct, fft_length),)
    return (ops.fft(back.ct, fft_type=fft_type, fft_length=fft_length),)  # type: ignore[arg-type]


def _pull_back_rfft(ct: Value, shape: Shape, lengths: Dims) -> Value:
    """The transform of the half, padded with zeros; the real part, as the operand is real."""
    missing = lengths[-1] - array_shape(ct).dims[-1]
    zero = full(ct.builder, 0, array_shape(ct).dtype[()])
    padding = (*((PaddingDimension(0, 0),) * (shape.rank - 1)), PaddingDimension(0, missing))
    whole = ops.pad(ct, zero, padding=padding) if missing else ct
    return ops.real(ops.fft(whole, fft_type="FFT", fft_length=lengths))


def _pull_back_irfft(ct: Value, lengths: Dims) -> Value:
    """The conjugate transform of the half that is read, in which all but the ends count twice."""
    half = conjugate(ops.fft(ct, fft_type="RFFT", fft_length=lengths))
    sizes, part = array_shape(half).dims, array_shape(ct).dtype
    place = index_along(ct.builder, sizes, len(sizes) - 1)
    is_end = compare(place, full(ct.builder, 0, array_shape(place)), "EQ")
    if lengths[-1] % 2 == 0:
        last = full(ct.builder, lengths[-1] // 2, array_shape(place))
        is_end = ops.or_(is_end, compare(place, last, "EQ"))
    once, twice = (full(ct.builder, times / prod(lengths), part[sizes]) for times in (1, 2))
    return ops.multiply(half, to_complex(ops.select(is_end, once, twice)))


# ----------------------------------------------------------------------------
# LAPACK
#
# The custom calls with which JAX decomposes and solves on the CPU.


Rule = Callable[[Pullback, Sequence[Value]], Cotangents]
LAPACK: dict[str, Rule] = {}
"""Target of a custom call -> its rule."""

_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def _lapack_rule(routine: str, kinds: Iterable[str] = "sdcz") -> Callable[[Rule], Rule]:
    """Decorator: enter a rule for the targets of a routine, one for each element type."""

    def enter(rule: Rule) -> Rule:
        LAPACK.update({f"lapack_{kind}{routine}_ffi": rule for kind in kinds})
        return rule

    return enter


def _read_letter(instruction: Instruction, key: str, default: str) -> str:
    """A letter given as an integer in a backend_config such as `{uplo = 76 : ui8}`."""
    match = re.search(rf"\b{key}\s*=\s*(\d+)", instruction.attributes.backend_config)
    return chr(int(match[1])) if match else default


def _result_element(back: Pullback, index: int) -> Value:
    return ops.get_tuple_element(back.result, index=index)


@_lapack_rule("trsm")
def trsm(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    matrix, _ = operands
    instruction = back.instruction
    return solver_cotangents(
        matrix,
        back.result,
        back.ct,
        _read_letter(instruction, "side", "L") == "L",
        _read_letter(instruction, "uplo", "L") == "L",
        _read_letter(instruction, "diag", "N") == "U",
        _TRANSPOSES[_read_letter(instruction, "trans_x", "N")],
        (back.wants(0), back.wants(1)),
    )


@_lapack_rule("potrf")
def potrf(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    """The other triangle of the result is the operand's, so its cotangent passes through."""
    ct, is_lower = back.ct[0], _read_letter(back.instruction, "uplo", "L") == "L"
    if ct is None or not array_shape(ct).size:
        return (None,)
    mask = triangle_mask(ct, "GE" if is_lower else "LE")
    factor = keep_where(mask, _result_element(back, 0))
    rest = keep_where(ops.not_(mask), ct)
    return (ops.add(cholesky_cotangent(factor, ct, is_lower), rest),)


@_lapack_rule("getrf")
def getrf(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    """For P a = L U: P^T L^-T (strictly lower part of L^T t + upper part of t U^T) U^-T."""
    (a,), ct = operands, back.ct[0]
    rows, columns = array_shape(a).dims[-2:]
    if rows != columns:
        refuse_derivative(
            f"its operand is {array_shape(a)}, but only factors of square matrices have a derivative",
            "use the square part of the matrix, or factor a^H a",
        )
    if ct is None or not array_shape(ct).size:
        return (None,)
    factors = _result_element(back, 0)
    is_upper = triangle_mask(factors, "LE")
    unit = ops.select(triangle_mask(factors, "EQ"), full(a.builder, 1, array_shape(a)), factors)
    lower = keep_where(triangle_mask(factors, "GE"), unit)
    upper = keep_where(is_upper, factors)
    below = multiply_matrices(lower, keep_where(ops.not_(is_upper), ct), -2, -2)
    above = multiply_matrices(keep_where(is_upper, ct), upper, -1, -1)
    inner = ops.select(is_upper, above, below)
    left = solve_triangular(lower, inner, True, True, "TRANSPOSE", True)
    turned = solve_triangular(upper, left, False, False, "TRANSPOSE")
    return (multiply_matrices(_permutation_back(a, lower, upper), turned, -1, -2),)


def _permutation_back(a: Value, lower: Value, upper: Value) -> Value:
    """The permutation that puts the rows of L U back in the order of a: a U^-1 L^-1, integers up to rounding."""
    permutation = solve_triangular(
        lower, solve_triangular(upper, a, False, False, "NO_TRANSPOSE"), False, True, "NO_TRANSPOSE", True
    )
    dtype = array_shape(a).dtype
    real = ops.real(permutation) if dtype.kind == "complex" else permutation
    return convert_to(ops.round_nearest_even(real), dtype)


@_lapack_rule("syevd", "sd")
@_lapack_rule("heevd", "cz")
def syevd(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    """With eigenvectors V and values w: conj(V) (diag(t of w) + V^T t of V / (w_j - w_i)) V^T, made Hermitian."""
    vectors, values = (_result_element(back, number) for number in (0, 1))
    if not array_shape(vectors).size or (back.ct[0] is None and back.ct[1] is None):
        return (None,)
    inner = _eigen_cotangent(vectors, values, back.ct[0], back.ct[1])
    cotangent = multiply_matrices(multiply_matrices(conjugate(vectors), inner, -1, -2), vectors, -1, -1)
    return (ops.multiply(ops.add(cotangent, adjoint(cotangent)), full(cotangent.builder, 0.5, array_shape(cotangent))),)


def _eigen_cotangent(vectors: Value, values: Value, vectors_ct: Value | None, values_ct: Value | None) -> Value:
    """The cotangent of V^H da V: on the diagonal that of the eigenvalues, elsewhere that of the eigenvectors."""
    sizes, dtype = array_shape(vectors).dims, array_shape(vectors).dtype
    rank = len(sizes)
    is_diagonal = triangle_mask(vectors, "EQ")
    zero = full(vectors.builder, 0, array_shape(vectors))
    diagonal = zero
    if values_ct is not None:
        diagonal = convert_to(broadcast_to(values_ct, sizes, tuple(range(rank - 1))), dtype)
    if vectors_ct is None:
        return ops.select(is_diagonal, diagonal, zero)
    later = broadcast_to(values, sizes, (*range(rank - 2), rank - 1))
    earlier = broadcast_to(values, sizes, tuple(range(rank - 1)))
    gaps = ops.subtract(later, earlier)
    one = full(vectors.builder, 1, array_shape(gaps))
    gaps = convert_to(ops.select(is_diagonal, one, gaps), dtype)
    return ops.select(is_diagonal, diagonal, ops.divide(multiply_matrices(vectors, vectors_ct, -2, -2), gaps))
