"""Simplifies partitioned programs: fewer and smaller collectives, and the shardings in which ops use their operands.

Sections:

    simplify: fewer or smaller collectives
    DeviceSlice: a slice at the device's number in its group
    Scalars that depend only on the device id
    with_uses: operands annotated with the shardings in which the shard dialect uses them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve, frozen

from shape_inference import Shape, XbuildError

from ... import derived, ops
from ...checking import Replication, replication
from ...core.builder import Value
from ...core.graph import Computation, Instruction, Module
from ...editing import Editor, edit, eliminate_dead_code, same_structure
from ...properties.device_groups import Groups
from ...properties.mesh import Mesh
from ..grid_ops import shard
from ..rules import ShardingRule, rule_of
from ..sharding import Sharding
from ..stated_shardings import mesh_of_shardings, sharding_of
from .assignments import SplitOptions

# ----------------------------------------------------------------------------
# simplify: fewer or smaller collectives
#
# Each change is made only if it is correct.

MOST_PASSES = 20


def simplify(module: Module) -> Module:
    """The program with collectives merged, removed, or made smaller, if its values stay the same.

    all_reduce(x) + all_reduce(y) becomes all_reduce(x + y), likewise for minimum and maximum; a slice of an all_reduce
    at the device's number becomes a reduce_scatter, one of an all_gather its operand; an all_gather of such slices
    becomes what was sliced, if the devices of a group hold equal values of it (`xb.replication`); an all_gather of one
    constant becomes a larger constant; a collective over groups of one device becomes its operand; two equal
    collectives of one value become one.

    >>> import xbuild as xb
    >>> grid = xb.shard.grid([2])
    >>> def f(x):
    ...     total = xb.shard.all_reduce(x, mesh=grid, grid_axes=[0])
    ...     return xb.shard.all_slice(total, mesh=grid, grid_axes=[0], slice_axis=0)
    >>> found = xb.shard.simplify(xb.Module("m", xb.computation(xb.f32[4])(f), num_partitions=2))
    >>> [each.opcode for each in found.entry.instructions]
    ['parameter', 'reduce_scatter']

    Source: MLIR, shard dialect, simplifications.
    """
    for _ in range(MOST_PASSES):
        changed = eliminate_dead_code(_run_pass(module))
        if changed is module:
            break
        module = changed
    return module


@frozen(eq=False)
class _Pass:
    """One pass over a program: the editor, the number of uses of each value, and which devices hold equal values."""

    module: Module
    editor: Editor[Module]
    uses: Counter[Instruction]
    find_replication: Callable[[], Replication]
    channels: Iterator[int]

    def replace(self, instruction: Instruction, value: Value) -> bool:
        """Replace an instruction by a value, and remove it with the collectives that only it used."""
        self.editor.replace_uses(instruction, value)
        unused = [each for each, times in Counter(instruction.operands).items() if self.uses[each] == times]
        collectives = [each for each in unused if each.opcode in _COLLECTIVES and each is not value.instruction]
        self.editor.remove(instruction, *collectives)
        return True


def _run_pass(module: Module) -> Module:
    known: list[Replication] = []

    def find_replication() -> Replication:
        if not known:
            known.append(replication(module))
        return known[0]

    is_changed, channels = False, count(_last_channel(module) + 1)
    with edit(module) as editor:
        for computation in module.computations:
            uses = Counter(each for user in computation.instructions for each in user.operands)
            uses[computation.root] += 1
            around = _Pass(module, editor, uses, find_replication, channels)
            is_changed |= _simplify_computation(around, computation)
    return editor.result if is_changed else module


def _last_channel(module: Module) -> int:
    every = (each for computation in module.computations for each in computation.instructions)
    return max((getattr(each.attributes, "channel_id", None) or 0 for each in every), default=0)


def _simplify_computation(around: _Pass, computation: Computation) -> bool:
    """Apply the first rule that fits to each instruction that no rule of this pass has changed; whether any did."""
    touched: set[Instruction] = set()
    seen: dict[Any, Instruction] = {}
    is_changed = False
    for instruction in computation.instructions:
        near = {instruction, *instruction.operands}
        if touched & near:
            continue
        if _merge_equal(around, instruction, seen) or any(rule(around, instruction) for rule in _RULES):
            touched |= near | {each for operand in instruction.operands for each in operand.operands}
            is_changed = True
    return is_changed


def _merge_equal(around: _Pass, instruction: Instruction, seen: dict[Any, Instruction]) -> bool:
    """Replace the second of two equal collectives of one value by the first."""
    if instruction.opcode not in _COLLECTIVES or groups_of(instruction, around.module) is None:
        return False
    values = {key: value for key, value in instruction.attribute_values().items() if key != "channel_id"}
    reducer = values.pop("to_apply", None)
    key = instruction.opcode, instruction.operands, repr(sorted(values.items())), repr(instruction.shape)
    first = seen.setdefault(key, instruction)
    if first is instruction or not _is_same_reducer(reducer, getattr(first.attributes, "to_apply", None)):
        return False
    return around.replace(instruction, around.editor[first])


def _is_same_reducer(one: Computation | None, other: Computation | None) -> bool:
    if one is other:
        return True
    return one is not None and other is not None and same_structure(one, other)


_COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter")
_MERGED_BY = {"add": "add", "minimum": "minimum", "maximum": "maximum"}


def _combiner(instruction: Instruction) -> str:
    """The opcode of a reducer that is one op of its two parameters; else empty."""
    reducer: Computation = instruction.attributes.to_apply
    root = reducer.root
    is_one = len(reducer.instructions) == 3 and {*root.operands} == {*reducer.parameters}
    return root.opcode if is_one else ""


def _merge_reductions(around: _Pass, instruction: Instruction) -> bool:
    """Replace all_reduce(x) + all_reduce(y) by all_reduce(x + y)."""
    if instruction.opcode not in _MERGED_BY or len({*instruction.operands}) != 2:
        return False
    one, other = instruction.operands
    if not all(each.opcode == "all_reduce" and around.uses[each] == 1 for each in (one, other)):
        return False
    groups = [groups_of(each, around.module) for each in (one, other)]
    kinds = {_combiner(each) for each in (one, other)}
    if None in groups or groups[0] != groups[1] or kinds != {instruction.opcode} or one.shape != other.shape:
        return False
    if not all(len(each.operands) == 1 for each in (one, other)):
        return False
    with around.editor.before(instruction):
        inputs = [around.editor[each.operands[0]] for each in (one, other)]
        total = getattr(ops, instruction.opcode)(*inputs)
        attributes = {**other.attribute_values(), "channel_id": next(around.channels)}
        found = ops.all_reduce(total, **attributes)
    return around.replace(instruction, found)


def _simplify_slice(around: _Pass, instruction: Instruction) -> bool:
    """Simplify a slice of an all_reduce or an all_gather at the device's number."""
    piece = read_device_slice(instruction, around.module.num_partitions)
    if piece is None or len(piece.operand.operands) != 1:
        return False
    groups = groups_of(piece.operand, around.module) if piece.operand.opcode in _COLLECTIVES else None
    if groups is None:
        return False
    if piece.operand.opcode == "all_gather":
        is_same = piece.operand.attributes.all_gather_dimension == piece.dim and piece.is_in_group_order(groups)
        return is_same and around.replace(instruction, around.editor[piece.operand.operands[0]])
    if piece.operand.opcode != "all_reduce" or around.uses[piece.operand] != 1:
        return False
    return _make_reduce_scatter(around, piece, groups)


