"""LAPACK's custom calls with NumPy: what JAX lowers, against what each factorization is."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from interpreter.custom_calls.built_in import BUILT_IN
from tests.interpreter.custom_calls.lapack_matrices import (
    DTYPES,
    EPS,
    TYPES,
    adjoint,
    assert_close,
    call,
    matrices,
    positive,
)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_cholesky(kind: str, uplo: str) -> None:
    t, a = TYPES[kind], positive(kind, 2, 3, 3)
    junk = np.triu(a, 1) if uplo == "L" else np.tril(a, -1)
    found, info = call(
        f"lapack_{kind}potrf_ffi", [f"{t}[2,3,3]", "s32[2]"], a + junk, config=f"{{uplo = {ord(uplo)} : ui8}}"
    )
    factor = np.tril(found) if uplo == "L" else np.triu(found)
    assert_close(factor @ adjoint(factor) if uplo == "L" else adjoint(factor) @ factor, a, kind)
    np.testing.assert_array_equal(found - factor, 2 * junk)
    assert info.tolist() == [0, 0]


@pytest.mark.parametrize("bad", [1, 2, 3, 4])
def test_cholesky_tells_the_first_bad_minor(bad: int) -> None:
    a = np.eye(4, dtype=np.float32)
    a[bad - 1, bad - 1] = -1
    assert call("lapack_spotrf_ffi", ["f32[4,4]", "s32[]"], a)[1] == bad
    a[bad - 1, bad - 1] = np.nan
    assert call("lapack_spotrf_ffi", ["f32[4,4]", "s32[]"], a)[1] == bad


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("sizes", [(4, 3), (3, 4), (3, 3), (0, 3)])
def test_lu(kind: str, sizes: tuple[int, int]) -> None:
    t, a, k = TYPES[kind], matrices(kind, 2, *sizes), min(sizes)
    m, n = sizes
    lu, pivots, info = call(f"lapack_{kind}getrf_ffi", [f"{t}[2,{m},{n}]", f"s32[2,{k}]", "s32[2]"], a)
    assert info.tolist() == [0, 0]
    for packed, swaps, of in zip(lu, pivots, a, strict=True):
        lower, upper = np.tril(packed[:, :k], -1) + np.eye(m, k), np.triu(packed[:k])
        rows = list(range(m))
        for here, there in enumerate(swaps):
            rows[here], rows[there - 1] = rows[there - 1], rows[here]
        assert_close(lower @ upper, of[rows], kind)
        assert (np.abs(np.tril(packed[:, :k], -1)) <= (1.5 if kind in "cz" else 1 + EPS[kind])).all()


def test_lu_of_a_singular_matrix() -> None:
    lu, pivots, info = call("lapack_dgetrf_ffi", ["f64[2,2]", "s32[2]", "s32[]"], np.float64([[1, 2], [2, 4]]))
    assert (lu.tolist(), pivots.tolist(), info) == ([[2, 4], [0.5, 0]], [2, 2], 2)
    assert call("lapack_dgetrf_ffi", ["f64[2,2]", "s32[2]", "s32[]"], np.zeros((2, 2)))[2] == 1


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("sizes", [(4, 3), (3, 3), (3, 4)])
def test_qr(kind: str, sizes: tuple[int, int]) -> None:
    (m, n), k, t = sizes, min(sizes), TYPES[kind]
    a = matrices(kind, 2, m, n)
    packed, factors = call(f"lapack_{kind}geqrf_ffi", [f"{t}[2,{m},{n}]", f"{t}[2,{k}]"], a)
    name = f"lapack_{kind}{'ungqr' if kind in 'cz' else 'orgqr'}_ffi"
    q = call(name, [f"{t}[2,{m},{k}]"], np.ascontiguousarray(packed[..., :k]), factors)
    assert_close(q @ np.triu(packed[..., :k, :]), a, kind)
    assert_close(adjoint(q) @ q, np.broadcast_to(np.eye(k), (2, k, k)), kind)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("routine", ["gesdd", "gesvd"])
@pytest.mark.parametrize("mode", ["A", "S", "N"])
def test_svd(kind: str, routine: str, mode: str) -> None:
    t, real, a = TYPES[kind], TYPES[{"c": "s", "z": "d"}.get(kind, kind)], matrices(kind, 2, 4, 3)
    columns = 3 if mode == "S" else 4
    shapes = [f"{t}[2,4,3]", f"{real}[2,3]", f"{t}[2,4,{columns}]", f"{t}[2,3,3]", "s32[2]"]
    _, values, left, right, info = call(
        f"lapack_{kind}{routine}_ffi", shapes, a, config=f"{{mode = {ord(mode)} : ui8}}"
    )
    assert info.tolist() == [0, 0]
    assert_close(values, np.linalg.svd(a, compute_uv=False), kind)
    if mode != "N":
        assert_close(left[..., :3] * values[:, None] @ right, a, kind)
        assert_close(adjoint(left) @ left, np.broadcast_to(np.eye(columns), (2, columns, columns)), kind)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_symmetric_eigenvectors(kind: str, uplo: str) -> None:
    t, real, a = TYPES[kind], TYPES[{"c": "s", "z": "d"}.get(kind, kind)], positive(kind, 2, 3, 3)
    junk = np.triu(a, 1) if uplo == "L" else np.tril(a, -1)
    name = f"lapack_{kind}{'heevd' if kind in 'cz' else 'syevd'}_ffi"
    config = f"{{mode = 86 : ui8, uplo = {ord(uplo)} : ui8}}"
    vectors, values, info = call(name, [f"{t}[2,3,3]", f"{real}[2,3]", "s32[2]"], a + junk, config=config)
    assert info.tolist() == [0, 0]
    assert_close(a @ vectors, vectors * values[:, None], kind)


@pytest.mark.parametrize("kind", TYPES)
def test_eigenvectors(kind: str) -> None:
    t, a = TYPES[kind], matrices(kind, 2, 4, 4)
    of = {"f32": "c64", "f64": "c128"}.get(t, t)
    values = [f"{t}[2,4]"] * (1 if kind in "cz" else 2)
    config = "{compute_left = 86 : ui8, compute_right = 86 : ui8}"
    shapes = [*values, f"{of}[2,4,4]", f"{of}[2,4,4]", "s32[2]"]
    *parts, left, right, info = call(f"lapack_{kind}geev_ffi", shapes, a, config=config)
    found = parts[0] if kind in "cz" else parts[0] + 1j * parts[1]
    assert info.tolist() == [0, 0]
    assert_close(a @ right, right * found[:, None], kind)
    assert_close(adjoint(a) @ left, left * np.conj(found)[:, None], kind)
    for vectors in (left, right):
        assert_close(np.linalg.norm(vectors, axis=-2), np.ones((2, 4)), kind)
    none = call(f"lapack_{kind}geev_ffi", shapes, a, config=config.replace("86", "78"))
    assert not none[-2].any()
    assert not none[-3].any()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("side", ["L", "R"])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
def test_triangular_solve(kind: str, side: str, trans: str) -> None:
    a = matrices(kind, 3, 3) + 3 * np.eye(3, dtype=DTYPES[kind])
    b = matrices(kind, 3, 2) if side == "L" else matrices(kind, 2, 3)
    config = f"{{diag = 78 : ui8, side = {ord(side)} : ui8, trans_x = {ord(trans)} : ui8, uplo = 85 : ui8}}"
    x = call(f"lapack_{kind}trsm_ffi", [f"{TYPES[kind]}[{b.shape[0]},{b.shape[1]}]"], a, b, config=config)
    upper = {"N": np.triu(a), "T": np.triu(a).T, "C": adjoint(np.triu(a))}[trans]
    assert_close(upper @ x if side == "L" else x @ upper, b, kind)


@pytest.mark.parametrize("kind", TYPES)
def test_tridiagonal_solve(kind: str) -> None:
    t = TYPES[kind]
    below, diagonal, above = (matrices(kind, 5, seed=n) for n in range(3))
    b = matrices(kind, 5, 2)
    *_, x, info = call(
        f"lapack_{kind}gtsv_ffi", [f"{t}[5]"] * 3 + [f"{t}[5,2]", "s32[]"], below, diagonal, above, b
    )  # fmt: skip
    matrix = np.diag(diagonal) + np.diag(below[1:], -1) + np.diag(above[:-1], 1)
    assert info == 0
    assert_close(matrix @ x, b, kind)


def test_what_cannot_be_decomposed() -> None:
    bad = np.full((2, 2), np.nan, np.float32)
    assert call("lapack_ssyevd_ffi", ["f32[2,2]", "f32[2]", "s32[]"], bad)[2] in (0, 1)
    assert call("lapack_sgeev_ffi", ["f32[2]", "f32[2]", "c64[2,2]", "c64[2,2]", "s32[]"], bad)[4] == 1
    assert (
        call(
            "lapack_sgtsv_ffi",
            ["f32[2]"] * 3 + ["f32[2,1]", "s32[]"],
            *np.zeros((3, 2), np.float32),
            np.ones((2, 1), np.float32),
        )[4]
        == 1
    )


def test_columns_with_a_number_come_first() -> None:
    a, marks = matrices("s", 3, 3), np.int32([0, 1, 0])
    packed, order, factors = call("lapack_sgeqp3_ffi", ["f32[3,3]", "s32[3]", "f32[3]"], a, marks)
    assert order[0] == 2
    assert sorted(order) == [1, 2, 3]
    q = call("lapack_sorgqr_ffi", ["f32[3,3]"], packed, factors)
    assert_close(q @ np.triu(packed), a[:, order - 1], "s")


def test_a_schur_decomposition_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.linalg.lapack", None)
    with pytest.raises(Exception, match=r"pip install 'xbuild-hlo\[xla\]'") as raised:
        call("lapack_sgees_ffi", ["f32[2,2]", "f32[2,2]", "f32[2]", "f32[2]", "s32[]", "s32[]"], np.eye(2, dtype="f4"))
    assert "missing_extra" in str(raised.value)


@pytest.mark.parametrize("columns", [(), (2,)])
def test_a_sparse_matrix_by_a_dense_one(columns: tuple[int, ...]) -> None:
    dense = matrices("s", 3, *columns)
    elements, ends, places = np.float32([2, 3, 5, 7]), np.int32([0, 2, 2, 3]), np.int32([0, 2, 1, 9])
    shape = f"f32[{','.join(map(str, (3, *columns)))}]"
    found = call("cpu_csr_sparse_dense_ffi", [shape], elements, ends, places, dense)
    assert_close(found, np.float32([[2, 0, 3], [0, 0, 0], [0, 5, 0]]) @ dense, "s")


def test_other_targets() -> None:
    x = np.float32([3, 1, 2])
    values, places = call("TopK", ["f32[2]", "s32[2]"], x)
    assert (values.tolist(), places.tolist()) == ([3, 2], [0, 2])
    for target in ("Sharding", "MoveToHost", "SPMDFullToShardShape", "annotate_device_placement"):
        assert call(target, ["f32[3]"], x).tolist() == x.tolist()
    assert call("SliceToDynamic", ["f32[<=3]"], x, np.int32(2)).tolist() == [3, 1]

    @xb.computation(xb.f32[3], xb.s32[()])
    def padded(x: xb.Value, n: xb.Value) -> xb.Value:
        return xb.custom_call(xb.set_dimension_size(x, n, 0), "PadToStatic", [xb.f32[3], xb.s32[()]])

    whole, size = evaluate(padded, x, 2)
    assert (whole.tolist(), size) == ([3, 1, 0], 2)


def test_each_target_is_entered_for_each_type() -> None:
    routines = ("potrf", "getrf", "geqrf", "gesdd", "gesvd", "geev", "trsm", "gtsv", "gehrd", "geqp3", "gees")
    assert {f"lapack_{kind}{routine}_ffi" for kind in "sdcz" for routine in routines} <= set(BUILT_IN)
