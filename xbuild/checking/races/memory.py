"""Where a compiled program keeps its values: which results are operands, and which are written over operands.

HLO values never change, but buffers do: some ops write their result over an operand. A compiler inserts copies wherever
the operand is still needed, before it schedules a program. A scheduled text is therefore taken at its word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from shape_inference import AnyShape, TokenShape
from shape_inference.trees import Path

from ...core.graph import Computation, Instruction
from ...core.op import opcodes
from ...costs.buffers import origins, parts_of
from ...properties.effects import HALVES, is_in_place
from ...properties.placement import is_annotation
from ...properties.sources import Place, operands_behind
from ...text.header import ALIASES, stated_aliases

Writes: TypeAlias = Mapping[Path, tuple[int, Path]]
"""For each part of a result that is written over an operand: the number of the operand, and its part."""

_VIEWS = (opcodes(lambda op: op.is_identity) - {"copy"}) | HALVES | {"get_tuple_element", "tuple", "bitcast"}
_NOTHING: Writes = {}


def arrays_of(shape: AnyShape) -> Iterator[Path]:
    """The index of each array of a shape; tokens take no memory."""
    return (path for path, leaf in parts_of(shape) if not isinstance(leaf, TokenShape))


def is_view(instruction: Instruction) -> bool:
    """Whether parts of the result are operands, which the op does not read."""
    return instruction.opcode in _VIEWS or is_annotation(instruction)


def operands_in(instruction: Instruction) -> Mapping[Path, Place]:
    """The parts of a result that are operands, each with the operand and its part.

    A start holds its operands next to its results, and a done returns the results of its start.
    """
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "get_tuple_element":
        index = instruction.attributes.index
        return {path: (operands[0], (index, *path)) for path in arrays_of(instruction.shape)}
    if opcode == "tuple":
        return {
            (number, *path): (operand, path)
            for number, operand in enumerate(operands)
            for path in arrays_of(operand.shape)
        }
    if not is_view(instruction):
        return {}
    listed: list[Place | None] = []
    numbers: list[tuple[int, ...]] = []
    for operand in operands:
        parts = parts_of(operand.shape)
        numbers.append(tuple(range(len(listed), len(listed) + len(parts))))
        listed += [None if isinstance(leaf, TokenShape) else (operand, path) for path, leaf in parts]
    written, views = written_over(instruction), {}
    for (path, _), each in zip(parts_of(instruction.shape), origins(instruction, numbers), strict=True):
        place = listed[each] if isinstance(each, int) else None
        if place is not None and path not in written:
            views[path] = place
    return views


def written_over(instruction: Instruction) -> Writes:
    """The parts of a result that are written over an operand, by the semantics of the op or by what its text states.

    Source: XLA, AliasInfo::GetInPlaceInputOutputPairs. Unlike there, an async-start writes where the op that it wraps
    writes, also if its text does not state it; and an all-reduce-start writes to memory of its own, as it does where
    XLA's backend needs that.
    """
    if instruction.opcode not in _WRITING:
        return _NOTHING
    results = {*arrays_of(instruction.shape)}
    return {
        output: (number, path)
        for output, (number, path) in _pairs(instruction).items()
        if output in results
        and number < len(instruction.operands)
        and path in arrays_of(instruction.operands[number].shape)
    }


def _pairs(instruction: Instruction) -> Writes:
    """The pairs of `written_over`, with those of tuples, and with any numbers that a text states."""
    opcode = instruction.opcode
    if opcode in ("dynamic_update_slice", "set_dimension_size"):
        return {(): (0, ())}
    if opcode == "ragged_all_to_all":
        return {(): (1, ())}
    if opcode == "scatter":
        return {path: (number, ()) for number, (path, _) in enumerate(parts_of(instruction.shape))}
    if opcode in ("collective_permute", "collective_permute_start"):
        return _into_second(instruction) if is_in_place(instruction) else _NOTHING
    if opcode == "async_start":
        return _wrapped_writes(instruction)
    stated = {output: (number, index) for output, number, index in instruction.attributes.output_to_operand_aliasing}
    return stated if opcode == "custom_call" else {**_fused_writes(instruction.attributes.calls), **stated}


_WRITING = frozenset({
    "async_start", "collective_permute", "collective_permute_start", "custom_call",
    "dynamic_update_slice", "fusion", "ragged_all_to_all", "scatter", "set_dimension_size",
})  # fmt: skip


def states_aliases(instruction: Instruction) -> bool:
    """Whether the text of an instruction says that it writes over an operand."""
    name = "output_to_operand_aliasing"
    return bool(instruction.attribute_values().get(name) or instruction.annotations.get(name))


def _into_second(permute: Instruction) -> Writes:
    """The result of a permutation in place, over its second operand."""
    inner = parts_of(permute.operands[1].shape)
    before = (1,) if permute.opcode == "collective_permute_start" else ()
    return {(*before, *path): (1, path) for path, _ in inner}


def _wrapped_writes(start: Instruction) -> Writes:
    inner = {(1, *output): given for output, given in _fused_writes(start.attributes.calls).items()}
    stated = stated_aliases({ALIASES: start.annotations.get("output_to_operand_aliasing", "")})
    return {**inner, **{each.output: (each.number, each.index) for each in stated}}


def _fused_writes(body: Computation) -> Writes:
    """The parameters over which an op at the root of a fusion, or of an async computation, writes."""
    found: dict[Path, tuple[int, Path]] = {}
    for output in arrays_of(body.root.shape):
        root, path = _through_tuples(body.root, output)
        if path in (writes := written_over(root)):
            number, index = writes[path]
            source, index = _through_tuples(root.operands[number], index)
            if source.opcode == "fusion" and index in (inner := written_over(source)):
                number, index = inner[index]
                source, index = _through_tuples(source.operands[number], index)
            source = source.operands[0] if source.opcode == "bitcast" else source
            if source.opcode == "parameter":
                found[output] = source.attributes.number, index
    return found


def _through_tuples(instruction: Instruction, path: Path) -> Place:
    while (instruction.opcode == "tuple" and path) or instruction.opcode == "get_tuple_element":
        ((instruction, path),) = operands_behind(instruction, path)
    return instruction, path
