"""Custom calls of LAPACK as JAX makes them, computed by NumPy and SciPy on stacks of matrices.

Sections:

    Functions of one matrix, applied to stacks
    Schur decompositions
    Householder reflections
    LAPACK's other targets, as JAX calls them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Literal

import numpy as np

from shape_inference import TupleShape, XbuildError
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ..kernels.values import zeros
from ..rules import compute
from .built_in import config_flag, config_letter, config_numbers, target

# ----------------------------------------------------------------------------
# Functions of one matrix, applied to stacks
#
# And the names of a target for four types.


def targets_of(routine: str, kinds: str = "sdcz") -> Iterator[str]:
    """The targets of a LAPACK routine, one for each element type, such as `lapack_sgetrf_ffi`."""
    return (f"lapack_{kind}{routine}_ffi" for kind in kinds)


def apply_to_stack(
    function: Callable[..., tuple[Any, ...]], types: list[Any], operand: Array, *more: Array
) -> tuple[Any, ...]:
    """Apply a function to each matrix of a stack and its further operands; one array for each result."""
    batch = operand.shape[:-2]
    stacks = [array.reshape(prod(batch), *array.shape[len(batch) :]) for array in (operand, *more)]
    rows = [function(*matrices) for matrices in zip(*stacks, strict=True)]
    columns = zip(*rows, strict=True) if rows else ([] for _ in types)
    return tuple(_stack_column(list(column), batch, leaf) for column, leaf in zip(columns, types, strict=True))


def _stack_column(column: list[Any], batch: tuple[int, ...], leaf: Any) -> Any:
    stacked = (
        np.array(column, leaf.dtype.dtype) if column else np.empty((0, *leaf.dims[len(batch) :]), leaf.dtype.dtype)
    )
    return stacked.reshape(batch + stacked.shape[1:])


def result_shapes(instruction: Instruction) -> list[Any]:
    """The shapes of the results of a custom call, as a list."""
    return list(instruction.shape.elements) if isinstance(instruction.shape, TupleShape) else [instruction.shape]


def adjoint(matrix: Array) -> Array:
    return np.conj(np.swapaxes(matrix, -1, -2))


# ----------------------------------------------------------------------------
# Schur decompositions
#
# Computed by SciPy, which is installed with JAX.


@target(*targets_of("gees"))
def gees(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The Schur form, the Schur vectors, the eigenvalues (of real matrices in two parts), how many sorted, and info.

    Raises XbuildError (missing_extra) where SciPy is not installed.
    """
    try:
        from scipy.linalg.lapack import get_lapack_funcs
    except ImportError as error:
        raise XbuildError(
            "missing_extra",
            "a Schur decomposition needs SciPy, which is installed with JAX: pip install 'xbuild-hlo[xla]' "
            f"({error}) [missing_extra]",
        ) from error
    routine = get_lapack_funcs("gees", (operand,))
    wants_vectors = config_letter(instruction, "mode", "V") == "V"

    def decompose(matrix: Array) -> tuple[Any, ...]:
        form, _, *values, vectors, _, info = routine(lambda *_: None, matrix, compute_v=int(wants_vectors), sort_t=0)
        return form, vectors if wants_vectors else np.zeros_like(matrix), *values, 0, info

    return apply_to_stack(decompose, result_shapes(instruction), operand)


# ----------------------------------------------------------------------------
# Householder reflections
#
# Targets that reduce a matrix by 1 - factor * v v^H, computed by NumPy.


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


def _reflect_rows(matrix: Array, vector: Array, factor: Any) -> None:
    """Apply the adjoint of a reflection to the matrix from the left, in place."""
    matrix -= np.conj(factor) * np.outer(vector, np.conj(vector) @ matrix)


def _reflect_columns(matrix: Array, vector: Array, factor: Any) -> None:
    matrix -= factor * np.outer(matrix @ vector, np.conj(vector))


