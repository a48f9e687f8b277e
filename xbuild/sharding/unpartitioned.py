"""Modules that are annotated with shardings but not partitioned: XLA's partitioner has yet to insert collectives."""

from __future__ import annotations

from ..core.graph import Computation, Instruction, Module
from ..core.memos import remembered
from ..properties.effects import communicates_itself
from ..properties.placement import CUTS, SAME, is_replaced, target_of
from ..properties.sites import reached
from ..text.annotations import stated_meshes
from ..text.shardings import sharded_devices


def annotated_devices(module: Module) -> int:
    """The number of devices for which a module is annotated but not partitioned yet; 0 for any other module.

    A module counts as partitioned if it is scheduled or communicates, or if its entry has the partitioner's suffix; it
    counts as not partitioned if it has calls that the partitioner replaces.
    """
    meshes = stated_meshes(module.annotations)
    within = [_annotations(computation) for computation in reached(module.entry)]
    devices = max([1, *(devices for devices, _ in within), *(each.count for each in meshes.values())])
    if any(is_marked for _, is_marked in within):
        devices = max(devices, module.num_partitions)
    elif devices > 1 and _is_partitioned(module):
        return 0
    return devices if devices > 1 else 0


@remembered
def _annotations(computation: Computation) -> tuple[int, bool]:
    """The number of devices that a computation's shardings name, and whether the partitioner replaces any of its calls.

    A sharding by the name of a mesh counts the devices of the mesh.
    """
    texts = {str(i.annotations["sharding"]) for i in computation.instructions if "sharding" in i.annotations}
    is_marked = any(map(is_replaced, computation.instructions))
    return max([1, *map(sharded_devices, texts)]), is_marked


def _is_partitioned(module: Module) -> bool:
    if module.is_scheduled or module.entry.name.endswith("_spmd"):
        return True
    return any(_is_per_device(each) for computation in reached(module.entry) for each in computation.instructions)


def _is_per_device(instruction: Instruction) -> bool:
    return instruction.opcode == "partition_id" or communicates_itself(instruction)


def is_per_device_in_part(module: Module) -> bool:
    """Whether a global module has a part that is written per device (`jax.shard_map`), so no single device can run it.

    >>> import xbuild as xb
    >>> is_per_device_in_part(xb.parse_hlo("ENTRY e {\\n  ROOT p = f32[8] parameter(0)\\n}"))
    False
    """
    calls = (each for computation in reached(module.entry) for each in computation.instructions if is_replaced(each))
    return any(target_of(each) in CUTS or target_of(each) not in SAME for each in calls)


def is_device_form_of(one: object, other: object) -> bool:
    """Whether the first program is one that each of several devices runs, and the second one a global program.

    `equivalent` takes the global program first; its layouts are those of the second program.
    """
    if not isinstance(one, Module) or not isinstance(other, Module | Computation):
        return False
    return _is_for_each_device(one) and not (isinstance(other, Module) and _is_for_each_device(other))


def _is_for_each_device(module: Module) -> bool:
    return is_per_device_in_part(module) or (module.num_devices > 1 and not annotated_devices(module))


def not_partitioned(module: Module, is_treated: str) -> str | None:
    """A sentence that a module is not partitioned yet, and how it `is_treated` nevertheless; None if it is."""
    devices = annotated_devices(module)
    if not devices:
        return None
    return (
        f"{module.name} is annotated for {devices} devices and not partitioned yet: it is {is_treated} as one global "
        "program, without the collectives that XLA's partitioner inserts"
    )
