"""Run by a Python that has TensorFlow: builds the graph of each call read from stdin, and prints what came of it."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.tpu import tpu, tpu_feed, tpu_optimizer
from tensorflow.python.tpu.ops import tpu_ops

v1 = tf.compat.v1


def value(spec: Any) -> Any:
    """A value of a call: a tree with arrays."""
    if isinstance(spec, list):
        return [value(each) for each in spec]
    if isinstance(spec, dict):
        if "array" in spec:
            return tf.constant(np.array(spec["array"], dtype=spec["dtype"]))
        if "tuple" in spec:
            return tuple(value(each) for each in spec["tuple"])
        return {key: value(each) for key, each in spec["dict"].items()}
    return spec


def returned(spec: Any, leaves: list[Any]) -> Any:
    if isinstance(spec, list):
        return [returned(each, leaves) for each in spec]
    if isinstance(spec, dict):
        if "tuple" in spec:
            return tuple(returned(each, leaves) for each in spec["tuple"])
        return {key: returned(each, leaves) for key, each in spec["dict"].items()}
    if spec is None:
        return None
    if spec == "op":
        return tf.no_op()
    if spec == "text":
        return object()
    if spec == "const":
        return 1.5
    found = [leaf for leaf in leaves if leaf is not None]
    if not found:
        return tf.constant([1.0, 2.0])
    first = found[min(int(spec[1:]), len(found) - 1)]
    return tf.reduce_sum(first) if spec[0] == "s" else first + first


def function(call: dict[str, Any]) -> Any:
    def body(*arguments: Any) -> Any:
        return returned(call["returns"], tf.nest.flatten(list(arguments)))

    arities = {
        0: lambda: body(), 1: lambda a: body(a), 2: lambda a, b: body(a, b), 3: lambda a, b, c: body(a, b, c), -1: body
    }  # fmt: skip
    return arities[call["arity"]]


def told(result: Any) -> Any:
    if isinstance(result, dict):
        return {"dict": {key: told(each) for key, each in result.items()}}
    if isinstance(result, tuple):
        return {"tuple": [told(each) for each in result]}
    if isinstance(result, list):
        return [told(each) for each in result]
    if isinstance(result, tf.Operation):
        return "op"
    return None if result is None else [result.dtype.name, result.shape.as_list(), "tensor"]


def replicated(call: dict[str, Any], body: Any) -> Any:
    rows = [[tf.constant(np.array(x, dtype=call["dtype"]))] for x in call["values"]]
    return tpu.replicate(body, rows)


def built(call: dict[str, Any]) -> Any:
    kind = call["kind"]
    if kind == "replicate":
        return tpu.replicate(function(call), value(call["inputs"]))
    if kind == "rewrite":
        return tpu.rewrite(function(call), value(call["inputs"]))
    if kind == "shard":
        return tpu.shard(function(call), value(call["inputs"]), **call["options"])
    if kind == "sum":
        return replicated(call, lambda x: tpu_ops.cross_replica_sum(x, call["groups"]))
    if kind == "permute":
        return replicated(call, lambda x: tpu_ops.collective_permute(x, call["pairs"]))
    if kind == "exchange":
        return replicated(call, lambda x: tpu_ops.all_to_all(x, group_assignment=call["groups"], **call["options"]))
    if kind == "optimizer":
        return optimized(call)
    queue = tpu_feed.InfeedQueue(
        tuple_types=[tf.float32] * len(call["shapes"]), tuple_shapes=call["shapes"], **call["options"]
    )
    return tpu.replicate(lambda *x: x, [[] for _ in range(call["replicas"])], queue)


def optimized(call: dict[str, Any]) -> Any:
    inner = v1.train.GradientDescentOptimizer(0.5)
    optimizer = tpu_optimizer.CrossShardOptimizer(inner, call["reduction"], group_assignment=call["groups"])

    def body(x: Any) -> Any:
        w = v1.get_variable("w", [], initializer=v1.constant_initializer(2.0), use_resource=True)
        pairs = optimizer.compute_gradients(w * x, [w])
        return pairs[0][0]

    return tpu.replicate(body, [[tf.constant(float(n))] for n in range(call["replicas"])])


def padded(call: dict[str, Any]) -> Any:
    """The padded inputs, by a session on the CPU."""
    spec = tpu.PaddingSpec(call["spec"])
    rows = []
    for row in call["rows"]:
        arrays = [np.array(each, dtype=np.float32).reshape(dims) for each, dims in row]
        static = [[None if call["unknown"] else size for size in array.shape] for array in arrays]
        rows.append([v1.placeholder_with_default(a, shape) for a, shape in zip(arrays, static, strict=True)])
    shapes = [None if each is None else tf.TensorShape(each) for each in call["maxima"]]
    found, maps = tpu._pad_all_input(rows, shapes, spec)
    with v1.Session() as session:
        values = session.run(found)
    told = [[each.tolist() for each in row] for row in values]
    return {"padded": told, "maps": [[m.arg_index, m.shape_index, m.padding_arg_index] for m in maps]}


def outcome(call: dict[str, Any]) -> dict[str, Any]:
    try:
        with tf.Graph().as_default():
            return {"result": padded(call) if call["kind"] == "padding" else told(built(call))}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:2000]}


if __name__ == "__main__":
    v1.disable_eager_execution()
    tf.get_logger().setLevel("ERROR")
    for line in sys.stdin:
        print(json.dumps(outcome(json.loads(line))), flush=True)
