"""Rules of MLIR's shard dialect, and of its older name mesh: each op is what `xb.shard` records for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from attrs import define, field

from shape_inference import Shape, XbuildError, s64

from ...core.builder import Builder, Value
from ...core.graph import Instruction
from ...derived.conversion import convert
from ...ops.leaves import parameter
from ...properties.mesh import Mesh
from ...sharding.grid_ops import collectives, halos, processes, transfers
from ...sharding.grid_ops.groups import channels_from, last_channel
from ...sharding.grids import grid, sharding
from ...sharding.sharding import Sharding
from ...text.spelling.faults import Fault
from ..reading.header import GRIDS
from ..reading.operation import Reading
from ..reading.reader import Reader
from ..reading.rules import Results, rule
from ..syntax.attributes import Dense


@define(eq=False)
class _State:
    """What rules keep of a module under reading: the last channel, shardings by value, sends that wait for a recv."""

    channel: int = 0
    shardings: dict[Instruction, Sharding] = field(factory=dict)
    sent: list[tuple[Any, Instruction]] = field(factory=list)


_STATES: WeakKeyDictionary[Reader, _State] = WeakKeyDictionary()


def _state(op: Reading) -> _State:
    return _STATES.setdefault(op.scope.reader, _State())


def _both(*names: str) -> tuple[str, ...]:
    return tuple(f"{dialect}.{name}" for name in names for dialect in ("shard", "mesh"))


def _mesh(op: Reading) -> Mesh:
    """The grid that an operation names; one open size is what the number of partitions leaves."""
    name, reader = op.symbol("grid"), op.scope.reader
    grids = [each for each in reader.tree.regions[0].operations if each.name in GRIDS]
    found = next((each for each in grids if each.attributes.get("sym_name") == name), None)
    if found is None:
        op.fail("undefined_name", f'Undefined required grid symbol "{name}".')
    sizes = [*found.attributes["shape"]]
    partitions = reader.counts[1]
    if sizes.count(-1) == 1 and partitions:
        sizes[sizes.index(-1)] = max(1, partitions // -int(np.prod(sizes)))
    if -1 in sizes:
        op.fail(
            "missing_shape", f"grid @{name} has open sizes", "partitions= gives the number of devices for one of them"
        )
    return grid(sizes)


def _inlined(op: Reading, function: Callable[..., Any], *operands: Instruction) -> tuple[Instruction, ...]:
    """What a function records on the operands, recorded here; its results are those of the operation."""
    state, reader = _state(op), op.scope.reader
    builder = Builder("grid_op")
    builder.reserve(computations=[each.name for each in reader.order])
    channels_from(builder, state.channel)
    values = [parameter(builder=builder, number=n, shape=each.shape) for n, each in enumerate(operands)]
    try:
        made = function(*values) if operands else function(builder)
    except XbuildError as error:
        raise Fault(error.kind, f"{op.operation.name}: {error.message}", op.operation.place, error.hints) from None
    state.channel = last_channel(builder)
    here = {value.instruction: operand for value, operand in zip(values, operands, strict=True)}
    for instruction in builder.recorded_since(len(values)):
        here[instruction] = _again(op, instruction, here)
    results = made if isinstance(made, tuple) else (made,)
    return tuple(here[each.instruction] for each in results)


def _again(op: Reading, instruction: Instruction, here: dict[Instruction, Instruction]) -> Instruction:
    """An instruction recorded in the computation under reading, with its annotations."""
    for each in instruction.called:
        for computation in each.reachable():
            if computation not in op.scope.reader.order:
                op.scope.reader.add(computation)
    operands = _unflattened(instruction, here)
    made = op.emit(instruction.opcode, *operands, **instruction.attribute_values())
    if instruction.annotations:
        op.note(made, **{key: each for key, each in instruction.annotations.items() if key != "metadata"})
    return made


def _unflattened(instruction: Instruction, here: dict[Instruction, Instruction]) -> list[Any]:
    def moved(argument: Any) -> Any:
        return tuple(map(moved, argument)) if isinstance(argument, tuple) else here.get(argument)

    return [moved(argument) for argument in instruction.arguments()]


def _axes(op: Reading) -> tuple[int, ...]:
    op.ignore("grid_axes")
    return tuple(op.integers("grid_axes", ()))


def _reduction(op: Reading) -> str:
    return str(op.word("reduction", "sum"))


def _typed(op: Reading) -> Any:
    return op.array_shape.dtype


_COLLECTIVES: dict[str, Callable[[Reading], dict[str, Any]]] = {
    "all_gather": lambda op: {"gather_axis": op.integer("gather_axis")},
    "all_reduce": lambda op: {"reduction": _reduction(op), "result_type": _typed(op)},
    "all_slice": lambda op: {"slice_axis": op.integer("slice_axis")},
    "all_to_all": lambda op: {"split_axis": op.integer("split_axis"), "concat_axis": op.integer("concat_axis")},
    "broadcast": lambda op: {"root": op.integers("root")},
    "gather": lambda op: {"gather_axis": op.integer("gather_axis"), "root": op.integers("root")},
    "reduce": lambda op: {"reduction": _reduction(op), "root": op.integers("root"), "result_type": _typed(op)},
    "reduce_scatter": lambda op: {
        "reduction": _reduction(op), "scatter_axis": op.integer("scatter_axis"), "result_type": _typed(op),
    },
    "scatter": lambda op: {"scatter_axis": op.integer("scatter_axis"), "root": op.integers("root")},
}  # fmt: skip


@rule(*_both(*_COLLECTIVES))
def collective(op: Reading) -> Results:
    (operand,) = op.wants(1)
    name = op.operation.name.partition(".")[2]
    mesh, axes, attributes = _mesh(op), _axes(op), _COLLECTIVES[name](op)
    function = getattr(collectives, name)
    return _inlined(op, lambda x: function(x, mesh=mesh, grid_axes=axes, **attributes), operand)


@rule(*_both("shift"))
def shift(op: Reading) -> Results:
    (operand,) = op.wants(1)
    mesh, axes, rotate = _mesh(op), _axes(op), op.flag("rotate", False)
    attributes = {"shift_axis": op.integer("shift_axis"), "offset": op.integer("offset"), "rotate": rotate}
    return _inlined(op, lambda x: transfers.shift(x, mesh=mesh, grid_axes=axes, **attributes), operand)


@rule(*_both("send"))
def send(op: Reading) -> Results:
    """The operand; the transfer is recorded with the recv that meets it."""
    (operand,) = op.wants(1)
    attributes = {"mesh": _mesh(op), "grid_axes": _axes(op), "destination": op.integers("destination")}
    found = _inlined(op, lambda x: transfers.send(x, **attributes), operand)
    _state(op).sent.append((attributes, operand))
    return found


@rule(*_both("recv"))
def recv(op: Reading) -> Results:
    (operand,) = op.wants(1)
    attributes = {"mesh": _mesh(op), "grid_axes": _axes(op), "source": op.integers("source", None)}
    waiting = _state(op).sent
    met = next((each for each in waiting if _meets(each, attributes, operand)), None)
    if met is None:
        return _inlined(op, lambda x: transfers.recv(x, **attributes), operand)  # which refuses it
    waiting.remove(met)

    def transferred(x: Value, sent: Value) -> Value:
        transfers.send(sent, **met[0])
        return transfers.recv(x, **attributes)

    return _inlined(op, transferred, operand, met[1])


def _meets(sent: tuple[Any, Instruction], attributes: dict[str, Any], operand: Instruction) -> bool:
    is_same = all(sent[0][key] == attributes[key] for key in ("mesh", "grid_axes"))
    return is_same and sent[1].shape == operand.shape


@rule(*_both("update_halo"))
def update_halo(op: Reading) -> Results:
    (operand,) = op.wants(1)
    attributes = {"split_axes": op.get("split_axes"), "halo_sizes": op.integers("halo_sizes")}
    mesh = _mesh(op)
    return _inlined(op, lambda x: halos.update_halo(x, mesh=mesh, **attributes), operand)


def _as_indices(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function with its results as s64, which is what an index is."""

    def converted(*given: Any) -> Any:
        found = function(*given)
        return tuple(convert(each, s64) for each in (found if isinstance(found, tuple) else (found,)))

    return converted


