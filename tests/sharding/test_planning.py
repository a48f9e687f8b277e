"""Plans of resharding: those of known cases, never more bytes than Shardy's order, and the data after any of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute
from xbuild.sharding.partition.partitioned import join_parts, part_of
from xbuild.sharding.resharding import Costs, ReshardingContext, find_boundaries, plan_greedily, state_of
from xbuild.sharding.resharding import plan as resharding
from xbuild.sharding.resharding_ops import reshard
from xbuild.sharding.sharding import Axis, Sharding, get_axis, shard_dims

from .random_shardings import random_mesh, random_sharding

CASES = [
    ([2], [[]], [[], [0]], "all_slice over 0 dimension 1"),
    ([2], [[0]], [[], [0]], "all_to_all over 0 from dimension 0 to dimension 1: 16 bytes"),
    ([2, 2], [[0, 1]], [[0]], "all_gather over 1 dimension 0: 16 bytes"),
    ([2, 2], [[0, 1]], [[], [0, 1]], "all_to_all over 0, 1 from dimension 0 to dimension 1: 12 bytes"),
    ([2, 2], [[0, 1]], [[1, 0]], "collective_permute over 0, 1: 16 bytes"),
    ([2, 2], [[0]], [[1]], "collective_permute over 0, 1: 32 bytes"),
    ([2, 2], [[0], [1]], [[0], [1]], "nothing to do"),
]


def _sharding(mesh: xb.Mesh, dims: Any) -> Sharding:
    return shard_dims(mesh, [[get_axis(mesh, axis) for axis in dim] for dim in dims])


@pytest.mark.parametrize(("grid", "source", "target", "told"), CASES)
def test_plans_of_known_cases(grid: Any, source: Any, target: Any, told: str) -> None:
    mesh = xb.Mesh(grid)
    assert str(resharding(_sharding(mesh, source), _sharding(mesh, target), (4, 4))) == told


def test_partial_sums_that_are_cut_next_are_reduce_scattered() -> None:
    mesh = xb.Mesh(x=4)
    x = get_axis(mesh, "x")
    found = resharding(shard_dims(mesh, [[], []], [x]), shard_dims(mesh, [[], [x]]), xb.f32[4, 8])
    assert [(step.op, step.dimensions) for step in found.steps] == [("reduce_scatter", (1,))]
    assert found.bytes == 4 * 8 * 4 * 3 // 4


def test_costs_of_axes_choose_the_way() -> None:
    """Gathering over the slow axis last costs its whole result there; first, only a part."""
    mesh = xb.Mesh(fast=2, slow=2)
    fast, slow = get_axis(mesh, "fast"), get_axis(mesh, "slow")
    source, target = shard_dims(mesh, [[fast], [slow]]), shard_dims(mesh, [[], []])
    dear = Costs(beta={"slow": 10.0})
    assert [step.axes for step in resharding(source, target, (4, 4), dear).steps] == [(slow,), (fast,)]


def test_parts_of_an_axis_that_do_not_fit_go_by_the_whole_array() -> None:
    mesh = xb.Mesh(x=6)
    found = resharding(shard_dims(mesh, [[Axis("x", 2)]]), shard_dims(mesh, [[Axis("x", 3)]]), (6,))
    assert [step.op for step in found.steps] == ["all_gather", "all_slice"]


def test_shardings_on_two_meshes_are_refused() -> None:
    with pytest.raises(xb.XbuildError) as error:
        resharding(shard_dims(xb.Mesh(x=2), [[]]), shard_dims(xb.Mesh(y=2), [[]]), (4,))
    assert error.value.kind == "invalid_attribute"
    with pytest.raises(xb.XbuildError) as error:
        resharding(shard_dims(xb.Mesh(x=2), [[], []]), shard_dims(xb.Mesh(x=2), [[]]), (4,))
    assert error.value.kind == "rank_mismatch"


def test_a_value_of_other_extents_is_refused() -> None:
    mesh = xb.Mesh(x=2)
    there = resharding(shard_dims(mesh, [[get_axis(mesh, "x")]]), shard_dims(mesh, [[]]), (4,))
    with pytest.raises(xb.XbuildError) as error:
        xb.computation(xb.f32[3])(lambda x: reshard(x, there))
    assert error.value.kind == "dimension_mismatch"


def _drawn(seed: int) -> tuple[Sharding, Sharding, tuple[int, ...]]:
    chance = random.Random(seed)
    mesh, rank = random_mesh(chance), chance.randrange(1, 4)
    source, target = (random_sharding(chance, mesh, rank, unreduced=0.1) for _ in range(2))
    return source, target, tuple(chance.choice((1, 2, 3, 4, 5, 8, 12)) for _ in range(rank))


@pytest.mark.parametrize("seed", range(60))
def test_any_resharding_keeps_the_array(seed: int) -> None:
    source, target, dims = _drawn(seed)
    found = resharding(source, target, xb.s32[dims])
    array = np.arange(int(np.prod(dims)), dtype=np.int32).reshape(dims) + 1
    parts = [part_of(array, source.padded(len(dims)), device, 77) for device in range(source.mesh.num_devices)]
    moved = xb.computation(xb.s32[parts[0].shape])(lambda x: reshard(x, found) if found.steps else xb.copy(x))
    module = xb.Module("moved", moved, num_partitions=source.mesh.num_devices)
    assert xb.check(module).kind == "ok"
    results = execute(module, [[part] for part in parts])
    np.testing.assert_array_equal(join_parts(results, xb.s32[dims], target.padded(len(dims))), array)


@pytest.mark.parametrize("seed", range(100, 200))
def test_no_plan_sends_more_bytes_than_the_order_of_shardy(seed: int) -> None:
    source, target, dims = _drawn(seed)
    cuts = find_boundaries((*source.cut_axes, *source.unreduced, *target.cut_axes, *target.unreduced), is_prime=True)
    if cuts is None:
        pytest.skip("parts of an axis that do not fit each other")
    start, site = state_of(source, dims, cuts), ReshardingContext(source.mesh, state_of(target, dims, cuts), 4)
    assert resharding(source, target, dims).bytes <= sum(step.bytes for step in plan_greedily(site, start))
