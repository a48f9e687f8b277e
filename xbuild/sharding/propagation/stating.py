"""The shardings that a program states, brought to its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import evolve

from ...core.graph import Instruction
from ...properties.mesh import Mesh
from ..axis import Axis
from ..hlo_text import ShardGroup, parsed
from ..placement import Placement
from ..regions import FULL_TO_SHARD, SHARD_TO_FULL, Axes, stated_axes, target_of
from ..sharding import DimSharding, Sharding
from ..stored import SHARDING, sharding_of
from .flow import Flow
from .tensors import Tensor
from .values import merge, of_one

_UNSPECIFIED = re.compile(r"unspecified_dims=\[([\d,]+)\]")


def state(flow: Flow, mesh: Mesh) -> None:
    """Give tensors the shardings that instructions state; the first of several on one array counts.

    Where the root of the entry is a tuple, its shardings are those of the results, which are tensors of their own.
    Values of one group are made one tensor. A sharding that no axes give is kept, and its array takes nothing.
    """
    groups: dict[int, Tensor] = {}
    kept = _kept_at_ends(flow, mesh)
    root = flow.module.entry.root
    for instruction in flow.leaves:
        if SHARDING not in instruction.annotations:
            continue
        found = sharding_of(instruction, mesh)
        each = found if isinstance(found, tuple) else (found,)
        tensors = flow.tensors_of(instruction)
        if instruction is root and instruction.opcode == "tuple":
            flow.results = [Tensor(tensor.dims, names=[(root, n)]) for n, tensor in enumerate(tensors)]
            tensors = tuple(flow.results)
        for tensor, sharding in zip(tensors, each, strict=False):
            _state(of_one(tensor), _opened(instruction, sharding, kept.get(instruction, ())), mesh)
        for tensor, group in zip(tensors, _groups(instruction), strict=False):
            if group is not None:
                merge(groups.setdefault(group.number, of_one(tensor)), of_one(tensor))


def _kept_at_ends(flow: Flow, mesh: Mesh) -> dict[Instruction, Axes]:
    """The manual axes of the regions that arrays enter and leave: there they cut what is stated, and nothing else."""
    into = [each for each in flow.leaves if target_of(each) == FULL_TO_SHARD]
    out_of = [each for each in flow.leaves if target_of(each) == SHARD_TO_FULL]
    entered = {each.operands[0]: stated_axes(each, mesh) for each in into}
    return entered | {each: stated_axes(each.operands[0], mesh) for each in out_of}


def _opened(instruction: Instruction, sharding: Sharding | Placement | None, kept: Axes) -> Sharding | Placement | None:
    """A sharding whose dimensions are open that a constraint of HLO leaves to others (`unspecified_dims`).

    No dimension takes the axes that are `kept`.
    """
    if instruction.opcode != "custom_call" or not isinstance(sharding, Sharding):
        return sharding
    listed = _UNSPECIFIED.search(str(instruction.attributes.backend_config))
    places = {int(each) for each in listed[1].split(",")} if listed else {*()}
    dims = enumerate(sharding.padded(max(places, default=-1) + 1).dims)
    opened = tuple(evolve(dim, is_open=dim.is_open or n in places) for n, dim in dims)
    named = (*sharding.cut_axes, *sharding.replicated, *sharding.unreduced, *sharding.manual)
    free = tuple(axis for axis in kept if not any(axis.overlaps(each) for each in named))
    return evolve(sharding, dims=opened, replicated=(*sharding.replicated, *free) if places else sharding.replicated)


def _groups(instruction: Instruction) -> Iterator[ShardGroup | None]:
    found = parsed(str(instruction.annotations[SHARDING]))
    yield from (each.group for each in (found if isinstance(found, tuple) else (found,)))


def _state(tensor: Tensor, sharding: Sharding | Placement | None, mesh: Mesh) -> None:
    if tensor.stated is not None or sharding is None:
        return
    if isinstance(sharding, Placement):
        if sharding.kind == "replicated":
            sharding = Sharding(mesh)
        elif sharding.kind != "unknown":
            tensor.is_fixed = True
            tensor.placement = sharding
            return
        else:
            return
    tensor.stated = _of_size(sharding.padded(len(tensor.dims)))
    if sharding.manual and not sharding.cut_axes and len(sharding.manual) == len(mesh.axes):
        tensor.is_fixed = True


def _of_size(sharding: Sharding) -> Sharding:
    """A sharding without axes of size 1, which cut nothing."""

    def large(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(axis for axis in axes if axis.size > 1)

    dims = tuple(evolve(dim, axes=large(dim.axes)) for dim in sharding.dims)
    return evolve(sharding, dims=dims, replicated=large(sharding.replicated), unreduced=large(sharding.unreduced),
                  manual=large(sharding.manual))  # fmt: skip


def priorities(tensors: list[Tensor]) -> list[int]:
    """The priorities of the user, in the order in which they take their turn; 0 is always the first."""
    found = {dim.priority for tensor in tensors if tensor.stated is not None for dim in tensor.stated.dims}
    return sorted(found | {0})


def begin(tensor: Tensor, priority: int) -> bool:
    """Give a tensor the dimensions of its stated sharding that have this priority; whether there are any.

    Dimensions of later priorities are closed until their turn, and their axes are kept for them.

    Source: Shardy, user priority propagation.
    """
    sharding = tensor.stated
    if sharding is None or (priority and all(dim.priority != priority for dim in sharding.dims)):
        return False
    for number, dim in enumerate(sharding.dims):
        if dim.priority == priority:
            tensor.axes[number], tensor.closed[number] = dim.axes, not dim.is_open
        elif dim.priority > priority:
            tensor.axes[number], tensor.closed[number] = (), True
    waiting = tuple(axis for dim in sharding.dims if dim.priority > priority for axis in dim.axes)
    tensor.replicated, tensor.manual = sharding.replicated + waiting, sharding.manual
    tensor.unreduced = sharding.unreduced
    tensor.version += 1
    return True


def closed(tensor: Tensor, mesh: Mesh) -> Sharding | Placement:
    """The sharding that a tensor has come to, all dimensions closed."""
    if tensor.placement is not None:
        return tensor.placement
    stated = tensor.stated
    dims = tuple(map(DimSharding, tensor.axes))
    if stated is None:
        return Sharding(mesh, dims)
    return Sharding(mesh, dims, stated.replicated, stated.unreduced, stated.manual, stated.halo_sizes, stated.offsets)
