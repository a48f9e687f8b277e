"""Rules for bytes: how many an instruction reads of each operand and writes, by its shapes."""

from __future__ import annotations

from collections.abc import Sequence

from shape_inference import AnyShape, Shape

from ..core.graph import Computation, Instruction
from ..core.op import opcodes
from ..properties.placement import is_annotation
from .work import POINTER, leaf_bytes, operand_bytes, read_rules, written_rules

_WITHOUT_MEMORY = opcodes(lambda op: op.is_identity) - {"copy", "opt_barrier"} | {
    "parameter", "constant", "get_tuple_element", "after_all", "bitcast", "call", "while", "conditional", "scan",
    "async_start",
}  # fmt: skip
"""Ops that move no bytes of their own: names of values that exist, and calls, whose callees are counted."""

_SLICES = frozenset({"slice", "dynamic_slice", "gather"})
"""Ops that read as many bytes of their first operand as they give."""


def bytes_read(instruction: Instruction) -> tuple[int, ...]:
    """Bytes that one execution of an instruction reads of each operand."""
    opcode = instruction.opcode
    if opcode in read_rules:
        return read_rules[opcode](instruction)  # type: ignore[no-any-return]
    if opcode in _WITHOUT_MEMORY or _is_renamed(instruction):
        return (0,) * len(instruction.operands)
    whole = tuple(operand_bytes(operand.shape) for operand in instruction.operands)
    return (leaf_bytes(instruction.shape), *_indices(whole[1:])) if opcode in _SLICES else whole


def _indices(read: tuple[int, ...]) -> tuple[int, ...]:
    """The bytes of start indices: XLA counts the first of several numbers."""
    return *read[:1], *(0 for _ in read[1:])


def bytes_written(instruction: Instruction) -> int:
    """Bytes that one execution of an instruction writes."""
    opcode = instruction.opcode
    if opcode in written_rules:
        return written_rules[opcode](instruction)  # type: ignore[no-any-return]
    return 0 if opcode in _WITHOUT_MEMORY or _is_renamed(instruction) else leaf_bytes(instruction.shape)


def _is_renamed(instruction: Instruction) -> bool:
    """Whether an instruction leaves every element where it is: by the layouts a transpose, or a note of a sharding."""
    if instruction.opcode != "transpose":
        return is_annotation(instruction)
    permutation, (operand,) = instruction.attributes.permutation, instruction.operands
    order = [permutation[dim] for dim in _minor_to_major(instruction.shape)]
    wide = [dim for dim in order if operand.shape.dims[dim] != 1]  # type: ignore[union-attr]
    return wide == [dim for dim in _minor_to_major(operand.shape) if dim in wide]


def _minor_to_major(shape: AnyShape) -> Sequence[int]:
    """The dimensions of an array from the one whose elements are next to each other."""
    assert isinstance(shape, Shape)
    return shape.layout.minor_to_major if shape.layout is not None else range(shape.rank - 1, -1, -1)


def _nothing_read(instruction: Instruction) -> tuple[int, ...]:
    return (0,) * len(instruction.operands)


def _pointers(instruction: Instruction) -> int:
    """The bytes of a tuple's table of pointers; the elements stay where they are."""
    return POINTER * len(instruction.operands)


def _update(instruction: Instruction) -> int:
    """The bytes that are replaced: those of the updates, the rest of the operand stays where it is."""
    return sum(leaf_bytes(update.shape) for update in _updates(instruction))


def _updates(instruction: Instruction) -> tuple[Instruction, ...]:
    if instruction.opcode == "dynamic_update_slice":
        return instruction.operands[1:2]
    return instruction.operands[len(instruction.operands) // 2 + 1 :]


@read_rules
def dynamic_update_slice(instruction: Instruction) -> tuple[int, ...]:
    _, update, *starts = (leaf_bytes(operand.shape) for operand in instruction.operands)
    return 0, update, *_indices(tuple(starts))


@read_rules
def scatter(instruction: Instruction) -> tuple[int, ...]:
    """As many bytes of each operand as its updates have, the indices, and the updates."""
    updates = tuple(leaf_bytes(update.shape) for update in _updates(instruction))
    return *updates, leaf_bytes(instruction.operands[len(updates)].shape), *updates


def _half(instruction: Instruction) -> int:
    """The bytes of a triangle, counted as half of the matrix."""
    return leaf_bytes(instruction.operands[0].shape) // 2


@read_rules
def triangular_solve(instruction: Instruction) -> tuple[int, ...]:
    return _half(instruction), leaf_bytes(instruction.operands[1].shape)


@read_rules
def cholesky(instruction: Instruction) -> tuple[int, ...]:
    return (_half(instruction),)


@read_rules
def fusion(instruction: Instruction) -> tuple[int, ...]:
    """What crosses the border: of an operand that is sliced inside each slice, and the whole once for all others."""
    body: Computation = instruction.attributes.calls
    taken = dict.fromkeys(body.parameters, 0)
    shared: set[Instruction] = set()
    for user in body.instructions:
        for parameter in taken.keys() & set(user.operands):
            part = _part(parameter, user)
            taken[parameter] += part or 0
            if part is None:
                shared.add(parameter)
    return tuple(read + (operand_bytes(each.shape) if each in shared else 0) for each, read in taken.items())


def _part(parameter: Instruction, user: Instruction) -> int | None:
    """The bytes of an operand of a fusion that a user inside reads by itself; None where it shares what others read."""
    opcode, is_first = user.opcode, user.operands[0] is parameter
    if opcode == "slice" or (opcode == "dynamic_slice" and is_first):
        return leaf_bytes(user.shape)
    if opcode == "fusion":
        return sum(read for each, read in zip(user.operands, bytes_read(user), strict=True) if each is parameter)
    if opcode in ("broadcast", "reshape"):
        return operand_bytes(parameter.shape)
    return 0 if opcode == "dynamic_update_slice" and is_first else None


def _result_of_fusion(instruction: Instruction) -> int:
    body: Computation = instruction.attributes.calls
    roots = body.root.operands if body.root.opcode == "tuple" else (body.root,)
    return sum(
        bytes_written(root) if root.opcode == "dynamic_update_slice" else leaf_bytes(root.shape) for root in roots
    )


read_rules.enter("tuple", _nothing_read)
for _opcode, _rule in {
    "tuple": _pointers,
    "dynamic_update_slice": _update,
    "scatter": _update,
    "cholesky": _half,
    "fusion": _result_of_fusion,
}.items():
    written_rules.enter(_opcode, _rule)
