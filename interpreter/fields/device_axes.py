"""Axes of devices: the number of a device as a dimension, of which collectives and layouts show the factors.

A program of n devices that runs one module is a program of arrays with one more dimension, the number of the device.
Ops compute each device by itself; collectives sum over the new dimension, or exchange it with others. If the devices
form a grid, and groups are its rows, that dimension has a factor for each axis of the grid, and an axis is a factor of
extents like others: its devices are interchangeable unless a device knows its number along the axis.

Here nothing is assumed of a grid: groups and layouts that are not rows of it keep the extents of the axes that they
touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shape_inference.dims import limits
from xbuild.core.graph import Instruction, Module
from xbuild.core.op import OPS, opcodes
from xbuild.properties.device_groups import Groups, groups_of, strategy
from xbuild.properties.sites import reached

from .layouts import DeviceLayout, ResolvedLayouts, pieces_of

SUMS = frozenset({"all_reduce", "reduce_scatter"})
"""Collectives that sum over the axes of their groups, if their computation adds."""
EXCHANGES = SUMS | {"all_gather", "all_to_all"}
"""Collectives whose groups may be axes."""
KEEPING = opcodes(lambda op: op.depends_on == "device") - {"partition_id", "replica_id"} | {
    "rng", "rng_get_and_update_state",
}  # fmt: skip
"""Ops whose results depend on the device in ways that are not followed."""


def has_axes(module: Module) -> bool:
    """Whether the devices of a program are looked at as a dimension: those of one module, numbered as partitions."""
    return module.num_replicas == 1 and module.num_partitions > 1


def axis_extents(module: Module, laid: ResolvedLayouts) -> list[int]:
    """The extents of the finest grid, the major axis first, that the groups and layouts of a program show.

    >>> import xbuild as xb
    >>> line = lambda x: xb.all_reduce(x, to_apply=xb.add, replica_groups=[[0, 2], [1, 3]], **ids)
    >>> ids = {"channel_id": 1, "use_global_device_ids": True}
    >>> module = xb.Module("m", xb.computation(xb.f32[2])(line), num_partitions=4)
    >>> axis_extents(module, ResolvedLayouts(None, None, ()))
    [2, 2]
    """
    count = module.num_partitions
    cuts = {1, count}
    for each in _instructions(module):
        if _names_partitions(each):
            for group in groups_of(each, 1, count):
                cuts |= _cuts(sorted(group))
    for layout in (*(laid.inputs or ()), *(laid.outputs or ())):
        for column in _starts(layout):
            cuts |= _cuts([*dict.fromkeys(np.flatnonzero(_is_first(column)).tolist())])
    ordered = sorted(cuts)
    if any(larger % smaller for smaller, larger in pairwise(ordered)):
        return [count]
    return [larger // smaller for smaller, larger in pairwise(ordered)][::-1]


def _instructions(module: Module) -> Iterator[Instruction]:
    for computation in reached(module.entry):
        yield from computation.instructions


def _cuts(numbers: Sequence[int]) -> set[int]:
    """Where axes begin and end if devices with these numbers are a row of a grid: their steps, and what they span.

    >>> sorted(_cuts([0, 1, 4, 5]))
    [1, 2, 4, 8]
    """
    found: set[int] = set()
    numbers = [each - numbers[0] for each in numbers]
    while len(numbers) > 1:
        step = numbers[1]
        length = next((n for n, each in enumerate(numbers) if each != n * step), len(numbers))
        found |= {step, step * length}
        if len(numbers) % length:
            break
        numbers = numbers[::length]
    return found


def _starts(layout: DeviceLayout) -> Iterator[NDArray[np.int64]]:
    """For each dimension the place at which the part of each device starts."""
    for dim in range(len(layout.parts[0])):
        yield np.array([pieces_of(part[dim])[0].start for part in layout.parts])


def _is_first(starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a device is the first one with its part."""
    found = np.zeros(starts.shape, bool)
    found[np.unique(starts, return_index=True)[1]] = True
    return found


# ----------------------------------------------------------------------------
# The axes of a grid along which groups and layouts go.


def axes_of_numbers(numbers: NDArray[np.int64], extents: Sequence[int]) -> list[int] | None:
    """The axes of a grid, the major one first, whose devices have these numbers for the places along them.

    None if the numbers are none of places along axes.

    >>> axes_of_numbers(np.array([0, 1, 2, 0, 1, 2]), [2, 3])
    [1]
    >>> axes_of_numbers(np.array([0, 2, 4, 1, 3, 5]), [2, 3])
    [1, 0]
    >>> axes_of_numbers(np.array([0, 1, 2, 0, 2, 1]), [2, 3]) is None
    True
    """
    grid = numbers.reshape(extents)
    origin = (0,) * len(extents)
    steps = {
        axis: int(grid[(*origin[:axis], 1, *origin[axis + 1 :])]) for axis, extent in enumerate(extents) if extent > 1
    }
    along = sorted((axis for axis, step in steps.items() if step), key=lambda axis: -steps[axis])
    expected = np.zeros(extents, np.int64)
    for axis in along:
        rest = np.arange(extents[axis]).reshape([-1 if n == axis else 1 for n in range(len(extents))])
        expected = expected * extents[axis] + rest
    return along if np.array_equal(grid, np.broadcast_to(expected, extents)) else None


