"""Custom calls of LAPACK that reduce a matrix by Householder reflections, 1 - factor * v v^H, computed by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from .stacks import names, results, stacked
from .table import flag, letter, numbers, target


def _reflection(vector: Array) -> tuple[Any, Array, Any]:
    """The real first element to which a reflection reduces a vector, the reflection's vector, and its factor."""
    first, rest = vector[0], np.linalg.norm(vector[1:])
    direction = vector.copy()
    direction[0] = 1
    if rest == 0 and first.imag == 0:
        direction[1:] = 0
        return first, direction, first * 0
    left = -np.copysign(np.hypot(abs(first), rest), first.real)
    direction[1:] /= first - left
    return left, direction, (left - first) / left


def _from_left(matrix: Array, vector: Array, factor: Any) -> None:
    """Apply the adjoint of a reflection to the matrix from the left, in place."""
    matrix -= np.conj(factor) * np.outer(vector, np.conj(vector) @ matrix)


def _from_right(matrix: Array, vector: Array, factor: Any) -> None:
    matrix -= factor * np.outer(matrix @ vector, np.conj(vector))


@target(*names("gehrd"))
def gehrd(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The Hessenberg form above the reflections' vectors, their factors, and info."""
    bounds = numbers(instruction)

    def reduce(matrix: Array) -> tuple[Any, ...]:
        found, factors = matrix.copy(), np.zeros(max(len(matrix) - 1, 0), matrix.dtype)
        last = bounds.get("high", len(matrix))
        for k in range(bounds.get("low", 1) - 1, last - 1):
            left, vector, factors[k] = _reflection(found[k + 1 : last, k])
            _from_right(found[:last, k + 1 : last], vector, factors[k])
            _from_left(found[k + 1 : last, k + 1 :], vector, factors[k])
            found[k + 1 : last, k] = left, *vector[1:]
        return found, factors, 0

    return stacked(reduce, results(instruction), operand)


@target(*names("sytrd", "sd"), *names("hetrd", "cz"))
def sytrd(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The tridiagonal form of Hermitian matrices, given by one triangle: reflections, diagonals, factors, info."""
    is_lower = letter(instruction, "uplo", "L") == "L"
    # The reduction that starts at the last row is the reduction of the matrix with its rows and columns reversed.
    turn = slice(None) if is_lower else slice(None, None, -1)

    def reduce(matrix: Array) -> tuple[Any, ...]:
        found, beside, factors = _tridiagonal(matrix[turn, turn])
        kept = np.tril(found) + np.triu(matrix[turn, turn], 1)
        return kept[turn, turn], found.diagonal().real[turn], beside[turn], factors[turn], 0

    return stacked(reduce, results(instruction), operand)


def _tridiagonal(matrix: Array) -> tuple[Array, Array, Array]:
    """The lower triangle with the diagonal and the reflections' vectors, the subdiagonal, and the factors."""
    below = np.tril(matrix, -1)
    found = below + np.conj(below.T) + np.diag(matrix.diagonal().real)
    factors = np.zeros(len(matrix) - 1, matrix.dtype)
    for k in range(len(factors)):
        left, vector, factors[k] = _reflection(found[k + 1 :, k])
        _from_right(found[k + 1 :, k + 1 :], vector, factors[k])
        _from_left(found[k + 1 :, k + 1 :], vector, factors[k])
        found[k + 1 :, k] = left, *vector[1:]
    return found, found.diagonal(-1).real.copy(), factors


@target(*names("geqp3"))
def geqp3(instruction: Instruction, operand: Array, columns: Array) -> tuple[Any, ...]:
    """R above the reflections' vectors, the order of the columns, counted from 1, and the factors.

    The columns whose mark is not 0 come first; then each step takes the remaining column with the largest norm.
    """

    def reduce(matrix: Array, marks: Array) -> tuple[Any, ...]:
        order = np.argsort(marks == 0, kind="stable")
        found, factors = matrix[:, order], np.zeros(min(matrix.shape), matrix.dtype)
        for k in range(len(factors)):
            if k >= np.count_nonzero(marks):
                longest = k + int(np.argmax(np.linalg.norm(found[k:, k:], axis=0)))
                found[:, [k, longest]], order[[k, longest]] = found[:, [longest, k]], order[[longest, k]]
            left, vector, factors[k] = _reflection(found[k:, k])
            _from_left(found[k:, k + 1 :], vector, factors[k])
            found[k:, k] = left, *vector[1:]
        return found, order + 1, factors

    return stacked(reduce, results(instruction), operand, columns)


@target(*names("ormqr", "sd"), *names("unmqr", "cz"))
def ormqr(instruction: Instruction, operand: Array, factors: Array, matrix: Array) -> Any:
    """A matrix multiplied by the product of the reflections, or by its adjoint, from the left or the right."""
    on_left, is_adjoint = flag(instruction, "left"), flag(instruction, "transpose")

    def product(vectors: Array, factors: Array, matrix: Array) -> tuple[Array]:
        found = matrix.copy()
        places = range(len(factors))
        for k in places if on_left == is_adjoint else reversed(places):
            vector = np.concatenate([np.ones(1, found.dtype), vectors[k + 1 :, k]])
            if on_left:
                _from_left(found[k:], vector, factors[k] if is_adjoint else np.conj(factors[k]))
            else:
                _from_right(found[:, k:], vector, np.conj(factors[k]) if is_adjoint else factors[k])
        return (found,)

    (found,) = stacked(product, results(instruction), operand, factors, matrix)
    return found
