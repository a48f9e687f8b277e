"""Programs of JAX that call LAPACK, against real XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from tests.interpreter.custom_calls.lapack_matrices import assert_close, matrices, positive

PROGRAMS: dict[str, tuple[Callable[[Any], Any], Callable[[str], Any]]] = {}


def lowered(make: Callable[[str], Any]) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def enter(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PROGRAMS[function.__name__] = function, make
        return function

    return enter


@lowered(lambda kind: positive(kind, 2, 3, 3))
def cholesky(a: Any) -> Any:
    from jax.lax import linalg

    return linalg.cholesky(a)


@lowered(lambda kind: matrices(kind, 2, 4, 3))
def reduced_qr(a: Any) -> Any:
    import jax.numpy as jnp

    return jnp.linalg.qr(a)


@lowered(lambda kind: matrices(kind, 4, 3))
def lu(a: Any) -> Any:
    from jax.lax import linalg

    return linalg.lu(a)


@lowered(lambda kind: matrices(kind, 4, 4))
def determinant(a: Any) -> Any:
    import jax.numpy as jnp

    return jnp.linalg.det(a)


@lowered(lambda kind: matrices(kind, 2, 4, 4))
def inverse(a: Any) -> Any:
    import jax.numpy as jnp

    return jnp.linalg.inv(a)


@lowered(lambda kind: positive(kind, 3, 3))
def eigenvalues(a: Any) -> Any:
    import jax.numpy as jnp

    return jnp.linalg.eigvalsh(a)


@lowered(lambda kind: matrices(kind, 2, 4, 4))
def hessenberg(a: Any) -> Any:
    from jax.lax import linalg

    return linalg.hessenberg(a)


@lowered(lambda kind: matrices(kind, 2, 4, 4))
def schur(a: Any) -> Any:
    from jax.lax import linalg

    return linalg.schur(a), linalg.schur(a, compute_schur_vectors=False)


@lowered(lambda kind: positive(kind, 2, 4, 4))
def tridiagonal(a: Any) -> Any:
    from jax.lax import linalg

    return linalg.tridiagonal(a), linalg.tridiagonal(a, lower=False)


@lowered(lambda kind: matrices(kind, 2, 4, 3))
def pivoted_qr(a: Any) -> Any:
    from jax.lax import linalg

    return linalg.qr(a, pivoting=True, full_matrices=False)


@lowered(lambda kind: matrices(kind, 2, 4, 4))
def product_with_reflections(a: Any) -> Any:
    from jax._src.lax import linalg

    packed, factors = linalg.geqrf(a[..., :3])
    sides = [(left, adjoint) for left in (True, False) for adjoint in (True, False)]
    return [linalg.ormqr(packed, factors, a, left=left, transpose=adjoint) for left, adjoint in sides]


@pytest.mark.oracle
@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("kind", ["s", "z"])
def test_real_xla_gives_the_same(name: str, kind: str) -> None:
    jax = pytest.importorskip("jax")
    function, make = PROGRAMS[name]
    a = make(kind)
    with jax.enable_x64(True):
        text = jax.jit(function).lower(a).compiler_ir("hlo").as_hlo_text(True)
        wanted = list(map(np.asarray, jax.tree.leaves(jax.jit(function)(a))))
    found = evaluate(xb.parse_hlo(text).entry, a)
    for got, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        assert got.dtype == want.dtype
        assert_close(got, want, kind)
