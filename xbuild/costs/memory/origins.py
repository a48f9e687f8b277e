"""Rules for where the parts of a result lie: in memory of operands, in memory to take over, or in new memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

from shape_inference import Shape
from shape_inference.rules import RuleTable

from ...core.graph import Instruction
from ...properties.placement import is_annotation
from .fusions import ELEMENTWISE, overwritable
from .parts import is_alike, order_of, part_ends, parts_of, place_of

Origin: TypeAlias = int | tuple[int, ...]
"""A value, where a part of a result is that value; else the values that it may overwrite, the best first."""

Operands: TypeAlias = Sequence[tuple[int, ...]]
"""The values of the parts of each operand."""

NEW: Origin = ()

origin_rules = RuleTable("origins of parts")
"""opcode -> rule(instruction, operands): an Origin for each part of the result."""


def origins(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """An Origin for each part of the result of an instruction that calls nothing but functions of elements."""
    opcode = instruction.opcode
    if opcode in origin_rules:
        return origin_rules[opcode](instruction, operands)  # type: ignore[no-any-return]
    if opcode in ELEMENTWISE:
        return (_alike(instruction, operands),)
    return (NEW,) * len(parts_of(instruction.shape))


def _alike(instruction: Instruction, operands: Operands) -> Origin:
    pairs = zip(instruction.operands, operands, strict=True)
    return tuple(values[0] for each, values in pairs if is_alike(each.shape, instruction.shape))


def _all(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    return operands[0]


def _each(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """Each part of the result may overwrite the operand of the same number."""
    return tuple((operands[n][0],) for n in range(len(parts_of(instruction.shape))))


origin_rules.enter("get_tuple_element", lambda each, operands: operands[0][slice(*_ends(each))])
origin_rules.enter("tuple", lambda each, operands: tuple(chain.from_iterable(operands)))
for _opcode in ("bitcast", "opt_barrier", "domain", "add_dependency", "all_reduce_done", "async_update"):
    origin_rules.enter(_opcode, _all)
for _opcode in ("dynamic_update_slice", "scatter", "sort", "all_reduce", "all_reduce_start"):
    origin_rules.enter(_opcode, _each)


def _ends(instruction: Instruction) -> tuple[int, int]:
    index = instruction.attributes.index
    ends = part_ends(instruction.operands[0].shape)
    return ends[index], ends[index + 1]


@origin_rules
def reshape(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """The operand, where both lie in their plain order; a compiler makes it a bitcast."""
    (operand,) = instruction.operands
    shapes = [each for each in (operand.shape, instruction.shape) if isinstance(each, Shape)]
    return operands[0] if all(order_of(each) == order_of(each.plain()) for each in shapes) else (NEW,)


@origin_rules
def bitcast_convert(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    return (_alike(instruction, operands),)


@origin_rules
def triangular_solve(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    return (operands[1],)


@origin_rules
def fusion(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """What the computation allows, and what a compiler has noted."""
    found: list[Origin] = [NEW] * len(parts_of(instruction.shape))
    numbers = overwritable(instruction.attributes.calls)
    if len(numbers) == len(found):
        found = [tuple(operands[n][0] for n in each) for each in numbers]
    return _noted(instruction, operands, found)


@origin_rules
def custom_call(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """The operand of a note of a sharding; else what a compiler has noted."""
    if is_annotation(instruction):
        return operands[0]
    return _noted(instruction, operands, [NEW] * len(parts_of(instruction.shape)))


def _noted(instruction: Instruction, operands: Operands, found: list[Origin]) -> Sequence[Origin]:
    """With the aliases that `output_to_operand_aliasing` states."""
    for output, number, index in instruction.attributes.output_to_operand_aliasing:
        place = place_of(instruction.shape, output)
        other = place_of(instruction.operands[number].shape, index) if number < len(operands) else None
        if place is not None and other is not None:
            found[place] = (operands[number][other],)
    return found


def _with_operands(first: int) -> Callable[[Instruction, Operands], Sequence[Origin]]:
    """A start whose result holds its operands beside new memory, from part `first` on."""

    def rule(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
        found: list[Origin] = [NEW] * len(parts_of(instruction.shape))
        given = tuple(chain.from_iterable(operands))[: len(found) - first]
        found[first : first + len(given)] = given
        return found

    return rule


for _opcode in ("all_gather_start", "collective_permute_start", "async_start", "send"):
    origin_rules.enter(_opcode, _with_operands(0))
origin_rules.enter("copy_start", _with_operands(1))


def _element(number: int) -> Callable[[Instruction, Operands], Sequence[Origin]]:
    """A done, whose result is an element of its start's; new memory where it gives more (a token)."""

    def rule(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
        ends = part_ends(instruction.operands[0].shape)
        wanted = len(parts_of(instruction.shape))
        found = operands[0][ends[number] : ends[number + 1]][:wanted]
        return (*found, *(NEW,) * (wanted - len(found)))

    return rule


for _opcode, _number in {
    "all_gather_done": 1, "collective_permute_done": 1, "async_done": 1, "copy_done": 0, "recv_done": 0,
}.items():  # fmt: skip
    origin_rules.enter(_opcode, _element(_number))
