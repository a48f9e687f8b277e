"""Arguments of another Python type are refused by name: no exception of NumPy or of the interpreter comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.tpu.support import F32, plain, refused

tpu = xb.tpu
X = np.ones((4, 2), np.float32)
ROWS = [[F32([1])], [F32([1, 2])]]


def doubled(x: Any) -> Any:
    return x * 2.0


def grouped(groups: Any) -> Any:
    w = tpu.Variable(2.0)
    optimizer = tpu.CrossShardOptimizer(tpu.GradientDescentOptimizer(0.5), group_assignment=groups)
    tpu.replicate(lambda x: optimizer.minimize(w * x, var_list=[w]), [[0.0], [1.0], [2.0], [3.0]])
    return plain(w.values)


def exchanged(**given: Any) -> Any:
    options = {"group_assignment": [[0, 1]], "concat_dimension": 0, "split_dimension": 0, "split_count": 2} | given
    return tpu.replicate(lambda x: tpu.raw_ops.AllToAll(input=x, **options), [[F32([1, 2])]] * 2)


def trained(rate: Any) -> Any:
    w = tpu.Variable(1.0)
    return tpu.rewrite(lambda x: tpu.GradientDescentOptimizer(rate).minimize(w * x, var_list=[w]), [1.0])


def applied(make: Any) -> Any:
    return tpu.rewrite(lambda x: tpu.GradientDescentOptimizer(0.1).apply_gradients([make(x)]), [1.0])


def queue(**options: Any) -> Any:
    return tpu.InfeedQueue(**{"tuple_types": [xb.f32], "tuple_shapes": [[2]], **options})


def padded(**options: Any) -> Any:
    return tpu.replicate(doubled, ROWS, **options)


CASES = [
    (lambda: grouped([["a", "b"], ["c", "d"]]), "group 0 of Argument `group_assignment`: expected an integer, got 'a'"),
    (lambda: grouped([[0, 1], [2.5, 3]]), "group 1 of Argument `group_assignment`: expected an integer, got 2.5"),
    (lambda: grouped([[[0, 1], [2, 3]]]), "expected an integer, got [0, 1]"),
    (lambda: exchanged(split_count="2"), "split_count: expected an integer, got '2'"),
    (lambda: exchanged(concat_dimension=None), "concat_dimension: expected an integer, got None"),
    (lambda: exchanged(split_dimension=0.0), "split_dimension: expected an integer, got 0.0"),
    (
        lambda: tpu.rewrite(lambda x: tpu.cross_replica_mean(x, 1.0), [1.0]),
        "num_shards_per_group: expected an integer, got 1.0",
    ),
    (lambda: tpu.shard(doubled, [X], "2"), "num_shards: expected an integer, got '2'"),
    (lambda: tpu.shard(doubled, [X], None), "num_shards: expected an integer, got None"),
    (
        lambda: tpu.shard(doubled, [X], 2, input_shard_axes=["0"]),
        "entry 0 of input_shard_axes: expected an integer, got '0'",
    ),
    (
        lambda: tpu.shard(doubled, [X], 2, output_shard_axes=[None]),
        "entry 0 of output_shard_axes: expected an integer, got None",
    ),
    (lambda: tpu.shard(doubled, [X], 2, outputs_from_all_shards="no"), "expected True or False for output 0, got 'no'"),
    (lambda: padded(maximum_shapes=3), "maximum_shapes: expected a list of extents and None, got 3"),
    (lambda: padded(maximum_shapes=[["a"]]), "maximum_shapes: expected a list of extents and None, got 'a'"),
    (lambda: padded(maximum_shapes=[[None]], padding_spec=7), "padding_spec: expected a PaddingSpec, got 7"),
    (lambda: padded(maximum_shapes=[[None]], padding_spec="auto"), "padding_spec: expected a PaddingSpec, got 'auto'"),
    (lambda: tpu.replicate(doubled, [[1.0]], [1]), "infeed_queue: expected an xb.tpu.InfeedQueue, got [1]"),
    (lambda: tpu.rewrite(doubled, [1.0], xla_options={}), "xla_options: expected an xb.tpu.XLAOptions, got {}"),
    (lambda: tpu.InfeedQueue("2"), "number_of_tuple_elements: expected an integer, got '2'"),
    (lambda: tpu.InfeedQueue(tuple_types=3), "tuple_types: expected a list"),
    (lambda: tpu.InfeedQueue(tuple_shapes=3), "tuple_shapes: expected a list"),
    (lambda: queue(tuple_types=["nothing"]), "type 0: expected an element type, got 'nothing'"),
    (lambda: queue(tuple_shapes=[2]), "shape 0: expected a list of integers, got 2"),
    (lambda: queue(tuple_shapes=[[None]]), "shape 0: expected an integer, got None"),
    (lambda: queue(shard_dimensions=["0"]), "shard_dimensions: expected an integer, got '0'"),
    (lambda: tpu.Topology(3), "`mesh_shape`: expected a list of integers, got 3"),
    (lambda: tpu.device_assignment(tpu.Topology(), num_replicas="2"), "num_replicas: expected an integer, got '2'"),
    (lambda: tpu.get_variable("refused", [2], "nothing"), "dtype of refused: expected an element type, got 'nothing'"),
    (lambda: tpu.get_variable("refused", 2), "shape of refused: expected a list of integers, got 2"),
    (lambda: tpu.placeholder_with_default([1], 3), "shape: expected a list of extents and None, got 3"),
]
OPERANDS = [
    (lambda: tpu.replicate(3, [[1.0]]), "the computation: expected a function, got 3"),
    (lambda: tpu.rewrite(None), "the computation: expected a function, got None"),
    (
        lambda: tpu.rewrite(lambda x: tpu.outside_compilation(3, x), [1.0]),
        "the host function: expected a function, got 3",
    ),
    (
        lambda: tpu.rewrite(lambda: tpu.outfeed_enqueue(None)),
        "outfeed_enqueue: expected a value of the computation, got None",
    ),
    (lambda: tpu.rewrite(doubled, [np.array(["a"])]), "expected an array or a number, got"),
    (lambda: tpu.device_assignment(None), "expected an xb.tpu.Topology, got None"),
    (lambda: trained("fast"), "a rate: expected an array or a number, got 'fast'"),
    (lambda: applied(lambda x: (x, x)), "expected a variable, got"),
]


@pytest.mark.parametrize(("call", "word"), CASES)
def test_attributes_of_another_type(call: Any, word: str) -> None:
    refused("invalid_attribute", call, word, error=TypeError)


@pytest.mark.parametrize(("call", "word"), OPERANDS)
def test_operands_of_another_type(call: Any, word: str) -> None:
    refused("invalid_operand", call, word, error=TypeError)


def test_attributes_of_another_value() -> None:
    refused("invalid_attribute", lambda: queue(tuple_shapes=[[-2]]), "shape 0 is [-2]")
    refused("invalid_attribute", lambda: tpu.get_variable("refused", [-2]), "[-2]")
    refused("invalid_attribute", lambda: tpu.device(3), "device 3 is not a core")
    refused("invalid_attribute", lambda: tpu.initialize_system(tpu_cancellation_closes_chips=[]), "[]")


def test_placements_of_another_type() -> None:
    placed = lambda given: lambda: tpu.replicate(doubled, [[1.0]], device_assignment=given)  # noqa: E731
    refused("invalid_attribute", placed("x"), "[replicas, cores, 4], got 'x'", error=TypeError)
    refused("invalid_attribute", placed([[[0, 0, 0, 0.5]]]), "[replicas, cores, 4], got", error=TypeError)
    refused("invalid_attribute", placed([[[0, 0, 0, 0], [0]]]), "[replicas, cores, 4], got", error=TypeError)
    refused("invalid_attribute", placed([[[-1, 0, 0, 0]]]), "has core [-1, 0, 0, 0]")


def test_one_variable_stands_for_a_list_of_one() -> None:
    w = tpu.Variable(F32([1, 2]))
    loss = lambda x: xb.reduce(w * x, 0.0, xb.add)  # noqa: E731
    tpu.rewrite(lambda x: tpu.GradientDescentOptimizer(1.0).minimize(loss(x), var_list=w), [0.5])
    assert plain(w.numpy()) == [0.5, 1.5]


def test_a_gradient_has_the_shape_of_its_variable() -> None:
    w = tpu.Variable(F32([1, 2]), name="w")
    refused("shape_mismatch", lambda: applied(lambda x: (x, w)), "w is f32[2]", "is f32[]")
    assert plain(w.numpy()) == [1.0, 2.0]


def test_arrays_and_numpy_integers_stand_for_lists_and_integers() -> None:
    assert grouped(np.array([[0, 1], [2, 3]])) == [1.75, 1.75, 0.75, 0.75]
    assert plain(exchanged(split_count=np.int64(2))) == [[[1.0, 1.0]], [[2.0, 2.0]]]
    assert plain(tpu.shard(doubled, [F32([1, 2])], np.int32(2), [np.int64(0)])) == [[2.0, 4.0]]
    assert plain(tpu.shard(doubled, [F32([1, 2])], 2, None, [0])) == [[2.0]]
    assert tpu.get_variable("by_numpy", [2], np.float64).shape == xb.f64[2]
    assert queue(tuple_types=[np.int32], tuple_shapes=np.array([[2]])).tuple_shapes == ((2,),)
    tpu.reset_variables()
