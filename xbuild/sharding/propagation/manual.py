"""Manual regions: what stands inside is a program of each device already, and nothing propagates there."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.graph import Computation, Instruction
from ...properties.mesh import Mesh
from ..axis import Axis
from ..sharding import Sharding
from ..shardy_text import shardy_meshes, shardy_shardings
from .flattening import flows_into
from .flow import EXIT, Flow, is_entrance
from .tensors import Tensor


def is_exit(instruction: Instruction) -> bool:
    """Whether an instruction makes global arrays of what a manual region gives."""
    return instruction.opcode == "custom_call" and instruction.attributes.custom_call_target == EXIT


def state_regions(flow: Flow, mesh: Mesh) -> None:
    """Give what enters manual regions, and what leaves them, the shardings that these state, and fix what is inside.

    Source: Shardy, sdy.manual_computation.
    """
    for instruction in flow.leaves:
        if is_entrance(instruction):
            _state(flow, instruction, flow.entrances[instruction], "xla.sdy.in_shardings")
        elif is_exit(instruction):
            _state(flow, instruction, flow.tensors_of(instruction), "xla.sdy.out_shardings")
    every = tuple(Axis(name, size) for name, size in mesh.sizes if size > 1)
    for instruction in _inside(flow):
        for tensor in flow.tensors_of(instruction):
            tensor.is_fixed, tensor.stated = True, Sharding(mesh, manual=every).padded(len(tensor.dims))


def _state(flow: Flow, instruction: Instruction, tensors: tuple[Tensor, ...], key: str) -> None:
    text = instruction.annotations.get("frontend_attributes", {}).get(key)
    if text is not None:
        found = shardy_shardings(str(text), shardy_meshes(flow.module))
        for tensor, sharding in zip(tensors, found, strict=False):
            if isinstance(sharding, Sharding):
                tensor.stated = sharding.padded(len(tensor.dims))


def _inside(flow: Flow) -> Iterator[Instruction]:
    """The local values of manual regions: those that entrances give, and all of the computations that take them."""
    waiting: list[Computation] = []
    for instruction in flow.leaves:
        if is_entrance(instruction):
            yield instruction
        elif any(is_entrance(operand) for operand in instruction.operands):
            waiting += flows_into(instruction)
    while waiting:
        computation = waiting.pop()
        for instruction in computation.instructions:
            yield instruction
            waiting += flows_into(instruction)
