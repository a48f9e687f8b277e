"""Cases of cholesky, triangular_solve and fft."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np

import xbuild as xb
from tests.cases.case import Case, Refusal

CHOLESKY, SOLVE, FFT = (f"StableHLO, {name}" for name in ("cholesky", "triangular_solve", "fft"))
TABLE = "XLA:CPU table, cholesky not PD"
BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e5m2
NAN = np.nan

# [[2, 0, 0], [1, 2, 0], [3, -1, 2]] times its transpose, the other triangle spoilt: it is not to be read.
FACTOR = np.array([[2, 0, 0], [1, 2, 0], [3, -1, 2]], np.float32)
DEFINITE = np.array([[4, NAN, 99], [2, 5, NAN], [6, 1, 14]], np.float32)
COMPLEX = np.array([[4, 0], [2 + 2j, 6]], np.complex64)
COMPLEX_FACTOR = np.array([[2, 0], [1 + 1j, 2]], np.complex64)
A = np.array([[2, 0, 0], [1, 4, 0], [-1, 2, 0.5]])
X = np.array([[1, -2], [3, 0.5], [-4, 8]])
C = np.array([[1 + 1j, 0], [2, 1j]])
Z = np.array([[1 - 1j], [2j]])


def solved(name: str, a: np.ndarray, x: np.ndarray, **attributes: Any) -> Case:
    """A case whose right side is made from its solution, by the definition."""
    matrix = np.tril(a) if attributes.get("lower", True) else np.triu(a)
    if attributes.get("unit_diagonal"):
        matrix = matrix - np.diag(np.diag(matrix)) + np.eye(len(a))
    turned = {"TRANSPOSE": matrix.T, "ADJOINT": matrix.conj().T}.get(attributes.get("transpose_a", ""), matrix)
    dtype = a.dtype
    right = (turned @ x if attributes.get("left_side", True) else x @ turned).astype(dtype)
    return Case(f"solve-{name}", xb.triangular_solve, (a, right), x.astype(dtype), attributes, 4, SOLVE)


def every_form() -> list[Case]:
    """Both sides, both triangles, each transposition, with and without a diagonal of ones."""
    found = []
    modes = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
    for left, lower, unit, mode in itertools.product((True, False), (True, False), (True, False), modes):
        attributes = {"left_side": left, "lower": lower, "unit_diagonal": unit, "transpose_a": mode}
        name = f"{'left' if left else 'right'}-{'lower' if lower else 'upper'}-{'unit-' * unit}{mode.lower()}"
        real = A if lower else A.T
        found.append(solved(name, real.astype(np.float32), X if left else X.T, **attributes))
        whole = C if lower else C.T
        found.append(solved(f"complex-{name}", whole.astype(np.complex128), Z if left else Z.T, **attributes))
    return found


def transformed(name: str, x: Any, fft_type: str, fft_length: Any, expected: object, **more: Any) -> Case:
    attributes = {"fft_type": fft_type, "fft_length": fft_length}
    return Case(f"fft-{name}", xb.fft, (x,), expected, attributes, source=FFT, **more)


ROW = np.arange(1, 9, dtype=np.float32)
SPECTRUM = np.array(
    [36, -4 + 9.65685425j, -4 + 4j, -4 + 1.65685425j, -4, -4 - 1.65685425j, -4 - 4j, -4 - 9.65685425j], np.complex64
)
EXACT = np.array([[1 + 2j, 3], [1 - 1j, 2]], np.complex128)

CASES = [
    Case("cholesky", xb.ops.cholesky, (DEFINITE,), FACTOR, source=CHOLESKY),
    Case("cholesky-upper", xb.cholesky, (DEFINITE.T,), FACTOR.T, {"lower": False}, source=CHOLESKY),
    Case("cholesky-complex", xb.cholesky, (COMPLEX,), COMPLEX_FACTOR, tolerance=1, source=CHOLESKY),
    Case(
        "cholesky-complex-upper", xb.cholesky, (COMPLEX.conj().T,), COMPLEX_FACTOR.conj().T, {"lower": False}, 1,
        CHOLESKY,
    ),
    *(
        Case(f"cholesky-{np.dtype(t).name}", xb.cholesky, (DEFINITE.astype(t),), FACTOR.astype(t), {}, 1, CHOLESKY)
        for t in (np.float64, np.float16, BF16, F8)
    ),
    Case("cholesky-batch", xb.cholesky, (np.stack([DEFINITE, np.eye(3, dtype=np.float32)])[None],),
         np.stack([FACTOR, np.eye(3, dtype=np.float32)])[None], source=CHOLESKY),
    Case("cholesky-indefinite", xb.cholesky, (np.stack([-FACTOR, DEFINITE, 0 * FACTOR]),),
         np.stack([FACTOR * NAN, FACTOR, FACTOR * NAN]), source=TABLE),
    Case("cholesky-indefinite-complex", xb.cholesky, (-COMPLEX,), np.full((2, 2), NAN, np.complex64),
         source=TABLE),
    Case("cholesky-nan", xb.cholesky, (np.array([[1, 0], [NAN, 1]]),), np.full((2, 2), NAN), source=TABLE),
    Case("cholesky-number", xb.cholesky, (np.array([[9]], np.float32),), [[3]], source=CHOLESKY),
    Case("cholesky-nothing", xb.cholesky, (FACTOR[:0, :0],), FACTOR[:0, :0], source=CHOLESKY),
    Case("cholesky-no-batch", xb.cholesky, (FACTOR[None][:0],), FACTOR[None][:0], source=CHOLESKY),
    *every_form(),
    *(solved(f"{np.dtype(t).name}", A.astype(t), X) for t in (np.float64, np.float16, BF16, F8, np.complex64)),
    solved("number", np.array([[2.0]], np.float32), np.array([[1.5]])),
    Case("solve-batch", xb.triangular_solve, (np.stack([A, 2 * A]), np.stack([A @ X, A @ X])), np.stack([X, X / 2]),
         tolerance=2, source=SOLVE),
    Case("solve-other-triangle", xb.triangular_solve, (np.where(np.triu(A + 9, 1) > 0, NAN, A), A @ X), X,
         tolerance=2, source=SOLVE),
    Case("solve-unit-diagonal", xb.triangular_solve, (np.array([[NAN, NAN], [2, NAN]]), np.array([[1.0], [5.0]])),
         [[1], [3]], {"unit_diagonal": True}, source=SOLVE),
    Case("solve-singular", xb.triangular_solve, (np.array([[0.0, 0], [1, 1]]), np.array([[1.0, 0], [1, 1]])),
         [[np.inf, NAN], [-np.inf, NAN]], source=SOLVE, oracle=False),
    Case("solve-array", lambda b: xb.triangular_solve(A, b), (A @ X,), X, tolerance=2, source=SOLVE),
    Case("solve-nothing", xb.triangular_solve, (np.zeros((0, 0)), np.zeros((0, 2))), np.zeros((0, 2)), source=SOLVE),
    Case("solve-no-columns", xb.triangular_solve, (A, np.zeros((3, 0))), np.zeros((3, 0)), source=SOLVE, oracle=False),
    transformed("forward", ROW.astype(np.complex64), "FFT", 8, SPECTRUM, tolerance=2),
    transformed("back", SPECTRUM, "IFFT", [8], ROW.astype(np.complex64), tolerance=2, oracle=False),
    transformed("real", ROW, "RFFT", 8, SPECTRUM[:5], tolerance=2),
    transformed("real-back", SPECTRUM[:5], "IRFFT", 8, ROW, tolerance=4, oracle=False),
    transformed("impulse", np.eye(1, 6, dtype=np.complex64), "FFT", 6, np.ones((1, 6), np.complex64)),
    transformed("double", EXACT, "FFT", 2, [[4 + 2j, -2 + 2j], [3 - 1j, -1 - 1j]]),
    transformed("plane", EXACT, "FFT", (2, 2), [[7 + 1j, -3 + 1j], [1 + 3j, -1 + 3j]]),
    transformed("plane-back", np.array([[7 + 1j, -3 + 1j], [1 + 3j, -1 + 3j]]), "IFFT", (2, 2), EXACT),
    transformed("plane-real", np.array([[1.0, 2], [3, 5]]), "RFFT", (2, 2), [[11, -3], [-5, 1]]),
    transformed("plane-real-back", np.array([[11, -3], [-5, 1]], np.complex128), "IRFFT", (2, 2), [[1, 2], [3, 5]]),
    transformed("space", np.ones((2, 2, 2), np.complex64), "FFT", (2, 2, 2),
                np.pad(np.full((1, 1, 1), 8, np.complex64), (0, 1))),
    transformed("batch", np.stack([ROW, -ROW])[:, None], "RFFT", 8, np.stack([SPECTRUM[:5], -SPECTRUM[:5]])[:, None],
                tolerance=2),
    transformed("odd", np.array([1.0, 1, 1]), "RFFT", 3, [3, 0]),
    transformed("odd-back", np.array([3, 0], np.complex128), "IRFFT", 3, [1, 1, 1]),
    transformed("one", np.ones(1, np.float32), "RFFT", 1, [1]),
    transformed("one-back", np.array([2 + 5j], np.complex64), "IRFFT", 1, [2]),
    transformed("nothing", np.zeros(0, np.complex64), "FFT", 0, []),
    transformed("nothing-real", np.zeros((3, 0), np.float32), "RFFT", 0, [[]] * 3),
    transformed("nothing-back", np.zeros(0, np.complex128), "IRFFT", 0, []),
    transformed("no-batch", np.zeros((0, 4), np.float64), "RFFT", 4, np.zeros((0, 3), np.complex128)),
    transformed("no-rows", np.zeros((0, 4), np.float32), "RFFT", (0, 4), np.zeros((0, 3), np.complex64)),
]  # fmt: skip


def refused(name: str, operand: str, fft_type: str, fft_length: Any, kind: str, *names: str) -> Refusal:
    return Refusal(f"fft-{name}", xb.fft, (operand,), kind, names, {"fft_type": fft_type, "fft_length": fft_length})


def unsolved(name: str, a: str, b: str, kind: str, *names: str, **attributes: Any) -> Refusal:
    return Refusal(f"solve-{name}", xb.triangular_solve, (a, b), kind, names, attributes)


REFUSALS = [
    Refusal("cholesky-square", xb.cholesky, ("f32[4,3]",), "dimension_mismatch", ("f32[4,3]", "4", "3", "a")),
    Refusal("cholesky-vector", xb.cholesky, ("f32[4]",), "rank_too_small", ("f32[4]", "1", "2")),
    Refusal("cholesky-type", xb.cholesky, ("s32[4,4]",), "element_type_unsupported", ("s32",)),
    Refusal("cholesky-token", xb.cholesky, ("token[]",), "not_array", ("token[]",)),
    Refusal("cholesky-lower", xb.cholesky, ("f32[4,4]",), "invalid_attribute", ("lower",), {"lower": "yes"}),
    unsolved("rows", "f32[4,4]", "f32[3,4]", "dimension_mismatch", "f32[4,4]", "f32[3,4]", "left_side"),
    unsolved("columns", "f32[4,4]", "f32[4,3]", "dimension_mismatch", "3", "4", "left_side", left_side=False),
    unsolved("rank", "f32[4,4]", "f32[4]", "rank_mismatch", "f32[4,4]", "f32[4]"),
    unsolved("type", "f32[4,4]", "f64[4,3]", "element_type_mismatch", "f32", "f64"),
    unsolved("integers", "s32[4,4]", "s32[4,3]", "element_type_unsupported", "s32"),
    unsolved("batch", "f32[7,4,4]", "f32[6,4,3]", "dimension_mismatch", "7", "6", "dimension 0"),
    unsolved("square", "f32[4,3]", "f32[4,3]", "dimension_mismatch", "4", "3"),
    unsolved("vectors", "f32[4]", "f32[4]", "rank_too_small", "f32[4]"),
    unsolved("word", "f32[4,4]", "f32[4,3]", "invalid_attribute", "transpose_a", "ADJOINT", transpose_a="BOTH"),
    refused("real", "f32[8]", "FFT", 8, "element_type_unsupported", "f32[8]", "FFT"),
    refused("complex", "c64[8]", "RFFT", 8, "element_type_unsupported", "c64[8]", "RFFT"),
    refused("half", "f16[8]", "RFFT", 8, "element_type_unsupported", "f16"),
    refused("length", "f32[8]", "RFFT", 7, "dimension_mismatch", "8", "7"),
    refused("length-back", "c64[8]", "IRFFT", 8, "dimension_mismatch", "8", "5"),
    refused("second", "c64[4,8]", "FFT", (3, 8), "dimension_mismatch", "4", "3", "dimension 0"),
    refused("four", "c64[2,2,2,2]", "FFT", (2, 2, 2, 2), "invalid_attribute", "4", "3"),
    refused("none", "c64[8]", "FFT", (), "invalid_attribute", "fft_length"),
    refused("negative", "c64[8]", "FFT", -8, "negative_size", "-8", "fft_length"),
    refused("rank", "c64[8]", "FFT", (8, 8), "rank_too_small", "c64[8]", "[8, 8]"),
    refused("token", "token[]", "FFT", 8, "not_array", "token[]"),
    refused("word", "c64[8]", "DCT", 8, "invalid_attribute", "fft_type", "IRFFT"),
]
