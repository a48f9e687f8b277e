"""Shortcuts of a plan that reports nothing: values known in advance, operands that NumPy broadcasts, reused arrays.

Sections:

    Which values are known when the plan is made
    Which operands NumPy broadcasts itself, and which products are transposed
    Which results take the array of an operand
    The shortcuts of a computation
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from shape_inference import Dims, Shape
from shape_inference.elided import ElidedArray
from shape_inference.types import c64, c128, f32, f64
from xbuild.core.attributes import Array
from xbuild.core.graph import Computation, Instruction
from xbuild.core.memos import remembered
from xbuild.core.op import opcodes
from xbuild.properties.order import live_instructions, users_of

from ..kernels import functions
from ..kernels.elementwise import BINARY, UNARY
from ..kernels.moving import SMALL
from ..rules import compute
from .facts import live, unrounded_sums

Source: TypeAlias = tuple[Instruction, str]
"""The value that a plan reads for an operand, and the text after the value's name, such as `[:, None]`."""


def static_shape(instruction: Instruction) -> Shape | None:
    """The shape of an array without dynamic dimensions; None for other values."""
    shape = instruction.shape
    return shape if isinstance(shape, Shape) and not shape.dynamic else None


def native_type(instruction: Instruction) -> np.dtype[Any] | None:
    """The one NumPy type of an instruction's operands, if NumPy itself computes in it and no size is dynamic."""
    shapes = [static_shape(operand) for operand in instruction.operands]
    types = {shape.dtype if shape else None for shape in shapes}
    only = types.pop() if len(types) == 1 else None
    return only.dtype if only is not None and only.is_native else None


def ufunc_of(instruction: Instruction) -> np.ufunc | None:
    """The NumPy function that computes an elementwise op; None if none does."""
    dtype, kernels = native_type(instruction), BINARY.get(instruction.opcode) or UNARY.get(instruction.opcode)
    kernel = kernels.get(dtype.kind) if kernels and dtype is not None else None
    return kernel if isinstance(kernel, np.ufunc) else None


# ----------------------------------------------------------------------------
# Which values are known when the plan is made: constants, moved.

MOST_BYTES = 1 << 24
"""The most bytes of arrays that the plan of one computation keeps; it computes others at each run."""

_MOVES = frozenset({"broadcast", "iota", "reshape", "transpose"})


def _known_values(computation: Computation) -> dict[Instruction, Array]:
    """The arrays that are moved constants, read-only so that no caller gets one without a copy."""
    known: dict[Instruction, Array] = {}
    left = MOST_BYTES
    for instruction in computation.instructions:
        shape = static_shape(instruction) if instruction.opcode in _MOVES else None
        if shape is None or not shape.dims:
            continue
        operands = [_literal_of(operand, known) for operand in instruction.operands]
        if any(operand is None for operand in operands) or (instruction.opcode != "broadcast" and shape.bytes > left):
            continue
        with np.errstate(all="ignore"):
            value = compute[instruction.opcode](*operands, **instruction.attribute_values())
        left -= 0 if 0 in value.strides else value.nbytes
        value.flags.writeable = False
        known[instruction] = value
    return known


def _literal_of(instruction: Instruction, known: Mapping[Instruction, Array]) -> Array | None:
    if instruction.opcode == "constant" and not isinstance(instruction.attributes.literal, ElidedArray):
        return instruction.attributes.literal  # type: ignore[no-any-return]
    return known.get(instruction)


_BESIDE_NUMBERS = frozenset({"maximum", "minimum"})
"""The ops that NumPy computes faster with a row of equal numbers than with one number."""


def _number_place(instruction: Instruction, found: Shortcuts) -> int | None:
    """The place of the operand of a maximum or a minimum that is one number, beside a complete operand."""
    if instruction.opcode not in _BESIDE_NUMBERS or native_type(instruction) is None:
        return None
    sources = found.sources_of(instruction)
    for place, (value, _) in enumerate(sources):
        number, (other, suffix) = found.constants.get(value), sources[1 - place]
        if number is None or not number.size or any(number.strides) or other in found.constants:
            continue
        if number.flat[0] == number.flat[0]:  # of two NaNs NumPy returns either
            return place if not suffix and other.shape.dims == instruction.shape.dims else None  # type: ignore[union-attr]
    return None


