"""Reading rules of Shardy's ops, and of MLIR's shard dialect, formerly named mesh.

Shardy's constraints and manual computations become XLA's custom calls. An op of the shard dialect becomes what
`xb.shard` records for it.

Sections:

    Shardy
    MLIR's shard dialect: state, recording, collectives and transfers
    Indices, sizes and shardings of MLIR's shard dialect
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from attrs import define, field

from shape_inference import Shape, TupleShape, XbuildError, s64

from ...core.builder import Builder, Value
from ...core.graph import Instruction
from ...derived.conversion import convert
from ...ops.leaves import parameter
from ...properties.mesh import Mesh
from ...properties.placement import (
    AXES,
    CONSTRAINT,
    GLOBAL_TO_LOCAL,
    GROUP_ID,
    IN_SHARDINGS,
    LOCAL_TO_GLOBAL,
    MANUAL_AXES,
    OUT_SHARDINGS,
    SHARDING_GROUP,
    SHARDY,
    SHARDY_COLLECTIVE,
)
from ...sharding import grid_ops
from ...sharding.grid_ops import last_channel, start_channels_after
from ...sharding.grids import grid, sharding
from ...sharding.sharding import Sharding
from ...text.scanner import Fault
from ..reading.operation import OperationReading, attribute_text
from ..reading.reader import GRIDS, StablehloReader
from ..reading.rules import Results, rule
from ..syntax.trees import Dense, Record

# ----------------------------------------------------------------------------
# Shardy


@rule("sdy.sharding_constraint", "sdy.reshard")
def constraint(op: OperationReading) -> Results:
    (operand,) = op.expect_operands(1)
    made = op.record_result("custom_call", (operand,), custom_call_target=CONSTRAINT, shape=op.shape)
    sharding = f"#sdy.sharding_per_value<[<{op.get('sharding').text}>]>"
    op.annotate(made, frontend_attributes={SHARDY: sharding})
    return made


@rule("sdy.propagation_barrier", "sdy.data_flow_edge")
def barrier(op: OperationReading) -> Results:
    """An op that only guides sharding propagation is a copy."""
    op.ignore("allowed_direction", "sharding")
    return op.record_result("copy", *op.expect_operands(1))


@rule("sdy.sharding_group")
def sharding_group(op: OperationReading) -> Results:
    """The values of a group get one sharding; the op has no result."""
    number = op.integer("group_id")
    target = {"custom_call_target": SHARDING_GROUP, "custom_call_has_side_effect": True}
    made = op.record_result("custom_call", op.expect_operands(1), shape=TupleShape(()), **target)
    op.annotate(made, frontend_attributes={GROUP_ID: f"{number} : i64"})
    return ()


@rule("sdy.manual_computation")
def manual_computation(op: OperationReading) -> Results:
    """A call on shards, between custom calls that split the global arrays and join the shards again."""
    notes = {
        IN_SHARDINGS: f"#sdy.sharding_per_value<{op.get('in_shardings').text}>",
        MANUAL_AXES: f"#sdy<manual_axes{op.get('manual_axes').text}>",
        OUT_SHARDINGS: f"#sdy.sharding_per_value<{op.get('out_shardings').text}>",
    }
    body = op.region(0, "body", len(op.operands))
    shards = _to_shards(op, body.signature.parameters, notes)
    called = op.emit("call", shards, to_apply=body)
    op.annotate(called, frontend_attributes={"inlineable": "false"})
    locals_ = op.elements(called) if len(op.operation.result_types) != 1 else (called,)
    return _to_global(op, locals_, notes)


def _to_shards(op: OperationReading, shapes: tuple[Any, ...], notes: dict[str, str]) -> tuple[Instruction, ...]:
    if not shapes:
        return ()
    shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    made = _convert_shards(op.emit, op.operands, GLOBAL_TO_LOCAL, shape)
    op.annotate(made, frontend_attributes={key: notes[key] for key in (IN_SHARDINGS, MANUAL_AXES)})
    return (made,) if len(shapes) == 1 else op.elements(made, len(shapes))


def _convert_shards(
    record: Callable[..., Instruction], values: tuple[Instruction, ...], target: str, shape: Any
) -> Any:
    """The calls have a side effect, so that XLA keeps them when their results are unused."""
    return record("custom_call", values, custom_call_target=target, shape=shape, custom_call_has_side_effect=True)


def _to_global(op: OperationReading, values: tuple[Instruction, ...], notes: dict[str, str]) -> Results:
    shapes = op.shapes
    shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    made = _convert_shards(op.record_result, values, LOCAL_TO_GLOBAL, shape)
    op.annotate(made, frontend_attributes={key: notes[key] for key in (MANUAL_AXES, OUT_SHARDINGS)})
    return op.one_or_elements(made)


@rule("sdy.named_computation")
def named_computation(op: OperationReading) -> Results:
    op.ignore("name", "in_shardings", "out_shardings")
    body = op.region(0, "body", len(op.operands))
    return op.one_or_elements(op.record_result("call", op.operands, to_apply=body))


_AXES_ATTRIBUTE = {
    "all_gather": "gathering_axes",
    "all_reduce": "reduction_axes",
    "all_slice": "slicing_axes",
    "all_to_all": "params",
    "collective_permute": "",
    "reduce_scatter": "reduce_scatter_axes",
    "replicated_to_unreduced": "axes",
    "sharded_to_unreduced": "axes",
}


@rule(*(f"sdy.{name}" for name in _AXES_ATTRIBUTE))
def collective(op: OperationReading) -> Results:
    """A collective on global arrays: a custom call named after it, with the sharding of the result."""
    (operand,) = op.expect_operands(1)
    name = op.operation.name.removeprefix("sdy.")
    made = op.record_result("custom_call", (operand,), custom_call_target=f"{SHARDY_COLLECTIVE}{name}", shape=op.shape)
    notes = {SHARDY: f"#sdy.sharding_per_value<[<{op.get('out_sharding').text}>]>"}
    if _AXES_ATTRIBUTE[name]:
        notes[AXES] = _axes_text(op.get(_AXES_ATTRIBUTE[name]))
    op.annotate(made, frontend_attributes=notes)
    return made


def _axes_text(value: Any) -> str:
    """The axes of a collective, as in the text."""
    return value.text if isinstance(value, Record) else attribute_text(value)


# ----------------------------------------------------------------------------
# MLIR's shard dialect: state, recording, collectives and transfers


@define(eq=False)
class ReadingState:
    """The state of the rules while a module is read: last channel, shardings by value, sends without a recv so far."""

    channel: int = 0
    shardings: dict[Instruction, Sharding] = field(factory=dict)
    sent: list[tuple[Any, Instruction]] = field(factory=list)


_STATES: WeakKeyDictionary[StablehloReader, ReadingState] = WeakKeyDictionary()


def reading_state(op: OperationReading) -> ReadingState:
    """The state of the rules for the module of an operation."""
    return _STATES.setdefault(op.scope.reader, ReadingState())


def shard_names(*names: str) -> tuple[str, ...]:
    """Names of ops with the two names of the dialect, shard and mesh."""
    return tuple(f"{dialect}.{name}" for name in names for dialect in ("shard", "mesh"))


def read_grid(op: OperationReading) -> Mesh:
    """The grid that an operation names; one unknown size follows from the number of partitions."""
    name, reader = op.symbol("grid"), op.scope.reader
    grids = [each for each in reader.tree.regions[0].operations if each.name in GRIDS]
    found = next((each for each in grids if each.attributes.get("sym_name") == name), None)
    if found is None:
        op.fail("undefined_name", f'the grid requires the symbol "{name}", which is not defined')
    sizes = [*found.attributes["shape"]]
    partitions = reader.counts[1]
    if sizes.count(-1) == 1 and partitions:
        sizes[sizes.index(-1)] = max(1, partitions // -int(np.prod(sizes)))
    if -1 in sizes:
        op.fail(
            "missing_shape",
            f"grid @{name} has unknown sizes",
            "pass partitions=..., which determines one unknown size",
        )
    return grid(sizes)


def inline_recorded(
    op: OperationReading, function: Callable[..., Any], *operands: Instruction
) -> tuple[Instruction, ...]:
    """Record in this computation what a function records on the operands, and return its results."""
    kept, reader = reading_state(op), op.scope.reader
    builder = Builder("grid_op")
    builder.reserve(computations=[each.name for each in reader.order])
    start_channels_after(builder, kept.channel)
    values = [parameter(builder=builder, number=n, shape=each.shape) for n, each in enumerate(operands)]
    try:
        made = function(*values) if operands else function(builder)
    except XbuildError as error:
        raise Fault(error.kind, f"{op.operation.name}: {error.message}", op.operation.place, error.hints) from None
    kept.channel = last_channel(builder)
    here = {value.instruction: operand for value, operand in zip(values, operands, strict=True)}
    for instruction in builder.recorded_since(len(values)):
        here[instruction] = _record_copy(op, instruction, here)
    results = made if isinstance(made, tuple) else (made,)
    return tuple(here[each.instruction] for each in results)


def _record_copy(op: OperationReading, instruction: Instruction, here: dict[Instruction, Instruction]) -> Instruction:
    """Copy an instruction, with its annotations, into the computation that is being read."""
    for each in instruction.called:
        for computation in each.reachable():
            if computation not in op.scope.reader.order:
                op.scope.reader.add(computation)
    operands = _copied_arguments(instruction, here)
    made = op.emit(instruction.opcode, *operands, **instruction.attribute_values())
    if instruction.annotations:
        op.annotate(made, **{key: each for key, each in instruction.annotations.items() if key != "metadata"})
    return made


def _copied_arguments(instruction: Instruction, here: dict[Instruction, Instruction]) -> list[Any]:
    def copied(argument: Any) -> Any:
        return tuple(map(copied, argument)) if isinstance(argument, tuple) else here.get(argument)

    return [copied(argument) for argument in instruction.arguments()]


def _read_grid_axes(op: OperationReading) -> tuple[int, ...]:
    op.ignore("grid_axes")
    return tuple(op.integers("grid_axes", ()))


def _reduction(op: OperationReading) -> str:
    return str(op.word("reduction", "sum"))


def _dtype(op: OperationReading) -> Any:
    return op.array_shape.dtype


_GRID_ATTRIBUTES: dict[str, Callable[[OperationReading], dict[str, Any]]] = {
    "all_gather": lambda op: {"gather_axis": op.integer("gather_axis")},
    "all_reduce": lambda op: {"reduction": _reduction(op), "result_type": _dtype(op)},
    "all_slice": lambda op: {"slice_axis": op.integer("slice_axis")},
    "all_to_all": lambda op: {"split_axis": op.integer("split_axis"), "concat_axis": op.integer("concat_axis")},
    "broadcast": lambda op: {"root": op.integers("root")},
    "gather": lambda op: {"gather_axis": op.integer("gather_axis"), "root": op.integers("root")},
    "reduce": lambda op: {"reduction": _reduction(op), "root": op.integers("root"), "result_type": _dtype(op)},
    "reduce_scatter": lambda op: {
        "reduction": _reduction(op), "scatter_axis": op.integer("scatter_axis"), "result_type": _dtype(op),
    },
    "scatter": lambda op: {"scatter_axis": op.integer("scatter_axis"), "root": op.integers("root")},
}  # fmt: skip


@rule(*shard_names(*_GRID_ATTRIBUTES))
def grid_collective(op: OperationReading) -> Results:
    (operand,) = op.expect_operands(1)
    name = op.operation.name.partition(".")[2]
    grid_, axes, attributes = read_grid(op), _read_grid_axes(op), _GRID_ATTRIBUTES[name](op)
    function = getattr(grid_ops, name)
    return inline_recorded(op, lambda x: function(x, mesh=grid_, grid_axes=axes, **attributes), operand)


@rule(*shard_names("shift"))
def shift(op: OperationReading) -> Results:
    (operand,) = op.expect_operands(1)
    grid_, axes, rotate = read_grid(op), _read_grid_axes(op), op.flag("rotate", False)
    attributes = {"shift_axis": op.integer("shift_axis"), "offset": op.integer("offset"), "rotate": rotate}
    return inline_recorded(op, lambda x: grid_ops.shift(x, mesh=grid_, grid_axes=axes, **attributes), operand)


@rule(*shard_names("send"))
def send(op: OperationReading) -> Results:
    """The operand; the transfer is recorded by the matching recv."""
    (operand,) = op.expect_operands(1)
    attributes = {"mesh": read_grid(op), "grid_axes": _read_grid_axes(op), "destination": op.integers("destination")}
    found = inline_recorded(op, lambda x: grid_ops.send(x, **attributes), operand)
    reading_state(op).sent.append((attributes, operand))
    return found


@rule(*shard_names("recv"))
def recv(op: OperationReading) -> Results:
    (operand,) = op.expect_operands(1)
    attributes = {"mesh": read_grid(op), "grid_axes": _read_grid_axes(op), "source": op.integers("source", None)}
    waiting = reading_state(op).sent
    match = next((each for each in waiting if _matches(each, attributes, operand)), None)
    if match is None:
        return inline_recorded(op, lambda x: grid_ops.recv(x, **attributes), operand)  # raises an error
    waiting.remove(match)

    def transfer(x: Value, sent: Value) -> Value:
        grid_ops.send(sent, **match[0])
        return grid_ops.recv(x, **attributes)

    return inline_recorded(op, transfer, operand, match[1])


def _matches(sent: tuple[Any, Instruction], attributes: dict[str, Any], operand: Instruction) -> bool:
    is_same = all(sent[0][key] == attributes[key] for key in ("mesh", "grid_axes"))
    return is_same and sent[1].shape == operand.shape


@rule(*shard_names("update_halo"))
def update_halo(op: OperationReading) -> Results:
    (operand,) = op.expect_operands(1)
    attributes = {"split_axes": op.get("split_axes"), "halo_sizes": op.integers("halo_sizes")}
    grid_ = read_grid(op)
    return inline_recorded(op, lambda x: grid_ops.update_halo(x, mesh=grid_, **attributes), operand)


# ----------------------------------------------------------------------------
# Indices, sizes and shardings of MLIR's shard dialect


def _as_indices(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function with its results converted to s64, the type of an index."""

    def converted(*given: Any) -> Any:
        found = function(*given)
        return tuple(convert(each, s64) for each in (found if isinstance(found, tuple) else (found,)))

    return converted