def _make_reduce_scatter(around: _Pass, piece: DeviceSlice, groups: Any) -> bool:
    ordered = piece.order_groups(groups)
    if ordered is None:
        return False
    with around.editor.before(piece.instruction):
        value = around.editor[piece.operand.operands[0]]
        found = ops.reduce_scatter(
            value,
            to_apply=piece.operand.attributes.to_apply,
            scatter_dimension=piece.dim,
            shard_count=piece.count,
            replica_groups=ordered,
            channel_id=next(around.channels),
            use_global_device_ids=True,
        )
    return around.replace(piece.instruction, found)


def _simplify_gather(around: _Pass, instruction: Instruction) -> bool:
    """Simplify an all_gather of slices of equal values, or of one constant."""
    if instruction.opcode != "all_gather" or len(instruction.operands) != 1:
        return False
    groups, (operand,) = groups_of(instruction, around.module), instruction.operands
    if groups is None:
        return False
    if operand.opcode == "broadcast" and operand.operands[0].shape == Shape(operand.operands[0].shape.dtype):  # type: ignore[union-attr]
        return _widen_constant(around, instruction, operand)
    piece = read_device_slice(operand, around.module.num_partitions)
    if piece is None or piece.dim != instruction.attributes.all_gather_dimension or not piece.is_in_group_order(groups):
        return False
    return _is_equal(around, piece.operand, groups) and around.replace(instruction, around.editor[piece.operand])