# ----------------------------------------------------------------------------
# Which operands NumPy broadcasts itself: beside a complete operand, an operand that is broadcast needs no line.


def _broadcasts_operands(instruction: Instruction) -> bool:
    """Whether the code of an op broadcasts its operands as NumPy does."""
    if static_shape(instruction) is None or len(instruction.operands) < 2:
        return False
    if instruction.opcode == "select":
        pred, on_true, on_false = (static_shape(operand) for operand in instruction.operands)
        if pred is None or not pred.dims or on_true is None or on_false is None:
            return False
        return on_true.dtype is on_false.dtype and on_true.dtype.is_native
    if instruction.opcode == "compare":
        return native_type(instruction) is not None and instruction.attributes.type != "TOTALORDER"
    kernels, dtype = BINARY.get(instruction.opcode), native_type(instruction)
    kernel = kernels.get(dtype.kind) if kernels and dtype is not None else None
    return isinstance(kernel, np.ufunc) or kernel in (functions.maximum, functions.minimum)


def _sources(
    instruction: Instruction, known: Mapping[Instruction, Array], in_c_order: AbstractSet[Instruction]
) -> tuple[Source, ...] | None:
    """The sources of an op's operands, if an operand is a broadcast that its code does itself, or a view of itself."""
    for operand in instruction.operands:
        if operand.opcode in ("broadcast", "reshape") and operand not in known:
            break
    else:
        return None
    complete: list[Source] = [(o if o in known else _without_views(o), "") for o in instruction.operands]
    narrow: list[Source | None] = [None] * len(complete)
    if _broadcasts_operands(instruction) and _has_one_order(instruction, in_c_order):
        narrow = [None if operand in known else _narrow(operand) for operand in instruction.operands]
        if instruction.opcode == "select" or all(narrow):
            narrow[0] = None
    found = tuple(each or other for each, other in zip(narrow, complete, strict=True))
    return None if all(value is o for (value, _), o in zip(found, instruction.operands, strict=True)) else found


def _has_one_order(instruction: Instruction, in_c_order: AbstractSet[Instruction]) -> bool:
    """Whether the result has the same order of elements in memory if an operand is not broadcast before.

    A small broadcast is a copy in C order, and a result in C order follows; without it, the result has the order of the
    other operands. Sums and products round by this order.
    """
    shape = static_shape(instruction)
    if shape is None or shape.size > SMALL or len(_long_dims(instruction)) <= 1:
        return True
    return any(operand in in_c_order and operand.shape.dims == shape.dims for operand in instruction.operands)  # type: ignore[union-attr]


def _values_in_c_order(computation: Computation) -> set[Instruction]:
    """The values whose elements are in C order in memory in every plan."""
    found: set[Instruction] = set()
    for instruction in computation.instructions:
        shape = static_shape(instruction)
        if shape is None:
            continue
        ordered = [operand for operand in instruction.operands if operand in found]
        is_elementwise = ufunc_of(instruction) is not None
        follows = (is_elementwise and any(o.shape.dims == shape.dims for o in ordered)) or (  # type: ignore[union-attr]
            instruction.opcode == "reshape" and ordered
        )
        if follows or _is_in_order(instruction):
            found.add(instruction)
    return found


def _without_views(value: Instruction) -> Instruction:
    """The first value with the same elements and extents."""
    if value.opcode not in ("broadcast", "reshape") or static_shape(value) is None:
        return value
    return [each for each in _same_elements(value) if each.shape.dims == value.shape.dims][-1]  # type: ignore[union-attr]