@rule(*_both("process_linear_index"))
def process_linear_index(op: Reading) -> Results:
    mesh = _mesh(op)
    return _inlined(op, _as_indices(lambda builder: processes.process_linear_index(builder, mesh=mesh)))


@rule(*_both("process_multi_index"), "shard.grid_shape", "mesh.mesh_shape")
def indices(op: Reading) -> Results:
    """The coordinates of a device, or the sizes of the grid, along axes."""
    mesh, axes = _mesh(op), op.integers("axes", ())
    is_place = op.operation.name.endswith("process_multi_index")
    function = processes.process_multi_index if is_place else processes.grid_shape
    count = len(axes) or len(mesh.axes)
    if len(op.operation.result_types) != count:
        op.fail("arity_mismatch", f"Unexpected number of results {len(op.operation.result_types)}. Expected {count}.")
    return _inlined(op, _as_indices(lambda builder: function(builder, mesh=mesh, axes=axes)))


@rule(*_both("neighbors_linear_indices"))
def neighbors_linear_indices(op: Reading) -> Results:
    mesh, axes, given = _mesh(op), op.integers("split_axes"), op.get("device")

    def found(*values: Any) -> Any:
        builder = values[0] if isinstance(values[0], Builder) else values[0].builder
        device = _filled(given, [] if isinstance(values[0], Builder) else values)
        return processes.neighbors_linear_indices(builder, mesh=mesh, device=device, split_axes=axes)

    return _inlined(op, _as_indices(found), *op.operands)


