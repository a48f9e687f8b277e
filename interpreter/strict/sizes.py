"""Strict rules for dynamic sizes: sizes that are clamped, and sizes beyond the elements that the operand holds."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from .table import Evaluation, Spotted, strict


@strict
def set_dimension_size(it: Evaluation) -> Iterator[Spotted]:
    operand, size = it.operands
    dim = it.attributes.dimension
    bound = it.instruction.shape.dims[dim]  # type: ignore[union-attr]
    yield from _clamped("size", int(size), bound, dim)
    yield from _made_up(np.shape(it.result)[dim] - np.shape(operand)[dim], f"of dimension {dim}", "size", size)


@strict
def dynamic_reshape(it: Evaluation) -> Iterator[Spotted]:
    operand, sizes = it.operands
    for dim, size in enumerate(sizes):
        if it.attributes.dims_are_dynamic[dim]:
            yield from _clamped(f"dim_sizes[{dim}]", int(size), it.attributes.new_size_bounds[dim], dim)
    lacking = prod(np.shape(it.result)) - np.size(operand)
    yield from _made_up(lacking, "at the end", "operand elements", np.size(operand))


def _clamped(name: str, size: int, bound: int, dim: int) -> Iterator[Spotted]:
    if not 0 <= size <= bound:
        what = f"becomes {max(0, min(size, bound))}: dimension {dim} has 0..{bound}"
        yield Spotted("index_clamped", what, None, ((name, size),), part=dim)


def _made_up(lacking: int, where: str, name: str, value: object) -> Iterator[Spotted]:
    if lacking > 0:
        yield Spotted("undefined_read", f"{lacking} {where} were never given, and are 0 here", None, ((name, value),))