def _narrow(broadcast: Instruction) -> Source | None:
    """The value that a broadcast repeats, with dimensions of size 1 for those that NumPy adds; None if it cannot."""
    if broadcast.opcode != "broadcast" or static_shape(broadcast) is None:
        return None
    dimensions = broadcast.attributes.dimensions
    if list(dimensions) != sorted(dimensions):
        return None
    dims, operand = broadcast.shape.dims, broadcast.operands[0]  # type: ignore[union-attr]
    if static_shape(operand) is None:
        return None
    first = min(dimensions, default=len(dims))
    aligned = tuple(extent if dim in dimensions else 1 for dim, extent in enumerate(dims))[first:]
    matching = [value for value in _same_elements(operand) if _is_aligned(value.shape.dims, aligned, len(dims))]  # type: ignore[union-attr]
    if matching:
        return matching[-1], ""
    index = ", ".join(":" if dim in dimensions else "None" for dim in range(first, len(dims)))
    return operand, f"[{index}]"


def _is_aligned(dims: Dims, aligned: Dims, rank: int) -> bool:
    """Whether NumPy aligns an array of these extents with a result of this rank as needed."""
    more = len(dims) - len(aligned)
    return more >= 0 and len(dims) <= rank and dims[more:] == aligned and set(dims[:more]) <= {1}


def _same_elements(value: Instruction) -> Iterator[Instruction]:
    """The value, and those of which it is a reshape that only adds or removes dimensions of size 1."""
    yield value
    while value.opcode in ("reshape", "broadcast") and static_shape(value.operands[0]) is not None:
        operand = value.operands[0]
        if _long_dims(operand) != _long_dims(value):
            return
        if value.opcode == "broadcast" and [*value.attributes.dimensions] != sorted(value.attributes.dimensions):
            return
        value = operand
        yield value


def _long_dims(value: Instruction) -> tuple[int, ...]:
    return tuple(extent for extent in value.shape.dims if extent != 1)  # type: ignore[union-attr]


_BY_ELEMENTS = opcodes(lambda op: op.elements in ("same_place", "moved")) | {"tuple", "all_reduce"}
"""Ops whose results do not depend on the order of elements in memory."""

_GRAIN = 16
"""The extents of a product whose transpose BLAS computes with the same bits are multiples of this number."""


def transposed_product(transpose: Instruction, computation: Computation) -> bool:
    """Whether a transpose is that of a product of matrices which nothing else reads, and can be computed at once."""
    if transpose.operands[0].opcode != "dot":
        return False
    users = users_of(computation)
    product = transpose.operands[0]
    if len(users[product]) != 1 or native_type(product) is None:
        return False
    attributes, dtype = product.attributes, product.shape.dtype  # type: ignore[union-attr]
    if dtype not in (f32, f64, c64, c128) or product.operands[0].shape.dtype is not dtype:  # type: ignore[union-attr]
        return False
    if attributes.lhs_batch_dims or transpose.attributes.permutation != (1, 0):
        return False
    if any(extent % _GRAIN for extent in product.shape.dims):  # type: ignore[union-attr]
        return False
    return not _orders_sums(transpose, computation, users)


def _orders_sums(
    value: Instruction, computation: Computation, users: Mapping[Instruction, Sequence[Instruction]]
) -> bool:
    """Whether the order of a value's elements in memory can reach an op that rounds by it, such as a sum.

    It passes through ops on single elements, and through a loop whose body the computation may be.
    """
    root, seen, left = computation.root, {value}, [value]
    may_be_body = [each.shape for each in computation.parameters] == [root.shape]
    while left:
        one = left.pop()
        if one is root and may_be_body:
            return True
        for user in users[one]:
            if user.opcode not in _BY_ELEMENTS:
                return True
            if user not in seen:
                seen.add(user)
                left.append(user)
    return False


# ----------------------------------------------------------------------------
# Which results take the array of an operand: one that nothing reads afterwards, and of which there is no view.

_LEAST_BYTES = 4096
"""The least size of an array that is written again; for a smaller one the call costs more than a new array."""

IN_PLACE = {"add": "+=", "subtract": "-=", "multiply": "*=", "divide": "/=", "and": "&=", "or": "|=", "xor": "^="}
"""Python's operators that write the result into the left operand if this is an array; they are for whole arrays whose
shapes the plan does not know, all of one shape or numbers."""