def _widen_constant(around: _Pass, instruction: Instruction, operand: Instruction) -> bool:
    """Replace an all_gather of a broadcast constant by a larger broadcast."""
    (scalar,) = operand.operands
    if scalar.opcode != "constant":
        return False
    with around.editor.before(instruction):
        found = derived.broadcast(around.editor[scalar], instruction.shape.dims)  # type: ignore[union-attr]
    return around.replace(instruction, found)


def _is_equal(around: _Pass, value: Instruction, groups: Any) -> bool:
    """Whether the devices of each group hold equal values for all data."""
    try:
        alike = around.find_replication().groups(value)
    except (KeyError, XbuildError):
        return False
    number = {device: n for n, group in enumerate(alike) for device in group}
    return all(len({number[device] for device in group}) == 1 for group in groups)


def _drop_groups_of_one(around: _Pass, instruction: Instruction) -> bool:
    """Replace a collective over groups of one device by its operand."""
    if instruction.opcode not in _COLLECTIVES or len(instruction.operands) != 1:
        return False
    groups = groups_of(instruction, around.module)
    (operand,) = instruction.operands
    if groups is None or any(len(group) > 1 for group in groups) or operand.shape != instruction.shape:
        return False
    if not np.array_equal(sorted(each for group in groups for each in group), range(around.module.num_partitions)):
        return False
    return around.replace(instruction, around.editor[operand])


_RULES = (_drop_groups_of_one, _merge_reductions, _simplify_slice, _simplify_gather)


# ----------------------------------------------------------------------------
# DeviceSlice: a slice at the device's number in its group

Ordered: TypeAlias = Groups


@frozen(eq=False)
class DeviceSlice:
    """A slice of one dimension into pieces of equal size, and the number of the piece that each device takes."""

    instruction: Instruction
    operand: Instruction
    dim: int
    numbers: Numbers
    count: int

    def order_groups(self, groups: Groups) -> Ordered | None:
        """The groups, ordered by the members' pieces; None if a group does not take each piece once."""
        ordered = []
        for group in groups:
            if len(group) != self.count or sorted(self.numbers[[*group]].tolist()) != [*range(self.count)]:
                return None
            ordered.append(tuple(sorted(group, key=lambda device: int(self.numbers[device]))))
        return tuple(ordered)

    def is_in_group_order(self, groups: Groups) -> bool:
        """Whether each device takes the piece at its position in its group."""
        return self.order_groups(groups) == tuple(map(tuple, groups))


def read_device_slice(instruction: Instruction, devices: int) -> DeviceSlice | None:
    """A dynamic slice as a DeviceSlice, if its starts depend only on the device and it splits one dimension evenly."""
    if instruction.opcode != "dynamic_slice":
        return None
    operand, *starts = instruction.operands
    before, after = operand.shape, instruction.shape
    if not isinstance(before, Shape) or not isinstance(after, Shape):
        return None
    sliced = [dim for dim in range(before.rank) if before.dims[dim] != after.dims[dim]]
    if len(sliced) != 1 or after.dims[sliced[0]] == 0 or before.dims[sliced[0]] % after.dims[sliced[0]]:
        return None
    numbers = values_by_device(starts[sliced[0]], devices)
    size = after.dims[sliced[0]]
    if numbers is None or (numbers % size).any() or (numbers >= before.dims[sliced[0]]).any():
        return None
    return DeviceSlice(instruction, operand, sliced[0], numbers // size, before.dims[sliced[0]] // size)


def groups_of(instruction: Instruction, module: Module) -> Groups | None:
    """The groups of a collective, if they list partitions; else None."""
    attributes = instruction.attributes
    if module.num_replicas != 1 or not (getattr(attributes, "channel_id", None) or 0) > 0:
        return None
    groups = (
        tuple(map(tuple, np.asarray(attributes.replica_groups, object).tolist())) if attributes.replica_groups else ()
    )
    return groups or (tuple(range(module.num_partitions)),)


# ----------------------------------------------------------------------------
# Scalars that depend only on the device id
#
# They become an array of their values on all devices.

Numbers: TypeAlias = "np.ndarray[Any, Any]"

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.floor_divide,
    "remainder": np.remainder,
    "minimum": np.minimum,
    "maximum": np.maximum,
}
_PASSING_ON = ("bitcast", "convert", "copy", "reshape")
MOST_STEPS = 200


def values_by_device(instruction: Instruction, devices: int) -> Numbers | None:
    """The value of an integer scalar on each partition; None if it depends on anything else, or may be negative."""
    return _evaluate_on_devices(instruction, devices, [MOST_STEPS])


