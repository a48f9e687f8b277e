"""shard and batch_parallel: inputs cut, results joined, TensorFlow's checks in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from tests.tpu.support import F32, plain, refused

X = np.arange(8, dtype=np.float32).reshape(4, 2)


def doubled(x: Any) -> Any:
    return x * 2.0


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, (X * 2).tolist()),
        ({"output_shard_axes": [1]}, [[0, 2, 8, 10], [4, 6, 12, 14]]),
        ({"output_shard_axes": [-1]}, [[0, 2, 8, 10], [4, 6, 12, 14]]),
        ({"input_shard_axes": [1]}, [[0], [4], [8], [12], [2], [6], [10], [14]]),
        ({"input_shard_axes": [1], "output_shard_axes": [1]}, (X * 2).tolist()),
        ({"outputs_from_all_shards": False}, [[0, 2], [4, 6]]),
        ({"outputs_from_all_shards": [False]}, [[0, 2], [4, 6]]),
    ],
)
def test_axes(options: dict[str, Any], wanted: Any) -> None:
    assert plain(xb.tpu.shard(doubled, [X], num_shards=2, **options)) == [wanted]


def test_scalars_are_stacked() -> None:
    assert plain(xb.tpu.shard(lambda x: xb.reduce(x, 0.0, xb.add), [X], num_shards=4)) == [[1.0, 5.0, 9.0, 13.0]]


def test_without_inputs_the_computation_runs_on_every_shard() -> None:
    assert plain(xb.tpu.shard(lambda: F32([1, 2]), num_shards=3)) == [[1, 2, 1, 2, 1, 2]]


def test_without_outputs_there_is_an_operation() -> None:
    (found,) = xb.tpu.shard(lambda x: None, [X], num_shards=2)
    assert isinstance(found, xb.tpu.Operation)


def test_structures_come_back_where_tensorflow_crashes() -> None:
    found = xb.tpu.shard(lambda x: {"y": x, "z": (x + 1.0, None)}, [F32([1, 2])], num_shards=2)
    assert plain(found) == {"y": [1.0, 2.0], "z": ([2.0, 3.0], None)}
    found = xb.tpu.shard(lambda x: {"y": x, "z": x}, [F32([1, 2])], num_shards=2, outputs_from_all_shards=[True, False])
    assert plain(found) == {"y": [1.0, 2.0], "z": [1.0]}


def test_what_a_function_closes_over_is_on_all_shards() -> None:
    whole = F32([[10, 20]])
    assert plain(xb.tpu.batch_parallel(lambda x: x + whole, [X], num_shards=4)) == [(X + whole).tolist()]


def test_collectives_see_the_shards() -> None:
    assert plain(xb.tpu.batch_parallel(xb.tpu.cross_replica_sum, [F32([1, 2, 4, 8])], num_shards=4)) == [[15.0] * 4]


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 1), st.integers(0, 1))
def test_one_shard_and_many_give_the_same(shards: int, size: int, axis: int, other: int) -> None:
    x = np.arange(shards * size * 12, dtype=np.int32).reshape((shards * size, 12) if axis == 0 else (12, shards * size))
    (found,) = xb.tpu.shard(lambda x: x + 1, [x], shards, input_shard_axes=[axis], output_shard_axes=[axis])
    assert np.array_equal(found, x + 1)
    parts = np.split(x + 1, shards, axis)
    (found,) = xb.tpu.shard(lambda x: x + 1, [x], shards, input_shard_axes=[axis], output_shard_axes=[other])
    assert np.array_equal(found, np.concatenate(parts, other))


def test_1_num_shards_is_positive() -> None:
    for number in (0, -1):
        refused("non_positive", lambda n=number: xb.tpu.shard(doubled, (X,), n), f"Received {number}")


def test_2_inputs_are_a_list() -> None:
    refused("invalid_operand", lambda: xb.tpu.shard(doubled, (X,), 2, [0, 0]), "<class 'tuple'>", error=TypeError)


def test_3_an_axis_for_each_input() -> None:
    text = refused("attribute_length_mismatch", lambda: xb.tpu.shard(doubled, [X[:3]], 2, input_shard_axes=[0, 0]))
    assert "Received 1 inputs and 2 input_shard_axes." in text


def test_4_equal_parts() -> None:
    text = refused("divisibility", lambda: xb.tpu.shard(lambda: 1, [X[:3]], 2))
    assert "Dimension size must be evenly divisible by 2 but is 3" in text
    refused("dimension_out_of_range", lambda: xb.tpu.shard(doubled, [X], 2, input_shard_axes=[2]), "axis 2")
    refused("dimension_out_of_range", lambda: xb.tpu.shard(doubled, [1.0], 2), "f32[]")


def test_5_as_replicate() -> None:
    refused("arity_mismatch", lambda: xb.tpu.shard(lambda: 1, [X], 2, output_shard_axes=[0, 0]), error=TypeError)


def test_7_one_entry_for_each_output() -> None:
    text = refused("attribute_length_mismatch", lambda: xb.tpu.shard(doubled, [X], 2, output_shard_axes=[0, 0]))
    assert "Received 1 outputs and 2 output_shard_axes." in text
    text = refused(
        "attribute_length_mismatch", lambda: xb.tpu.shard(doubled, [X], 2, outputs_from_all_shards=[True] * 2)
    )
    assert "Received 1 outputs and 2 outputs_from_all_shards." in text


def test_8_an_axis_of_an_output_is_one() -> None:
    refused("dimension_out_of_range", lambda: xb.tpu.shard(doubled, [X], 2, output_shard_axes=[2]), "axis 2")
    refused("dimension_out_of_range", lambda: xb.tpu.shard(doubled, [X], 1, output_shard_axes=[2]), "axis 2")
