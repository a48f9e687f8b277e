"""Operations that each instruction does, and bytes that it reads and writes, by its shapes and attributes.

Sections:

    Work, elements and bytes, and the tables of rules
    Operations of a convolution that meet no padding
    Rules for operations
    Rules for bytes
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, Shape, TupleShape, leaves
from shape_inference.rules import RuleTable
from shape_inference.windows import WindowDimension

from ..core.graph import Computation, Instruction
from ..core.op import OPS, opcodes
from ..properties.placement import is_annotation
from .buffers import order_of, stored_bytes

# ----------------------------------------------------------------------------
# Work, elements and bytes, and the tables of rules

POINTER = 8
"""Bytes of an element of a tuple's pointer table, which reading a tuple reads."""

EXTENT = 4
"""Bytes in which a bounded array stores one of its extents."""


@frozen
class Work:
    """Operations: `flops` are additions, multiplications, comparisons and so on, of any element type; a multiplication
    followed by an addition counts as two. `transcendentals` are values of exp, log, sine and similar functions.
    """

    flops: int = 0
    transcendentals: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.transcendentals + other.transcendentals)

    def __mul__(self, times: int) -> Work:
        return Work(self.flops * times, self.transcendentals * times)


NO_WORK = Work()

WorkOf: TypeAlias = Callable[[Computation], Work]

work_rules = RuleTable("work")
"""opcode -> rule(instruction, work_of): the Work of an instruction; `work_of` gives that of a called computation."""

read_rules = RuleTable("bytes read")
"""opcode -> rule(instruction): bytes read of each operand, for ops that do not read all of each operand."""

written_rules = RuleTable("bytes written")
"""opcode -> rule(instruction): bytes written, for ops that do not write all of their result."""


def count_elements(value: Instruction) -> int:
    """The number of elements of an array; 0 for a tuple or token."""
    return value.shape.size if isinstance(value.shape, Shape) else 0


@lru_cache(maxsize=4096)
def leaf_bytes(shape: AnyShape) -> int:
    """Bytes of all arrays in a shape; types below 8 bits take a byte, a bounded array also stores its extents."""
    arrays = [leaf for leaf in leaves(shape) if isinstance(leaf, Shape)]
    return sum(stored_bytes(leaf) + (EXTENT * leaf.rank if leaf.is_dynamic else 0) for leaf in arrays)


def operand_bytes(shape: AnyShape) -> int:
    """The bytes of reading an operand: the elements of an array, the pointer table of a tuple."""
    return POINTER * len(shape.elements) if isinstance(shape, TupleShape) else leaf_bytes(shape)


# ----------------------------------------------------------------------------
# Operations of a convolution that meet no padding


def meeting_positions(window: WindowDimension, extent: int, positions: int) -> int:
    """The number of pairs (position, offset) of one dimension at which the window covers an element, and no padding.

    Position p and offset k look at p * stride + k * window_dilation - padding_low, which is an element where it is a
    multiple of base_dilation within the base. The longer of the two ranges is counted in closed form.
    """
    ranges = sorted(((positions, window.stride), (window.size, window.window_dilation)))
    (few, pace), (many, stride) = ranges
    if not few or not extent:
        return 0
    offsets = np.arange(few, dtype=np.int64) * pace - window.padding_low
    return int(_count_hits(offsets, many, stride, window.base(extent), window.base_dilation).sum())


