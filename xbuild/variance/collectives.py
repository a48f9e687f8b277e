"""Collectives by axis name that bring devices together; they take arrays, numbers, and lists and tuples of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shape_inference import refuse

from .. import derived, ops
from ..core.builder import Value
from ..derived.support.dressing import dressed
from .casts import pcast as pcast
from .casts import pvary as pvary
from .named import (
    AxisNames,
    bound,
    broadcast_from,
    coordinate,
    each,
    exchanged,
    gathered,
    own_slice,
    permuted,
    reduced,
    scattered_sum,
)


@dressed
def psum(operand: Any, axis_name: AxisNames) -> Any:
    """The sum over the devices along the axes: varying, or unreduced, to invarying.

    An invarying operand counts once for each device. pred is counted as s32.
    Raises: unbound_axis; mixed_axis_state where the axes are in several states; state_mismatch for what is reduced.

    >>> import numpy as np, xbuild as xb
    >>> total = xb.shard_map(lambda x: xb.mesh.psum(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> total(np.array([1, 2, 30, 40]))
    array([31, 42])

    Source: JAX, jax.lax.psum.
    """
    region, axes = bound("psum", axis_name)
    return each(lambda x: reduced("psum", ops.add, x, region, axes), operand, region)


@dressed
def pmax(operand: Any, axis_name: AxisNames) -> Any:
    """The largest over the devices along the axes: varying to invarying.

    Raises: as psum; nonlinear_on_unreduced for what is unreduced.

    >>> import numpy as np, xbuild as xb
    >>> largest = xb.shard_map(lambda x: xb.mesh.pmax(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> largest(np.array([1, 40, 30, 4]))
    array([30, 40])

    Source: JAX, jax.lax.pmax.
    """
    region, axes = bound("pmax", axis_name)
    return each(lambda x: reduced("pmax", ops.maximum, x, region, axes), operand, region)


@dressed
def pmin(operand: Any, axis_name: AxisNames) -> Any:
    """The smallest over the devices along the axes: varying to invarying.

    Raises: as pmax.

    >>> import numpy as np, xbuild as xb
    >>> smallest = xb.shard_map(lambda x: xb.mesh.pmin(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> smallest(np.array([1, 40, 30, 4]))
    array([1, 4])

    Source: JAX, jax.lax.pmin.
    """
    region, axes = bound("pmin", axis_name)
    return each(lambda x: reduced("pmin", ops.minimum, x, region, axes), operand, region)


@dressed
def pmean(operand: Any, axis_name: AxisNames) -> Any:
    """The mean over the devices along the axes: psum, divided by their number.

    Raises: as psum.

    >>> import numpy as np, xbuild as xb
    >>> mean = xb.shard_map(lambda x: xb.mesh.pmean(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> mean(np.array([1.0, 2.0, 3.0, 4.0]))
    array([2., 3.])

    Source: JAX, jax.lax.pmean.
    """
    region, axes = bound("pmean", axis_name)
    size = region.mesh.size(axes)
    return each(lambda x: derived.divide(reduced("psum", ops.add, x, region, axes), size), operand, region)


@dressed
def all_gather(operand: Any, axis_name: AxisNames, *, axis: int = 0, tiled: bool = False) -> Any:
    """The operands of all devices along the axes: varying to varying, though every device gets the same.

    They are stacked in a new dimension, or concatenated where it is tiled, in row-major order of the axes as given.
    Its transpose is psum_scatter; all_gather_invariant has a transpose that needs no communication.
    Raises: as psum; state_mismatch for what is unreduced, too; dimension_out_of_range.

    >>> import numpy as np, xbuild as xb
    >>> everywhere = xb.shard_map(lambda x: xb.mesh.all_gather(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P("i"))
    >>> everywhere(np.array([1, 2]))
    array([[1],
           [2],
           [1],
           [2]])

    Source: JAX, jax.lax.all_gather.
    """
    region, axes = bound("all_gather", axis_name)
    return each(lambda x: gathered("all_gather", x, region, axes, axis, tiled), operand, region)


@dressed
def all_gather_invariant(operand: Any, axis_name: AxisNames, *, axis: int = 0, tiled: bool = False) -> Any:
    """The operands of all devices along the axes: varying to invarying.

    The data are those of all_gather; the transpose is the own slice, which needs no communication.
    Raises: as all_gather.

    >>> import numpy as np, xbuild as xb
    >>> whole = xb.shard_map(
    ...     lambda x: xb.mesh.all_gather_invariant(x, "i", tiled=True), xb.Mesh(i=2), xb.P("i"), xb.P()
    ... )
    >>> whole(np.array([1, 2, 3, 4]))
    array([1, 2, 3, 4])

    Source: JAX, jax.lax.all_gather (to="invarying"), formerly all_gather_invariant.
    """
    region, axes = bound("all_gather_invariant", axis_name)
    return each(lambda x: gathered("all_gather_invariant", x, region, axes, axis, tiled), operand, region)


@dressed
def all_gather_reduced(operand: Any, axis_name: AxisNames, *, axis: int = 0, tiled: bool = False) -> Any:
    """The operands of all devices along the axes: varying to reduced, whose cotangent is unreduced.

    Raises: as all_gather; state_mismatch for what is invarying, since nothing is cast for it.

    >>> import xbuild as xb
    >>> gather = lambda x: xb.mesh.all_gather_reduced(x, "i", tiled=True)
    >>> xb.shard_map(gather, xb.Mesh(i=2), xb.P("i"), xb.P(reduced={"i"}))(xb.f32[4]).result
    'f32[4]{R:i}'

    Source: JAX, jax.lax.all_gather (to="reduced").
    """
    region, axes = bound("all_gather_reduced", axis_name)
    return each(lambda x: gathered("all_gather_reduced", x, region, axes, axis, tiled), operand, region)


@dressed
def psum_scatter(operand: Any, axis_name: AxisNames, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """The own part of the sum over the devices along the axes: varying, or unreduced, to varying.

    The dimension is cut in as many parts as there are devices; where it is not tiled it has that extent, and goes.
    Raises: as psum; divisibility; dimension_out_of_range.

    >>> import numpy as np, xbuild as xb
    >>> parts = xb.shard_map(lambda x: xb.mesh.psum_scatter(x, "i"), xb.Mesh(i=2), xb.P("i"), xb.P())
    >>> share = lambda x: xb.mesh.psum_scatter(x, "i", tiled=True)
    >>> xb.shard_map(share, xb.Mesh(i=2), xb.P("i"), xb.P("i"))(np.array([1, 2, 30, 40]))
    array([31, 42])

    Source: JAX, jax.lax.psum_scatter.
    """
    region, axes = bound("psum_scatter", axis_name)
    return each(lambda x: scattered_sum(x, region, axes, scatter_dimension, tiled), operand, region)


@dressed
def pscatter(operand: Any, axis_name: AxisNames, *, scatter_dimension: int = 0, tiled: bool = True) -> Any:
    """The own part of a value that all devices along the axes hold: invarying to varying, without communication.

    Raises: as psum_scatter; state_mismatch for what is not invarying.

    >>> import numpy as np, xbuild as xb
    >>> own = xb.shard_map(lambda x: xb.mesh.pscatter(x, "i") * 10, xb.Mesh(i=2), xb.P(), xb.P("i"))
    >>> own(np.array([1, 2, 3, 4]))
    array([10, 20, 30, 40])

    Source: JAX, the transpose of all_gather_invariant, which has no name there.
    """
    region, axes = bound("pscatter", axis_name)
    return each(lambda x: own_slice(x, region, axes, scatter_dimension, tiled), operand, region)


@dressed
def all_to_all(operand: Any, axis_name: AxisNames, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Part k of every operand goes to device k along the axes, which joins what it gets: varying to varying.

    Tiled, `split_axis` is cut and `concat_axis` grows; else `split_axis` has as many places as there are devices and
    goes, and a new dimension of that extent stands at `concat_axis`.
    Raises: as psum; state_mismatch for what is unreduced, too; divisibility; dimension_out_of_range.

    >>> import numpy as np, xbuild as xb
    >>> swap = xb.shard_map(
    ...     lambda x: xb.mesh.all_to_all(x, "i", 0, 0, tiled=True), xb.Mesh(i=2), xb.P("i"), xb.P("i")
    ... )
    >>> swap(np.array([1, 2, 30, 40]))
    array([ 1, 30,  2, 40])

    Source: JAX, jax.lax.all_to_all.
    """
    region, axes = bound("all_to_all", axis_name)
    return each(lambda x: exchanged(x, region, axes, split_axis, concat_axis, tiled), operand, region)


@dressed
def ppermute(operand: Any, axis_name: AxisNames, perm: Sequence[tuple[int, int]] | Mapping[int, int]) -> Any:
    """The value of the place along the axes that names this one as its target; zeros where none does.

    `perm` are pairs of a source and a target, as places along the axes. Varying to varying.
    Raises: as psum; state_mismatch for what is unreduced, too; invalid_group for a place that is none, or that is
    twice a source or twice a target.

    >>> import numpy as np, xbuild as xb
    >>> swap = lambda x: xb.mesh.ppermute(x, "i", [(0, 1), (1, 0)])
    >>> xb.shard_map(swap, xb.Mesh(i=2), xb.P("i"), xb.P("i"))(np.array([1, 2, 3, 4]))
    array([3, 4, 1, 2])

    Source: JAX, jax.lax.ppermute.
    """
    region, axes = bound("ppermute", axis_name)
    pairs = _pairs(perm, region.mesh.size(axes))
    return each(lambda x: permuted(x, region, axes, pairs), operand, region)


def _pairs(perm: Any, size: int) -> list[tuple[int, int]]:
    pairs = [(int(a), int(b)) for a, b in (perm.items() if isinstance(perm, Mapping) else perm)]
    for place, role in ((0, "source"), (1, "target")):
        for number, pair in enumerate(pairs):
            if not 0 <= pair[place] < size:
                refuse("invalid_group", f"perm {pairs}: {role} {pair[place]} is none of the places 0..{size - 1}")
            if pair[place] in (earlier[place] for earlier in pairs[:number]):
                refuse("invalid_group", f"perm {pairs}: {role} {pair[place]} is named twice; each counts once")
    return pairs


@dressed
def pbroadcast(operand: Any, axis_name: AxisNames, source: int) -> Any:
    """The value of one place along the axes, on every device: varying to varying.

    Raises: as psum; state_mismatch for what is unreduced, too; index_out_of_range for a source that is no place.

    >>> import numpy as np, xbuild as xb
    >>> first = xb.shard_map(lambda x: xb.mesh.pbroadcast(x, "i", 1), xb.Mesh(i=2), xb.P("i"), xb.P("i"))
    >>> first(np.array([1, 2, 3, 4]))
    array([3, 4, 3, 4])

    Source: JAX, jax.lax.pbroadcast.
    """
    region, axes = bound("pbroadcast", axis_name)
    size = region.mesh.size(axes)
    if not 0 <= source < size:
        refuse("index_out_of_range", f"source={source} is none of the places 0..{size - 1} along {', '.join(axes)}")
    return each(lambda x: broadcast_from(x, region, axes, source), operand, region)


@dressed
def axis_index(axis_name: AxisNames) -> Value:
    """The place of this device along the axes, row by row in their order: s32[], varying along them.

    Raises: unbound_axis.

    >>> import xbuild as xb
    >>> places = lambda: xb.reshape(xb.mesh.axis_index("j"), [1])
    >>> xb.shard_map(places, xb.Mesh(i=2, j=2), (), xb.P("j"))()
    array([0, 1], dtype=int32)

    Source: JAX, jax.lax.axis_index.
    """
    region, axes = bound("axis_index", axis_name)
    return coordinate(region, axes)


@dressed
def axis_size(axis_name: AxisNames) -> int:
    """The number of devices along the axes, known when the program is built.

    Raises: unbound_axis.

    >>> import xbuild as xb
    >>> xb.shard_map(lambda x: x * xb.mesh.axis_size(("i", "j")), xb.Mesh(i=2, j=3), xb.P(), xb.P())(7)
    array(42)

    Source: JAX, jax.lax.axis_size.
    """
    region, axes = bound("axis_size", axis_name)
    return region.mesh.size(axes)
