"""Programs on meshes, each beside the same function on a mesh of one device, which is the global program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

import examples.sharded_block as block
import xbuild as xb
from shape_inference import Shape
from xbuild import P

m = xb.mesh


@frozen(eq=False)
class Pair:
    """A function of the parts of a device, its mesh and specs, and the shapes of its global arrays.

    `gradient_of` numbers the arguments by which the function, a loss, is differentiated.
    """

    name: str
    function: Callable[..., Any]
    mesh: Any
    specs: Sequence[P]
    out: Any
    shapes: Sequence[Shape]
    gradient_of: tuple[int, ...] = field(default=(), kw_only=True)

    def on(self, mesh: Any) -> Any:
        """The program on a mesh of the same axes."""
        program = xb.shard_map(self.function, mesh, tuple(self.specs), self.out).program(*self.shapes)
        return xb.grad(program, self.gradient_of) if self.gradient_of else program

    @property
    def cut(self) -> Any:
        """The program of all devices."""
        return _cut(self)

    @property
    def whole(self) -> xb.Module:
        """The program of one device."""
        return _whole(self)


@cache
def _cut(pair: Pair) -> Any:
    return pair.on(pair.mesh)


@cache
def _whole(pair: Pair) -> xb.Module:
    return pair.on(xb.Mesh(dict.fromkeys(pair.mesh.axes, 1))).module  # type: ignore[no-any-return]


def total(x: Any, *dims: int) -> Any:
    return xb.reduce(x, 0.0, xb.add, dims or None)


def spread(x: Any, like: Any, *dims: int) -> Any:
    return xb.broadcast_in_dim(x, like.shape.dims, dims)


def dot(a: Any, b: Any) -> Any:
    return xb.dot_general(a, b, [1], [0])


def tensor_parallel(x: Any, up: Any, down: Any) -> Any:
    return m.psum(dot(xb.relu(dot(x, up)), down), "j")


def with_bias(x: Any, w: Any, b: Any) -> Any:
    product = m.psum(dot(x, w), "j")
    return product + spread(b, product, 1)


def mean_square(x: Any, w: Any, b: Any, y: Any) -> Any:
    away = xb.tanh(dot(x, w) + spread(b, y, 1)) - y
    return m.psum(total(away * away), "i") / 24.0


def embedding(tokens: Any, table: Any, w: Any) -> Any:
    """The vocabulary is cut: each device looks up what it has, and the rest is zero."""
    rows = table.shape.dims[0]
    local = tokens - xb.convert(m.axis_index("j"), xb.s32) * rows
    found = dot(xb.one_hot(local, rows), table)
    return dot(m.psum(found, "j"), w)


def neighbours(x: Any, axis: str, size: int) -> tuple[Any, Any]:
    """The last row of the device before, and the first of that after; zeros at the ends."""
    up = m.ppermute(x[-1:], axis, [(n, n + 1) for n in range(size - 1)])
    down = m.ppermute(x[:1], axis, [(n + 1, n) for n in range(size - 1)])
    return up, down


def stencil(x: Any) -> Any:
    for _ in range(2):
        up, down = neighbours(x, "i", m.axis_size("i"))
        long = xb.concatenate([up, x, down], 0)
        x = long[:-2] * 0.25 + x * 0.5 + long[2:] * 0.25
    return x


def convolved(x: Any, kernel: Any) -> Any:
    """A convolution along the cut dimension: rows, features."""
    up, down = neighbours(x, "i", m.axis_size("i"))
    image = xb.reshape(xb.concatenate([up, x, down], 0), [1, x.shape.dims[0] + 2, x.shape.dims[1]])
    names = xb.ConvolutionDimensionNumbers(0, 2, (1,), 1, 0, (2,), 0, 2, (1,))
    found: Any = xb.convolution(image, kernel, window=(xb.WindowDimension(size=3),), dimension_numbers=names)
    return xb.relu(xb.reshape(found, found.shape.dims[1:]))


def scattered(x: Any, up: Any, down: Any) -> Any:
    """A layer whose sums are scattered by rows, and gathered."""
    part = m.psum_scatter(dot(xb.tanh(dot(x, up)), down), "j", scatter_dimension=0, tiled=True)
    return m.all_gather_invariant(part * part, "j", axis=0, tiled=True)


def softmax(x: Any) -> Any:
    """Along the cut dimension."""
    top = m.pmax(xb.reduce(x, -np.inf, xb.maximum, (1,)), "j")
    weights = xb.exp(x - spread(top, x, 0))
    return weights / spread(m.psum(total(weights, 1), "j"), x, 0)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    """Features are cut."""
    count = float(x.shape.dims[1] * m.axis_size("j"))
    centred = x - spread(m.psum(total(x, 1), "j") / count, x, 0)
    variance = m.psum(total(centred * centred, 1), "j") / count
    return centred * spread(xb.rsqrt(variance + 1e-5), x, 0) * spread(scale, x, 1) + spread(shift, x, 1)


def attention(q: Any, k: Any, v: Any) -> Any:
    """The sequence is cut: queries stay, keys and values are gathered."""
    keys, values = (m.all_gather(each, "i", axis=0, tiled=True) for each in (k, v))
    scores = xb.dot_general(q, keys, [1], [1])
    weights = xb.exp(scores)
    return dot(weights, values) / spread(total(weights, 1), q, 0)


def on_two_axes(x: Any, w: Any) -> Any:
    """Rows along one axis, the contraction along another, the result cut by both."""
    part = dot(m.all_gather(x, "i", axis=0, tiled=True), w)
    columns = m.psum_scatter(part, "j", scatter_dimension=1, tiled=True) / m.axis_size("i")
    return m.psum_scatter(columns, "i", scatter_dimension=0, tiled=True)


def k_means(points: Any, centres: Any) -> Any:
    """A step: the means of the points that are nearest to each centre."""
    away = spread(total(points * points, 1), xb.dot_general(points, centres, [1], [1]), 0) - 2.0 * xb.dot_general(
        points, centres, [1], [1]
    )
    away = away + spread(total(centres * centres, 1), away, 1)
    chosen = xb.one_hot(xb.argmin(away, 1), centres.shape.dims[0])
    sums = m.psum(xb.dot_general(chosen, points, [0], [0]), "i")
    counts = m.psum(total(chosen, 0), "i")
    return sums / spread(xb.max(counts, 1.0), sums, 0)


def momentum(x: Any, w: Any, v: Any, y: Any) -> Any:
    """A training step by hand: gradients summed over the batch, weights moved."""
    away = dot(x, w) - y
    gradient = m.psum(xb.dot_general(x, away, [0], [0]), "i") / 8.0
    moved = v * 0.9 + gradient
    return w - moved * 0.1, moved


def statistics(x: Any, scale: Any) -> Any:
    """Normalization by statistics of the whole batch, and the largest element."""
    count = float(x.shape.dims[0] * m.axis_size("i"))
    mean = m.psum(total(x, 0), "i") / count
    variance = m.psum(total(x * x, 0), "i") / count - mean * mean
    normed = (x - spread(mean, x, 1)) * spread(scale * xb.rsqrt(variance + 1e-3), x, 1)
    return normed, m.pmax(xb.reduce(normed, -np.inf, xb.maximum), "i")


LINE, TWO, GRID = xb.Mesh(i=4), xb.Mesh(j=4), xb.Mesh(i=2, j=2)
f = xb.f32
_LOSS = [
    Pair("mean_square", mean_square, LINE, (P("i"), P(), P(), P("i")), P(), (f[8, 5], f[5, 3], f[3], f[8, 3])),
    Pair("sharded_block", block.loss, block.MESH, tuple(block.SPECS.values()), P(), tuple(block.SHAPES.values())),
]  # fmt: skip
PAIRS = [
    Pair("tensor_parallel", tensor_parallel, TWO, (P(), P(None, "j"), P("j")), P(), (f[4, 6], f[6, 8], f[8, 3])),
    Pair("tensor_and_data", tensor_parallel, GRID, (P("i"), P(None, "j"), P("j")), P("i"), (f[4, 6], f[6, 8], f[8, 3])),
    Pair("with_bias", with_bias, TWO, (P(None, "j"), P("j"), P()), P(), (f[4, 8], f[8, 6], f[6])),
    Pair("embedding", embedding, TWO, (P(), P("j"), P()), P(), (xb.s32[7], f[16, 6], f[6, 3])),
    Pair("stencil", stencil, LINE, (P("i"),), P("i"), (f[12, 3],)),
    Pair("convolved", convolved, LINE, (P("i"), P()), P("i"), (f[12, 3], f[5, 3, 3])),
    Pair("scattered", scattered, TWO, (P(), P(None, "j"), P("j")), P(), (f[4, 6], f[6, 8], f[8, 4])),
    Pair("softmax", softmax, TWO, (P(None, "j"),), P(None, "j"), (f[3, 12],)),
    Pair("layer_norm", layer_norm, TWO, (P(None, "j"), P("j"), P("j")), P(None, "j"), (f[3, 8], f[8], f[8])),
    Pair("attention", attention, LINE, (P("i"), P("i"), P("i")), P("i"), (f[8, 4], f[8, 4], f[8, 4])),
    Pair("on_two_axes", on_two_axes, GRID, (P("i", "j"), P("j")), P("i", "j"), (f[4, 6], f[6, 4])),
    Pair("k_means", k_means, LINE, (P("i"), P()), P(), (f[8, 2], f[3, 2])),
    Pair("momentum", momentum, LINE, (P("i"), P(), P(), P("i")), (P(), P()), (f[8, 4], f[4, 2], f[4, 2], f[8, 2])),
    Pair("statistics", statistics, LINE, (P("i"), P()), (P("i"), P()), (f[8, 3], f[3])),
    *_LOSS,
    evolve(_LOSS[0], name="mean_square_gradient", gradient_of=(1, 2)),
    evolve(_LOSS[1], name="sharded_block_gradient", gradient_of=tuple(block.WEIGHTS)),
]  # fmt: skip
