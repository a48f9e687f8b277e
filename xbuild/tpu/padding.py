"""Padding of inputs whose extents differ between replicas: to which size, and how the true size goes with them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from .support import structures
from .support.arguments import integer, sequence
from .support.arrays import Placeholder, as_array
from .support.refusals import TpuTypeError, refuse

Maximum: TypeAlias = tuple[int | None, ...]
SMALLEST = 2
"""XLA has no dynamic dimension of size 1."""


class PaddingSpec(IntEnum):
    """To which size a dimension without a maximum is padded: the largest of the replicas, or the next power of two.

    >>> import xbuild as xb
    >>> xb.tpu.PaddingSpec.POWER_OF_TWO
    <PaddingSpec.POWER_OF_TWO: 1>

    Source: tf.compat.v1.tpu.PaddingSpec.
    """

    AUTO = 0
    POWER_OF_TWO = 1


@frozen
class PaddedDimension:
    """A dimension that was padded: of which input, and which argument holds its true size on each replica."""

    arg_index: int
    shape_index: int
    padding_arg_index: int


def pad_replica_inputs(
    inputs: Sequence[Sequence[Any]], maximum_shapes: Any = None, padding_spec: PaddingSpec | None = None
) -> tuple[list[list[Any]], list[PaddedDimension]]:
    """Inputs of all replicas in common shapes, with the true size of each padded dimension after the inputs.

    A dimension is padded where its extent differs between replicas or is not known before the run; to the maximum where
    that is given, else by the policy; never below 2. Zeros are appended at its end. With one replica nothing is padded.
    Raises maximum_too_small, rank_mismatch for a maximum of another rank, shape_mismatch for inputs of other ranks,
    invalid_attribute (TypeError) for a policy or an extent that is none.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> rows, dims = xb.tpu.pad_replica_inputs([[np.int32([1, 2, 3])], [np.int32([1, 2])]])
    >>> rows[1], [dim.padding_arg_index for dim in dims]
    ([array([1, 2, 0], dtype=int32), np.int32(2)], [1])

    Source: tensorflow/python/tpu/tpu.py, _pad_all_input.
    """
    rows = [structures.flatten(list(row)) for row in inputs]
    maxima = maxima_of(maximum_shapes, len(rows[0]))
    spec = _policy(padding_spec)
    padded: list[list[Any]] = [[] for _ in rows]
    sizes: list[list[Any]] = [[] for _ in rows]
    found: list[PaddedDimension] = []
    for number, column in enumerate(zip(*rows, strict=True)):
        targets = _targets(number, column, maxima[number], spec)
        for dim in targets:
            found.append(PaddedDimension(number, dim, len(rows[0]) + len(found)))
        for replica, leaf in enumerate(column):
            array = None if leaf is None else as_array(leaf)
            padded[replica].append(None if array is None else _filled(array, targets))
            sizes[replica] += [np.int32(array.shape[dim]) for dim in targets if array is not None]
    return [[*row, *size] for row, size in zip(padded, sizes, strict=True)], found


def _policy(given: Any) -> PaddingSpec:
    if given is None:
        return PaddingSpec.AUTO
    if given not in tuple(PaddingSpec):
        refuse(
            "invalid_attribute",
            f"padding_spec is {given!r}, and a PaddingSpec is wanted",
            "xb.tpu.PaddingSpec.AUTO and xb.tpu.PaddingSpec.POWER_OF_TWO are the two",
            error=TpuTypeError,
        )
    return PaddingSpec(given)


def maxima_of(maximum_shapes: Any, count: int) -> list[Maximum | None]:
    """The maximum of each input: extents with None for one that is not known, () for none at all; None: not padded."""
    if maximum_shapes is None:
        return [()] * count
    return [_maximum(each) for each in leaves_of(maximum_shapes)]


def leaves_of(maximum_shapes: Any) -> list[Any]:
    """The maximum shapes of the inputs in order; inside of the outer list a list of ints and None is one shape."""
    if isinstance(maximum_shapes, list | tuple) and not any(map(_is_extent, maximum_shapes)):
        return [each for inner in maximum_shapes for each in _inner(inner)]
    return _inner(maximum_shapes)


def _inner(given: Any) -> list[Any]:
    if isinstance(given, dict):
        return [each for key in sorted(given) for each in _inner(given[key])]
    if isinstance(given, list | tuple) and not all(each is None or _is_extent(each) for each in given):
        return [each for inner in given for each in _inner(inner)]
    return [given]


def _is_extent(given: Any) -> bool:
    return isinstance(given, int | np.integer)


def _maximum(given: Any) -> Maximum | None:
    what = "a shape of maximum_shapes"
    dims = None if given is None else sequence(what, given, "extents and None")
    return (
        None
        if dims is None
        else tuple(None if each is None else integer(f"an extent of {what}", each) for each in dims)
    )


def _targets(number: int, column: Sequence[Any], maximum: Maximum | None, spec: PaddingSpec) -> dict[int, int]:
    """The dimensions of one input to pad, each with its size."""
    if column[0] is None or maximum is None:
        return {}
    static = [leaf.shape if isinstance(leaf, Placeholder) else as_array(leaf).shape for leaf in column]
    ranks = [len(shape) for shape in static]
    if len(set(ranks)) > 1:
        other = next(n for n, rank in enumerate(ranks) if rank != ranks[0])
        refuse(
            "shape_mismatch",
            f"input {number} has {ranks[0]} dimensions on replica 0 and {ranks[other]} on replica {other}; "
            "only extents are padded",
        )
    if maximum and len(maximum) != ranks[0]:
        refuse(
            "rank_mismatch",
            f"the maximum shape {list(maximum)} of input {number} has {len(maximum)} extents, and the input "
            f"{ranks[0]} dimensions",
            f"{[None] * ranks[0]} limits none of them",
        )
    real = [as_array(leaf).shape for leaf in column]
    return {
        dim: _size(number, dim, [shape[dim] for shape in real], maximum[dim] if maximum else None, spec)
        for dim in range(ranks[0])
        if any(shape[dim] is None or shape[dim] != static[0][dim] for shape in static[1:])
    }


def _size(number: int, dim: int, sizes: Sequence[int], maximum: int | None, spec: PaddingSpec) -> int:
    largest = max(sizes)
    if maximum is not None and maximum < largest:
        refuse(
            "maximum_too_small",
            f"the maximum shape of input {number} has {maximum} for dimension {dim}, which has {largest} elements on "
            f"replica {sizes.index(largest)}",
            f"a maximum of {largest} or more holds it; None lets the policy choose",
        )
    size = max(largest if maximum is None else maximum, SMALLEST)
    return 1 << (size - 1).bit_length() if maximum is None and spec is PaddingSpec.POWER_OF_TWO else size


def _filled(array: np.ndarray[Any, Any], targets: dict[int, int]) -> np.ndarray[Any, Any]:
    if not targets:
        return array
    whole = np.zeros([targets.get(dim, size) for dim, size in enumerate(array.shape)], array.dtype)
    whole[tuple(map(slice, array.shape))] = array
    return whole