def _evaluate_on_devices(instruction: Instruction, devices: int, left: list[int]) -> Numbers | None:
    left[0] -= 1
    if left[0] < 0 or not _is_integer(instruction):
        return None
    if instruction.opcode == "partition_id":
        return np.arange(devices, dtype=np.int64)
    if instruction.opcode == "constant":
        literal = np.asarray(instruction.attributes.literal)
        return np.full(devices, int(literal.reshape(())), np.int64) if literal.size == 1 else None
    if instruction.opcode in _PASSING_ON and len(instruction.operands) == 1:
        return _evaluate_on_devices(instruction.operands[0], devices, left)
    if instruction.opcode == "dynamic_slice":
        return _look_up(instruction, devices, left)
    return _compute(instruction, devices, left)


def _is_integer(instruction: Instruction) -> bool:
    shape = instruction.shape
    return isinstance(shape, Shape) and shape.size == 1 and shape.dtype.kind in ("signed", "unsigned", "int", "uint")


def _compute(instruction: Instruction, devices: int, left: list[int]) -> Numbers | None:
    function = _ARITHMETIC.get(instruction.opcode)
    if function is None:
        return None
    values = [_evaluate_on_devices(each, devices, left) for each in instruction.operands]
    operands = [each for each in values if each is not None and bool(np.all(each >= 0))]
    if len(operands) < len(values) or (instruction.opcode in ("divide", "remainder") and not np.all(operands[1])):
        return None
    result: Numbers = function(*operands)
    return result if (result < 2**31).all() else None


def _look_up(instruction: Instruction, devices: int, left: list[int]) -> Numbers | None:
    """One element of a constant array, at an index that depends only on the device."""
    table, *starts = instruction.operands
    if table.opcode != "constant" or len(starts) != 1:
        return None
    places = _evaluate_on_devices(starts[0], devices, left)
    literal = np.asarray(table.attributes.literal).reshape(-1)
    return None if places is None else literal[np.clip(places, 0, len(literal) - 1)].astype(np.int64)


# ----------------------------------------------------------------------------
# with_uses: operands annotated with the shardings in which the shard dialect uses them
#
# In that dialect, each op runs in the sharding of its result, and its operands are resharded first.


def with_uses(module: Module) -> Module:
    """The module in which each operand that an op uses in a different sharding is annotated with it for that use.

    If every array has a sharding, as after `xb.shard.propagate`, the shardings then say how each op runs: factors of
    the result are split as in the result, other factors as in the first operand that has them.

    Source: MLIR, shard dialect, sharding propagation.
    """
    mesh = mesh_of_shardings(module)
    if mesh is None:
        return module
    with edit(module) as editor:
        for computation in module.computations:
            for instruction in computation.instructions:
                for number, needed in _find_resharded(instruction, mesh):
                    with editor.before(instruction):
                        used = shard(editor[instruction.operands[number]], needed, annotate_for_users=True)
                    editor.replace_operand(instruction, number, used)
    return editor.result


def _find_resharded(instruction: Instruction, mesh: Mesh) -> list[tuple[int, Sharding]]:
    """The operands that are needed in shardings that they do not have."""
    result = sharding_of(instruction, mesh) if instruction.operands else None
    rule = rule_of(instruction) if isinstance(result, Sharding) else None
    if rule is None or not isinstance(result, Sharding) or len(rule.results) != 1:
        return []
    had = [sharding_of(each, mesh) for each in instruction.operands]
    if not all(isinstance(each, Sharding) for each in had):
        return []
    needed = _operand_shardings(rule, result, [each for each in had if isinstance(each, Sharding)])
    pairs = enumerate(zip(had, needed, strict=True))
    return [
        (number, now) for number, (before, now) in pairs if isinstance(before, Sharding) and _axes(before) != _axes(now)
    ]


def _operand_shardings(rule: ShardingRule, result: Sharding, operands: list[Sharding]) -> list[Sharding]:
    options = SplitOptions(result.mesh, rule, frozenset(range(len(rule.factors))))
    reads = [options.read(result, rule.results[0])]
    reads += [_keep_other_factors(rule, options.read(*each)) for each in zip(operands, rule.operands, strict=True)]
    found = options.merge(reads)
    return [options.sharding(found, dims) for dims in rule.operands]


def _keep_other_factors(rule: ShardingRule, assignment: tuple) -> tuple:  # type: ignore[type-arg]
    """The part of an assignment for factors that the result does not have."""
    of_result = {factor for dims in rule.results[0] for factor in dims}
    return tuple(() if number in of_result else axes for number, axes in enumerate(assignment))


def _axes(sharding: Sharding) -> tuple:  # type: ignore[type-arg]
    dims = [dim.axes for dim in evolve(sharding, offsets=()).dims]
    while dims and not dims[-1]:
        dims.pop()
    return tuple(dims)
