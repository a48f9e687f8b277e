"""Rules of the custom calls by which JAX has LAPACK decompose and solve."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ..rules import Cotangents, Pullback, full, refuse_derivative
from ..support import broadcast_to
from .arrays import array_of, conjugate, in_type, selected, triangle
from .matrices import adjoint, cholesky_cotangent, solved, solver_cotangents, times

Rule = Callable[[Pullback, Sequence[Value]], Cotangents]

LAPACK: dict[str, Rule] = {}
"""Target of a custom call -> its rule."""

_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def _target(routine: str, kinds: Iterable[str] = "sdcz") -> Callable[[Rule], Rule]:
    """A decorator: enter a rule under the names that the routine has for element types."""

    def enter(rule: Rule) -> Rule:
        LAPACK.update({f"lapack_{kind}{routine}_ffi": rule for kind in kinds})
        return rule

    return enter


def _letter(instruction: Instruction, key: str, default: str) -> str:
    """A letter among the integers of a backend_config such as `{uplo = 76 : ui8}`."""
    found = re.search(rf"\b{key}\s*=\s*(\d+)", instruction.attributes.backend_config)
    return chr(int(found[1])) if found else default


def _element(back: Pullback, index: int) -> Value:
    return ops.get_tuple_element(back.result, index=index)


@_target("trsm")
def trsm(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    matrix, _ = operands
    instruction = back.instruction
    return solver_cotangents(
        matrix,
        back.result,
        back.ct,
        _letter(instruction, "side", "L") == "L",
        _letter(instruction, "uplo", "L") == "L",
        _letter(instruction, "diag", "N") == "U",
        _TRANSPOSES[_letter(instruction, "trans_x", "N")],
        (back.wants(0), back.wants(1)),
    )


@_target("potrf")
def potrf(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    """The other triangle of the result is the operand's, and so is its cotangent."""
    ct, is_lower = back.ct[0], _letter(back.instruction, "uplo", "L") == "L"
    if ct is None or not array_of(ct).size:
        return (None,)
    mask = triangle(ct, "GE" if is_lower else "LE")
    factor = selected(mask, _element(back, 0))
    rest = selected(ops.not_(mask), ct)
    return (ops.add(cholesky_cotangent(factor, ct, is_lower), rest),)


@_target("getrf")
def getrf(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    """Of P a = L U: P^T L^-T (strictly lower part of L^T t + upper part of t U^T) U^-T."""
    (a,), ct = operands, back.ct[0]
    rows, columns = array_of(a).dims[-2:]
    if rows != columns:
        refuse_derivative(
            f"its operand is {array_of(a)}, and only the factors of square matrices have a derivative here",
            "solve with the square part, or use a factor of a^H a",
        )
    if ct is None or not array_of(ct).size:
        return (None,)
    factors = _element(back, 0)
    is_upper = triangle(factors, "LE")
    unit = ops.select(triangle(factors, "EQ"), full(a.builder, 1, array_of(a)), factors)
    lower = selected(triangle(factors, "GE"), unit)
    upper = selected(is_upper, factors)
    below = times(lower, selected(ops.not_(is_upper), ct), -2, -2)
    above = times(selected(is_upper, ct), upper, -1, -1)
    inner = ops.select(is_upper, above, below)
    left = solved(lower, inner, True, True, "TRANSPOSE", True)
    turned = solved(upper, left, False, False, "TRANSPOSE")
    return (times(_rows_back(a, lower, upper), turned, -1, -2),)


def _rows_back(a: Value, lower: Value, upper: Value) -> Value:
    """The matrix that puts the rows of L U back in the order of a: a U^-1 L^-1, whole numbers but for rounding."""
    found = solved(lower, solved(upper, a, False, False, "NO_TRANSPOSE"), False, True, "NO_TRANSPOSE", True)
    dtype = array_of(a).dtype
    real = ops.real(found) if dtype.kind == "complex" else found
    return in_type(ops.round_nearest_even(real), dtype)


@_target("syevd", "sd")
@_target("heevd", "cz")
def syevd(back: Pullback, operands: Sequence[Value]) -> Cotangents:
    """With eigenvectors V and values w: conj(V) (diag(t of w) + V^T t of V / (w_j - w_i)) V^T, made Hermitian."""
    vectors, values = (_element(back, number) for number in (0, 1))
    if not array_of(vectors).size or (back.ct[0] is None and back.ct[1] is None):
        return (None,)
    inner = _between(vectors, values, back.ct[0], back.ct[1])
    found = times(times(conjugate(vectors), inner, -1, -2), vectors, -1, -1)
    return (ops.multiply(ops.add(found, adjoint(found)), full(found.builder, 0.5, array_of(found))),)


def _between(vectors: Value, values: Value, vectors_ct: Value | None, values_ct: Value | None) -> Value:
    """The cotangent of V^H da V: that of the values on the diagonal, elsewhere that of the vectors."""
    sizes, dtype = array_of(vectors).dims, array_of(vectors).dtype
    rank = len(sizes)
    is_diagonal = triangle(vectors, "EQ")
    zero = full(vectors.builder, 0, array_of(vectors))
    diagonal = zero
    if values_ct is not None:
        diagonal = in_type(broadcast_to(values_ct, sizes, tuple(range(rank - 1))), dtype)
    if vectors_ct is None:
        return ops.select(is_diagonal, diagonal, zero)
    later = broadcast_to(values, sizes, (*range(rank - 2), rank - 1))
    earlier = broadcast_to(values, sizes, tuple(range(rank - 1)))
    gaps = ops.subtract(later, earlier)
    one = full(vectors.builder, 1, array_of(gaps))
    gaps = in_type(ops.select(is_diagonal, one, gaps), dtype)
    return ops.select(is_diagonal, diagonal, ops.divide(times(vectors, vectors_ct, -2, -2), gaps))