@rule(*shard_names("process_linear_index"))
def process_linear_index(op: OperationReading) -> Results:
    grid = read_grid(op)
    return inline_recorded(op, _as_indices(lambda builder: grid_ops.process_linear_index(builder, mesh=grid)))


@rule(*shard_names("process_multi_index"), "shard.grid_shape", "mesh.mesh_shape")
def indices(op: OperationReading) -> Results:
    """The coordinates of a device along axes, or the sizes of the grid."""
    grid, axes = read_grid(op), op.integers("axes", ())
    is_place = op.operation.name.endswith("process_multi_index")
    function = grid_ops.process_multi_index if is_place else grid_ops.grid_shape
    count = len(axes) or len(grid.axes)
    if len(op.operation.result_types) != count:
        op.fail("arity_mismatch", f"expected {count} results, got {len(op.operation.result_types)}")
    return inline_recorded(op, _as_indices(lambda builder: function(builder, mesh=grid, axes=axes)))


@rule(*shard_names("neighbors_linear_indices"))
def neighbors_linear_indices(op: OperationReading) -> Results:
    grid, axes, given = read_grid(op), op.integers("split_axes"), op.get("device")

    def found(*values: Any) -> Any:
        builder = values[0] if isinstance(values[0], Builder) else values[0].builder
        device = _with_values(given, [] if isinstance(values[0], Builder) else values)
        return grid_ops.neighbors_linear_indices(builder, mesh=grid, device=device, split_axes=axes)

    return inline_recorded(op, _as_indices(found), *op.operands)


