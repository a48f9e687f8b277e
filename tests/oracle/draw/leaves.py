"""Draws of the ops without operands."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from shape_inference import PrimitiveType

from ..chance import Chance
from ..instance import Instance
from .draw import Draw


def parameter(chance: Chance, dtype: PrimitiveType) -> Instance:
    value = chance.values(dtype, chance.dims())
    return Instance("parameter", dtype, (value,), record=lambda _, parameter: parameter)


def constant(chance: Chance, dtype: PrimitiveType) -> Instance:
    literal = chance.values(dtype, chance.dims())
    return Instance("constant", dtype, (), {"literal": literal})


def iota(chance: Chance, dtype: PrimitiveType) -> Instance:
    dims = list(chance.dims(rank=chance.between(1, 4)))
    dimension = chance.between(0, len(dims) - 1)
    if chance.odds(0.2):
        dims = [chance.between(10, 400)]
        dimension = 0
    return Instance("iota", dtype, (), {"shape": dtype[dims], "iota_dimension": dimension})


def number_of(opcode: str) -> Draw:
    """The device's number, beside an array so that the devices are told apart."""

    def draw(chance: Chance, dtype: PrimitiveType) -> Instance:
        replicas, partitions = chance.one(((4, 1), (2, 2), (1, 4)))
        array = chance.values(dtype, (4, 2))
        own = xb.replica_id if opcode == "replica_id" else xb.partition_id
        return Instance(
            opcode,
            dtype,
            (np.asarray(array),),
            record=lambda builder, value: [own(builder), value],
            num_replicas=replicas,
            num_partitions=partitions,
        )

    return draw


DRAWS: dict[str, Draw] = {
    "constant": constant,
    "iota": iota,
    "parameter": parameter,
    "partition_id": number_of("partition_id"),
    "replica_id": number_of("replica_id"),
}