_C_ORDER = "C"
Orders: TypeAlias = frozenset[Any]
"""Whose order of elements in memory an array has: C order, or that of these instructions' arrays."""

_IN_C_ORDER = frozenset({"constant", "iota"})


def _is_computed(instruction: Instruction) -> bool:
    """Whether an op returns a new array, which shares memory with no operand."""
    opcode, dtype = instruction.opcode, native_type(instruction)
    if opcode == "select":
        return _broadcasts_operands(instruction)
    if dtype is None:
        return False
    if opcode in ("dot", "compare") or (opcode == "reduce" and instruction.attributes.dimensions):
        return True
    return (opcode in BINARY or opcode in UNARY) and (dtype.kind == "f" or ufunc_of(instruction) is not None)


@frozen
class _Reuse:
    """The search for operands whose arrays results may take, for the instructions of a plan in order."""

    shortcuts: Shortcuts
    root: Instruction
    is_lifted: bool
    last: dict[Instruction, Instruction] = field(factory=dict)
    shared: set[Instruction] = field(factory=set)
    orders: dict[Instruction, Orders] = field(factory=dict)

    def find(self, order: Sequence[Instruction]) -> dict[Instruction, int]:
        if not any(map(self._is_worth_it, order)):
            return {}
        for instruction in order:
            is_computed = self._is_computed(instruction)
            for value in self.shortcuts.reads(instruction):
                self.last[value] = instruction
                if not is_computed:
                    self.shared.add(value)
            if not is_computed:
                self.shared.add(instruction)
        self.shared.add(self.root)
        found: dict[Instruction, int] = {}
        for instruction in order:
            self.orders[instruction] = self._orders_of(instruction)
            place = self._place(instruction)
            if place is not None:
                found[instruction] = place
        return found

    def _is_worth_it(self, instruction: Instruction) -> bool:
        """Whether an array that is written again saves time: a large one, or one of unknown extents."""
        if self.is_lifted:
            return instruction.opcode in IN_PLACE
        shape = static_shape(instruction)
        return shape is not None and bool(shape.dims) and shape.bytes >= _LEAST_BYTES

    def _is_computed(self, instruction: Instruction) -> bool:
        if instruction in self.shortcuts.products:
            return True
        return instruction not in self.shortcuts.sums and _is_computed(instruction)

    def _place(self, instruction: Instruction) -> int | None:
        if not self._is_worth_it(instruction) or ufunc_of(instruction) is None or instruction in self.shortcuts.sums:
            return None
        shape, sources = static_shape(instruction), self.shortcuts.sources_of(instruction)
        assert shape is not None
        if self.is_lifted:
            if sources[1][0] is sources[0][0]:
                return None
            sources = sources[:1]
        for place, (value, suffix) in enumerate(sources):
            if suffix or value in self.shared or self.last.get(value) is not instruction or value not in self.orders:
                continue
            own = static_shape(value)
            if own is None or own.dims != shape.dims or own.dtype is not shape.dtype:
                continue
            mine = self.orders[value]
            others = [self._orders(each) for each, _ in sources if each is not value]
            if _C_ORDER in mine or all(each <= mine for each in others):
                return place
        return None

    def _orders(self, value: Instruction) -> Orders:
        if value in self.orders:
            return self.orders[value]
        return frozenset() if len(_long_dims(value)) <= 1 else frozenset({_C_ORDER if _is_in_order(value) else value})

    def _orders_of(self, instruction: Instruction) -> Orders:
        shape = static_shape(instruction)
        if shape is None:
            return frozenset({instruction})
        if len(_long_dims(instruction)) <= 1:
            return frozenset()
        if instruction in self.shortcuts.constants:
            return frozenset() if 0 in self.shortcuts.constants[instruction].strides else frozenset({_C_ORDER})
        if _is_in_order(instruction) or instruction in self.shortcuts.products:
            return frozenset({_C_ORDER})
        if instruction.opcode == "reshape" and self._orders(instruction.operands[0]) <= {_C_ORDER}:
            return frozenset({_C_ORDER})
        if ufunc_of(instruction) is None:
            return frozenset({instruction})
        complete = [
            value for value, suffix in self.shortcuts.sources_of(instruction)
            if not suffix and value.shape.dims == shape.dims  # type: ignore[union-attr]
        ]  # fmt: skip
        if any(_C_ORDER in self._orders(value) for value in complete):
            return frozenset({_C_ORDER})
        return frozenset().union(*(self._orders(value) for value, _ in self.shortcuts.sources_of(instruction)))


