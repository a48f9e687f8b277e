"""Draws of the collectives, on four devices: replicas, partitions or both."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import PrimitiveType

from ..chance import Chance
from ..instance import Instance
from .draw import Draw
from .reduction import COMBINERS, summands

DEVICES = 4


def meeting(chance: Chance, opcode: str, dtype: PrimitiveType, operands: Any, attributes: Any, exact: bool) -> Instance:
    """The collective on replicas without a channel, or on partitions with the groups of all devices."""
    on_partitions = chance.odds(0.4)
    if on_partitions:
        attributes = {**attributes, "channel_id": 1}
        if opcode in ("all_reduce", "all_gather", "reduce_scatter"):
            attributes["use_global_device_ids"] = True
    replicas, partitions = chance.one(((1, 4), (2, 2))) if on_partitions else (DEVICES, 1)
    if on_partitions and "use_global_device_ids" not in attributes:
        replicas, partitions = 1, DEVICES
    return Instance(opcode, dtype, operands, attributes, exact, num_replicas=replicas, num_partitions=partitions)


def combiner(chance: Chance, dtype: PrimitiveType) -> str:
    """One of those that XLA:CPU has for collectives."""
    ordered = [] if dtype.kind == "complex" else ["maximum", "minimum"]
    return chance.one(["and", "or"] if dtype.kind == "pred" else ["add", "add", "multiply", *ordered])


def groups(chance: Chance, size: int | None = None) -> list[list[int]]:
    """The devices in groups of equal size."""
    size = size or chance.one((1, 2, 4))
    order = chance.shuffled(range(DEVICES))
    return [order[n : n + size] for n in range(0, DEVICES, size)]


def all_reduce(chance: Chance, dtype: PrimitiveType) -> Instance:
    word = combiner(chance, dtype)
    drawn = [summands(chance, word, dtype, (DEVICES, *chance.dims())) for _ in range(chance.one((1, 1, 2)))]
    chosen = groups(chance)
    if chance.odds(0.2):
        chosen = [chosen[0] + [d for group in chosen[1:] for d in group][:1], [d for g in chosen[1:] for d in g][1:]]
        chosen = [group for group in chosen if group]
    attributes = {"to_apply": COMBINERS[word], "replica_groups": chosen}
    if len(drawn) > 1:  # which XLA's partitioner does not take
        operands = tuple(a for a, _ in drawn)
        exact = all(exact for _, exact in drawn)
        return Instance("all_reduce", dtype, (operands,), attributes, exact, num_replicas=DEVICES)
    return meeting(
        chance, "all_reduce", dtype, (tuple(a for a, _ in drawn),), attributes, all(exact for _, exact in drawn)
    )


def all_gather(chance: Chance, dtype: PrimitiveType) -> Instance:
    size = chance.one((1, 2, 4))
    dims = chance.dims(rank=chance.between(1, 3), least=1)
    attributes = {
        "all_gather_dimension": chance.between(0, len(dims) - 1),
        "shard_count": size,
        "replica_groups": groups(chance, size),
    }
    return meeting(chance, "all_gather", dtype, ((chance.values(dtype, (DEVICES, *dims)),),), attributes, True)


def reduce_scatter(chance: Chance, dtype: PrimitiveType) -> Instance:
    size, word = chance.one((1, 2, 4)), combiner(chance, dtype)
    dims, dimension = split(chance, size)
    operand, is_exact = summands(chance, word, dtype, (DEVICES, *dims))
    attributes = {
        "to_apply": COMBINERS[word],
        "scatter_dimension": dimension,
        "shard_count": size,
        "replica_groups": groups(chance, size),
    }
    return meeting(chance, "reduce_scatter", dtype, ((operand,),), attributes, is_exact)


def split(chance: Chance, size: int) -> tuple[list[int], int]:
    """Extents of which one can be cut into so many parts, and which one."""
    dims = list(chance.dims(rank=chance.between(1, 3), least=1, most=3))
    dimension = chance.between(0, len(dims) - 1)
    dims[dimension] *= size
    return dims, dimension


def all_to_all(chance: Chance, dtype: PrimitiveType) -> Instance:
    size = chance.one((1, 2, 4))
    if size > 1 and chance.odds(0.3):  # the tuple form on groups of one kills XLA:CPU
        dims = chance.dims(least=1)
        operands = tuple(chance.values(dtype, (DEVICES, *dims)) for _ in range(size))
        return meeting(chance, "all_to_all", dtype, (operands,), {"replica_groups": groups(chance, size)}, True)
    dims, dimension = split(chance, size)
    attributes = {
        "split_dimension": dimension,
        "concat_dimension": chance.between(0, len(dims) - 1),
        "split_count": size,
        "replica_groups": groups(chance, size),
    }
    return meeting(chance, "all_to_all", dtype, ((chance.values(dtype, (DEVICES, *dims)),),), attributes, True)


def collective_permute(chance: Chance, dtype: PrimitiveType) -> Instance:
    sources, targets = chance.shuffled(range(DEVICES)), chance.shuffled(range(DEVICES))
    pairs = list(zip(sources, targets, strict=True))[: chance.between(1, DEVICES)]
    operand = chance.values(dtype, (DEVICES, *chance.dims()))
    return meeting(chance, "collective_permute", dtype, (operand,), {"source_target_pairs": pairs}, True)


def collective_broadcast(chance: Chance, dtype: PrimitiveType) -> Instance:
    operand = chance.values(dtype, (DEVICES, *chance.dims()))
    return meeting(chance, "collective_broadcast", dtype, (operand,), {"replica_groups": groups(chance)}, True)


def ragged_all_to_all(chance: Chance, dtype: PrimitiveType) -> Instance:
    """Each device sends a row to each, from random places, and keeps them in the order of the senders."""
    rows = chance.between(1, 4)
    operand, output = (chance.values(dtype, (DEVICES, n, 2)) for n in (rows, DEVICES))
    offsets = chance.rng.integers(0, rows, (DEVICES, DEVICES)).astype(np.int32)
    ones = np.ones((DEVICES, DEVICES), np.int32)
    own = np.repeat(np.arange(DEVICES, dtype=np.int32), DEVICES).reshape(DEVICES, DEVICES)
    attributes = {"replica_groups": [list(range(DEVICES))]}
    operands = operand, output, offsets, ones, own, ones
    return Instance("ragged_all_to_all", dtype, operands, attributes, num_replicas=DEVICES)


DRAWS: dict[str, Draw] = {
    "all_gather": all_gather,
    "all_reduce": all_reduce,
    "all_to_all": all_to_all,
    "collective_broadcast": collective_broadcast,
    "collective_permute": collective_permute,
    "ragged_all_to_all": ragged_all_to_all,
    "reduce_scatter": reduce_scatter,
}