def _filled(given: Sequence[int], values: Sequence[Value]) -> list[Any]:
    """Numbers, with values in the places of -1."""
    left = iter(values)
    return [next(left) if each == -1 else each for each in given]


@rule(*_both("sharding"))
def sharding_(op: Reading) -> Results:
    """A value that programs have only while they are read: an empty tuple, of which the sharding is kept."""
    mesh = _mesh(op)
    lists = op.get("split_axes")
    more = {key: op.integers(key, ()) for key in ("halo_sizes", "sharded_dims_offsets")}
    try:
        found = sharding(mesh, lists, **more)
    except XbuildError as error:
        op.fail(error.kind, error.message)
    made = op.result("tuple", ())
    _state(op).shardings[made] = found
    return made


def _sharding_of(op: Reading, value: Instruction) -> Sharding:
    found = _state(op).shardings.get(value)
    return found or op.fail("invalid_operand", f"%{value.name} is no sharding that an op of this function gives")


@rule(*_both("shard"))
def shard(op: Reading) -> Results:
    operand, given = op.wants(2)
    found, for_users = _sharding_of(op, given), op.flag("annotate_for_users", False)
    made = _inlined(op, lambda x: processes.shard(x, found, annotate_for_users=for_users), operand)
    _state(op).shardings[made[0]] = found
    return made


@rule(*_both("get_sharding"))
def get_sharding(op: Reading) -> Results:
    (operand,) = op.wants(1)
    made = op.result("tuple", ())
    _state(op).shardings[made] = _sharding_of(op, operand)
    return made


@rule(*_both("shard_shape"))
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

    return _inlined(op, _as_indices(shape), *rest)


@rule("arith.constant")
def constant(op: Reading) -> Results:
    value = op.get("value")
    if isinstance(value, Dense):
        return op.result("constant", literal=op.literal("value"))
    shape = op.shape
    assert isinstance(shape, Shape)
    return op.result("constant", literal=np.asarray(value, shape.dtype.dtype))
