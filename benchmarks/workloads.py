"""Single ops at full size, each with an expert's hand-written NumPy equivalent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb

Array = np.ndarray[Any, Any]


@frozen
class Workload:
    """A computation, its arguments, and a hand-written function of the same arguments with the same result."""

    name: str
    computation: xb.Computation
    arguments: tuple[Array, ...]
    by_hand: Callable[..., Any]
    tolerance: float = 0.0


def workload(
    name: str, arguments: Sequence[Array], ours: Callable[..., Any], by_hand: Callable[..., Any], tolerance: float = 0.0
) -> Workload:
    shapes = [xb.primitive_type(argument.dtype)[argument.shape] for argument in arguments]
    return Workload(name, xb.computation(*shapes)(ours), tuple(arguments), by_hand, tolerance)


def leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def matmul() -> Workload:
    return workload("03 matmul 1024", (normal(1024, 1024), normal(1024, 1024, seed=1)), xb.dot, np.matmul, 1e-3)


def dot_general() -> Workload:
    """Batch dimensions 0 and 3 of the left, 1 and 0 of the right; two contracting dimensions on each side."""

    def ours(x: xb.Value, y: xb.Value) -> xb.Value:
        return xb.ops.dot(
            x, y, lhs_batch_dims=(0, 3), rhs_batch_dims=(1, 0), lhs_contracting_dims=(1, 4), rhs_contracting_dims=(3, 2)
        )

    def by_hand(x: Array, y: Array) -> Array:
        left = x.transpose(0, 3, 2, 1, 4).reshape(8, 4, 128, 16 * 32)
        right = y.transpose(1, 0, 3, 2, 4).reshape(8, 4, 16 * 32, 128)
        return left @ right

    arguments = normal(8, 16, 128, 4, 32), normal(4, 8, 32, 16, 128, seed=1)
    return workload("04 dot_general, 2 batch and 2 contracting dims", arguments, ours, by_hand, 1e-3)


def _taps(x: Array, padding: int, dilation: int, extent: int) -> Iterator[tuple[int, int, Array]]:
    """For each place of a 3x3 kernel, a view of the part of the padded input that it covers."""
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    for i in range(3):
        for j in range(3):
            rows, columns = slice(i * dilation, i * dilation + extent), slice(j * dilation, j * dilation + extent)
            yield i, j, padded[:, rows, columns]


def _im2col(x: Array, w: Array, padding: int, dilation: int) -> Array:
    """A convolution as one product for each image."""
    extent = x.shape[1] + 2 * padding - 2 * dilation
    kernel = w.reshape(-1, w.shape[3])
    result = np.empty((x.shape[0], extent, extent, w.shape[3]), x.dtype)
    for n in range(x.shape[0]):
        columns = np.concatenate([part[0] for _, _, part in _taps(x[n : n + 1], padding, dilation, extent)], axis=-1)
        np.matmul(columns.reshape(extent * extent, -1), kernel, out=result[n].reshape(extent * extent, -1))
    return result


def _convolve(**attributes: Any) -> Callable[..., xb.Value]:
    def ours(x: xb.Value, w: xb.Value) -> xb.Value:
        return xb.ops.convolution(x, w, dimension_numbers="b01f_01io->b01f", **attributes)

    return ours


def convolution() -> Workload:
    arguments = normal(32, 56, 56, 64), normal(3, 3, 64, 64, seed=1)
    ours = _convolve(window="size=3x3 pad=1_1x1_1")
    return workload("05 conv 3x3 NHWC 32x56x56x64", arguments, ours, lambda x, w: _im2col(x, w, 1, 1), 1e-3)


def depthwise() -> Workload:
    def by_hand(x: Array, w: Array) -> Array:
        result = np.zeros(x.shape, x.dtype)
        for i, j, part in _taps(x, 1, 1, 56):
            result += part * w[i, j, 0]
        return result

    ours = _convolve(window="size=3x3 pad=1_1x1_1", feature_group_count=64)
    arguments = normal(32, 56, 56, 64), normal(3, 3, 1, 64, seed=1)
    return workload("06a depthwise conv 32x56x56x64", arguments, ours, by_hand, 1e-4)


def grouped() -> Workload:
    def by_hand(x: Array, w: Array) -> Array:
        parts = [_im2col(x[..., 16 * g : 16 * g + 16], w[..., 16 * g : 16 * g + 16], 2, 2) for g in range(4)]
        return np.concatenate(parts, axis=-1)

    ours = _convolve(window="size=3x3 pad=2_2x2_2 rhs_dilate=2x2", feature_group_count=4)
    arguments = normal(8, 56, 56, 64), normal(3, 3, 16, 64, seed=1)
    return workload("06b conv, 4 groups, dilation 2, 8x56x56x64", arguments, ours, by_hand, 1e-3)


_AXES = ((0,), (1,), (2,), (0, 2), (0, 1, 2))


def reductions() -> Workload:
    def ours(x: xb.Value) -> list[xb.Value]:
        return [
            xb.reduce(x, init, to_apply, axes)
            for axes in _AXES
            for init, to_apply in ((0.0, xb.add), (-np.inf, xb.max))
        ]

    def by_hand(x: Array) -> list[Any]:
        return [fold(x, axis=axes) for axes in _AXES for fold in (np.sum, np.max)]

    return workload("07a sum and max over 5 axis sets of 4M", (normal(64, 256, 256),), ours, by_hand, 1e-2)


def custom_reduction() -> Workload:
    """The probability of one of two independent events: x + y - x y."""

    def ours(x: xb.Value) -> xb.Value:
        return xb.reduce(x, 0.0, lambda a, b: a + b - a * b, 1)

    def by_hand(x: Array) -> Array:
        while x.shape[1] > 1:
            half = x.shape[1] // 2
            a, b = x[:, :half], x[:, half:]
            x = a + b - a * b
        return x[:, 0]

    return workload("07b reduce 1M with a computation", (normal(1024, 1024) * np.float32(0.01),), ours, by_hand, 1e-3)


_POOL = "size=1x3x3x1 stride=1x2x2x1 pad=0_0x0_1x0_1x0_0"


def _pooled(x: Array) -> Iterator[Array]:
    padded = np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=-np.inf)
    return (padded[:, i : i + 111 : 2, j : j + 111 : 2] for i in range(3) for j in range(3))


def max_pool() -> Workload:
    def ours(x: xb.Value) -> xb.Value:
        low = xb.constant(x.builder, literal=np.float32(-np.inf))
        return xb.ops.reduce_window((x,), (low,), to_apply=xb.max, window=_POOL)

    def by_hand(x: Array) -> Array:
        parts = _pooled(x)
        result = next(parts).copy()
        for part in parts:
            np.maximum(result, part, out=result)
        return result

    return workload("08a max pool 3x3 stride 2, 8x112x112x64", (normal(8, 112, 112, 64),), ours, by_hand)


def max_pool_gradient() -> Workload:
    def ours(x: xb.Value, source: xb.Value) -> xb.Value:
        zero = xb.constant(x.builder, literal=np.float32(0))
        return xb.ops.select_and_scatter(x, source, zero, select=xb.ge, scatter=xb.add, window=_POOL)

    def by_hand(x: Array, source: Array) -> Array:
        best = np.full(source.shape, -np.inf, np.float32)
        place = np.zeros(source.shape, np.int8)
        for k, part in enumerate(_pooled(x)):
            better = part > best
            best[better] = part[better]
            place[better] = k
        result = np.zeros((8, 113, 113, 64), np.float32)
        for k in range(9):
            result[:, k // 3 : k // 3 + 111 : 2, k % 3 : k % 3 + 111 : 2] += np.where(place == k, source, np.float32(0))
        return result[:, :112, :112]

    arguments = normal(8, 112, 112, 64), normal(8, 56, 56, 64, seed=1)
    return workload("08b its gradient, select_and_scatter", arguments, ours, by_hand, 1e-4)


def _rows() -> Array:
    return np.random.default_rng(2).integers(0, 50_000, 8192, np.int32)


def embedding() -> Workload:
    def ours(table: xb.Value, rows: xb.Value) -> xb.Value:
        return xb.ops.gather(
            table, rows, offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1,
            slice_sizes=(1, 256),
        )  # fmt: skip

    return workload("09a gather, embedding 50k x 256, 8k rows", (normal(50_000, 256), _rows()), ours, lambda t, r: t[r])


def embedding_gradient() -> Workload:
    def ours(table: xb.Value, rows: xb.Value, updates: xb.Value) -> xb.Value:
        return xb.ops.scatter(
            (table,), rows, (updates,), to_apply=xb.add, update_window_dims=(1,), inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
        )  # fmt: skip

    def by_hand(table: Array, rows: Array, updates: Array) -> Array:
        result = table.copy()
        np.add.at(result, rows, updates)
        return result

    arguments = normal(50_000, 256), _rows(), normal(8192, 256, seed=1)
    return workload("09b scatter-add of the same", arguments, ours, by_hand, 1e-4)


def sort() -> Workload:
    return workload("10a sort f32[1M]", (normal(1_000_000),), xb.sort, np.sort)


def sort_pairs() -> Workload:
    def ours(keys: xb.Value, values: xb.Value) -> xb.Value:
        return xb.ops.sort((keys, values), to_apply=lambda a, b, c, d: xb.lt(a, b), dimension=0, is_stable=True)

    def by_hand(keys: Array, values: Array) -> tuple[Array, Array]:
        order = np.argsort(keys, kind="stable")
        return keys[order], values[order]

    arguments = normal(1_000_000), np.arange(1_000_000, dtype=np.int32)
    return workload("10b sort key and value, 1M", arguments, ours, by_hand)


def map_of_scalars() -> Workload:
    def ours(x: xb.Value, y: xb.Value) -> xb.Value:
        return xb.ops.map((x, y), to_apply=lambda a, b: xb.tanh(a * b) + xb.exp(-a), dimensions=(0,))

    arguments = normal(1_000_000), normal(1_000_000, seed=1)
    return workload(
        "16 map of a scalar computation over 1M", arguments, ours, lambda x, y: np.tanh(x * y) + np.exp(-x), 1e-5
    )


WORKLOADS = (
    matmul, dot_general, convolution, depthwise, grouped, reductions, custom_reduction, max_pool, max_pool_gradient,
    embedding, embedding_gradient, sort, sort_pairs, map_of_scalars,
)  # fmt: skip
"""Each is built on request, since all together are large."""
