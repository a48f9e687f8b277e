"""What XLA makes of a program: the text right after its partitioner and the final one, and the bytes they send."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import frozen

import xbuild as xb
from xbuild.core.graph import Computation, Instruction, Module

OPTIONS = {
    "xla_dump_hlo_pass_re": "spmd-partitioning",
    "xla_dump_hlo_as_text": True,
    "xla_backend_optimization_level": 0,
}
AFTER = "*after_spmd-partitioning*"


@frozen
class Partition:
    """A program compiled by XLA for the devices of a mesh, with the cost of the text that sends less, and FLOPs.

    XLA:CPU widens bf16 to f32 after it has partitioned, and other passes merge collectives or drop those that are not
    used: the text right after the partitioner and the final text are both counted.
    """

    compiled: Any
    cost: xb.Cost
    scattered: float
    flops: int


def partition(lowered: Any) -> Partition:
    """What XLA makes of a lowered program."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = lowered.compile(compiler_options={**OPTIONS, "xla_dump_to": folder})
        texts = [each.read_text() for each in Path(folder).glob(AFTER)]
    modules = [xb.parse_hlo(text) for text in (*texts, compiled.as_text())]
    costs = [xb.cost(module) for module in modules]
    best = min(costs, key=lambda each: each.link_bytes)
    scattered = min(cost.link_bytes - _saved(cost, module) for cost, module in zip(costs, modules, strict=True))
    return Partition(compiled, best, scattered, min(each.flops for each in costs))


def _saved(cost: xb.Cost, module: Module) -> float:
    """The bytes that the all-reduces would not send as reduce-scatters.

    The GPU and TPU compilers make these of an all-reduce all of whose users take each device's slice; XLA:CPU does not.
    """
    users = [_users(each) for each in (module.entry, *module.computations)]
    known = {instruction: found for each in users for instruction, found in each.items()}
    rows = [row for row in cost.rows if row.op == "all-reduce" and _is_sliced(row.instruction, known)]
    return sum(row.link_bytes / 2 for row in rows)


def _users(computation: Computation) -> dict[Instruction, list[Instruction]]:
    found: dict[Instruction, list[Instruction]] = {}
    for each in computation.instructions:
        for operand in each.operands:
            found.setdefault(operand, []).append(each)
    return found


def _is_sliced(instruction: Instruction, users: dict[Instruction, list[Instruction]]) -> bool:
    found = users.get(instruction, [])
    return bool(found) and all(each.opcode == "dynamic_slice" and each.operands[0] is instruction for each in found)


def collectives(cost: xb.Cost) -> str:
    """How many of each collective a program has."""
    counted = Counter(row.op for row in cost.collectives)
    return ", ".join(f"{count} {opcode}" for opcode, count in sorted(counted.items()))
