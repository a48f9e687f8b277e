"""Rules of the shard dialect for indices, sizes and shardings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shape_inference import Shape, XbuildError, s64

from ...core.builder import Builder, Value
from ...core.graph import Instruction
from ...derived.conversion import convert
from ...sharding.grid_ops import processes
from ...sharding.grids import sharding
from ...sharding.sharding import Sharding
from ..reading.operation import Reading
from ..reading.rules import Results, rule
from ..syntax.attributes import Dense
from .grids import both, inlined, mesh, state


def _as_indices(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function with its results as s64, which is what an index is."""

    def converted(*given: Any) -> Any:
        found = function(*given)
        return tuple(convert(each, s64) for each in (found if isinstance(found, tuple) else (found,)))

    return converted


@rule(*both("process_linear_index"))
def process_linear_index(op: Reading) -> Results:
    grid = mesh(op)
    return inlined(op, _as_indices(lambda builder: processes.process_linear_index(builder, mesh=grid)))


@rule(*both("process_multi_index"), "shard.grid_shape", "mesh.mesh_shape")
def indices(op: Reading) -> Results:
    """The coordinates of a device, or the sizes of the grid, along axes."""
    grid, axes = mesh(op), op.integers("axes", ())
    is_place = op.operation.name.endswith("process_multi_index")
    function = processes.process_multi_index if is_place else processes.grid_shape
    count = len(axes) or len(grid.axes)
    if len(op.operation.result_types) != count:
        op.fail("arity_mismatch", f"Unexpected number of results {len(op.operation.result_types)}. Expected {count}.")
    return inlined(op, _as_indices(lambda builder: function(builder, mesh=grid, axes=axes)))


@rule(*both("neighbors_linear_indices"))
def neighbors_linear_indices(op: Reading) -> Results:
    grid, axes, given = mesh(op), op.integers("split_axes"), op.get("device")

    def found(*values: Any) -> Any:
        builder = values[0] if isinstance(values[0], Builder) else values[0].builder
        device = _filled(given, [] if isinstance(values[0], Builder) else values)
        return processes.neighbors_linear_indices(builder, mesh=grid, device=device, split_axes=axes)

    return inlined(op, _as_indices(found), *op.operands)


def _filled(given: Sequence[int], values: Sequence[Value]) -> list[Any]:
    """Numbers, with values in the places of -1."""
    left = iter(values)
    return [next(left) if each == -1 else each for each in given]


@rule(*both("sharding"))
def sharding_(op: Reading) -> Results:
    """A value that programs have only while they are read: an empty tuple, of which the sharding is kept."""
    grid = mesh(op)
    lists = op.get("split_axes")
    more = {key: op.integers(key, ()) for key in ("halo_sizes", "sharded_dims_offsets")}
    try:
        found = sharding(grid, lists, **more)
    except XbuildError as error:
        op.fail(error.kind, error.message)
    made = op.result("tuple", ())
    state(op).shardings[made] = found
    return made


def _sharding_of(op: Reading, value: Instruction) -> Sharding:
    found = state(op).shardings.get(value)
    return found or op.fail("invalid_operand", f"%{value.name} is no sharding that an op of this function gives")


@rule(*both("shard"))
def shard(op: Reading) -> Results:
    operand, given = op.wants(2)
    found, for_users = _sharding_of(op, given), op.flag("annotate_for_users", False)
    try:
        processes.check_chain(operand, op.scope.instructions, found, for_users)
    except XbuildError as error:
        op.fail(error.kind, error.message, *error.hints)
    made = inlined(op, lambda x: processes.shard(x, found, annotate_for_users=for_users), operand)
    state(op).shardings[made[0]] = found
    return made


@rule(*both("get_sharding"))
def get_sharding(op: Reading) -> Results:
    (operand,) = op.wants(1)
    made = op.result("tuple", ())
    state(op).shardings[made] = _sharding_of(op, operand)
    return made


@rule(*both("shard_shape"))
def shard_shape(op: Reading) -> Results:
    """The extents of a part; the extents of the whole array are numbers."""
    given, device = op.get("dims"), op.get("device")
    if -1 in given:
        op.fail("missing_shape", "the extents of the whole array are numbers here, and a value is given")
    (source, *rest) = op.operands
    found = _sharding_of(op, source)

    def shape(*values: Any) -> Any:
        builder = values[0] if isinstance(values[0], Builder) else values[0].builder
        whole = _filled(device, [] if isinstance(values[0], Builder) else values)
        sizes = processes.shard_shape(given, found, whole, builder=builder)
        return tuple(each if isinstance(each, Value) else processes.number(builder, each) for each in sizes)

    return inlined(op, _as_indices(shape), *rest)


@rule("arith.constant")
def constant(op: Reading) -> Results:
    value = op.get("value")
    if isinstance(value, Dense):
        return op.result("constant", literal=op.literal("value"))
    shape = op.shape
    assert isinstance(shape, Shape)
    return op.result("constant", literal=np.asarray(value, shape.dtype.dtype))