def _with_values(given: Sequence[int], values: Sequence[Value]) -> list[Any]:
    """A list of numbers in which each -1 is replaced by the next value."""
    left = iter(values)
    return [next(left) if each == -1 else each for each in given]


@rule(*shard_names("sharding"))
def sharding_(op: OperationReading) -> Results:
    """A sharding as a value exists only while a program is read: an empty tuple stands for it."""
    grid = read_grid(op)
    lists = op.get("split_axes")
    more = {key: op.integers(key, ()) for key in ("halo_sizes", "sharded_dims_offsets")}
    try:
        found = sharding(grid, lists, **more)
    except XbuildError as error:
        op.fail(error.kind, error.message)
    made = op.record_result("tuple", ())
    reading_state(op).shardings[made] = found
    return made


def _sharding_of(op: OperationReading, value: Instruction) -> Sharding:
    found = reading_state(op).shardings.get(value)
    return found or op.fail(
        "invalid_operand", f"%{value.name} must be the sharding that an op in this function returns"
    )


@rule(*shard_names("shard"))
def shard(op: OperationReading) -> Results:
    operand, given = op.expect_operands(2)
    found, for_users = _sharding_of(op, given), op.flag("annotate_for_users", False)
    try:
        grid_ops.check_annotation_order(operand, op.scope.instructions, found, for_users)
    except XbuildError as error:
        op.fail(error.kind, error.message, *error.hints)
    made = inline_recorded(op, lambda x: grid_ops.shard(x, found, annotate_for_users=for_users), operand)
    reading_state(op).shardings[made[0]] = found
    return made


