"""Cotangents of triangular factors and of solutions with a triangle, for stacks of matrices."""

from __future__ import annotations

from typing import Any

from ... import ops
from ...core.builder import Value
from ..rules import Cotangents, full
from ..support import is_complex
from .arrays import array_of, conjugate, selected, transposed, triangle


def flipped(value: Value) -> Value:
    """The transpose of each matrix."""
    rank = array_of(value).rank
    return transposed(value, (*range(rank - 2), rank - 1, rank - 2))


def adjoint(value: Value) -> Value:
    """The conjugate transpose of each matrix."""
    return conjugate(flipped(value))


def times(lhs: Value, rhs: Value, lhs_dim: int, rhs_dim: int) -> Value:
    """Products of matrices, summed over a dimension (-1 or -2) of each."""
    rank = array_of(lhs).rank
    batch = tuple(range(rank - 2))
    return ops.dot(
        lhs,
        rhs,
        lhs_contracting_dims=(rank + lhs_dim,),
        rhs_contracting_dims=(rank + rhs_dim,),
        lhs_batch_dims=batch,
        rhs_batch_dims=batch,
    )


def solved(a: Value, b: Value, left_side: bool, lower: bool, transpose_a: Any, unit_diagonal: bool = False) -> Value:
    return ops.triangular_solve(
        a, b, left_side=left_side, lower=lower, unit_diagonal=unit_diagonal, transpose_a=transpose_a
    )


def cholesky_cotangent(factor: Value, ct: Value, lower: bool) -> Value:
    """The symmetric (Hermitian) cotangent of the matrix: half of the two-sided solution of a mirrored triangle.

    With a = L L^H and P the lower triangle of L^T t, its diagonal halved: L^-T (P + P^H) conj(L)^-1, halved; for an
    upper factor U = L^H likewise.
    """
    inner = times(factor, ct, -2, -2) if lower else times(ct, factor, -1, -1)
    mirrored = ops.select(triangle(inner, "GE" if lower else "LE"), inner, adjoint(inner))
    conjugated = conjugate(factor)
    if lower:
        left = solved(factor, mirrored, True, True, "TRANSPOSE")
        found = solved(conjugated, left, False, True, "NO_TRANSPOSE")
    else:
        left = solved(conjugated, mirrored, True, False, "NO_TRANSPOSE")
        found = solved(factor, left, False, False, "TRANSPOSE")
    half = ops.multiply(found, full(found.builder, 0.5, array_of(found)))
    if not is_complex(found):
        return half
    return ops.multiply(ops.add(half, adjoint(half)), full(found.builder, 0.5, array_of(found)))


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
    """Of op(a) x = b or x op(a) = b: the solution with the transposed triangle, and its product with x."""
    is_conjugated = transpose_a == "ADJOINT" and is_complex(a)
    is_flipped = transpose_a != "NO_TRANSPOSE"
    matrix = conjugate(a) if is_conjugated else a
    other: Any = "NO_TRANSPOSE" if is_flipped else "TRANSPOSE"
    b_ct = solved(matrix, ct, left_side, lower, other, unit_diagonal)
    if not wants[0]:
        return None, b_ct
    product = _outer(b_ct, x, left_side, is_flipped)
    direction = {(True, False): "GE", (True, True): "GT", (False, False): "LE", (False, True): "LT"}
    a_ct = ops.negate(selected(triangle(product, direction[lower, unit_diagonal]), product))
    return conjugate(a_ct) if is_conjugated else a_ct, b_ct if wants[1] else None


def _outer(b_ct: Value, x: Value, left_side: bool, is_flipped: bool) -> Value:
    """How the solution moves with each element of the triangle, but for the sign."""
    if left_side:
        return times(x, b_ct, -1, -1) if is_flipped else times(b_ct, x, -1, -1)
    return times(b_ct, x, -2, -2) if is_flipped else times(x, b_ct, -2, -2)
