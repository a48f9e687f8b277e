"""`update_halo` of the shard dialect: rows of the neighbours around the part that a device holds, corners included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shape_inference import refuse

from ... import derived, ops
from ...core.builder import Value
from ...derived.support.dressing import dressed
from ...properties.mesh import Mesh
from ..grids import halos_of, sharding
from .groups import next_channel, place_in_group, shape_of

Block = tuple[tuple[int, int], ...]  # begin and end in each dimension


@dressed
def update_halo(
    destination: Value, *, mesh: Mesh, split_axes: Sequence[Sequence[int | str]], halo_sizes: Sequence[int]
) -> Value:
    """The tensor with its halos filled from the neighbours along the axes that cut each dimension.

    `halo_sizes` has two numbers for each cut dimension: elements below and above. A device at a border of the grid
    keeps what its halo has there. Dimensions are exchanged from the last to the first, and blocks take the halos of
    later dimensions along, so that corners come from the neighbours across.
    Raises: as xb.shard.sharding; dimension_mismatch where a halo is larger than what a neighbour holds.

    Source: MLIR, shard dialect, shard.update_halo.
    """
    cut = sharding(mesh, split_axes, halo_sizes=halo_sizes)
    shape, halos = shape_of(destination), halos_of(cut)
    if len(cut.dims) > shape.rank:
        refuse("rank_mismatch", f"split_axes has {len(cut.dims)} lists, and {shape} has {shape.rank} dimensions")
    value = destination
    for dim in sorted(halos, reverse=True):
        axes = [axis.name for axis in cut.dims[dim].axes]
        value = _exchanged(value, mesh, axes, dim, halos)
    return value


def _exchanged(value: Value, mesh: Mesh, axes: Sequence[str], dim: int, halos: dict[int, tuple[int, int]]) -> Value:
    """Both halos of one dimension."""
    extents = shape_of(value).dims
    below, above = halos[dim]
    core = extents[dim] - below - above
    if core < max(below, above):
        message = (
            f"dimension {dim} has {max(core, 0)} elements inside its halos {below} and {above}, which a neighbour "
        )
        refuse("dimension_mismatch", f"{message}has to fill from them")
    count, whole = mesh.size(axes), [(0, extent) for extent in extents]
    for earlier, (low, high) in halos.items():
        if earlier < dim:
            whole[earlier] = (low, extents[earlier] - high)
    place = place_in_group(value.builder, mesh, axes)
    upward = [(n, n + 1) for n in range(count - 1)]
    found = value
    if above:
        sent, kept = (below, below + above), (below + core, extents[dim])
        has = derived.lt(place, np.int32(count - 1))
        found = _filled(
            found, mesh, axes, [(b, a) for a, b in upward], _at(whole, dim, sent), _at(whole, dim, kept), has
        )
    if below:
        sent, kept = (core, core + below), (0, below)
        has = derived.gt(place, np.int32(0))
        found = _filled(found, mesh, axes, upward, _at(whole, dim, sent), _at(whole, dim, kept), has)
    return found


def _at(whole: Sequence[tuple[int, int]], dim: int, span: tuple[int, int]) -> Block:
    return (*whole[:dim], span, *whole[dim + 1 :])


def _filled(
    value: Value,
    mesh: Mesh,
    axes: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    sent: Block,
    kept: Block,
    has_neighbour: Value,
) -> Value:
    """The value with the block that a neighbour sends in place of a halo; without a neighbour the halo is kept."""
    builder = value.builder
    through = mesh.pairs(axes, pairs)
    came = ops.collective_permute(_cut(value, sent), source_target_pairs=through, channel_id=next_channel(builder))
    new = derived.select(has_neighbour, came, _cut(value, kept))
    starts = [derived.constant(builder, np.int32(begin)) for begin, _ in kept]
    return ops.dynamic_update_slice(value, new, starts)


def _cut(value: Value, block: Block) -> Value:
    return derived.slice(value, [begin for begin, _ in block], [end for _, end in block], [1] * len(block))