def layout_axes(layout: DeviceLayout, dim: int, extent: int, extents: Sequence[int]) -> list[int] | None:
    """The axes along which equal parts of a dimension are on the devices, the major one first; None if others are."""
    rows = [part[dim] for part in layout.parts]
    if not extent or any(not isinstance(row, slice) or row.stop - row.start != extent for row in rows):
        return None
    starts = np.array([row.start for row in rows if isinstance(row, slice)])
    return None if (starts % extent).any() else axes_of_numbers(starts // extent, extents)


def axes_of_groups(groups: Groups, extents: Sequence[int]) -> list[int] | None:
    """The axes of a grid of which the groups are the rows, the major one in the order of a group first.

    None if they are no rows, or if the same devices have another order in another group.

    >>> axes_of_groups(((0, 3), (1, 4), (2, 5)), [2, 3])
    [0]
    >>> axes_of_groups(((0, 3), (1, 5), (2, 4)), [2, 3]) is None
    True
    """
    count = int(np.prod(extents))
    if sorted(device for group in groups for device in group) != [*range(count)]:
        return None
    places = np.zeros(count, np.int64)
    for group in groups:
        places[list(group)] = np.arange(len(group))
    along = axes_of_numbers(places, extents)
    if along is None or int(np.prod([extents[axis] for axis in along])) != len(groups[0]):
        return None
    expected = {*map(tuple, rows_of(along, extents))}
    return along if {*groups} == expected else None


def rows_of(along: Sequence[int], extents: Sequence[int]) -> list[list[int]]:
    """The groups of devices that are the rows of a grid along these axes.

    >>> rows_of([0], [2, 3])
    [[0, 3], [1, 4], [2, 5]]
    """
    others = [axis for axis in range(len(extents)) if axis not in along]
    grid = np.arange(int(np.prod(extents))).reshape(extents).transpose([*others, *along])
    found: list[list[int]] = grid.reshape(-1, int(np.prod([extents[axis] for axis in along]))).tolist()
    return found


def groups_along(each: Instruction, count: int, extents: Sequence[int]) -> list[int] | None:
    """The axes along which a collective exchanges values or sums them; None if it does so in another way."""
    if not _names_partitions(each) or len(each.operands) != 1:
        return None
    if each.opcode == "all_to_all" and each.attributes.split_dimension is None:
        return None
    return axes_of_groups(groups_of(each, 1, count), extents)


def _names_partitions(each: Instruction) -> bool:
    """Whether the groups of a collective are of partitions."""
    return each.opcode in EXCHANGES and strategy(each) in ("flattened_ids", "cross_partition")


def is_kept(each: Instruction) -> bool:
    """Whether an instruction depends on the numbers of devices in a way that is not followed."""
    return each.opcode in KEEPING or (OPS[each.opcode].properties.needs != "nobody" and each.opcode not in EXCHANGES)


def rows_taken(module: Module) -> tuple[dict[Instruction, Instruction], bool]:
    """The dynamic-slices that take the row of each device from a constant, with the constant.

    Also whether the numbers of devices serve for nothing else.
    """
    found: dict[Instruction, Instruction] = {}
    is_only = True
    for computation in reached(module.entry):
        numbers: set[Instruction] = set()
        for each in computation.instructions:
            used = [n for n, operand in enumerate(each.operands) if operand in numbers]
            if each.opcode == "partition_id" or (used and _is_number(each, module.num_partitions)):
                numbers.add(each)
            elif used and _takes_row(each, used, module.num_partitions):
                found[each] = each.operands[0]
            elif used:
                is_only = False
        is_only &= computation.root not in numbers
    return found, is_only


def _is_number(each: Instruction, count: int) -> bool:
    """Whether an instruction passes the number of a device on."""
    if each.opcode == "convert":
        dtype = each.shape.dtype  # type: ignore[union-attr]
        return dtype.is_integer and limits(dtype)[1] >= count - 1  # a smaller type has no number for some devices
    return each.opcode in ("copy", "reshape")


def _takes_row(each: Instruction, used: Sequence[int], count: int) -> bool:
    """Whether a dynamic-slice takes from a constant the row whose number is that of the device."""
    table = each.operands[0]
    return (
        each.opcode == "dynamic_slice"
        and [*used] == [1]
        and table.opcode == "constant"
        and table.shape.dims[0] == count  # type: ignore[union-attr]
        and each.attributes.dynamic_slice_sizes[0] == 1
    )