def _is_in_order(instruction: Instruction) -> bool:
    """Whether the elements of an array are in C order."""
    if instruction.opcode == "dot":
        return not instruction.attributes.lhs_batch_dims
    return instruction.opcode in _IN_C_ORDER


# ----------------------------------------------------------------------------
# The shortcuts of a computation


@frozen(eq=False)
class Shortcuts:
    """What a plan of a computation leaves out, and what it reads instead.

    `constants` have the values of instructions that need no line. `sources` are given for the instructions that read
    something else than their operands. Each of the `products` is a transpose that is computed as a product with its
    operands exchanged. `sums` are the sums that do not round their product. `numbers` are the maxima and minima with
    one number, each with the place of that operand.
    """

    constants: Mapping[Instruction, Array]
    sources: Mapping[Instruction, tuple[Source, ...]]
    products: Mapping[Instruction, Instruction]
    sums: Mapping[Instruction, Instruction]
    live: frozenset[Instruction]
    numbers: Mapping[Instruction, int] = field(factory=dict)

    def sources_of(self, instruction: Instruction) -> tuple[Source, ...]:
        """What a plan reads for each operand of an instruction."""
        found = self.sources.get(instruction)
        return tuple((operand, "") for operand in instruction.operands) if found is None else found

    def reads(self, instruction: Instruction) -> Sequence[Instruction]:
        """The instructions whose values the lines of an instruction read."""
        if instruction not in self.sources and instruction not in self.sums:
            return instruction.operands
        factors = self.sums[instruction].operands if instruction in self.sums else ()
        return [*(value for value, _ in self.sources_of(instruction)), *factors]

    def reused(
        self, order: Sequence[Instruction], root: Instruction, *, is_lifted: bool = False
    ) -> dict[Instruction, int]:
        """The instructions whose results take the array of an operand, each with the operand's number."""
        return _Reuse(self, root, is_lifted).find(order)


@remembered
def no_shortcuts(computation: Computation) -> Shortcuts:
    """The shortcuts of a plan that computes every value as recorded."""
    return Shortcuts({}, {}, {}, unrounded_sums(computation), live(computation))


@remembered
def shortcuts_of(computation: Computation) -> Shortcuts:
    """The shortcuts of a plan that reports no values."""
    known, sums = _known_values(computation), unrounded_sums(computation)
    in_c_order = (
        _values_in_c_order(computation) if any(i.opcode == "broadcast" for i in computation.instructions) else set()
    )
    sources: dict[Instruction, tuple[Source, ...]] = {}
    products: dict[Instruction, Instruction] = {}
    for instruction in computation.instructions:
        if instruction in sums:
            continue
        if (
            instruction.opcode == "transpose"
            and transposed_product(instruction, computation)
            and instruction.operands[0] is not computation.root
        ):
            product = products[instruction] = instruction.operands[0]
            sources[instruction] = tuple((operand, "") for operand in product.operands[::-1])
        elif (narrow := _sources(instruction, known, in_c_order)) is not None:
            sources[instruction] = narrow
    found = Shortcuts(known, sources, products, sums, frozenset())
    places = {i: _number_place(i, found) for i in computation.instructions if i.opcode in _BESIDE_NUMBERS}
    found = evolve(found, numbers={i: place for i, place in places.items() if place is not None})
    if not sources:
        return evolve(found, live=live(computation))
    needed = live_instructions(computation.instructions, computation.root, found.reads)
    return evolve(found, live=frozenset(needed))
