"""`simplify`: collectives of a program for each device made fewer or smaller, each only where it is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import Shape, XbuildError

from ... import derived, ops
from ...checking import Replication, replication
from ...core.builder import Value
from ...core.graph import Computation, Instruction, Module
from ...editing import Editor, edit, eliminate_dead_code, same_structure
from .pieces import Piece, groups_of, piece_of

MOST_PASSES = 20


def simplify(module: Module) -> Module:
    """The program with collectives merged, left out, or made smaller, where the values stay what they are.

    all_reduce(x) + all_reduce(y) is all_reduce(x + y), also of minimum and maximum; a slice by the device's number of
    an all_reduce is a reduce_scatter, of an all_gather the operand; an all_gather of such slices is what was cut where
    devices of a group hold equal values of it (`xb.replication`); an all_gather of one constant is larger; a collective
    of groups of one is its operand; of two equal collectives of one value one is left.

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
        changed = eliminate_dead_code(_once(module))
        if changed is module:
            break
        module = changed
    return module


@frozen(eq=False)
class _Pass:
    """One pass over a program: the editor, what is known of the program, and how often each value is used."""

    module: Module
    editor: Editor[Module]
    uses: Counter[Instruction]
    equal: Callable[[], Replication]
    channels: Iterator[int]

    def replace(self, instruction: Instruction, value: Value) -> bool:
        """Put a value in place of an instruction, which goes, and with it collectives that it alone used."""
        self.editor.replace_uses(instruction, value)
        lonely = [each for each, times in Counter(instruction.operands).items() if self.uses[each] == times]
        gone = [each for each in lonely if each.opcode in _COLLECTIVES and each is not value.instruction]
        self.editor.remove(instruction, *gone)
        return True


def _once(module: Module) -> Module:
    found: list[Replication] = []

    def equal() -> Replication:
        if not found:
            found.append(replication(module))
        return found[0]

    is_changed, channels = False, count(_last_channel(module) + 1)
    with edit(module) as editor:
        for computation in module.computations:
            uses = Counter(each for user in computation.instructions for each in user.operands)
            uses[computation.root] += 1
            around = _Pass(module, editor, uses, equal, channels)
            is_changed |= _of_computation(around, computation)
    return editor.result if is_changed else module


def _last_channel(module: Module) -> int:
    every = (each for computation in module.computations for each in computation.instructions)
    return max((getattr(each.attributes, "channel_id", None) or 0 for each in every), default=0)


def _of_computation(around: _Pass, computation: Computation) -> bool:
    """Apply a rule wherever one fits, to instructions that no rule of this pass has touched."""
    touched: set[Instruction] = set()
    seen: dict[Any, Instruction] = {}
    is_changed = False
    for instruction in computation.instructions:
        near = {instruction, *instruction.operands}
        if touched & near:
            continue
        if _merged(around, instruction, seen) or any(rule(around, instruction) for rule in _RULES):
            touched |= near | {each for operand in instruction.operands for each in operand.operands}
            is_changed = True
    return is_changed


def _merged(around: _Pass, instruction: Instruction, seen: dict[Any, Instruction]) -> bool:
    """Of two collectives of one value with equal attributes, the second is the first."""
    if instruction.opcode not in _COLLECTIVES or groups_of(instruction, around.module) is None:
        return False
    values = {key: value for key, value in instruction.attribute_values().items() if key != "channel_id"}
    reducer = values.pop("to_apply", None)
    key = instruction.opcode, instruction.operands, repr(sorted(values.items())), repr(instruction.shape)
    first = seen.setdefault(key, instruction)
    if first is instruction or not _same_reducer(reducer, getattr(first.attributes, "to_apply", None)):
        return False
    return around.replace(instruction, around.editor[first])


def _same_reducer(one: Computation | None, other: Computation | None) -> bool:
    if one is other:
        return True
    return one is not None and other is not None and same_structure(one, other)


_COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter")
_BY = {"add": "add", "minimum": "minimum", "maximum": "maximum"}


def _combiner(instruction: Instruction) -> str:
    """The opcode of a reducer that is one op of its two parameters; an empty text for any other."""
    reducer: Computation = instruction.attributes.to_apply
    root = reducer.root
    is_one = len(reducer.instructions) == 3 and {*root.operands} == {*reducer.parameters}
    return root.opcode if is_one else ""


def _sum_of_reductions(around: _Pass, instruction: Instruction) -> bool:
    """all_reduce(x) + all_reduce(y): one all_reduce of x + y."""
    if instruction.opcode not in _BY or len({*instruction.operands}) != 2:
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


def _slice(around: _Pass, instruction: Instruction) -> bool:
    """A slice by the device's number of an all_reduce or an all_gather."""
    piece = piece_of(instruction, around.module.num_partitions)
    if piece is None or len(piece.operand.operands) != 1:
        return False
    groups = groups_of(piece.operand, around.module) if piece.operand.opcode in _COLLECTIVES else None
    if groups is None:
        return False
    if piece.operand.opcode == "all_gather":
        is_same = piece.operand.attributes.all_gather_dimension == piece.dim and piece.follows(groups)
        return is_same and around.replace(instruction, around.editor[piece.operand.operands[0]])
    if piece.operand.opcode != "all_reduce" or around.uses[piece.operand] != 1:
        return False
    return _scattered(around, piece, groups)


def _scattered(around: _Pass, piece: Piece, groups: Any) -> bool:
    ordered = piece.ordered(groups)
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


def _gather(around: _Pass, instruction: Instruction) -> bool:
    """An all_gather of slices of equal values, of one constant, or of groups of one."""
    if instruction.opcode != "all_gather" or len(instruction.operands) != 1:
        return False
    groups, (operand,) = groups_of(instruction, around.module), instruction.operands
    if groups is None:
        return False
    if operand.opcode == "broadcast" and operand.operands[0].shape == Shape(operand.operands[0].shape.dtype):  # type: ignore[union-attr]
        return _constant(around, instruction, operand)
    piece = piece_of(operand, around.module.num_partitions)
    if piece is None or piece.dim != instruction.attributes.all_gather_dimension or not piece.follows(groups):
        return False
    return _is_equal(around, piece.operand, groups) and around.replace(instruction, around.editor[piece.operand])


def _constant(around: _Pass, instruction: Instruction, operand: Instruction) -> bool:
    """An all_gather of a constant that stands at every place."""
    (scalar,) = operand.operands
    if scalar.opcode != "constant":
        return False
    with around.editor.before(instruction):
        found = derived.broadcast(around.editor[scalar], instruction.shape.dims)  # type: ignore[union-attr]
    return around.replace(instruction, found)


def _is_equal(around: _Pass, value: Instruction, groups: Any) -> bool:
    """Whether the devices of each group hold equal values, whatever the data."""
    try:
        alike = around.equal().groups(value)
    except (KeyError, XbuildError):
        return False
    number = {device: n for n, group in enumerate(alike) for device in group}
    return all(len({number[device] for device in group}) == 1 for group in groups)


def _alone(around: _Pass, instruction: Instruction) -> bool:
    """A collective of groups of one device."""
    if instruction.opcode not in _COLLECTIVES or len(instruction.operands) != 1:
        return False
    groups = groups_of(instruction, around.module)
    (operand,) = instruction.operands
    if groups is None or any(len(group) > 1 for group in groups) or operand.shape != instruction.shape:
        return False
    if not np.array_equal(sorted(each for group in groups for each in group), range(around.module.num_partitions)):
        return False
    return around.replace(instruction, around.editor[operand])


_RULES = (_alone, _sum_of_reductions, _slice, _gather)
