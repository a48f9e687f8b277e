"""Acceptance cases of varying and invariant types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import execute
from shape_inference import Shape, primitive_type
from tests.conformance.families.b_steps import function_of, spec_of, used
from tests.conformance.families.judging import Case, Outputs, judged
from xbuild.properties.variances import Variance
from xbuild.variance.program import module_of, record_region
from xbuild.variance.writing import remove_casts

# An error of the cases, and the kinds by which xbuild refuses it, where these have another name.
KINDS = {
    "not_divisible": ("divisibility",),
    "duplicate_source": ("invalid_group",),
    "duplicate_target": ("invalid_group",),
    "replica_out_of_range": ("invalid_group",),
    "unsupported_cast": ("unsupported_cast", "already_varying"),
    "axis_out_of_range": ("dimension_out_of_range",),
    "shape_mismatch": ("rank_mismatch", "dimension_mismatch"),
    "dtype_mismatch": ("element_type_mismatch",),
    "bad_dtype": ("element_type_unsupported",),
}
# Ops that are linear in all their operands together: where one alone is unreduced, the states do not fit.
LINEAR_TOGETHER = ("add", "sub", "subtract", "concat", "concatenate", "select", "dynamic_update_slice", "scatter")


def failure(case: Case) -> str | None:
    """What is wrong with how xbuild treats the case, or None."""
    return judged(case, outcome, kinds_of(case))


def kinds_of(case: Case) -> Mapping[str, tuple[str, ...]]:
    """The kinds by which xbuild refuses each error in the case."""
    steps = case["attrs"].get("program_steps", {}).get("steps", [])
    if any(op in LINEAR_TOGETHER for _, op, *_ in steps):
        return {**KINDS, "nonlinear_on_unreduced": ("nonlinear_on_unreduced", "state_mismatch")}
    return KINDS


def outcome(case: Case) -> Outputs:
    """The outputs of a case by name, and the types of what it names, which have to be as it says."""
    steps = case["attrs"].get("program_steps")
    if steps is not None and steps.get("wrt"):
        return _gradient(case, steps)
    if steps is not None:
        return _program(case, steps)
    if case["op"].startswith("transpose_"):
        return _transpose(case)
    return _one_op(case)


def _one_op(case: Case) -> Outputs:
    """One collective on values whose types the case states."""
    wanted = case["expect"].get("types", {})
    mesh = xb.Mesh(case["attrs"]["mesh"])
    (name,) = case["inputs"]
    given = [np.asarray(each, _dtype(case)) for each in case["inputs"][name]]
    apply = function_of(case["op"], case["attrs"])
    shape = Shape(primitive_type(given[0].dtype), given[0].shape)
    variance = Variance(**wanted.get(name, {}))
    region, computation = record_region(lambda x: used(apply, x), mesh, [shape], [variance])
    typed = region.walk.computation(computation, [variance])
    (result,) = case["expect"].get("outputs", ["y"])
    _check_type(case, result, typed.root)
    module = module_of(region, typed)
    return {
        result: _results(xb.Module(module.name, remove_casts(module.entry), num_partitions=mesh.num_devices), given)
    }


def _dtype(case: Case) -> Any:
    """The type of the inputs; where the result alone has the type of the case, that of its numbers."""
    return np.float32 if case["op"] in ("axis_index", "axis_size") else getattr(xb, case["dtype"]).dtype


def _results(module: xb.Module, *given: list[Any]) -> list[Any]:
    verdict = xb.check(module)
    assert verdict.kind == "ok", verdict
    return execute(module, [list(each) for each in zip(*given, strict=True)])


def _check_type(case: Case, name: str, came: Variance) -> None:
    wanted = case["expect"].get("types", {}).get(name)
    if wanted is not None and came != Variance(**wanted):
        raise AssertionError(f"{name} is of type {Variance(**wanted)} by the case, and {came} by xbuild")


def _program(case: Case, steps: Mapping[str, Any]) -> Outputs:
    """A program of steps with a spec for each input and for the result, as a region."""
    made = sharded(case, steps)
    inputs = case["inputs"] or steps.get("values", {})
    if not inputs and steps["in"]:
        return {}
    given = [[np.asarray(each, _dtype(case)) for each in inputs[name]] for name in steps["in"]]
    results = _results(made.module, *given) if given else execute(made.module, [[]] * made.module.num_devices)
    name = next(iter(case["expect"].get("outputs", {})), steps["out"])
    _check_type(case, name, made.types.root)
    return {name: results}


def _gradient(case: Case, steps: Mapping[str, Any]) -> Outputs:
    """The gradient of a program by one of its inputs."""
    names = list(steps["in"])
    made = xb.grad(sharded(case, steps), names.index(steps["wrt"]))
    (result,) = case["expect"]["outputs"]
    _check_type(case, result, made.types.root)
    return {result: _results(made.module, *[[np.asarray(v, _dtype(case)) for v in case["inputs"][n]] for n in names])}


def _transpose(case: Case) -> Outputs:
    """The cotangent of the operand of a collective, for a cotangent of its result."""
    mesh = xb.Mesh(case["attrs"]["mesh"])
    (result,) = case["expect"]["outputs"]
    name = next(name for name in case["inputs"] if name.startswith("ct"))
    types = case["expect"]["types"]
    result_spec, wanted = spec_of(types[name]).transposed, spec_of(types[result]).transposed
    shape = wanted.whole(mesh, Shape(getattr(xb, case["dtype"]), tuple(case["attrs"]["x_shape"])), "x")
    apply = function_of(case["op"].removeprefix("transpose_"), case["attrs"])
    made = xb.vjp(xb.shard_map(apply, mesh, (wanted,), result_spec).program(shape))
    _check_type(case, result, made.types.root[0])
    seeds = [np.asarray(each, _dtype(case)) for each in case["inputs"][name]]
    zeros = [np.zeros(case["attrs"]["x_shape"], _dtype(case))] * mesh.num_devices
    given = [np.asarray(each, _dtype(case)) for each in case["inputs"].get("x", zeros)]
    return {result: [each for (each,) in _results(made.module, given, seeds)]}


def sharded(case: Case, steps: Mapping[str, Any]) -> Any:
    """The program of the steps on its mesh."""
    mesh = xb.Mesh(steps["mesh"])
    names, entries = list(steps["in"]), list(steps["in"].values())
    specs = tuple(map(spec_of, entries))
    shapes = [_global_shape(case, mesh, *pair) for pair in zip(entries, specs, strict=True)]
    function: Callable[..., Any] = _function(steps, names)
    out = spec_of({"spec": steps["out_spec"]})
    casts: Any = "operands" if _is_strict(case["attrs"]) else "all"
    return xb.shard_map(function, mesh, specs, out, casts=casts).program(*shapes)


def _is_strict(given: Any) -> bool:
    """Whether a program, or a step of it, is to cast nothing that loops carry or branches give."""
    if isinstance(given, Mapping):
        return given.get("auto_cast") is False or any(map(_is_strict, given.values()))
    return isinstance(given, list) and any(map(_is_strict, given))


def _function(steps: Mapping[str, Any], names: list[str]) -> Callable[..., Any]:
    from tests.conformance.families.b_steps import run_steps

    def program(*arguments: Any) -> Any:
        values = run_steps(steps["steps"], dict(zip(names, arguments, strict=True)))
        return values[steps["out"]]

    program.__signature__ = _signature(names)  # type: ignore[attr-defined]
    return program


def _signature(names: list[str]) -> Any:
    import inspect

    return inspect.Signature([inspect.Parameter(f"p_{n}", inspect.Parameter.POSITIONAL_ONLY) for n in names])


def _global_shape(case: Case, mesh: xb.Mesh, entry: Mapping[str, Any], spec: Any) -> Shape:
    dtype = getattr(xb, entry.get("dtype", case["dtype"]))
    if "global_shape" in entry:
        return Shape(dtype, tuple(entry["global_shape"]))
    return spec.whole(mesh, Shape(dtype, tuple(entry["shape"])), "input")  # type: ignore[no-any-return]
