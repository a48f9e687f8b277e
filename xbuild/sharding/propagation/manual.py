"""Manual regions: inside of them values are those of each device along some axes, and propagate along the others."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from ...core.graph import Instruction
from ...properties.mesh import Mesh
from ..axis import Axis, count
from ..factors import Factor, FactorMap, ShardingRule
from ..regions import OUT_OF, axes_of, is_complete, regions, target_of
from ..sharding import DimSharding, Sharding
from ..shardy_text import shardy_meshes, shardy_shardings
from .flow import Flow, is_entrance
from .nodes import Node
from .tensors import Tensor


def state_regions(flow: Flow, mesh: Mesh) -> None:
    """Give what enters manual regions, and what leaves them, the shardings that these state.

    Inside nothing propagates by the axes that are manual. Where others are left, they pass from the global arrays to
    those inside, and back.

    Source: Shardy, sdy.manual_computation.
    """
    found = regions(flow.module, mesh)
    for instruction in flow.leaves:
        if is_entrance(instruction):
            _state(flow, instruction, flow.entrances[instruction], "xla.sdy.in_shardings")
        elif target_of(instruction) == OUT_OF:
            _state(flow, instruction, flow.tensors_of(instruction), "xla.sdy.out_shardings")
    for instruction in flow.leaves:
        if manual := found.of(instruction):
            for tensor in flow.tensors_of(instruction):
                _state_inside(tensor, manual, mesh)
    for instruction in flow.leaves:
        if is_entrance(instruction) or target_of(instruction) == OUT_OF:
            _pass(flow, instruction, axes_of(instruction, mesh))


def _state(flow: Flow, instruction: Instruction, tensors: tuple[Tensor, ...], key: str) -> None:
    text = instruction.annotations.get("frontend_attributes", {}).get(key)
    if text is not None:
        found = shardy_shardings(str(text), shardy_meshes(flow.module))
        for tensor, sharding in zip(tensors, found, strict=False):
            if isinstance(sharding, Sharding):
                tensor.stated = sharding.padded(len(tensor.dims))


def _state_inside(tensor: Tensor, manual: tuple[Axis, ...], mesh: Mesh) -> None:
    """Keep the manual axes from an array of a region; where all are manual it takes nothing."""
    if is_complete(manual, mesh):
        tensor.is_fixed, tensor.stated = True, Sharding(mesh, manual=manual).padded(len(tensor.dims))
    else:
        stated = tensor.stated or Sharding(mesh, (DimSharding(is_open=True),) * len(tensor.dims))
        tensor.stated = evolve(stated, manual=manual)


def _pass(flow: Flow, instruction: Instruction, manual: tuple[Axis, ...]) -> None:
    """Nodes by which the axes that are not manual pass an end of a region."""
    is_into = is_entrance(instruction)
    values = flow.entrances[instruction] if is_into else flow.tensors_of(instruction)
    others = flow.tensors_of(instruction) if is_into else _given(flow, instruction)
    for whole, local in zip(values, others, strict=True):
        if whole.stated is not None and not local.is_fixed:
            inner, outer = _maps(whole, local.dims, manual)
            rule = ShardingRule(_factors(whole, local.dims, manual), *((outer,), (inner,))[:: 1 if is_into else -1])
            tensors = (whole, local) if is_into else (local, whole)
            flow.nodes.append(Node(rule, tensors, 1, "alike", instruction, "manual region"))


def _given(flow: Flow, instruction: Instruction) -> tuple[Tensor, ...]:
    return tuple(tensor for operand in instruction.operands for tensor in flow.tensors_of(operand))


def _sizes(whole: Tensor, manual: Sequence[Axis]) -> list[int]:
    """Into how many parts the manual axes cut each dimension."""
    assert whole.stated is not None
    return [count(axis for axis in dim.axes if axis in manual) for dim in whole.stated.dims]


def _factors(whole: Tensor, dims: Sequence[int], manual: Sequence[Axis]) -> tuple[Factor, ...]:
    pairs = zip(_sizes(whole, manual), dims, strict=True)
    return tuple(Factor(size) for pair in pairs for size in pair)


def _maps(whole: Tensor, dims: Sequence[int], manual: Sequence[Axis]) -> tuple[FactorMap, FactorMap]:
    """The factors of the local array and of the global one: its parts along manual axes, then what each part has."""
    inner = tuple((2 * dim + 1,) for dim in range(len(dims)))
    sizes = enumerate(_sizes(whole, manual))
    return inner, tuple((2 * dim, 2 * dim + 1) if size > 1 else (2 * dim + 1,) for dim, size in sizes)
