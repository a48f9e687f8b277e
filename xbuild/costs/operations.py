"""Rules for operations: how many an instruction does, by its shapes and attributes."""

from __future__ import annotations

import math

from shape_inference import Shape, TupleShape

from ..core.graph import Instruction
from ..core.op import OPS
from .positions import meeting_positions
from .work import NO_WORK, Work, WorkOf, elements, work_rules

_COMPLEX_PRODUCT = 4


def work_of_instruction(instruction: Instruction, work_of: WorkOf) -> Work:
    """The Work of one execution of an instruction, with that of the computations that it calls for elements."""
    opcode = instruction.opcode
    work = OPS[opcode].properties.work
    if work == "rule":
        return work_rules[opcode](instruction, work_of)  # type: ignore[no-any-return]
    if work == "transcendental":
        return Work(transcendentals=elements(instruction))
    return Work(elements(instruction)) if work == "each" else NO_WORK


def _products(instruction: Instruction) -> int:
    lhs = instruction.operands[0].shape
    contracted = math.prod(lhs.dims[d] for d in instruction.attributes.lhs_contracting_dims)  # type: ignore[union-attr]
    return elements(instruction) * contracted


@work_rules
def dot(instruction: Instruction, work_of: WorkOf) -> Work:
    return Work(2 * _products(instruction))


@work_rules
def scaled_dot(instruction: Instruction, work_of: WorkOf) -> Work:
    return Work(2 * _products(instruction))


@work_rules
def ragged_dot(instruction: Instruction, work_of: WorkOf) -> Work:
    """A product of each row with the matrix of its group; of a ragged contracted dimension each row is used once."""
    attributes = instruction.attributes
    if set(attributes.lhs_ragged_dims) & set(attributes.lhs_contracting_dims):
        groups = instruction.operands[2].shape.dims[-1]  # type: ignore[union-attr]
        return Work(2 * _products(instruction) // max(groups, 1))
    return Work(2 * _products(instruction))


@work_rules
def convolution(instruction: Instruction, work_of: WorkOf) -> Work:
    """Two for each product of a kernel element with an element of the input; padding and holes take none."""
    numbers, attributes = instruction.attributes.dimension_numbers, instruction.attributes
    lhs, rhs = (operand.shape.dims for operand in instruction.operands)  # type: ignore[union-attr]
    spatial = zip(attributes.window, numbers.input_spatial_dimensions, numbers.output_spatial_dimensions, strict=True)
    meeting: list[int] = [
        meeting_positions(window, lhs[i], instruction.shape.dims[o])  # type: ignore[union-attr]
        for window, i, o in spatial
    ]
    places = math.prod(meeting)
    batch = lhs[numbers.input_batch_dimension] // attributes.batch_group_count
    inner, outer = rhs[numbers.kernel_input_feature_dimension], rhs[numbers.kernel_output_feature_dimension]
    return Work(2 * places * batch * inner * outer)


@work_rules
def reduce(instruction: Instruction, work_of: WorkOf) -> Work:
    """One application for each element that is folded into another."""
    folded = elements(instruction.operands[0]) - _positions(instruction)
    return work_of(instruction.attributes.to_apply) * folded


@work_rules
def reduce_window(instruction: Instruction, work_of: WorkOf) -> Work:
    window: int = math.prod(each.size for each in instruction.attributes.window)
    return work_of(instruction.attributes.to_apply) * (_positions(instruction) * (window - 1))


@work_rules
def select_and_scatter(instruction: Instruction, work_of: WorkOf) -> Work:
    attributes, source = instruction.attributes, elements(instruction.operands[1])
    window: int = math.prod(each.size for each in attributes.window)
    return work_of(attributes.select) * (source * (window - 1)) + work_of(attributes.scatter) * source


@work_rules
def scatter(instruction: Instruction, work_of: WorkOf) -> Work:
    return work_of(instruction.attributes.to_apply) * elements(instruction.operands[-1])


@work_rules
def map_(instruction: Instruction, work_of: WorkOf) -> Work:
    return work_of(instruction.attributes.to_apply) * elements(instruction)


@work_rules
def sort(instruction: Instruction, work_of: WorkOf) -> Work:
    """Comparisons of a merge sort over all elements: one for each element and level."""
    count = elements(instruction.operands[0])
    return Work(count * _levels(count))


@work_rules
def fft(instruction: Instruction, work_of: WorkOf) -> Work:
    """A complex product and sum for each element and whole level of each transformed dimension."""
    levels = sum(length.bit_length() - 1 for length in instruction.attributes.fft_length if length)
    return Work(2 * _COMPLEX_PRODUCT * levels * elements(instruction.operands[0]))


@work_rules
def cholesky(instruction: Instruction, work_of: WorkOf) -> Work:
    matrix = instruction.operands[0]
    return Work(elements(matrix) * matrix.shape.dims[-1] // 3)  # type: ignore[union-attr]


@work_rules
def triangular_solve(instruction: Instruction, work_of: WorkOf) -> Work:
    matrix, right = instruction.operands
    return Work(2 * elements(right) * matrix.shape.dims[-1])  # type: ignore[union-attr]


@work_rules
def rng(instruction: Instruction, work_of: WorkOf) -> Work:
    return Work(transcendentals=elements(instruction))


@work_rules
def rng_bit_generator(instruction: Instruction, work_of: WorkOf) -> Work:
    sizes: list[int] = [each.size for each in instruction.shape.elements]  # type: ignore[union-attr]
    return Work(transcendentals=sum(sizes))


@work_rules
def all_reduce(instruction: Instruction, work_of: WorkOf) -> Work:
    """One for each element of the operands: each device adds its share of the work of a group."""
    return Work(sum(map(elements, instruction.operands)))


work_rules.enter("all_reduce_start", all_reduce)


@work_rules
def fusion(instruction: Instruction, work_of: WorkOf) -> Work:
    return work_of(instruction.attributes.calls)


def _positions(instruction: Instruction) -> int:
    """The number of elements of the result, or of the first of several results."""
    shape = instruction.shape.elements[0] if isinstance(instruction.shape, TupleShape) else instruction.shape
    return shape.size if isinstance(shape, Shape) else 0


def _levels(count: int) -> int:
    """The levels of a tree over `count` leaves: ceil(log2(count))."""
    return max(count - 1, 0).bit_length()
