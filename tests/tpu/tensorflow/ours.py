"""The same calls by xb.tpu, told in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import XbuildError
from xbuild import tpu
from xbuild.tpu import structures
from xbuild.tpu.raw_ops import tensorflow_name

Call = dict[str, Any]


def value(spec: Any) -> Any:
    """A value of a call: a tree with arrays."""
    if isinstance(spec, list):
        return [value(each) for each in spec]
    if isinstance(spec, dict):
        if "array" in spec:
            return np.array(spec["array"], dtype=spec["dtype"])
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
    words = {"op": tpu.no_op(), "text": object(), "const": 1.5}
    if spec in words:
        return words[spec]
    found = [leaf for leaf in leaves if leaf is not None]
    if not found:
        return np.float32([1, 2])
    first = found[min(int(spec[1:]), len(found) - 1)]
    return xb.reduce(first, 0, xb.add) if spec[0] == "s" else first + first


def function(call: Call) -> Any:
    def body(*arguments: Any) -> Any:
        return returned(call["returns"], structures.flatten(list(arguments)))

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
    if isinstance(result, tpu.Operation):
        return "op"
    return None if result is None else [tensorflow_name(xb.primitive_type(result.dtype)), list(result.shape), "tensor"]


def replicated(call: Call, body: Any) -> Any:
    return tpu.replicate(body, [[np.array(x, dtype=call["dtype"])] for x in call["values"]])


def run(call: Call) -> Any:
    kind = call["kind"]
    if kind == "replicate":
        return tpu.replicate(function(call), value(call["inputs"]))
    if kind == "rewrite":
        return tpu.rewrite(function(call), value(call["inputs"]))
    if kind == "shard":
        return tpu.shard(function(call), value(call["inputs"]), **call["options"])
    if kind == "sum":
        return replicated(call, lambda x: tpu.cross_replica_sum(x, call["groups"]))
    if kind == "permute":
        return replicated(call, lambda x: tpu.collective_permute(x, call["pairs"]))
    if kind == "exchange":
        return replicated(call, lambda x: tpu.all_to_all(x, group_assignment=call["groups"], **call["options"]))
    return optimized(call) if kind == "optimizer" else fed(call)


def optimized(call: Call) -> Any:
    inner = tpu.GradientDescentOptimizer(0.5)
    optimizer = tpu.CrossShardOptimizer(inner, call["reduction"], group_assignment=call["groups"])
    w = tpu.Variable(2.0)
    rows = [[float(n)] for n in range(call["replicas"])]
    return tpu.replicate(lambda x: optimizer.compute_gradients(w * x, [w])[0][0], rows)


def fed(call: Call) -> Any:
    shapes = call["shapes"]
    queue = tpu.InfeedQueue(tuple_types=[xb.f32] * len(shapes), tuple_shapes=shapes, **call["options"])
    queue.enqueue(*(np.zeros(shape, np.float32) for shape in shapes))
    return tpu.replicate(lambda *x: x, [[] for _ in range(call["replicas"])], queue)


def padded(call: Call) -> Any:
    """The padded inputs."""
    rows = []
    for row in call["rows"]:
        arrays = [np.array(each, dtype=np.float32).reshape(dims) for each, dims in row]
        unknown = call["unknown"]
        rows.append([tpu.placeholder_with_default(a, [None] * a.ndim) if unknown else a for a in arrays])
    found, maps = tpu.pad_replica_inputs(rows, call["maxima"], tpu.PaddingSpec(call["spec"]))
    told = [[each.tolist() for each in row] for row in found]
    return {"padded": told, "maps": [[m.arg_index, m.shape_index, m.padding_arg_index] for m in maps]}


def outcome(call: Call) -> dict[str, Any]:
    """What came of a call: the structure of its result, or the kind and the text of the refusal."""
    try:
        return {"result": padded(call) if call["kind"] == "padding" else told(run(call))}
    except XbuildError as error:
        return {"error": error.kind, "message": str(error)}
