"""Decompositions, solvers, and Fourier transforms."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax.numpy as jnp
import jax.scipy.linalg as linalg
from jax import lax
from jax.numpy import fft
from jax.scipy import fft as real_fft
from jax.scipy import signal

from .entry import Entry, cplx, entry, normal


def positive(x: Any) -> Any:
    """A Hermitian matrix with positive eigenvalues, of any."""
    return x @ jnp.conj(jnp.swapaxes(x, -1, -2)) + 2 * jnp.eye(x.shape[-1])


def regular(x: Any) -> Any:
    return x + 4 * jnp.eye(x.shape[-1])


def hermitian(z: Any) -> Any:
    """The eigenvalues, and what does not change with the phases of the eigenvectors."""
    values, vectors = jnp.linalg.eigh(z)
    return values, vectors[:, :1] * jnp.conj(vectors[:, 0])


def solver(draw: Any, left: bool, lower: bool, unit: bool, transpose: bool) -> Entry:
    words = ("left" if left else "right", "lower" if lower else "upper", "unit" * unit, "transposed" * transpose)
    name = " ".join(["triangular solve", "complex" * (draw is cplx), *words])

    def function(a: Any, b: Any) -> Any:
        return lax.linalg.triangular_solve(
            regular(a), b, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=transpose
        )

    return entry(name, function, draw(2, 3, 3), draw(2, 3, 2) if left else draw(2, 2, 3))


def transforms() -> list[Entry]:
    return [
        entry(f"{name} of {dims}", getattr(fft, name), draw(*dims))
        for names, draw in ((("fft", "ifft"), cplx), (("rfft",), normal))
        for name in names
        for dims in ((1,), (2, 6), (5,))
    ]


MATRICES: list[Entry] = [
    *(solver(normal, *forms) for forms in product((True, False), repeat=4)),
    *(solver(cplx, left, True, False, transpose) for left, transpose in product((True, False), repeat=2)),
    entry("triangular solve with the adjoint", lambda a, b: lax.linalg.triangular_solve(
        regular(a), b, left_side=True, lower=True, transpose_a=True, conjugate_a=True), cplx(3, 3), cplx(3, 2)),
    entry("cholesky", lambda x: jnp.linalg.cholesky(positive(x)), normal(3, 3)),
    entry("cholesky of stacks", lambda x: jnp.linalg.cholesky(positive(x)), normal(2, 3, 3)),
    entry("upper cholesky", lambda x: linalg.cholesky(positive(x)), normal(4, 4)),
    entry("Hermitian cholesky", lambda x: jnp.linalg.cholesky(positive(x)), cplx(3, 3)),
    entry(
        "solve by cholesky", lambda x, b: linalg.cho_solve(linalg.cho_factor(positive(x)), b), normal(3, 3), normal(3),
    ),
    entry("solve", lambda a, b: jnp.linalg.solve(regular(a), b), normal(3, 3), normal(3, 2)),
    entry("inverse", lambda a: jnp.linalg.inv(regular(a)), normal(3, 3)),
    entry("determinant", lambda a: jnp.linalg.det(regular(a)), normal(3, 3)),
    entry("log of the determinant", lambda a: jnp.linalg.slogdet(regular(a))[1], normal(3, 3)),
    entry("eigenvalues", lambda a: jnp.linalg.eigvalsh(a), normal(3, 3)),
    entry("eigenvalues and vectors", jnp.linalg.eigh, normal(2, 3, 3)),
    entry("eigenvalues and vectors of Hermitian matrices", hermitian, cplx(3, 3)),
    entry("log of the determinant of stacks", lambda a: jnp.linalg.slogdet(regular(a))[1], normal(2, 3, 3)),
    entry("complex solve", lambda a, b: jnp.linalg.solve(regular(a), b), cplx(3, 3), cplx(3)),
    entry("solve with swaps of rows", jnp.linalg.solve, [[0.0, 2, 1], [3, 0.5, 1], [1, 1, 0]], normal(3)),
    entry("power of a matrix", lambda a: jnp.linalg.matrix_power(a, 3), normal(3, 3)),
    entry("multi_dot", lambda a, b, c: jnp.linalg.multi_dot([a, b, c]), normal(2, 3), normal(3, 4), normal(4, 2)),
    entry("toeplitz", linalg.toeplitz, normal(4)),
    entry("block_diag", linalg.block_diag, normal(2, 2), normal(1, 3)),
]  # fmt: skip

TRANSFORMS: list[Entry] = [
    *transforms(),
    *(entry(f"irfft to {n}", lambda z, n=n: fft.irfft(z, n), cplx(2, n // 2 + 1)) for n in (1, 2, 5, 6)),
    entry("fft2", fft.fft2, cplx(3, 4)),
    entry("ifft2", fft.ifft2, cplx(3, 4)),
    entry("rfft2", fft.rfft2, normal(3, 4)),
    entry("irfft2", lambda z: fft.irfft2(z, (3, 5)), cplx(3, 3)),
    entry("fftn", fft.fftn, cplx(2, 3, 4)),
    entry("rfftn", fft.rfftn, normal(2, 3, 5)),
    entry("irfftn", lambda z: fft.irfftn(z, (2, 3, 6)), cplx(2, 3, 4)),
    entry("fft of a real array", fft.fft, normal(5)),
    entry("fft with padding", lambda x: fft.fft(x, 8), cplx(5)),
    entry("power spectrum", lambda x: jnp.abs(fft.rfft(x)) ** 2, normal(8)),
    entry("fftshift", fft.fftshift, normal(5)),
    entry("cosine transform", lambda x: real_fft.dct(x, norm="ortho"), normal(6)),
    entry("convolution by fft", lambda x, k: signal.fftconvolve(x, k), normal(7), normal(3)),
]

FUNCTIONS = MATRICES + TRANSFORMS