@target(*targets_of("gehrd"))
def gehrd(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The Hessenberg form above the reflections' vectors, their factors, and info."""
    bounds = config_numbers(instruction)

    def reduce(matrix: Array) -> tuple[Any, ...]:
        reduced, factors = matrix.copy(), np.zeros(max(len(matrix) - 1, 0), matrix.dtype)
        last = bounds.get("high", len(matrix))
        for k in range(bounds.get("low", 1) - 1, last - 1):
            left, vector, factors[k] = _reflection(reduced[k + 1 : last, k])
            _reflect_columns(reduced[:last, k + 1 : last], vector, factors[k])
            _reflect_rows(reduced[k + 1 : last, k + 1 :], vector, factors[k])
            reduced[k + 1 : last, k] = left, *vector[1:]
        return reduced, factors, 0

    return apply_to_stack(reduce, result_shapes(instruction), operand)


@target(*targets_of("sytrd", "sd"), *targets_of("hetrd", "cz"))
def sytrd(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The tridiagonal form of Hermitian matrices, given by one triangle: reflections, diagonals, factors, info."""
    is_lower = config_letter(instruction, "uplo", "L") == "L"
    # The reduction that starts at the last row is the reduction of the matrix with its rows and columns reversed.
    turn = slice(None) if is_lower else slice(None, None, -1)

    def reduce(matrix: Array) -> tuple[Any, ...]:
        reduced, beside, factors = _to_tridiagonal(matrix[turn, turn])
        reordered = np.tril(reduced) + np.triu(matrix[turn, turn], 1)
        return reordered[turn, turn], reduced.diagonal().real[turn], beside[turn], factors[turn], 0

    return apply_to_stack(reduce, result_shapes(instruction), operand)


def _to_tridiagonal(matrix: Array) -> tuple[Array, Array, Array]:
    """The lower triangle with the diagonal and the reflections' vectors, the subdiagonal, and the factors."""
    below = np.tril(matrix, -1)
    reduced = below + np.conj(below.T) + np.diag(matrix.diagonal().real)
    factors = np.zeros(len(matrix) - 1, matrix.dtype)
    for k in range(len(factors)):
        left, vector, factors[k] = _reflection(reduced[k + 1 :, k])
        _reflect_columns(reduced[k + 1 :, k + 1 :], vector, factors[k])
        _reflect_rows(reduced[k + 1 :, k + 1 :], vector, factors[k])
        reduced[k + 1 :, k] = left, *vector[1:]
    return reduced, reduced.diagonal(-1).real.copy(), factors


@target(*targets_of("geqp3"))
def geqp3(instruction: Instruction, operand: Array, columns: Array) -> tuple[Any, ...]:
    """R above the reflections' vectors, the order of the columns, counted from 1, and the factors.

    The columns whose mark is not 0 come first; then each step takes the remaining column with the largest norm.
    """

    def reduce(matrix: Array, marks: Array) -> tuple[Any, ...]:
        order = np.argsort(marks == 0, kind="stable")
        reduced, factors = matrix[:, order], np.zeros(min(matrix.shape), matrix.dtype)
        for k in range(len(factors)):
            if k >= np.count_nonzero(marks):
                longest = k + int(np.argmax(np.linalg.norm(reduced[k:, k:], axis=0)))
                reduced[:, [k, longest]], order[[k, longest]] = reduced[:, [longest, k]], order[[longest, k]]
            left, vector, factors[k] = _reflection(reduced[k:, k])
            _reflect_rows(reduced[k:, k + 1 :], vector, factors[k])
            reduced[k:, k] = left, *vector[1:]
        return reduced, order + 1, factors

    return apply_to_stack(reduce, result_shapes(instruction), operand, columns)


@target(*targets_of("ormqr", "sd"), *targets_of("unmqr", "cz"))
def ormqr(instruction: Instruction, operand: Array, factors: Array, matrix: Array) -> Any:
    """A matrix multiplied by the product of the reflections, or by its adjoint, from the left or the right."""
    on_left, is_adjoint = config_flag(instruction, "left"), config_flag(instruction, "transpose")

    def product(vectors: Array, factors: Array, matrix: Array) -> tuple[Array]:
        product_matrix = matrix.copy()
        places = range(len(factors))
        for k in places if on_left == is_adjoint else reversed(places):
            vector = np.concatenate([np.ones(1, product_matrix.dtype), vectors[k + 1 :, k]])
            if on_left:
                _reflect_rows(product_matrix[k:], vector, factors[k] if is_adjoint else np.conj(factors[k]))
            else:
                _reflect_columns(product_matrix[:, k:], vector, np.conj(factors[k]) if is_adjoint else factors[k])
        return (product_matrix,)

    (product_matrix,) = apply_to_stack(product, result_shapes(instruction), operand, factors, matrix)
    return product_matrix


# ----------------------------------------------------------------------------
# LAPACK's other targets, as JAX calls them
#
# Computed by NumPy: stacks of matrices in, LAPACK's output arrays out.


@target(*targets_of("potrf"))
def potrf(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The Cholesky factor in one triangle (the other triangle is unchanged), and the order of the first bad minor."""
    is_lower = config_letter(instruction, "uplo", "L") == "L"

    def factor(matrix: Array) -> tuple[Array, int]:
        read = matrix if is_lower else adjoint(matrix)
        bad = _first_bad_minor(read)
        if bad:
            return matrix, bad
        lower = np.linalg.cholesky(read)
        return (np.tril(lower) + np.triu(matrix, 1)) if is_lower else (adjoint(lower) + np.tril(matrix, -1)), 0

    return apply_to_stack(factor, result_shapes(instruction), operand)


def _first_bad_minor(matrix: Array) -> int:
    """The order of the first leading minor that is not positive, found by bisection; 0 if all are positive."""
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


@target(*targets_of("getrf"))
def getrf(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The factors of LU with partial pivoting in one matrix, the rows that were swapped, counted from 1, and info."""
    return apply_to_stack(_lu, result_shapes(instruction), operand)


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


@target(*targets_of("geqrf"))
def geqrf(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The R of a QR decomposition above the vectors of the reflectors, and the factors of the reflectors."""
    reduced, factors = np.linalg.qr(operand, mode="raw")
    return np.swapaxes(reduced, -1, -2).astype(operand.dtype), factors.astype(operand.dtype)


@target(*targets_of("orgqr", "sd"), *targets_of("ungqr", "cz"))
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


@target(*targets_of("gesdd"), *targets_of("gesvd"))
def gesdd(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The operand, the singular values, the left and right singular vectors, and info."""
    mode, shapes = config_letter(instruction, "mode", "A"), result_shapes(instruction)

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

    return apply_to_stack(decompose, shapes, operand)


@target(*targets_of("syevd", "sd"), *targets_of("heevd", "cz"))
def syevd(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The eigenvectors of symmetric matrices, of which one triangle is read, the eigenvalues, and info."""
    uplo: Literal["L", "U"] = "L" if config_letter(instruction, "uplo", "L") == "L" else "U"

    def decompose(matrix: Array) -> tuple[Any, ...]:
        try:
            values, vectors = np.linalg.eigh(matrix, uplo)
        except np.linalg.LinAlgError:
            return np.full(matrix.shape, np.nan), np.full(len(matrix), np.nan), 1
        return vectors, values, 0

    return apply_to_stack(decompose, result_shapes(instruction), operand)


@target(*targets_of("geev"))
def geev(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The eigenvalues (of real matrices in two parts), the left and right eigenvectors, and info."""
    wanted = [config_letter(instruction, key, "V") == "V" for key in ("compute_left", "compute_right")]
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

    return apply_to_stack(decompose, result_shapes(instruction), operand)


def _left_vectors(right: Array) -> Any:
    """The left eigenvectors: the rows of the inverse of the right ones, normalized, with a real largest element."""
    left = adjoint(np.linalg.inv(right))
    left = left / np.linalg.norm(left, axis=0)
    largest = np.take_along_axis(left, np.abs(left).argmax(0)[None], 0)
    return left * np.conj(largest) / np.abs(largest) if left.dtype.kind == "c" else left


@target(*targets_of("trsm"))
def trsm(instruction: Instruction, matrix: Array, operand: Array) -> Any:
    """The solution of triangular systems of equations."""
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[config_letter(instruction, "trans_x", "N")]
    return compute["triangular_solve"](
        matrix,
        operand,
        left_side=config_letter(instruction, "side", "L") == "L",
        lower=config_letter(instruction, "uplo", "L") == "L",
        unit_diagonal=config_letter(instruction, "diag", "N") == "U",
        transpose_a=transpose,
    )


@target(*targets_of("gtsv"))
def gtsv(instruction: Instruction, below: Array, diagonal: Array, above: Array, operand: Array) -> tuple[Any, ...]:
    """The three diagonals (below[0] and above[-1] are not read), the solution of the tridiagonal systems, and info."""
    size = diagonal.shape[-1]
    matrix = np.zeros((*diagonal.shape, size), diagonal.dtype)
    place = np.arange(size)
    matrix[..., place, place] = diagonal
    matrix[..., place[1:], place[:-1]] = below[..., 1:]
    matrix[..., place[:-1], place[1:]] = above[..., :-1]
    *_, info = (zeros(shape) for shape in result_shapes(instruction))
    try:
        return below, diagonal, above, np.linalg.solve(matrix, operand), info
    except np.linalg.LinAlgError:
        return below, diagonal, above, np.full(operand.shape, np.nan, operand.dtype), info + info.dtype.type(1)
