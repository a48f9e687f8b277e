"""Expansion of instructions for which HLO text has no single instruction."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs

from shape_inference import Dims, Shape
from shape_inference.dims import wider

from ..core.graph import NOTHING, Instruction
from ..core.op import OPS, opcodes


def expansion(instruction: Instruction) -> tuple[Instruction, ...]:
    """The instructions that HLO text has for an instruction, usually only itself; the last has its name."""
    rule = _EXPANSIONS.get(instruction.opcode)
    return rule(instruction) if rule else (instruction,)


def _expand_all_to_all(original: Instruction) -> tuple[Instruction, ...]:
    """Expand an all-to-all of two dimensions, since HLO's all-to-all splits and concatenates the same dimension.

    With n members: exchange along the split dimension S, reshape S to (n, S/n), transpose n to the position before the
    concatenation dimension C, and reshape (n, C) to n * C.
    """
    a = original.attributes
    if a.split_dimension is None or a.concat_dimension in (None, a.split_dimension):
        return (original,)
    operand = original.operands[0].shape.plain()
    assert isinstance(operand, Shape)
    assert isinstance(original.shape, Shape)
    split, concat, count = a.split_dimension, a.concat_dimension, a.split_count
    sizes, order = exchanged_parts(operand.dims, split, concat, count)
    moved_dims = tuple(sizes[dim] for dim in order)

    exchanged = attrs.evolve(
        original, name=f"{original.name}.exchanged", shape=operand, attributes=attrs.evolve(a, concat_dimension=split)
    )
    parts = _append(exchanged, "parts", "reshape", sizes, new_sizes=sizes)
    moved = _append(parts, "moved", "transpose", moved_dims, permutation=order)
    joined = _append(moved, "", "reshape", original.shape.dims, new_sizes=original.shape.dims)
    return exchanged, parts, moved, attrs.evolve(joined, name=original.name, shape=original.shape)


def exchanged_parts(dims: Dims, split: int, concat: int, count: int) -> tuple[Dims, Dims]:
    """The extents with the split dimension as (count, part), and the permutation that moves count before concat.

    >>> exchanged_parts((2, 16), 1, 0, 4)
    ((2, 4, 4), (1, 0, 2))
    """
    sizes = (*dims[:split], count, dims[split] // count, *dims[split + 1 :])
    others = [dim for dim in range(len(sizes)) if dim != split]
    place = others.index(concat if concat < split else concat + 1)
    return sizes, (*others[:place], split, *others[place:])


def _append(operand: Instruction, suffix: str, opcode: str, dims: tuple[int, ...], **attributes: Any) -> Instruction:
    record = OPS[opcode].attributes
    assert record is not None
    assert isinstance(operand.shape, Shape)
    return Instruction(
        opcode,
        f"{operand.name.rpartition('.')[0]}.{suffix}",
        Shape(operand.shape.dtype, dims),
        (operand,),
        None,
        record(**attributes),
        operand.where,
        (),
        NOTHING,
    )


def _expand_pad(original: Instruction) -> tuple[Instruction, ...]:
    """Expand a pad of a scalar to a copy, since HLO text cannot express an empty padding."""
    if original.attributes.padding:
        return one_precision(original)
    return (attrs.evolve(original, opcode="copy", operands=original.operands[:1], attributes=None),)


def one_precision(original: Instruction) -> tuple[Instruction, ...]:
    """Convert narrower float operands to the widest float type, since ops in HLO text have one precision."""
    shapes = [operand.shape for operand in original.operands]
    floats = [shape.dtype for shape in shapes if isinstance(shape, Shape) and shape.dtype.is_float]
    if len(set(floats)) < 2:
        return (original,)
    wide = functools.reduce(wider, floats)
    converted: dict[Instruction, Instruction] = {}
    for number, operand in enumerate(original.operands):
        shape = operand.shape
        if isinstance(shape, Shape) and shape.dtype.is_float and shape.dtype is not wide:
            converted.setdefault(operand, _convert(original, operand, shape.with_dtype(wide), number))
    operands = tuple(converted.get(operand, operand) for operand in original.operands)
    worked = attrs.evolve(original, operands=operands)
    if original.opcode not in _LIKE_OPERAND or not isinstance(original.shape, Shape) or original.shape.dtype is wide:
        return (*converted.values(), worked)
    widened = attrs.evolve(worked, name=f"{original.name}.wide", shape=original.shape.with_dtype(wide))
    narrowed = attrs.evolve(_convert(original, widened, original.shape, 0), name=original.name)
    return (*converted.values(), widened, narrowed)


def _convert(original: Instruction, operand: Instruction, shape: Shape, number: int) -> Instruction:
    record = OPS["convert"].attributes
    assert record is not None
    attributes = record(new_element_type=shape.dtype)
    return Instruction(
        "convert", f"{original.name}.operand.{number}", shape, (operand,), None, attributes, original.where
    )


ONE_PRECISION = opcodes(lambda op: op.mixes_precisions)
"""Ops whose operands may be floats of two precisions in XlaBuilder and shape inference, but not in HLO text."""

_LIKE_OPERAND = ("clamp", "dynamic_update_slice")  # the result has the type of one operand

_EXPANSIONS: dict[str, Callable[[Instruction], tuple[Instruction, ...]]] = {
    **dict.fromkeys(ONE_PRECISION, one_precision),
    "all_to_all": _expand_all_to_all,
    "pad": _expand_pad,
}
