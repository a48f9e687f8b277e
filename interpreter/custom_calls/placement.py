"""Custom calls that annotate placement or partitioning: they return their operands, which each device holds whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import TupleShape
from xbuild.core.graph import Instruction

from ..rules.tables import compute
from .table import target


@target(
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "MoveToHost",
    "MoveToDevice", "Pin", "Unpin",
    "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
    "xla.sdy.all_gather", "xla.sdy.all_reduce", "xla.sdy.all_slice", "xla.sdy.all_to_all",
    "xla.sdy.collective_permute", "xla.sdy.reduce_scatter", "xla.sdy.replicated_to_unreduced",
    "xla.sdy.sharded_to_unreduced",
)  # fmt: skip
def same(instruction: Instruction, *operands: Any) -> Any:
    """The operands, unchanged; a program that declares another shape needs a partitioner."""
    return operands if isinstance(instruction.shape, TupleShape) else operands[0]


@target("TopK")
def top_k(instruction: Instruction, operand: Any) -> Any:
    """The largest elements along the last dimension, and their indices."""
    k = instruction.shape.elements[0].dims[-1]  # type: ignore[union-attr]
    return compute["topk"](np.asarray(operand), k=k, largest=True)