def _count_hits(offsets: np.ndarray, count: int, stride: int, end: int, dilation: int) -> np.ndarray:
    """For each offset the number of n < count with offset + n * stride in [0, end) and a multiple of dilation."""
    first = np.maximum(-(offsets // stride), 0)
    last = np.minimum((end - 1 - offsets) // stride, count - 1)
    common = math.gcd(stride, dilation)
    period = dilation // common
    inverse = pow(stride // common, -1, period) if period > 1 else 0
    place = (-offsets // common * inverse) % period
    hits = (last - place) // period - (first - 1 - place) // period
    return np.where((offsets % common == 0) & (last >= first), hits, 0)


# ----------------------------------------------------------------------------
# Rules for operations

_COMPLEX_PRODUCT = 4


def work_of_instruction(instruction: Instruction, work_of: WorkOf) -> Work:
    """The Work of one execution of an instruction, with that of the computations that it calls for elements."""
    opcode = instruction.opcode
    work = OPS[opcode].properties.work
    if work == "rule":
        return work_rules[opcode](instruction, work_of)  # type: ignore[no-any-return]
    if work == "transcendental":
        return Work(transcendentals=count_elements(instruction))
    return Work(count_elements(instruction)) if work == "each" else NO_WORK


def _count_products(instruction: Instruction) -> int:
    lhs = instruction.operands[0].shape
    contracted = math.prod(lhs.dims[d] for d in instruction.attributes.lhs_contracting_dims)  # type: ignore[union-attr]
    return count_elements(instruction) * contracted


@work_rules
def dot(instruction: Instruction, work_of: WorkOf) -> Work:
    return Work(2 * _count_products(instruction))


@work_rules
def scaled_dot(instruction: Instruction, work_of: WorkOf) -> Work:
    return Work(2 * _count_products(instruction))


@work_rules
def ragged_dot(instruction: Instruction, work_of: WorkOf) -> Work:
    """A product of each row with the matrix of its group; rows of a ragged contracted dimension count once."""
    attributes = instruction.attributes
    if set(attributes.lhs_ragged_dims) & set(attributes.lhs_contracting_dims):
        groups = instruction.operands[2].shape.dims[-1]  # type: ignore[union-attr]
        return Work(2 * _count_products(instruction) // max(groups, 1))
    return Work(2 * _count_products(instruction))


@work_rules
def convolution(instruction: Instruction, work_of: WorkOf) -> Work:
    """Two for each product of a kernel element with an input element; padding and holes count none."""
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
    folded = count_elements(instruction.operands[0]) - _positions(instruction)
    return work_of(instruction.attributes.to_apply) * folded


@work_rules
def reduce_window(instruction: Instruction, work_of: WorkOf) -> Work:
    window: int = math.prod(each.size for each in instruction.attributes.window)
    return work_of(instruction.attributes.to_apply) * (_positions(instruction) * (window - 1))


@work_rules
def select_and_scatter(instruction: Instruction, work_of: WorkOf) -> Work:
    attributes, source = instruction.attributes, count_elements(instruction.operands[1])
    window: int = math.prod(each.size for each in attributes.window)
    return work_of(attributes.select) * (source * (window - 1)) + work_of(attributes.scatter) * source


@work_rules
def scatter(instruction: Instruction, work_of: WorkOf) -> Work:
    return work_of(instruction.attributes.to_apply) * count_elements(instruction.operands[-1])


@work_rules
def map_(instruction: Instruction, work_of: WorkOf) -> Work:
    return work_of(instruction.attributes.to_apply) * count_elements(instruction)


@work_rules
def sort(instruction: Instruction, work_of: WorkOf) -> Work:
    """Comparisons of a merge sort over all elements: one for each element and level."""
    count = count_elements(instruction.operands[0])
    return Work(count * _levels(count))


@work_rules
def fft(instruction: Instruction, work_of: WorkOf) -> Work:
    """A complex product and sum for each element and whole level of each transformed dimension."""
    levels = sum(length.bit_length() - 1 for length in instruction.attributes.fft_length if length)
    return Work(2 * _COMPLEX_PRODUCT * levels * count_elements(instruction.operands[0]))


@work_rules
def cholesky(instruction: Instruction, work_of: WorkOf) -> Work:
    matrix = instruction.operands[0]
    return Work(count_elements(matrix) * matrix.shape.dims[-1] // 3)  # type: ignore[union-attr]


@work_rules
def triangular_solve(instruction: Instruction, work_of: WorkOf) -> Work:
    matrix, right = instruction.operands
    return Work(2 * count_elements(right) * matrix.shape.dims[-1])  # type: ignore[union-attr]


@work_rules
def rng(instruction: Instruction, work_of: WorkOf) -> Work:
    return Work(transcendentals=count_elements(instruction))


@work_rules
def rng_bit_generator(instruction: Instruction, work_of: WorkOf) -> Work:
    sizes: list[int] = [shape.size for shape in instruction.shape.elements]  # type: ignore[union-attr]
    return Work(transcendentals=sum(sizes))


@work_rules
def all_reduce(instruction: Instruction, work_of: WorkOf) -> Work:
    """One for each element of the operands: each device adds its share of the work of a group."""
    return Work(sum(map(count_elements, instruction.operands)))


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


# ----------------------------------------------------------------------------
# Rules for bytes

_WITHOUT_MEMORY = opcodes(lambda op: op.is_identity) - {"copy", "opt_barrier"} | {
    "parameter", "constant", "get_tuple_element", "after_all", "bitcast", "call", "while", "conditional", "scan",
    "async_start",
}  # fmt: skip
"""Ops that move no bytes themselves: new names of values, and calls, whose callees are counted."""

_SLICES = frozenset({"slice", "dynamic_slice", "gather"})
"""Ops that read as many bytes of their first operand as they return."""


def bytes_read(instruction: Instruction) -> tuple[int, ...]:
    """Bytes that one execution of an instruction reads of each operand."""
    opcode = instruction.opcode
    if opcode in read_rules:
        return read_rules[opcode](instruction)  # type: ignore[no-any-return]
    if opcode in _WITHOUT_MEMORY or _moves_no_element(instruction):
        return (0,) * len(instruction.operands)
    read = tuple(operand_bytes(operand.shape) for operand in instruction.operands)
    return (leaf_bytes(instruction.shape), *_indices(read[1:])) if opcode in _SLICES else read


def _indices(read: tuple[int, ...]) -> tuple[int, ...]:
    """The bytes of start indices: XLA counts only the first of several numbers."""
    return *read[:1], *(0 for _ in read[1:])


def bytes_written(instruction: Instruction) -> int:
    """Bytes that one execution of an instruction writes."""
    opcode = instruction.opcode
    if opcode in written_rules:
        return written_rules[opcode](instruction)  # type: ignore[no-any-return]
    return 0 if opcode in _WITHOUT_MEMORY or _moves_no_element(instruction) else leaf_bytes(instruction.shape)


def _moves_no_element(instruction: Instruction) -> bool:
    """Whether an instruction moves no element: a transpose with fitting layouts, or a sharding annotation."""
    if instruction.opcode != "transpose":
        return is_annotation(instruction)
    permutation, (operand,) = instruction.attributes.permutation, instruction.operands
    order = [permutation[dim] for dim in order_of(instruction.shape)]  # type: ignore[arg-type]
    wide = [dim for dim in order if operand.shape.dims[dim] != 1]  # type: ignore[union-attr]
    return wide == [dim for dim in order_of(operand.shape) if dim in wide]  # type: ignore[arg-type]


def _nothing_read(instruction: Instruction) -> tuple[int, ...]:
    return (0,) * len(instruction.operands)


def _pointer_bytes(instruction: Instruction) -> int:
    """The bytes of a tuple's pointer table; its elements are not moved."""
    return POINTER * len(instruction.operands)


def _bytes_of_updates(instruction: Instruction) -> int:
    """The bytes that are replaced: those of the updates; the rest of the operand is not moved."""
    return sum(leaf_bytes(update.shape) for update in _updates(instruction))


def _updates(instruction: Instruction) -> tuple[Instruction, ...]:
    if instruction.opcode == "dynamic_update_slice":
        return instruction.operands[1:2]
    return instruction.operands[len(instruction.operands) // 2 + 1 :]


def _read_by_dynamic_update_slice(instruction: Instruction) -> tuple[int, ...]:
    _, update, *starts = (leaf_bytes(operand.shape) for operand in instruction.operands)
    return 0, update, *_indices(tuple(starts))


def _read_by_scatter(instruction: Instruction) -> tuple[int, ...]:
    """As many bytes of each operand as its updates have, the indices, and the updates."""
    updates = tuple(leaf_bytes(update.shape) for update in _updates(instruction))
    return *updates, leaf_bytes(instruction.operands[len(updates)].shape), *updates


def _half_of_matrix(instruction: Instruction) -> int:
    """The bytes of a triangle, counted as half of the matrix."""
    return leaf_bytes(instruction.operands[0].shape) // 2


def _read_by_triangular_solve(instruction: Instruction) -> tuple[int, ...]:
    return _half_of_matrix(instruction), leaf_bytes(instruction.operands[1].shape)


def _read_by_fusion(instruction: Instruction) -> tuple[int, ...]:
    """The bytes that cross the boundary: each slice taken inside, and the operand once for all other uses."""
    body: Computation = instruction.attributes.calls
    read_of_parameters = dict.fromkeys(body.parameters, 0)
    shared: set[Instruction] = set()
    for user in body.instructions:
        for parameter in read_of_parameters.keys() & set(user.operands):
            part = _bytes_of_user(parameter, user)
            read_of_parameters[parameter] += part or 0
            if part is None:
                shared.add(parameter)
    return tuple(
        read + (operand_bytes(each.shape) if each in shared else 0) for each, read in read_of_parameters.items()
    )


def _bytes_of_user(parameter: Instruction, user: Instruction) -> int | None:
    """The bytes of a fusion's operand that a user inside reads for itself; None if it shares a read with others."""
    opcode, is_first = user.opcode, user.operands[0] is parameter
    if opcode == "slice" or (opcode == "dynamic_slice" and is_first):
        return leaf_bytes(user.shape)
    if opcode == "fusion":
        return sum(read for each, read in zip(user.operands, bytes_read(user), strict=True) if each is parameter)
    if opcode in ("broadcast", "reshape"):
        return operand_bytes(parameter.shape)
    return 0 if opcode == "dynamic_update_slice" and is_first else None


def _written_by_fusion(instruction: Instruction) -> int:
    body: Computation = instruction.attributes.calls
    roots = body.root.operands if body.root.opcode == "tuple" else (body.root,)
    return sum(
        bytes_written(root) if root.opcode == "dynamic_update_slice" else leaf_bytes(root.shape) for root in roots
    )


for _opcode, _read in {
    "tuple": _nothing_read,
    "dynamic_update_slice": _read_by_dynamic_update_slice,
    "scatter": _read_by_scatter,
    "triangular_solve": _read_by_triangular_solve,
    "cholesky": lambda instruction: (_half_of_matrix(instruction),),
    "fusion": _read_by_fusion,
}.items():
    read_rules.enter(_opcode, _read)
for _opcode, _written in {
    "tuple": _pointer_bytes,
    "dynamic_update_slice": _bytes_of_updates,
    "scatter": _bytes_of_updates,
    "cholesky": _half_of_matrix,
    "fusion": _written_by_fusion,
}.items():
    written_rules.enter(_opcode, _written)
