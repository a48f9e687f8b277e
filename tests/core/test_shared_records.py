"""Equal attributes share one record, and attributes that only compare equal do not."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import xbuild as xb


def test_equal_attributes_share_a_record() -> None:
    x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 2])
    first = xb.ops.transpose(x, permutation=(1, 0))
    for same in ([1, 0], (np.int64(1), 0), (True, False)):
        other = xb.ops.transpose(x, permutation=same)  # type: ignore[arg-type]
        assert other.instruction.attributes is first.instruction.attributes
        assert [type(each) for each in other.instruction.attributes.permutation] == [int, int]


def test_what_compares_equal_is_still_refused() -> None:
    x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2, 2])
    xb.ops.transpose(x, permutation=(1, 0))
    with pytest.raises(xb.ShapeError, match=r"permutation=\(1.0, 0\): expected an int"):
        xb.ops.transpose(x, permutation=(1.0, 0))  # type: ignore[arg-type]
    with pytest.raises(xb.ShapeError, match="has no attribute 'dims'"):
        xb.ops.transpose(x, dims=(1, 0))  # type: ignore[call-arg]
    with pytest.raises(xb.ShapeError, match="'permutation' is missing"):
        xb.ops.transpose(x)  # type: ignore[call-arg]


def test_zeros_of_both_signs_stay_different() -> None:
    x = xb.parameter(builder := xb.Builder("b"), number=0, shape=xb.f32[4, 2])
    scale = xb.parameter(builder, number=1, shape=xb.f32[2])
    found = [
        xb.ops.batch_norm_training(x, scale, scale, epsilon=epsilon, feature_index=1).instruction.attributes.epsilon
        for epsilon in (0.0, -0.0)
    ]
    assert [struct.pack("d", each) for each in found] == [struct.pack("d", 0.0), struct.pack("d", -0.0)]


def test_groups_of_several_programs_are_one_object() -> None:
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    found = []
    for _ in range(2):
        x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
        groups = [list(range(8)), list(range(8, 16))]
        found.append(xb.ops.all_reduce(x, to_apply=adder, replica_groups=groups).instruction.attributes.replica_groups)
    assert found[0] is found[1]


def test_shapes_that_are_gone_are_not_confused() -> None:
    """A remembered call keeps the shapes alive whose ids are its key."""
    builder = xb.Builder("b")
    for extent in range(3, 600):
        shape = xb.Shape(xb.f32, (extent,), layout=xb.Layout((0,)))
        x = xb.parameter(builder, number=extent - 3, shape=shape)
        assert xb.ops.reshape(x, new_sizes=(1, extent)).shape == xb.f32[1, extent]
        assert xb.ops.negate(x).shape == xb.f32[extent]


def test_many_different_calls_are_not_all_remembered() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[10000])
    for start in range(9000):
        xb.ops.slice(x, start_indices=(start,), limit_indices=(start + 1,), strides=(1,))
    assert len(builder._calls.known) <= 4096
    assert len(builder._calls.records) <= 4096
