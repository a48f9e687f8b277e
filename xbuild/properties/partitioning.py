"""Modules that are annotated with shardings and not partitioned: XLA's partitioner has still to insert collectives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from ..core.graph import Instruction, Module
from .effects import communicates_itself
from .sites import reached

# Calls that the partitioner replaces, so that they stand in no partitioned module.
_MARKS = re.compile(
    r"Sharding|SPMD(?:FullToShard|ShardToFull)Shape|xla\.sdy\.\w+|(?:local|global)_xla\.sdy\.\w+", re.ASCII
)
_TILES = re.compile(r"devices=\[([\d,]+)\]")
_MESH = re.compile(r"sdy\.mesh<\[([^\]]*)\]")
_NAMED = re.compile(r"mesh\[([^\]]*)\]")
_SIZE = re.compile(r"=\s*(\d{1,9})(?!\d)")


def sharded_devices(text: str) -> int:
    """How many devices the greatest of the shardings in a text names; 1 where they name none.

    >>> sharded_devices("{{devices=[2,4]<=[8]}, {replicated}}"), sharded_devices("{mesh['a'=2,'b'=3], [{'a'}]}")
    (8, 6)
    """
    tiles = (math.prod(int(each or 1) for each in found.split(",")) for found in _TILES.findall(text))
    return max((1, *tiles, *_sizes(_NAMED, text)))


def _sizes(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    for axes in pattern.findall(text):
        yield math.prod(map(int, _SIZE.findall(axes)))


def annotated_devices(module: Module) -> int:
    """For how many devices a module is annotated that is not partitioned yet; 0 where it is none.

    It is taken as partitioned where it is scheduled or communicates, or where its entry has the name that the
    partitioner gives; calls that the partitioner replaces say that it is not.
    """
    instructions = [each for computation in reached(module.entry) for each in computation.instructions]
    meshes = str(module.annotations.get("frontend_attributes", ""))
    named = [*map(_annotated, instructions), *_sizes(_MESH, meshes)]
    devices = max(named, default=1)
    if any(map(_is_mark, instructions)):
        devices = max(devices, module.num_partitions)
    elif module.is_scheduled or module.entry.name.endswith("_spmd") or any(map(_is_per_device, instructions)):
        return 0
    return devices if devices > 1 else 0


def _is_per_device(instruction: Instruction) -> bool:
    return instruction.opcode == "partition_id" or communicates_itself(instruction)


def _is_mark(instruction: Instruction) -> bool:
    if instruction.opcode != "custom_call":
        return False
    return _MARKS.fullmatch(str(instruction.attributes.custom_call_target)) is not None


def _annotated(instruction: Instruction) -> int:
    """How many devices the sharding of an instruction names; that of a mesh by name is counted by the mesh."""
    return sharded_devices(str(instruction.annotations.get("sharding", "")))


def not_partitioned(module: Module, is_treated: str) -> str | None:
    """The sentence that a module is not partitioned yet, and how it `is_treated` all the same; None where it is."""
    devices = annotated_devices(module)
    if not devices:
        return None
    return (
        f"{module.name} is annotated for {devices} devices and not partitioned yet: it is {is_treated} as one global "
        "program, without the collectives that XLA's partitioner inserts"
    )
