"""Groups of devices: the worked examples of StableHLO's process groups, and pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.properties.device_groups import group_of, groups_of, pairs_of, strategy

R4P2 = (4, 2)


def collective(opcode: str, **attributes: Any) -> xb.Instruction:
    builder = xb.Builder("b")
    x = xb.ops.parameter(builder, number=0, shape=xb.f32[8])
    needed: dict[str, dict[str, Any]] = {
        "all_reduce": {"to_apply": xb.add},
        "all_gather": {"all_gather_dimension": 0, "shard_count": 2},
        "all_to_all": {"split_dimension": 0, "concat_dimension": 0, "split_count": 2},
        "collective_broadcast": {},
        "collective_permute": {},
    }
    value: xb.Value = getattr(xb.ops, opcode)(x, **needed[opcode], **attributes)
    return value.instruction


def test_cross_replica_keeps_the_partition() -> None:
    found = collective("all_reduce", replica_groups=[(0, 1), (2, 3)])
    assert strategy(found) == "cross_replica"
    assert groups_of(found, *R4P2) == ((0, 2), (1, 3), (4, 6), (5, 7))


def test_cross_replica_and_partition_has_replicas_outside() -> None:
    found = collective("all_reduce", replica_groups=[(0, 1), (2, 3)], channel_id=1)
    assert strategy(found) == "cross_replica_and_partition"
    assert groups_of(found, *R4P2) == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_cross_partition_keeps_the_replica() -> None:
    found = collective("all_to_all", replica_groups=[(0, 1)], channel_id=1)
    assert strategy(found) == "cross_partition"
    assert groups_of(found, *R4P2) == ((0, 1), (2, 3), (4, 5), (6, 7))


def test_permuted_replicas_keep_their_partitions_together() -> None:
    found = collective("all_gather", replica_groups=[(1, 0)], channel_id=1)
    assert groups_of(found, 2, 2) == ((2, 3, 0, 1),)


def test_the_only_partition_is_named_by_0() -> None:
    found = collective("collective_broadcast", replica_groups=[(0,)], channel_id=1)
    assert groups_of(found, 2, 1) == ((0,), (1,))
    permuted = collective("collective_permute", source_target_pairs=[(0, 0)], channel_id=1)
    assert pairs_of(permuted, 2, 1) == ((0, 0), (1, 1))


def test_ids_of_other_partitions_than_the_only_one_name_no_device() -> None:
    alone = collective("collective_broadcast", replica_groups=[(0,), (1,)], channel_id=1)
    assert groups_of(alone, 2, 1) == ((0,), (1,))
    permuted = collective("collective_permute", source_target_pairs=[(0, 1)], channel_id=1)
    assert pairs_of(permuted, 2, 1) == ()
    assert pairs_of(permuted, 2, 1, is_own=True) == ((0, 1),)


def test_ids_are_devices_where_each_has_a_program_of_its_own() -> None:
    found = collective("all_to_all", replica_groups=[(0, 1)], channel_id=1)
    assert groups_of(found, 2, 1, is_own=True) == ((0, 1),)


def test_flattened_ids_are_devices() -> None:
    lists = [(0, 1, 2, 3), (4, 5, 6, 7)]
    found = collective("all_reduce", replica_groups=lists, channel_id=1, use_global_device_ids=True)
    assert strategy(found) == "flattened_ids"
    assert groups_of(found, *R4P2) == tuple(lists)


@pytest.mark.parametrize(
    ("channel", "expected"), [(None, ((0, 2, 4, 6), (1, 3, 5, 7))), (1, ((0, 1, 2, 3, 4, 5, 6, 7),))]
)
def test_no_groups_means_one_of_all(channel: int | None, expected: Any) -> None:
    assert groups_of(collective("all_reduce", channel_id=channel), *R4P2) == expected


def test_groups_keep_the_order_of_their_lists() -> None:
    found = collective("all_gather", replica_groups=[(1, 0)])
    assert group_of(found, 0, 2) == (1, 0)


@pytest.mark.parametrize("channel", [None, 1])
@pytest.mark.parametrize("opcode", ["all_reduce", "all_gather", "all_to_all"])
def test_every_device_is_in_one_group(opcode: str, channel: int | None) -> None:
    found = collective(opcode, replica_groups=[(0, 1)], channel_id=channel)
    groups = groups_of(found, 2, 2)
    assert np.sort(np.concatenate(groups)).tolist() == [0, 1, 2, 3]
    assert all(group_of(found, device, 2, 2) == group for group in groups for device in group)


def test_a_device_in_no_group_is_alone() -> None:
    found = collective("all_reduce", replica_groups=[(0, 1)])
    assert group_of(found, 2, 3) == (2,)


def test_a_permutation_is_one_group_of_all() -> None:
    found = collective("collective_permute", source_target_pairs=[(0, 1)])
    assert groups_of(found, 3, 1) == ((0, 1, 2),)


def test_pairs_of_a_permutation_follow_its_strategy() -> None:
    by_replica = collective("collective_permute", source_target_pairs=[(0, 1)])
    by_partition = collective("collective_permute", source_target_pairs=[(0, 1)], channel_id=1)
    assert pairs_of(by_replica, 2, 2) == ((0, 2), (1, 3))
    assert pairs_of(by_partition, 2, 2) == ((0, 1), (2, 3))


def test_pairs_of_a_transfer_are_devices() -> None:
    builder = xb.Builder("b")
    found = xb.ops.recv(
        xb.ops.after_all((), builder=builder), shape=xb.f32[2], channel_id=1, source_target_pairs=[(0, 3)]
    )
    assert pairs_of(found.instruction, 2, 2) == ((0, 3),)


def test_a_module_group_takes_a_list_or_a_mapping() -> None:
    module = xb.Module("m", xb.computation(xb.f32[2])(lambda x: x + x))
    assert xb.ModuleGroup([module, module]).modules == {0: module, 1: module}
    assert xb.ModuleGroup({1: module}).modules == {1: module}
    with pytest.raises(TypeError, match="expected a Module for device 0, got 3"):
        xb.ModuleGroup([3])  # type: ignore[list-item]
