"""Random instances of gather, scatter and the window ops, odd attributes included, with what a slow reference gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

import xbuild as xb
from shape_inference import primitive_type
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import WindowDimension
from tests.support.random_instances import Array, Instance, values

from . import reference_windows as slow

ADDABLE = ["f32", "f64", "bf16", "f16", "s32", "s8", "u8", "s64", "u32", "c64", "pred"]
ORDERED = ["f32", "f64", "bf16", "f16", "s32", "s8", "u8", "u16"]
INDEX = ["s32", "s64", "u32", "u8", "s8", "u64", "s16"]


def starts(rng: np.random.Generator, shape: Any, largest: int) -> Array:
    dtype = primitive_type(str(rng.choice(INDEX))).dtype
    low = 0 if dtype.kind == "u" else -2
    found = rng.integers(low, largest + 3, shape).astype(dtype)
    extreme = np.asarray(rng.random(shape) < 0.05)
    end = np.iinfo(dtype).max if rng.random() < 0.5 else np.iinfo(dtype).min
    return np.asarray(np.where(extreme, dtype.type(end), found))


def _split(rng: np.random.Generator, items: list[int], count: int) -> list[int]:
    return sorted(int(i) for i in rng.choice(items, count, replace=False)) if count else []


def placing(rng: np.random.Generator, least: int = 0) -> dict[str, Any]:
    """The operand's extents, the slice's size in each, and which dimension is chosen, left out or batching."""
    rank = int(rng.integers(least, 6))
    extents = [int(n) for n in rng.integers(1, 6 if rank < 4 else 4, rank)]
    dims = list(range(rank))
    batching = _split(rng, dims, int(rng.integers(0, min(rank, 3) + 1)) if rng.random() < 0.3 else 0)
    others = [d for d in dims if d not in batching]
    chosen = [int(d) for d in rng.permutation(_split(rng, others, int(rng.integers(0, len(others) + 1))))]
    left_out = _split(rng, others, int(rng.integers(0, len(others) + 1)))
    sizes = [1 if d in left_out or d in batching else int(rng.integers(1, extents[d] + 1)) for d in dims]
    sizes = [extents[d] if d in others and d not in left_out and rng.random() < 0.4 else sizes[d] for d in dims]
    batch = [int(n) for n in rng.integers(1, 5, int(rng.integers(0, 3)))]
    of_indices = []
    for d in batching:
        of_indices.append(int(rng.integers(0, len(batch) + 1)))
        batch.insert(of_indices[-1], extents[d])
        of_indices[:-1] = [n + (n >= of_indices[-1]) for n in of_indices[:-1]]
    vector = int(rng.integers(0, len(batch) + 1))
    implied = len(chosen) == 1 and vector == len(batch) and rng.random() < 0.5
    shape = batch if implied else [*batch[:vector], len(chosen), *batch[vector:]]
    if implied:
        vector = len(batch)
    else:
        of_indices = [n + (n >= vector) for n in of_indices]
    return {
        "extents": extents,
        "sizes": sizes,
        "chosen": chosen,
        "left_out": left_out,
        "batching": batching,
        "batch": batch,
        "of_indices": of_indices,
        "vector": vector,
        "shape": shape,
        "largest": max((extents[d] for d in chosen), default=0),
    }


def gather_attributes(rng: np.random.Generator, p: dict[str, Any]) -> dict[str, Any]:
    kept = [d for d in range(len(p["extents"])) if d not in p["left_out"] and d not in p["batching"]]
    offset = _split(rng, list(range(len(kept) + len(p["batch"]))), len(kept))
    return {
        "offset_dims": tuple(offset),
        "collapsed_slice_dims": tuple(p["left_out"]),
        "start_index_map": tuple(p["chosen"]),
        "operand_batching_dims": tuple(p["batching"]),
        "start_indices_batching_dims": tuple(p["of_indices"]),
        "index_vector_dim": p["vector"],
        "slice_sizes": tuple(p["sizes"]),
    }


def gather(rng: np.random.Generator) -> Instance:
    p = placing(rng)
    attributes = gather_attributes(rng, p)
    operand = values(rng, p["extents"], primitive_type(str(rng.choice([*ADDABLE, "f8e4m3fn", "s4"]))).dtype)
    found = starts(rng, p["shape"], p["largest"])
    return Instance(
        lambda x, i: xb.ops.gather(x, i, **attributes),
        (operand, found),
        lambda: slow.gather(operand, found, **attributes),
        f"gather {operand.dtype}{operand.shape} {found.dtype}{found.shape} {attributes}",
    )


def _subtract_twice(a: Any, b: Any) -> Any:
    return a + a - b


COMBINERS: list[tuple[str, Any, Any, list[str]]] = [
    ("add", xb.ops.add, lambda a, b: a + b, ADDABLE),
    ("multiply", xb.ops.multiply, lambda a, b: a * b, ["f32", "s32", "u8"]),
    ("maximum", xb.ops.maximum, max, ORDERED),
    ("minimum", xb.ops.minimum, min, ORDERED),
    ("xor", xb.ops.xor, lambda a, b: a ^ b, ["s32", "u8", "pred"]),
    ("overwrite", lambda a, b: b, lambda a, b: b, ADDABLE),
    ("keep", lambda a, b: a, lambda a, b: a, ADDABLE),
    ("2a-b", _subtract_twice, _subtract_twice, ["s32", "u8", "s64"]),
]


def _chosen(rng: np.random.Generator, rows: list[Any]) -> Any:
    return rows[int(rng.integers(0, len(rows)))]


def scatter_attributes(rng: np.random.Generator, p: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """The attributes, and the extents of the updates."""
    kept = [d for d in range(len(p["extents"])) if d not in p["left_out"] and d not in p["batching"]]
    window = _split(rng, list(range(len(kept) + len(p["batch"]))), len(kept))
    sizes, others = iter(p["sizes"][d] for d in kept), iter(p["batch"])
    shape = [next(sizes) if dim in window else next(others) for dim in range(len(kept) + len(p["batch"]))]
    attributes = {
        "update_window_dims": tuple(window),
        "inserted_window_dims": tuple(p["left_out"]),
        "scatter_dims_to_operand_dims": tuple(p["chosen"]),
        "input_batching_dims": tuple(p["batching"]),
        "scatter_indices_batching_dims": tuple(p["of_indices"]),
        "index_vector_dim": p["vector"],
    }
    return attributes, shape


def scatter(rng: np.random.Generator) -> Instance:
    p = placing(rng)
    word, region, function, types = _chosen(rng, COMBINERS)
    attributes, shape = scatter_attributes(rng, p)
    dtype = primitive_type(str(rng.choice(types))).dtype
    operand, update, found = (
        values(rng, p["extents"], dtype),
        values(rng, shape, dtype),
        starts(rng, p["shape"], p["largest"]),
    )
    return Instance(
        lambda x, i, u: xb.ops.scatter(x, i, u, to_apply=region, **attributes),
        (operand, found, update),
        lambda: slow.scatter(operand, found, update, function, **attributes),
        f"scatter {word} {operand.dtype}{operand.shape} {found.dtype}{found.shape} {update.shape} {attributes}",
    )


def window_of(rng: np.random.Generator, rank: int, *, is_dilated: bool = True) -> tuple[WindowDimension, ...]:
    """Any window, but one of a single element that crops, of which XLA:CPU dies."""

    def one() -> WindowDimension:
        return WindowDimension(
            size=int(rng.integers(1, 5)),
            stride=int(rng.integers(1, 4)) if rng.random() < 0.5 else 1,
            padding_low=int(rng.integers(-2, 5)) if rng.random() < 0.5 else 0,
            padding_high=int(rng.integers(-2, 5)) if rng.random() < 0.5 else 0,
            window_dilation=int(rng.integers(1, 4)) if is_dilated and rng.random() < 0.3 else 1,
            base_dilation=int(rng.integers(1, 5)) if is_dilated and rng.random() < 0.3 else 1,
        )

    def odd() -> WindowDimension:
        """Cropped and dilated at once, often of size one."""
        dilations = (int(n) for n in rng.integers(1, 4, 2)) if is_dilated else (1, 1)
        low, high = (int(n) for n in rng.integers(-4, 3, 2))
        return WindowDimension(int(rng.choice((1, 1, 2, 3))), int(rng.integers(1, 4)), low, high, *dilations)

    make = odd if rng.random() < 0.2 else one
    window = tuple(make() for _ in range(rank))
    is_deadly = all(d.size == 1 for d in window) and any(d.padding_low + d.padding_high < 0 for d in window)
    return tuple(evolve(d, size=2) for d in window) if is_deadly else window


NEUTRAL = {"add": 0, "multiply": 1, "xor": 0}


def reduce_window(rng: np.random.Generator) -> Instance:
    word, region, function, types = _chosen(rng, COMBINERS[:5])
    dtype = primitive_type(str(rng.choice(types))).dtype
    extents = [int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 8, int(rng.integers(1, 4)))]
    if rng.random() < 0.1:
        extents = [int(rng.integers(20, 60))]
    window = window_of(rng, len(extents))
    if len(extents) == 1 and rng.random() < 0.3:
        window = (
            WindowDimension(
                int(rng.integers(16, 40)), padding_low=int(rng.integers(0, 40)), stride=int(rng.integers(1, 3))
            ),
        )
    operand = values(rng, extents, dtype)
    least = primitive_type(dtype).kind
    init = NEUTRAL.get(word, {"unsigned": (0, 255), "signed": (-100, 100)}.get(least, (-9, 9))[word == "minimum"])
    start = np.asarray(init).astype(dtype)
    return Instance(
        lambda x, i: xb.ops.reduce_window(x, i, to_apply=region, window=window),
        (operand, start),
        lambda: slow.reduce_window(operand, start[()], function, window),
        f"reduce_window {word} {operand.dtype}{operand.shape} {window}",
    )


def select_and_scatter(rng: np.random.Generator) -> Instance:
    dtype = primitive_type(str(rng.choice(ORDERED))).dtype
    direction, compare = _chosen(
        rng, [("GE", lambda a, b: a >= b), ("GT", lambda a, b: a > b), ("LE", lambda a, b: a <= b)]
    )
    word, region, function, _ = _chosen(rng, [COMBINERS[0], COMBINERS[0], COMBINERS[2]])
    extents = [int(n) for n in rng.integers(1, 8, int(rng.integers(1, 4)))]
    window = window_of(rng, len(extents), is_dilated=False)
    operand = values(rng, extents, dtype)
    source = values(rng, slow.places_of(window, operand.shape), dtype)
    init = np.asarray(0).astype(dtype)
    return Instance(
        lambda x, s, i: xb.ops.select_and_scatter(
            x, s, i, select=lambda a, b: xb.ops.compare(a, b, direction=direction), scatter=region, window=window
        ),
        (operand, source, init),
        lambda: slow.select_and_scatter(operand, source, init[()], compare, function, window),
        f"select_and_scatter {direction} {word} {operand.dtype}{operand.shape} {window}",
    )


def convolution_attributes(rng: np.random.Generator) -> tuple[list[int], list[int], dict[str, Any]]:
    """The extents of the input and of the kernel, and the attributes."""
    spatial = int(rng.integers(0, 4))
    rank = spatial + 2
    window = tuple(evolve(d, window_reversal=bool(rng.random() < 0.2)) for d in window_of(rng, spatial))
    orders = [[int(n) for n in rng.permutation(rank)] if rng.random() < 0.7 else list(range(rank)) for _ in range(3)]
    (b, f, *spots), (i, o, *kernel), (p, q, *out) = orders
    numbers = ConvolutionDimensionNumbers(b, f, spots, o, i, kernel, p, q, out)
    feature_groups = int(rng.integers(2, 4)) if rng.random() < 0.3 else 1
    batch_groups = int(rng.integers(2, 4)) if feature_groups == 1 and rng.random() < 0.3 else 1
    inputs, outputs = int(rng.integers(1, 4)), int(rng.integers(1, 4)) * feature_groups * batch_groups
    batch = int(rng.integers(1, 3)) * batch_groups
    lhs_sizes = [batch, inputs * feature_groups, *(int(n) for n in rng.integers(1, 7, spatial))]
    rhs_sizes = [outputs, inputs, *(dim.size for dim in window)]
    return (
        [n for _, n in sorted(zip(numbers.lhs, lhs_sizes, strict=True))],
        [n for _, n in sorted(zip(numbers.rhs, rhs_sizes, strict=True))],
        {
            "window": window,
            "dimension_numbers": numbers,
            "feature_group_count": feature_groups,
            "batch_group_count": batch_groups,
        },
    )


def convolution(rng: np.random.Generator) -> Instance:
    lhs_sizes, rhs_sizes, attributes = convolution_attributes(rng)
    dtype = primitive_type(str(rng.choice(["f32", "f32", "f64", "bf16", "f16", "s32", "s8", "u8", "c64"]))).dtype
    lhs, rhs = values(rng, lhs_sizes, dtype), values(rng, rhs_sizes, dtype)
    wide: Any = {"V": np.float32, "f": np.float64, "i": np.int64, "u": np.int64, "c": np.complex128}[dtype.kind]
    window, numbers, *groups = attributes.values()

    def expected() -> Array:
        return slow.convolution(lhs, rhs, window, numbers, wide, *groups).astype(dtype)

    return Instance(
        lambda x, k: xb.ops.convolution(x, k, **attributes),
        (lhs, rhs),
        expected,
        f"convolution {dtype}{lhs.shape} {rhs.shape} {attributes}",
    )


MAKERS = (gather, scatter, reduce_window, select_and_scatter, convolution)
