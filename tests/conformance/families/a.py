"""Acceptance cases of the TPU functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import execute
from shape_inference.types import PRIMITIVES
from tests.conformance.families.formulas import computation
from tests.conformance.families.judging import Case, Outputs, judged

# An error of the cases, and the kinds by which xbuild refuses it, where these have another name.
KINDS: dict[str, tuple[str, ...]] = {
    "arity": ("arity_mismatch",),
    "axis_out_of_range": ("dimension_out_of_range",),
    "bad_dtype": ("element_type_unsupported",),
    "bad_group_rank": ("rank_mismatch",),
    "bad_pairs_shape": ("bad_pairs",),
    "bad_reduction": ("invalid_attribute",),
    "dtype_mismatch": ("element_type_mismatch",),
    "inputs_not_list_of_lists": ("invalid_operand",),
    "length_mismatch": ("attribute_length_mismatch",),
    "not_divisible": ("divisibility",),
    "num_shards_not_positive": ("non_positive",),
    "split_count_mismatch": ("split_count_mismatch", "non_positive"),
}


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    return judged(case, outcome, KINDS)


def outcome(case: Case) -> Outputs:
    """The outputs of a case by name."""
    if case["op"] not in _RUN:
        raise LookupError(f"no function for {case['op']}")
    return _RUN[case["op"]](case)


def _array(value: Any, dtype: str) -> Any:
    return np.asarray(value).astype(PRIMITIVES[dtype].dtype)


def _collective(call: Callable[..., xb.Value], output: str = "y", source: str = "x") -> Callable[[Case], Outputs]:
    """An op on one value for each device."""

    def run(case: Case) -> Outputs:
        rows = [[_array(value, case["dtype"])] for value in case["inputs"][source]]
        return {output: [y for (y,) in xb.tpu.replicate(lambda x: call(x, **case["attrs"]), rows)]}

    return run


def _vjp(call: Callable[..., xb.Value], before: Callable[..., list[int]]) -> Callable[[Case], Outputs]:
    """What the gradient of an op makes of one cotangent for each device; `before` gives the op's operand's shape."""

    def run(case: Case) -> Outputs:
        cotangents = [_array(value, case["dtype"]) for value in case["inputs"]["ct"]]
        shape = before(list(cotangents[0].shape), **case["attrs"])
        rows = [[PRIMITIVES[case["dtype"]][tuple(shape)]] for _ in cotangents]
        program = xb.tpu.replicate.program(lambda x: call(x, **case["attrs"]), rows)
        x = np.zeros(shape, cotangents[0].dtype)
        found = execute(xb.vjp(program.module), [[x, ct] for ct in cotangents])
        return {"ct_x": [each[0] for each in found]}

    return run


def _same_shape(dims: list[int], **attributes: Any) -> list[int]:
    return dims


def _before_exchange(dims: list[int], **attributes: Any) -> list[int]:
    dims[attributes["concat_dimension"]] //= attributes["split_count"]
    dims[attributes["split_dimension"]] *= attributes["split_count"]
    return dims


def _concat(x: xb.Value, axis: int) -> xb.Value:
    assert axis == 0
    return xb.tpu.cross_replica_concat(x)


def _mean(x: xb.Value, **attributes: Any) -> xb.Value:
    return xb.tpu.cross_replica_mean(x, next((each for each in attributes.values() if isinstance(each, int)), None))


def _typed(value: Any, dtype: str) -> Any:
    if isinstance(value, dict):
        return {key: _typed(each, dtype) for key, each in value.items()}
    return None if value is None else _array(value, dtype)


def _replicate(case: Case) -> Outputs:
    attributes, given = case["attrs"], case["inputs"].get("args")
    types = attributes.get("arg_dtypes")
    if isinstance(given, list) and all(isinstance(row, list) for row in given):
        given = [
            [_typed(value, types[r][n] if types else case["dtype"]) for n, value in enumerate(row)]
            for r, row in enumerate(given)
        ]
    return {"result": _told(xb.tpu.replicate(computation(attributes["computation"]), given))}


def _told(result: Any) -> Any:
    """A result with words for operations."""
    if isinstance(result, dict):
        return {key: _told(each) for key, each in result.items()}
    if isinstance(result, list | tuple):
        return [_told(each) for each in result]
    return result.name if isinstance(result, xb.tpu.Operation) else result


def _shard(case: Case) -> Outputs:
    attributes = dict(case["attrs"])
    function = computation(attributes.pop("computation"))
    given = case["inputs"].get("args")
    inputs = [_array(value, case["dtype"]) for value in given] if isinstance(given, list) else given
    return {"result": _told(xb.tpu.shard(function, inputs, **attributes))}


def _pad(case: Case) -> Outputs:
    attributes = case["attrs"]
    spec = xb.tpu.PaddingSpec[(attributes["policy"] or "auto").upper()]
    unknown = any(map(_is_unknown, attributes, attributes.values()))
    rows = [[_leaf(_array(value, case["dtype"]), unknown)] for value in case["inputs"]["x"]]
    padded, _ = xb.tpu.pad_replica_inputs(rows, _maximum(attributes.get("maximum")), spec)
    return {"padded": padded}


def _is_unknown(key: str, value: Any) -> bool:
    """Whether an attribute says that extents are not known before the run."""
    return bool("unknown" in key and value) or ("static" in key and value in (False, None, "unknown", [None]))


def _leaf(array: Any, unknown: bool) -> Any:
    return xb.tpu.placeholder_with_default(array, [None] * array.ndim) if unknown else array


def _maximum(given: Any) -> Any:
    return None if given is None else [list(given) if isinstance(given, list) else [given]]


def _infeed(case: Case) -> Outputs:
    shapes, replicas = case["attrs"]["tuple_shapes"], case["attrs"]["num_replicas"]
    given = {key: value for key, value in case["attrs"].items() if key not in ("tuple_shapes", "num_replicas")}
    types = [PRIMITIVES[case["dtype"]]] * len(shapes)
    queue = xb.tpu.InfeedQueue(tuple_types=types, tuple_shapes=shapes, **given)
    items = [_array(case["inputs"][name], case["dtype"]) for name in sorted(case["inputs"])]
    if items:
        queue.enqueue(*items)
    found = xb.tpu.replicate(lambda *values: values, [[] for _ in range(replicas)], infeed_queue=queue)
    return {"per_replica": found}


def _step(case: Case) -> Outputs:
    """One step of gradient descent on the loss w*x of each replica."""
    attributes, given = case["attrs"], case["inputs"]
    reduction = {"mean": xb.tpu.Reduction.MEAN, "sum": xb.tpu.Reduction.SUM}
    w = xb.tpu.Variable(_array(given["w"][0], case["dtype"]), name="w")
    w.values = [_array(value, case["dtype"]) for value in given["w"]]
    inner = xb.tpu.GradientDescentOptimizer(attributes["learning_rate"])
    asked = reduction.get(attributes["reduction"], attributes["reduction"])
    optimizer = xb.tpu.CrossShardOptimizer(inner, asked, group_assignment=attributes["group_assignment"])
    loss = computation(attributes["loss"])
    rows = [[_array(x, case["dtype"])] for x in given["x"]]
    xb.tpu.replicate(lambda x: optimizer.minimize(loss(w, x), var_list=[w]), rows)
    return {"w": list(w.on(len(rows)))}


_RUN: dict[str, Callable[[Case], Outputs]] = {
    "cross_replica_sum": _collective(xb.tpu.cross_replica_sum),
    "all_to_all": _collective(xb.tpu.all_to_all),
    "collective_permute": _collective(xb.tpu.collective_permute),
    "vjp_cross_replica_sum": _vjp(xb.tpu.cross_replica_sum, _same_shape),
    "vjp_all_to_all": _vjp(xb.tpu.all_to_all, _before_exchange),
    "vjp_collective_permute": _vjp(xb.tpu.collective_permute, _same_shape),
    "cross_replica_concat": _collective(_concat),
    "cross_replica_mean": _collective(_mean),
    "replicate": _replicate,
    "shard": _shard,
    "pad_replica_inputs": _pad,
    "infeed_shard": _infeed,
    "cross_shard_sgd_step": _step,
}
