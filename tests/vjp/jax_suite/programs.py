"""Programs of numerical analysis, physics, statistics and signals."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax.numpy import fft

from .entry import Entry, cplx, entry, normal, positive
from .matrices import positive as definite
from .matrices import regular


def runge_kutta(a: Any, x: Any) -> Any:
    """Eight steps of x' = tanh(a x)."""
    slope = lambda y: jnp.tanh(a @ y)  # noqa: E731

    def step(y: Any, _: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + 0.05 * k1)
        k3 = slope(y + 0.05 * k2)
        k4 = slope(y + 0.1 * k3)
        return y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, x, None, 8)[0]


def heat(u: Any, k: Any) -> Any:
    """Diffusion with a slice to each side, in a loop."""

    def step(_: Any, v: Any) -> Any:
        return v.at[1:-1].add(k * (v[2:] - 2 * v[1:-1] + v[:-2]))

    return lax.fori_loop(0, 6, step, u)


def wave(u: Any, v: Any) -> Any:
    def step(state: Any, _: Any) -> Any:
        x, p = state
        p = p + 0.1 * (jnp.roll(x, 1) + jnp.roll(x, -1) - 2 * x)
        return (x + 0.1 * p, p), jnp.sum(p * p)

    return lax.scan(step, (u, v), None, 5)


def pendulum(q: Any, p: Any) -> Any:
    energy = lambda a, b: 0.5 * b * b - jnp.cos(a)  # noqa: E731
    dq, dp = jax.grad(energy, 1)(q, p), -jax.grad(energy, 0)(q, p)
    return energy(q + 0.1 * dq, p + 0.1 * dp)


def bodies(x: Any, m: Any) -> Any:
    """The potential of bodies that attract each other."""
    apart = x[:, None] - x[None] + 0.0
    distance = jnp.sqrt((apart**2).sum(-1) + 0.01)
    return -jnp.sum(jnp.triu(m[:, None] * m / distance, 1))


def newton(a: Any) -> Any:
    """The square root by Newton's steps."""
    return lax.fori_loop(0, 5, lambda _, x: 0.5 * (x + a / x), jnp.ones_like(a))


def conjugate_gradients(a: Any, b: Any) -> Any:
    a = a @ a.T + 3 * jnp.eye(a.shape[0])

    def step(state: Any, _: Any) -> Any:
        x, r, p = state
        ap = a @ p
        alpha = r @ r / (p @ ap)
        new = r - alpha * ap
        return (x + alpha * p, new, new + (new @ new) / (r @ r) * p), None

    return lax.scan(step, (jnp.zeros_like(b), b, b), None, 2)[0][0]


def power_iteration(a: Any) -> Any:
    a = definite(a)
    vector = jnp.ones(a.shape[0])
    for _ in range(4):
        vector = a @ vector / jnp.linalg.norm(a @ vector)
    return vector @ a @ vector


def gram_schmidt(a: Any) -> Any:
    columns: list[Any] = []
    for n in range(a.shape[1]):
        left = a[:, n] - sum((c @ a[:, n]) * c for c in columns) if columns else a[:, n]
        columns.append(left / jnp.linalg.norm(left))
    return jnp.stack(columns, 1)


def kalman(a: Any, h: Any, ys: Any) -> Any:
    eye = jnp.eye(2)

    def step(state: Any, y: Any) -> Any:
        x, p = a @ state[0], a @ state[1] @ a.T + 0.1 * eye
        s = h @ p @ h.T + 1.0
        gain = p @ h.T / s
        x = x + gain[:, 0] * (y - (h @ x)[0])
        return (x, (eye - gain @ h) @ p), x

    return lax.scan(step, (jnp.zeros(2), eye), ys)[1]


def forward_algorithm(start: Any, moves: Any, emits: Any) -> Any:
    """The likelihood of a hidden Markov chain, in logarithms."""
    step = lambda f, e: (nn.logsumexp(f[:, None] + nn.log_softmax(moves), 0) + e, None)  # noqa: E731
    return nn.logsumexp(lax.scan(step, nn.log_softmax(start) + emits[0], emits[1:])[0])


def edit_distance(costs: Any) -> Any:
    """A soft shortest path through a table, row by row."""
    soft = lambda *xs: -nn.logsumexp(-jnp.stack(jnp.broadcast_arrays(*xs)), 0)  # noqa: E731

    def row(above: Any, line: Any) -> Any:
        best = soft(above, jnp.roll(above, 1)) + line
        return best, best[-1]

    return lax.scan(row, costs[0], costs[1:])


def gaussian(x: Any, a: Any, mean: Any) -> Any:
    """The logarithm of a normal density with a full covariance."""
    factor = jnp.linalg.cholesky(definite(a))
    z = lax.linalg.triangular_solve(factor, (x - mean)[:, None], left_side=True, lower=True)
    return -0.5 * jnp.sum(z * z) - jnp.log(jnp.diag(factor)).sum()


def gaussian_process(x: Any, y: Any, width: Any) -> Any:
    kernel = jnp.exp(-((x[:, None] - x) ** 2) / width**2) + 0.1 * jnp.eye(len(x))
    factor = jnp.linalg.cholesky(kernel)
    z = lax.linalg.triangular_solve(factor, y[:, None], left_side=True, lower=True)
    return 0.5 * (z**2).sum() + jnp.log(jnp.diag(factor)).sum()


def filtered(x: Any, response: Any) -> Any:
    """A signal through a filter in frequencies."""
    return fft.irfft(fft.rfft(x) * response, x.shape[-1])


def phases(x: Any) -> Any:
    spectrum = fft.fft2(x)
    return jnp.real(fft.ifft2(spectrum / (jnp.abs(spectrum) + 1.0)))


