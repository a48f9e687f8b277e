"""What a partitioned program says of its values: each is a tile of the global value that it names, in a run of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from examples.sharding import block
from interpreter import trace
from tests.sharding.campaign import program
from tests.sharding.cases import difference
from xbuild.sharding.partition import Partitioned
from xbuild.sharding.partition.partitioned import join_parts
from xbuild.sharding.propagation import Origins


def values_of(module: xb.Module, arguments: list[list[Any]]) -> dict[str, list[Any]]:
    """The last value of each instruction of the entry, by name, on each device."""
    found: dict[str, list[Any]] = {}
    run = trace(module, arguments)
    for event in run:
        if not event.spot.path:
            values = found.setdefault(event.instruction.name, [None] * module.num_devices)
            values[event.device] = run.values.get(event.number)
    return found


def compared(parts: Partitioned, arrays: list[Any], padding: int = 0, *, sums: bool = True) -> tuple[int, str]:
    """How many values of the devices' program equal the global ones that they name, and where they differ.

    Without `sums` values that are still to be joined are left out, since they may be joined by another op than a sum.
    """
    whole, own = values_of(parts.whole, [arrays]), values_of(parts.module, parts.arguments(*arrays, padding=padding))
    count, wrong = 0, []
    for name, held in parts.held.items():
        if held.sharding.unreduced and not sums:
            continue
        if name in own and held.value in whole and isinstance(whole[held.value][0], np.ndarray | np.generic):
            count += 1
            found = join_parts(own[name], held.shape, held.sharding)
            if told := difference(whole[held.value][0], np.asarray(found)):
                wrong.append(f"{name} as a tile of {held.value}: {told}")
    return count, "\n".join(wrong)


@pytest.mark.parametrize("name", ["data", "tensor", "sequence", "full"])
def test_each_value_is_a_tile_of_the_value_that_it_names(name: str) -> None:
    parts = xb.shard.partition(getattr(block, name)())
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape.dims).astype(np.float32) / 4 for shape in block.SHAPES.values()]
    count, wrong = compared(parts, arrays)
    assert (count >= len(parts.module.entry.instructions) - 4, wrong) == (True, "")


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_hold_tiles_of_global_values(seed: int) -> None:
    given = program(seed)
    assert compared(given.partitioned(), given.arguments, given.padding, sums=False)[1] == ""


@pytest.mark.parametrize("name", ["data", "tensor", "sequence", "full"])
def test_ways_are_the_chains_of_causes(name: str) -> None:
    found = xb.shard.propagate(getattr(block, name)())
    origins = Origins(found)
    for value in (each.name for each in found.module.entry.instructions):
        chains = found.chains(value)
        told = [(way.dim, way.axes, way.origin, way.where) for way in origins.ways(value)]
        assert told == [(dim, axes, origin, where) for dim, axes, _, origin, where in chains]
        for way, (_, _, steps, _, _) in zip(origins.ways(value), chains, strict=True):
            sources = [step.source for step in steps[:-1]]
            assert (list(way.through), way.more) == (sources[:4], max(0, len(sources) - 4))


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_those_of_the_global_program(seed: int) -> None:
    parts = program(seed).partitioned()
    lines = (str(each.source) for computation in parts.module.computations for each in computation.instructions)
    assert not [line for line in lines if "tests/sharding/campaign.py" in line and " in partitioned" in line]
