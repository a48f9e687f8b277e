"""Rules of MLIR's shard dialect, and of its older name mesh: each op is what `xb.shard` records for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from attrs import define, field

from shape_inference import XbuildError

from ...core.builder import Builder, Value
from ...core.graph import Instruction
from ...ops.leaves import parameter
from ...properties.mesh import Mesh
from ...sharding.grid_ops import collectives, halos, transfers
from ...sharding.grid_ops.groups import channels_from, last_channel
from ...sharding.grids import grid
from ...sharding.sharding import Sharding
from ...text.spelling.faults import Fault
from ..reading.header import GRIDS
from ..reading.operation import Reading
from ..reading.reader import Reader
from ..reading.rules import Results, rule


@define(eq=False)
class State:
    """What rules keep of a module under reading: the last channel, shardings by value, sends that wait for a recv."""

    channel: int = 0
    shardings: dict[Instruction, Sharding] = field(factory=dict)
    sent: list[tuple[Any, Instruction]] = field(factory=list)


_STATES: WeakKeyDictionary[Reader, State] = WeakKeyDictionary()


def state(op: Reading) -> State:
    """What rules keep of the module that an operation is of."""
    return _STATES.setdefault(op.scope.reader, State())


def both(*names: str) -> tuple[str, ...]:
    """The names with both names of the dialect."""
    return tuple(f"{dialect}.{name}" for name in names for dialect in ("shard", "mesh"))


def mesh(op: Reading) -> Mesh:
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


def inlined(op: Reading, function: Callable[..., Any], *operands: Instruction) -> tuple[Instruction, ...]:
    """What a function records on the operands, recorded here; its results are those of the operation."""
    kept, reader = state(op), op.scope.reader
    builder = Builder("grid_op")
    builder.reserve(computations=[each.name for each in reader.order])
    channels_from(builder, kept.channel)
    values = [parameter(builder=builder, number=n, shape=each.shape) for n, each in enumerate(operands)]
    try:
        made = function(*values) if operands else function(builder)
    except XbuildError as error:
        raise Fault(error.kind, f"{op.operation.name}: {error.message}", op.operation.place, error.hints) from None
    kept.channel = last_channel(builder)
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


@rule(*both(*_COLLECTIVES))
def collective(op: Reading) -> Results:
    (operand,) = op.wants(1)
    name = op.operation.name.partition(".")[2]
    grid_, axes, attributes = mesh(op), _axes(op), _COLLECTIVES[name](op)
    function = getattr(collectives, name)
    return inlined(op, lambda x: function(x, mesh=grid_, grid_axes=axes, **attributes), operand)


@rule(*both("shift"))
def shift(op: Reading) -> Results:
    (operand,) = op.wants(1)
    grid_, axes, rotate = mesh(op), _axes(op), op.flag("rotate", False)
    attributes = {"shift_axis": op.integer("shift_axis"), "offset": op.integer("offset"), "rotate": rotate}
    return inlined(op, lambda x: transfers.shift(x, mesh=grid_, grid_axes=axes, **attributes), operand)


@rule(*both("send"))
def send(op: Reading) -> Results:
    """The operand; the transfer is recorded with the recv that meets it."""
    (operand,) = op.wants(1)
    attributes = {"mesh": mesh(op), "grid_axes": _axes(op), "destination": op.integers("destination")}
    found = inlined(op, lambda x: transfers.send(x, **attributes), operand)
    state(op).sent.append((attributes, operand))
    return found


@rule(*both("recv"))
def recv(op: Reading) -> Results:
    (operand,) = op.wants(1)
    attributes = {"mesh": mesh(op), "grid_axes": _axes(op), "source": op.integers("source", None)}
    waiting = state(op).sent
    met = next((each for each in waiting if _meets(each, attributes, operand)), None)
    if met is None:
        return inlined(op, lambda x: transfers.recv(x, **attributes), operand)  # which refuses it
    waiting.remove(met)

    def transferred(x: Value, sent: Value) -> Value:
        transfers.send(sent, **met[0])
        return transfers.recv(x, **attributes)

    return inlined(op, transferred, operand, met[1])


def _meets(sent: tuple[Any, Instruction], attributes: dict[str, Any], operand: Instruction) -> bool:
    is_same = all(sent[0][key] == attributes[key] for key in ("mesh", "grid_axes"))
    return is_same and sent[1].shape == operand.shape


@rule(*both("update_halo"))
def update_halo(op: Reading) -> Results:
    (operand,) = op.wants(1)
    attributes = {"split_axes": op.get("split_axes"), "halo_sizes": op.integers("halo_sizes")}
    grid_ = mesh(op)
    return inlined(op, lambda x: halos.update_halo(x, mesh=grid_, **attributes), operand)
