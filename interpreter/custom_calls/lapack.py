"""Custom calls of LAPACK as JAX makes them, computed by NumPy: stacks of matrices in, LAPACK's output arrays out."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ..kernels.values import zeros
from ..rules.tables import compute
from .stacks import adjoint, names, results, stacked
from .table import letter, target


@target(*names("potrf"))
def potrf(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The Cholesky factor in one triangle (the other triangle is unchanged), and the order of the first bad minor."""
    is_lower = letter(instruction, "uplo", "L") == "L"

    def factor(matrix: Array) -> tuple[Array, int]:
        read = matrix if is_lower else adjoint(matrix)
        bad = _first_bad_minor(read)
        if bad:
            return matrix, bad
        found = np.linalg.cholesky(read)
        return (np.tril(found) + np.triu(matrix, 1)) if is_lower else (adjoint(found) + np.tril(matrix, -1)), 0

    return stacked(factor, results(instruction), operand)


def _first_bad_minor(matrix: Array) -> int:
    """The order of the first leading minor that is not positive, found by bisection; 0 where all are positive."""
    good, bad = 0, len(matrix) + 1
    while bad - good > 1:
        middle = good + (bad - good) // 2 if bad <= len(matrix) else len(matrix)
        good, bad = (middle, bad) if _is_positive(matrix[:middle, :middle]) else (good, middle)
    return bad if bad <= len(matrix) else 0


def _is_positive(matrix: Array) -> bool:
    try:
        return bool(np.isfinite(np.linalg.cholesky(matrix)).all())
    except np.linalg.LinAlgError:
        return False


@target(*names("getrf"))
def getrf(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The factors of LU with partial pivoting in one matrix, the rows that were swapped, counted from 1, and info."""
    return stacked(_lu, results(instruction), operand)


def _lu(matrix: Array) -> tuple[Array, Array, int]:
    lu, rows = matrix.copy(), min(matrix.shape)
    pivots, info = np.arange(1, rows + 1), 0
    for k in range(rows):
        column = lu[k:, k]
        size = np.abs(column.real) + np.abs(column.imag) if lu.dtype.kind == "c" else np.abs(column)
        chosen = k + int(np.argmax(np.where(np.isnan(size), -1, size)))
        pivots[k] = chosen + 1
        lu[[k, chosen]] = lu[[chosen, k]]
        if lu[k, k] == 0:
            info = info or k + 1
            continue
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, pivots, info


@target(*names("geqrf"))
def geqrf(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The R of a QR decomposition above the vectors of the reflectors, and the factors of the reflectors."""
    found, factors = np.linalg.qr(operand, mode="raw")
    return np.swapaxes(found, -1, -2).astype(operand.dtype), factors.astype(operand.dtype)


@target(*names("orgqr", "sd"), *names("ungqr", "cz"))
def orgqr(instruction: Instruction, operand: Array, factors: Array) -> Array:
    """The first columns of the product of the reflectors."""
    rows, columns = operand.shape[-2:]
    product = np.broadcast_to(np.eye(rows, columns, dtype=operand.dtype), operand.shape).copy()
    for k in reversed(range(factors.shape[-1])):
        vector = operand[..., k].copy()
        vector[..., :k], vector[..., k] = 0, 1
        along = np.conj(vector)[..., None, :] @ product
        product -= factors[..., k, None, None] * vector[..., None] * along
    return product


@target(*names("gesdd"), *names("gesvd"))
def gesdd(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The operand, the singular values, the left and right singular vectors, and info."""
    mode, shapes = letter(instruction, "mode", "A"), results(instruction)

    def decompose(matrix: Array) -> tuple[Any, ...]:
        try:
            if mode == "N":
                vectors = [np.zeros(shape.dims[-2:], matrix.dtype) for shape in shapes[2:4]]
                return matrix, np.linalg.svd(matrix, compute_uv=False), *vectors, 0
            left, values, right = np.linalg.svd(matrix, full_matrices=mode == "A")
        except np.linalg.LinAlgError:
            ranks = zip(shapes[1:4], (1, 2, 2), strict=True)
            return matrix, *(np.full(shape.dims[-rank:], np.nan) for shape, rank in ranks), 1
        return matrix, values, left, right, 0

    return stacked(decompose, shapes, operand)


@target(*names("syevd", "sd"), *names("heevd", "cz"))
def syevd(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The eigenvectors of symmetric matrices, of which one triangle is read, the eigenvalues, and info."""
    uplo: Literal["L", "U"] = "L" if letter(instruction, "uplo", "L") == "L" else "U"

    def decompose(matrix: Array) -> tuple[Any, ...]:
        try:
            values, vectors = np.linalg.eigh(matrix, uplo)
        except np.linalg.LinAlgError:
            return np.full(matrix.shape, np.nan), np.full(len(matrix), np.nan), 1
        return vectors, values, 0

    return stacked(decompose, results(instruction), operand)


@target(*names("geev"))
def geev(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The eigenvalues (of real matrices in two parts), the left and right eigenvectors, and info."""
    wanted = [letter(instruction, key, "V") == "V" for key in ("compute_left", "compute_right")]
    is_real = operand.dtype.kind == "f"

    def decompose(matrix: Array) -> tuple[Any, ...]:
        try:
            values, right = np.linalg.eig(matrix)
            left = _left_vectors(right) if wanted[0] else np.zeros_like(right)
        except np.linalg.LinAlgError:
            values = np.full(len(matrix), np.nan)
            left = right = np.full(matrix.shape, np.nan)
            return *((values, values) if is_real else (values,)), left, right, 1
        parts = (values.real, values.imag) if is_real else (values,)
        return *parts, left, right if wanted[1] else np.zeros_like(right), 0

    return stacked(decompose, results(instruction), operand)


def _left_vectors(right: Array) -> Any:
    """The left eigenvectors: the rows of the inverse of the right ones, normalized, with a real largest element."""
    left = adjoint(np.linalg.inv(right))
    left = left / np.linalg.norm(left, axis=0)
    largest = np.take_along_axis(left, np.abs(left).argmax(0)[None], 0)
    return left * np.conj(largest) / np.abs(largest) if left.dtype.kind == "c" else left


@target(*names("trsm"))
def trsm(instruction: Instruction, matrix: Array, operand: Array) -> Any:
    """The solution of triangular systems of equations."""
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[letter(instruction, "trans_x", "N")]
    return compute["triangular_solve"](
        matrix,
        operand,
        left_side=letter(instruction, "side", "L") == "L",
        lower=letter(instruction, "uplo", "L") == "L",
        unit_diagonal=letter(instruction, "diag", "N") == "U",
        transpose_a=transpose,
    )


@target(*names("gtsv"))
def gtsv(instruction: Instruction, below: Array, diagonal: Array, above: Array, operand: Array) -> tuple[Any, ...]:
    """The three diagonals (below[0] and above[-1] are not read), the solution of the tridiagonal systems, and info."""
    size = diagonal.shape[-1]
    matrix = np.zeros((*diagonal.shape, size), diagonal.dtype)
    place = np.arange(size)
    matrix[..., place, place] = diagonal
    matrix[..., place[1:], place[:-1]] = below[..., 1:]
    matrix[..., place[:-1], place[1:]] = above[..., :-1]
    *_, info = (zeros(shape) for shape in results(instruction))
    try:
        return below, diagonal, above, np.linalg.solve(matrix, operand), info
    except np.linalg.LinAlgError:
        return below, diagonal, above, np.full(operand.shape, np.nan, operand.dtype), info + info.dtype.type(1)