def spectrogram(x: Any) -> Any:
    frames = jnp.stack([x[n : n + 8] for n in range(0, 16, 4)]) * jnp.hanning(8)
    return jnp.log1p(jnp.abs(fft.rfft(frames)) ** 2)


def poisson(f: Any) -> Any:
    """The solution of a Poisson equation on a torus."""
    k = fft.fftfreq(f.shape[0]) ** 2
    return fft.ifft2(fft.fft2(f) / (k[:, None] + k + 1.0)).real


def sinkhorn(costs: Any) -> Any:
    def step(potential: Any, _: Any) -> Any:
        rows = -nn.logsumexp(potential[None] - costs, 1)
        return -nn.logsumexp(rows[:, None] - costs, 0), None

    return lax.scan(step, jnp.zeros(costs.shape[1]), None, 4)[0]


def page_rank(links: Any) -> Any:
    steps = nn.softmax(links, 0)
    return lax.fori_loop(0, 6, lambda _, r: 0.85 * steps @ r + 0.05, jnp.ones(links.shape[0]) / 3)


def graph_net(x: Any, w: Any, sources: Any, targets: Any) -> Any:
    """Messages along edges, summed where they arrive."""
    messages = jnp.tanh(x[sources] @ w)
    return nn.relu(x + jnp.zeros_like(x).at[targets].add(messages))


def ranked(x: Any, y: Any) -> Any:
    order = jnp.argsort(x)
    return jnp.cumsum(y[order]) * jnp.sort(x)


def splines(points: Any, t: Any) -> Any:
    """De Casteljau's curve."""
    while len(points) > 1:
        points = points[:-1] * (1 - t) + points[1:] * t
    return points[0]


def life(x: Any) -> Any:
    kernel = jnp.array([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
    blur = lambda y: lax.conv(y[None, None], kernel[None, None], (1, 1), "SAME")[0, 0]  # noqa: E731
    return nn.sigmoid(4 * blur(nn.sigmoid(blur(x))) - 2)


def implicit(x: Any) -> Any:
    """Six steps towards a fixed point, each with a choice."""
    step = lambda _, y: lax.cond(y.sum() > 1, lambda z: 0.5 * z, lambda z: jnp.cos(z * x), y)  # noqa: E731
    return lax.fori_loop(0, 6, step, x)


def regression(x: Any, y: Any) -> Any:
    return jnp.linalg.solve(x.T @ x + jnp.eye(3), x.T @ y)


def circuit(t: Any) -> Any:
    first = jnp.array([jnp.cos(t[0]), 1j * jnp.sin(t[0])])
    return jnp.abs(jnp.kron(first, jnp.array([jnp.cos(t[1]), jnp.exp(1j * t[2])]))) ** 2


def chebyshev(c: Any, x: Any) -> Any:
    return sum(c[n] * jnp.cos(n * jnp.arccos(jnp.tanh(x))) for n in range(4))


FUNCTIONS: list[Entry] = [
    entry("Runge and Kutta's steps", runge_kutta, normal(3, 3), normal(3)),
    entry("heat", heat, normal(8), normal()),
    entry("a wave", wave, normal(6), normal(6)),
    entry("a pendulum's energy", pendulum, normal(), normal()),
    entry("bodies that attract", bodies, normal(4, 3), positive(4)),
    entry("Newton's square root", newton, positive(4)),
    entry("conjugate gradients", conjugate_gradients, normal(4, 4), normal(4)),
    entry("power iteration", power_iteration, normal(3, 3)),
    entry("Gram and Schmidt's columns", gram_schmidt, normal(4, 3)),
    entry("Kalman's filter", kalman, normal(2, 2), normal(1, 2), normal(5)),
    entry("a hidden Markov chain", forward_algorithm, normal(3), normal(3, 3), normal(5, 3)),
    entry("a soft edit distance", edit_distance, normal(4, 5)),
    entry("a normal density", gaussian, normal(3), normal(3, 3), normal(3)),
    entry("a Gaussian process", gaussian_process, normal(5), normal(5), positive()),
    entry("a filter in frequencies", filtered, normal(2, 8), cplx(5)),
    entry("phases of an image", phases, normal(4, 4)),
    entry("a spectrogram", spectrogram, normal(20)),
    entry("Poisson's equation", poisson, normal(4, 4)),
    entry("optimal transport", sinkhorn, normal(3, 4)),
    entry("page rank", page_rank, normal(3, 3)),
    entry("a graph net", graph_net, normal(4, 3), normal(3, 3), [0, 1, 2, 3, 0], [1, 2, 3, 0, 1]),
    entry("sums in the order of a sort", ranked, normal(6), normal(6)),
    entry("a Bezier curve", splines, normal(5, 2), normal()),
    entry("a blurred game of life", life, normal(5, 5)),
    entry("a fixed point with choices", implicit, normal(3)),
    entry("linear regression by solving", regression, normal(6, 3), normal(6)),
    entry("log determinant of a kernel", lambda x: jnp.linalg.slogdet(definite(x))[1], normal(3, 3)),
    entry("Mahalanobis distance", lambda a, x: x @ jnp.linalg.inv(regular(a)) @ x, normal(3, 3), normal(3)),
    entry("a quantum circuit", circuit, normal(3)),
    entry("Mandelbrot's steps", lambda c: lax.fori_loop(0, 4, lambda _, z: z * z + c, c), lambda r: 0.3 * cplx(4)(r)),
    entry("Chebyshev's series", chebyshev, normal(4), normal(5)),
    entry("Monte Carlo with given draws", lambda m, z: nn.logsumexp(jnp.outer(z, m).sum(1)), normal(3), normal(9)),
]  # fmt: skip
