"""Expansion of an instruction into several where HLO text has no single instruction for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs

from shape_inference import Shape
from shape_inference.dims import wider

from ...core.graph import NOTHING, Instruction
from ...core.op import OPS, opcodes


def expansion(instruction: Instruction) -> tuple[Instruction, ...]:
    """The instructions that HLO text has for an instruction, mostly itself alone; the last one has its name."""
    expand = _EXPANSIONS.get(instruction.opcode)
    return expand(instruction) if expand else (instruction,)


def _all_to_all(whole: Instruction) -> tuple[Instruction, ...]:
    """Expand an all-to-all of two dimensions, since HLO's all-to-all splits and concatenates the same dimension.

    With n members: exchange along the split dimension S, reshape S to (n, S/n), transpose n to the position before the
    concatenation dimension C, and reshape (n, C) to n * C.
    """
    a = whole.attributes
    if a.split_dimension is None or a.concat_dimension in (None, a.split_dimension):
        return (whole,)
    operand = whole.operands[0].shape.plain()
    assert isinstance(operand, Shape)
    assert isinstance(whole.shape, Shape)
    split, concat, count = a.split_dimension, a.concat_dimension, a.split_count
    cut = (*operand.dims[:split], count, operand.dims[split] // count, *operand.dims[split + 1 :])
    others = [dim for dim in range(len(cut)) if dim != split]
    place = others.index(concat if concat < split else concat + 1)
    order = (*others[:place], split, *others[place:])
    moved_dims = tuple(cut[dim] for dim in order)

    exchanged = attrs.evolve(
        whole, name=f"{whole.name}.exchanged", shape=operand, attributes=attrs.evolve(a, concat_dimension=split)
    )
    parts = _after(exchanged, "parts", "reshape", cut, new_sizes=cut)
    moved = _after(parts, "moved", "transpose", moved_dims, permutation=order)
    joined = _after(moved, "", "reshape", whole.shape.dims, new_sizes=whole.shape.dims)
    return exchanged, parts, moved, attrs.evolve(joined, name=whole.name, shape=whole.shape)


def _after(operand: Instruction, suffix: str, opcode: str, dims: tuple[int, ...], **attributes: Any) -> Instruction:
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


def _pad(whole: Instruction) -> tuple[Instruction, ...]:
    """Expand a pad of a scalar to a copy, since HLO text cannot express an empty padding."""
    if whole.attributes.padding:
        return one_precision(whole)
    return (attrs.evolve(whole, opcode="copy", operands=whole.operands[:1], attributes=None),)


def one_precision(whole: Instruction) -> tuple[Instruction, ...]:
    """Convert narrower float operands to the widest float type, since ops in HLO text have one precision."""
    shapes = [operand.shape for operand in whole.operands]
    floats = [shape.dtype for shape in shapes if isinstance(shape, Shape) and shape.dtype.is_float]
    if len(set(floats)) < 2:
        return (whole,)
    wide = functools.reduce(wider, floats)
    converted: dict[Instruction, Instruction] = {}
    for number, operand in enumerate(whole.operands):
        shape = operand.shape
        if isinstance(shape, Shape) and shape.dtype.is_float and shape.dtype is not wide:
            converted.setdefault(operand, _converted(whole, operand, shape.with_dtype(wide), number))
    operands = tuple(converted.get(operand, operand) for operand in whole.operands)
    worked = attrs.evolve(whole, operands=operands)
    if whole.opcode not in _LIKE_OPERAND or not isinstance(whole.shape, Shape) or whole.shape.dtype is wide:
        return (*converted.values(), worked)
    widened = attrs.evolve(worked, name=f"{whole.name}.wide", shape=whole.shape.with_dtype(wide))
    narrowed = attrs.evolve(_converted(whole, widened, whole.shape, 0), name=whole.name)
    return (*converted.values(), widened, narrowed)


def _converted(whole: Instruction, operand: Instruction, shape: Shape, number: int) -> Instruction:
    record = OPS["convert"].attributes
    assert record is not None
    attributes = record(new_element_type=shape.dtype)
    return Instruction("convert", f"{whole.name}.operand.{number}", shape, (operand,), None, attributes, whole.where)


ONE_PRECISION = opcodes(lambda op: op.mixes_precisions)
"""Ops that mix floats of two precisions in XlaBuilder, and so in shape inference, but not in HLO text."""

_LIKE_OPERAND = ("clamp", "dynamic_update_slice")  # the result has the type of one operand

_EXPANSIONS: dict[str, Callable[[Instruction], tuple[Instruction, ...]]] = {
    **dict.fromkeys(ONE_PRECISION, one_precision),
    "all_to_all": _all_to_all,
    "pad": _pad,
}