@rule(*shard_names("get_sharding"))
def get_sharding(op: OperationReading) -> Results:
    (operand,) = op.expect_operands(1)
    made = op.record_result("tuple", ())
    reading_state(op).shardings[made] = _sharding_of(op, operand)
    return made


@rule(*shard_names("shard_shape"))
def shard_shape(op: OperationReading) -> Results:
    """The extents of a shard; those of the global array must be numbers."""
    extents, device = op.get("dims"), op.get("device")
    if -1 in extents:
        op.fail("missing_shape", "expected numbers as the extents of the global array, got a value")
    (source, *rest) = op.operands
    found = _sharding_of(op, source)

    def shape(*values: Any) -> Any:
        builder = values[0] if isinstance(values[0], Builder) else values[0].builder
        whole = _with_values(device, [] if isinstance(values[0], Builder) else values)
        sizes = grid_ops.shard_shape(extents, found, whole, builder=builder)
        return tuple(each if isinstance(each, Value) else grid_ops.as_value(builder, each) for each in sizes)

    return inline_recorded(op, _as_indices(shape), *rest)


@rule("arith.constant")
def arith_constant(op: OperationReading) -> Results:
    value = op.get("value")
    if isinstance(value, Dense):
        return op.record_result("constant", literal=op.literal("value"))
    shape = op.shape
    assert isinstance(shape, Shape)
    return op.record_result("constant", literal=np.asarray(value, shape.dtype.dtype))
