"""Acceptance cases of the dialect shard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import execute
from shape_inference import Shape
from tests.conformance.families.c_programs import partitioned_matmul, propagate, reshard, simplify
from tests.conformance.families.judging import Case, Outputs, judged

# An error of the cases, and the kinds by which xbuild refuses it, where these have another name.
KINDS: dict[str, tuple[str, ...]] = {
    "not_divisible": ("divisibility",),
    "tensor_axis_out_of_range": ("dimension_out_of_range",),
    "dtype_mismatch": ("element_type_mismatch", "element_type_unsupported"),
    "shape_mismatch": ("rank_mismatch", "dimension_mismatch"),
}


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    return judged(case, outcome, KINDS)


def outcome(case: Case) -> Outputs:
    """The outputs of a case by name."""
    attributes = dict(case["attrs"])
    mesh = xb.shard.grid(attributes.pop("grid"))
    if case["op"] in _RECORDS:
        return _RECORDS[case["op"]](mesh, attributes, case)
    return _on_values(mesh, attributes, case)


def _on_values(mesh: xb.Mesh, attributes: dict[str, Any], case: Case) -> Outputs:
    """One op on values: the results of all devices, or what a shape alone is refused for."""
    function = getattr(xb.shard, case["op"])
    dtype = getattr(xb, case["dtype"])
    given = [np.asarray(each, dtype.dtype) for each in case["inputs"].get("x", [])]
    shape = Shape(dtype, given[0].shape if given else tuple(case["inputs"]["shape"]))
    if case["op"] == "send" and "source" in attributes:
        function = _sent_and_received(attributes.pop("source"))
    program = xb.computation(shape)(lambda x: function(x, mesh=mesh, **attributes))
    return {"y": _run(xb.Module("case", program, num_partitions=mesh.num_devices), given)}


def _sent_and_received(source: list[int]) -> Callable[..., xb.Value]:
    def apply(x: xb.Value, *, mesh: xb.Mesh, grid_axes: list[int], destination: list[int]) -> xb.Value:
        xb.shard.send(x, mesh=mesh, grid_axes=grid_axes, destination=destination)
        return xb.shard.recv(x, mesh=mesh, grid_axes=grid_axes, source=source)

    return apply


def _run(module: xb.Module, given: list[Any]) -> list[Any]:
    verdict = xb.check(module)
    assert verdict.kind == "ok", verdict
    return execute(module, [[each] for each in given], strict=True)


def _linear_index(mesh: xb.Mesh, attributes: dict[str, Any], case: Case) -> Outputs:
    builder = xb.Builder("index")
    program = builder.build(xb.shard.process_linear_index(builder, mesh=mesh))
    results = execute(xb.Module("case", program, num_partitions=mesh.num_devices), [[]] * mesh.num_devices)
    devices = [np.ravel_multi_index(each, mesh.shape) for each in case["inputs"]["multi_index"]]
    return {"y": [results[device] for device in devices]}


def _multi_index(mesh: xb.Mesh, attributes: dict[str, Any], case: Case) -> Outputs:
    builder = xb.Builder("index")
    indices = xb.shard.process_multi_index(builder, mesh=mesh, **attributes)
    program = builder.build(xb.tuple_(list(indices)))
    results = execute(xb.Module("case", program, num_partitions=mesh.num_devices), [[]] * mesh.num_devices)
    name, numbers = next(iter(case["inputs"].items()), ("", range(mesh.num_devices)))
    return {next(iter(case["expect"]["outputs"])): [results[int(each)] for each in numbers], name: numbers}


def _grid_shape(mesh: xb.Mesh, attributes: dict[str, Any], case: Case) -> Outputs:
    builder = xb.Builder("sizes")
    sizes = xb.shard.grid_shape(builder, mesh=mesh, **attributes)
    return {next(iter(case["expect"]["outputs"])): xb.evaluate(builder.build(xb.tuple_(list(sizes))))}


def _neighbours(mesh: xb.Mesh, attributes: dict[str, Any], case: Case) -> Outputs:
    found = [xb.evaluate(_neighbours_of(mesh, attributes, each)) for each in case["inputs"]["device"]]
    return {"down_up": [[int(down), int(up)] for down, up in found]}


def _neighbours_of(mesh: xb.Mesh, attributes: dict[str, Any], device: list[int]) -> xb.Computation:
    builder = xb.Builder("neighbours")
    return builder.build(
        xb.tuple_(list(xb.shard.neighbors_linear_indices(builder, mesh=mesh, device=device, **attributes)))
    )


def _shard_shape(mesh: xb.Mesh, attributes: dict[str, Any], case: Case) -> Outputs:
    dims = attributes.pop("dims")
    sharding = _sharding_of(mesh, attributes)
    return {"shape": [[*xb.shard.shard_shape(dims, sharding, each)] for each in case["inputs"]["device"]]}


def _sharding_of(mesh: xb.Mesh, attributes: dict[str, Any]) -> xb.shard.Sharding:
    given = {key: value for key, value in attributes.items() if value is not None}
    return xb.shard.sharding(mesh, given.pop("split_axes"), **given)


def _sharding(mesh: xb.Mesh, attributes: dict[str, Any], case: Case) -> Outputs:
    return {"sharding": str(_sharding_of(mesh, attributes))}


_RECORDS: dict[str, Callable[[xb.Mesh, dict[str, Any], Case], Outputs]] = {
    "grid": lambda mesh, _, __: {"grid": str(mesh)},
    "grid_shape": _grid_shape,
    "neighbors_linear_indices": _neighbours,
    "partitioned_matmul": partitioned_matmul,
    "process_linear_index": _linear_index,
    "process_multi_index": _multi_index,
    "propagate": propagate,
    "reshard": reshard,
    "shard_shape": _shard_shape,
    "sharding": _sharding,
    "simplify": simplify,
}
