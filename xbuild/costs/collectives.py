"""The collectives of a program: who takes part, along which axes, by which algorithm, and what crosses the links.

Sections:

    Algorithms: their steps and bytes
    Axes of a mesh, inferred from device groups
    CollectiveCost: the cost of one collective or transfer
    LinesOfCollectives: the lines whose values a collective moves
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TypeAlias

import numpy as np
from attrs import field, frozen

from ..core.graph import Instruction, Module, TextSource
from ..properties.device_groups import Grouping, Groups, Pairs, grouping, pairs_of
from ..properties.effects import MEETS, TRANSFERS
from ..properties.mesh import Mesh
from .work import leaf_bytes

# ----------------------------------------------------------------------------
# Algorithms: their steps and bytes


@frozen
class Algorithm:
    """One algorithm of a collective: its number of sequential steps, and the bytes that cross links in one execution.

    `link_bytes` crosses the busiest link in one direction over all steps; `total_bytes` is the sum over all links of a
    group.
    """

    name: str
    steps: int
    link_bytes: int
    total_bytes: int


def algorithms(opcode: str, size: int, payload: int) -> tuple[Algorithm, ...]:
    """The algorithms of a collective for a group of `size` devices; sums count the first one.

    `payload` is the bytes of the whole array: the operand of a device, or the result of a gather. A group of one device
    sends nothing. Halving and doubling is listed for sizes that are powers of two, for which its terms are exact.

    Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH (2005).
    """
    kind = opcode.removesuffix("_start")
    if size <= 1:
        return (Algorithm("none", 0, 0, 0),)
    if kind == "all_reduce":
        return (*_share_algorithms(size, payload, 2), _tree_algorithm(size, payload, 2))
    if kind in ("all_gather", "reduce_scatter"):
        return _share_algorithms(size, payload, 1)
    if kind == "collective_broadcast":
        return (_tree_algorithm(size, payload, 1),)
    if kind in ("all_to_all", "ragged_all_to_all"):
        return (Algorithm("pairwise", size - 1, _share_bytes(size, payload), (size - 1) * payload),)
    return (Algorithm("direct", 1, payload, payload),)


def _share_bytes(size: int, payload: int) -> int:
    """The bytes that a device lacks of an array that is split into `size` parts, rounded up."""
    return -(-(size - 1) * payload // size)


def _share_algorithms(size: int, payload: int, rounds: int) -> tuple[Algorithm, ...]:
    """Algorithms in which every device sends all parts but one in each round: in a ring, or at doubling distances."""
    sent, total = -(-rounds * (size - 1) * payload // size), rounds * (size - 1) * payload
    ring = Algorithm("ring", rounds * (size - 1), sent, total)
    if size & (size - 1):
        return (ring,)
    return ring, Algorithm("halving-doubling", rounds * (size.bit_length() - 1), sent, total)


def _tree_algorithm(size: int, payload: int, rounds: int) -> Algorithm:
    """A binomial tree: each link carries the whole array once in each round, towards the root or away from it."""
    return Algorithm("tree", rounds * (size - 1).bit_length(), payload, rounds * (size - 1) * payload)


# ----------------------------------------------------------------------------
# Axes of a mesh, inferred from device groups

Digits: TypeAlias = tuple[tuple[int, int], ...]
"""(size, stride) of each run of devices that a group takes, the smallest stride first."""


@functools.lru_cache(maxsize=1024)
def digits_of(groups: Groups) -> Digits | None:
    """How the groups are placed among the devices, if all are placed alike in a grid; else None.

    >>> digits_of(((0, 2), (1, 3)))
    ((2, 2),)
    """
    if len({len(group) for group in groups}) != 1:
        return None
    sorted_groups = np.sort(np.array(groups, dtype=np.int64), axis=1)
    apart = sorted_groups - sorted_groups[:, :1]
    if (apart != apart[0]).any():
        return None
    digits = _digits(apart[0])
    is_aligned = digits is not None and all(
        (sorted_groups[:, 0] // stride % size == 0).all() for size, stride in digits if size > 1
    )
    return digits if is_aligned else None


def _digits(ids: np.ndarray) -> Digits | None:
    """The runs of ascending ids that begin with 0; None if they are not a grid."""
    found: list[tuple[int, int]] = []
    while len(ids) > 1:
        stride = int(ids[1])
        size = int(np.argmin(np.append(ids == np.arange(len(ids)) * stride, False)))
        if len(ids) % size or (ids.reshape(-1, size) != ids[::size, None] + np.arange(size) * stride).any():
            return None
        found.append((size, stride))
        ids = ids[::size]
    return tuple(found)


@frozen
class Axes:
    """A mesh and its axes as (name, size, stride); without a mesh, groups are described only by size."""

    mesh: Mesh | None
    places: tuple[tuple[str, int, int], ...]

    def named(self, digits: Digits | None, size: int) -> str:
        """`axis b`, `axes a, b`, or the number of devices if no axes fit."""
        if size == 1:
            return "no axis"
        names = self._covered_axes(digits) if digits is not None else None
        if names is None:
            return f"{size} devices"
        return f"{'axis' if len(names) == 1 else 'axes'} {', '.join(names)}"

    def moved_along(self, pairs: Pairs) -> tuple[str, ...]:
        """The axes along which the coordinates of the source and the target of a pair differ, outermost first."""
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        places = ((name, ends // stride % size) for name, size, stride in self.places)
        return tuple(name for name, place in places if (place[:, 0] != place[:, 1]).any())

    def _covered_axes(self, digits: Digits) -> list[str] | None:
        """The axes that the runs cover, outermost first; None if a run covers part of an axis."""
        ranges = [(stride, stride * size) for size, stride in digits]
        inside = [
            (name, size)
            for name, size, stride in self.places
            if size > 1 and any(low <= stride and stride * size <= high for low, high in ranges)
        ]
        whole = math.prod(size for size, _ in digits)
        return [name for name, _ in inside] if math.prod(size for _, size in inside) == whole else None


def axes_of_mesh(mesh: Mesh) -> Axes:
    """The axes of a mesh that is given."""
    strides = [math.prod(mesh.shape[place + 1 :]) for place in range(len(mesh.shape))]
    return Axes(mesh, tuple((name, size, stride) for (name, size), stride in zip(mesh.sizes, strides, strict=True)))


def infer_axes(all_digits: Iterable[Digits], num_devices: int) -> Axes:
    """The coarsest mesh with axes along which the groups are, named a, b, c from the outermost; none if groups cross.

    >>> print(infer_axes([((8, 1),), ((64, 8),)], 512).mesh)
    Mesh(a=64, b=8)
    """
    edges = {1, num_devices} | {
        edge for digits in all_digits for size, stride in digits for edge in (stride, stride * size)
    }
    ends = sorted(edges, reverse=True)
    if len(ends) - 1 > 26 or any(high % low for high, low in pairwise(ends)):
        return Axes(None, ())
    sizes = [high // low for high, low in pairwise(ends)] or [1]
    return axes_of_mesh(Mesh(dict(zip("abcdefghijklmnopqrstuvwxyz", sizes, strict=False))))


# ----------------------------------------------------------------------------
# CollectiveCost: the cost of one collective or transfer


@frozen
class CollectiveCost:
    """A collective, or one end of a transfer: `payload` bytes in each of `num_groups` groups of `group_size` devices.

    `axes` names the mesh axes of its groups, or describes the groups if no axes fit. `algorithms` lists the algorithms
    that apply; the first is counted. `is_bound` means that the amount depends on the data, and that the stated amount
    is the maximum. For a transfer between pairs of devices, `moved_along` lists the axes along which the coordinates of
    source and target differ.
    """

    instruction: Instruction
    axes: str
    group_size: int
    num_groups: int
    payload: int
    algorithms: tuple[Algorithm, ...]
    is_bound: bool = field(default=False)
    moved_along: tuple[str, ...] = ()

    @property
    def link_bytes(self) -> int:
        """The bytes sent over the busiest link in one execution if the first algorithm is used. A transfer is counted
        at its send."""
        return 0 if self._is_recv else self.algorithms[0].link_bytes

    @property
    def steps(self) -> int:
        return 0 if self._is_recv else self.algorithms[0].steps

    @property
    def total_bytes(self) -> int:
        """The bytes sent over all links of all groups in one execution if the first algorithm is used."""
        return 0 if self._is_recv else self.algorithms[0].total_bytes * self.num_groups

    @property
    def _is_recv(self) -> bool:
        return self.instruction.opcode == "recv"

    def __str__(self) -> str:
        """`all-gather over axis b: 8 of 512, 64 groups`"""
        name = self.instruction.opcode.replace("_", "-")
        where = f"over {self.axes}" if self.axes else "from device to device"
        groups = f"{self.num_groups} group" + "s" * (self.num_groups != 1)
        return f"{name} {where}: {self.group_size} of {self.group_size * self.num_groups}, {groups}"


@frozen
class DeviceCounts:
    """How many replicas and partitions there are, and whether each device has a program of its own."""

    num_replicas: int
    num_partitions: int
    is_own: bool

    @property
    def num_devices(self) -> int:
        return self.num_replicas * self.num_partitions


def is_communication(instruction: Instruction) -> bool:
    """Whether an instruction sends to or receives from other devices; dones and host transfers do not."""
    if instruction.opcode in TRANSFERS:
        return not instruction.attributes.is_host_transfer
    return instruction.opcode in MEETS


def _has_pairs(instruction: Instruction) -> bool:
    return instruction.opcode in TRANSFERS or "collective_permute" in instruction.opcode


def _grouping(instruction: Instruction, grid: DeviceCounts) -> Grouping:
    return grouping(instruction, grid.num_replicas, grid.num_partitions, grid.is_own)


@functools.lru_cache(maxsize=1024)
def _digits_in(found: Grouping) -> Digits | None:
    """`digits_of` the groups, found without a hash of thousands of ids."""
    return digits_of(found.groups)


def list_digits(communicating: Sequence[Instruction], grid: DeviceCounts) -> list[Digits]:
    """How the groups of each collective are placed among the devices, if they are regular."""
    found = dict.fromkeys(_grouping(each, grid) for each in communicating if not _has_pairs(each))
    lists = dict.fromkeys(each.groups for each in found)
    return [digits for groups in lists if (digits := digits_of(groups)) is not None]


def collective_cost(instruction: Instruction, grid: DeviceCounts, axes: Axes) -> CollectiveCost:
    """The cost of one execution of a communicating instruction."""
    payload = _payload(instruction)
    if _has_pairs(instruction):
        pairs = pairs_of(instruction, grid.num_replicas, grid.num_partitions, grid.is_own)
        moved = sum(source != target for source, target in pairs) if pairs else 1
        size = 2 if moved else 1
        return CollectiveCost(
            instruction,
            "",
            size,
            max(moved, 1),
            payload,
            algorithms(instruction.opcode, size, payload),
            moved_along=axes.moved_along(pairs),
        )
    found = _grouping(instruction, grid)
    size = found.sizes[-1]
    return CollectiveCost(
        instruction,
        axes.named(_digits_in(found), size),
        size,
        len(found.groups),
        payload,
        algorithms(instruction.opcode, size, payload),
        instruction.opcode == "ragged_all_to_all",
    )


def _payload(instruction: Instruction) -> int:
    """Bytes of the whole array: of the result of a gather, else of the operands of a device."""
    opcode, shapes = instruction.opcode.removesuffix("_start"), [operand.shape for operand in instruction.operands]
    if opcode == "all_gather":
        return _gathered_bytes(instruction)
    if opcode in ("recv", "send"):
        return leaf_bytes(instruction.shape.elements[0])  # type: ignore[union-attr]
    return sum(map(leaf_bytes, shapes[:1] if opcode in ("ragged_all_to_all", "collective_permute") else shapes))


def _gathered_bytes(instruction: Instruction) -> int:
    shape = instruction.shape
    if instruction.opcode == "all_gather_start":
        shape = shape.elements[1]  # type: ignore[union-attr]
    return leaf_bytes(shape)


# ----------------------------------------------------------------------------
# LinesOfCollectives: the lines whose values a collective moves


@frozen
class LinesOfCollectives:
    """The lines of code whose values each collective of a program moves."""

    elements: Mapping[Instruction, Sequence[Instruction]]

    @classmethod
    def of_program(cls, module: Module) -> LinesOfCollectives:
        found: dict[Instruction, list[Instruction]] = {}
        for computation in module.entry.reachable():
            for each in computation.instructions:
                if each.opcode == "get_tuple_element" or each.opcode.endswith("_done"):
                    found.setdefault(each.operands[0], []).append(each)
        return cls(found)

    def of(self, collective: Instruction) -> list[str]:
        """The lines, such as `train.py:14 in forward (backward)`, without repetitions.

        A collective that a compiler combined has those of its elements. One without a line has the line of the nearest
        value behind it.
        """
        own = dict.fromkeys(map(_line_of, (collective, *self._elements(collective))))
        behind = (line for each in _behind(collective) if (line := _line_of(each)))
        return [line for line in own if line] or [*islice(behind, 1)] or [str(collective.source or "")]

    def _elements(self, value: Instruction) -> Iterator[Instruction]:
        for each in self.elements.get(value, ()):
            yield each
            yield from self._elements(each)


_MOST_BEHIND = 200
"""Values behind a collective that are searched for a line."""


def _behind(value: Instruction) -> Iterator[Instruction]:
    """The values that a value is computed from, the nearest first."""
    queue, seen = deque([value]), {value}
    while queue and len(seen) < _MOST_BEHIND:
        for operand in queue.popleft().operands:
            if operand not in seen:
                seen.add(operand)
                queue.append(operand)
                yield operand


def _line_of(instruction: Instruction) -> str:
    """The line of an instruction, and whether JAX made it for the backward pass; empty without a line."""
    source = instruction.source
    if source is None or type(source) is TextSource:
        return ""
    scope = str((instruction.annotations.get("metadata") or {}).get("op_name", ""))
    return f"{source} (backward)" if "transpose(" in scope else str(source)
