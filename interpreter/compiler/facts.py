"""Analyses of a computation before code generation.

Sections:

    Effects, live instructions, size with every call inlined
    Sums whose product is not rounded
    Denormal numbers in a run that flushes them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from shape_inference import Shape
from shape_inference.elided import ElidedArray
from shape_inference.types import bf16, c64, c128, f8e8m0fnu, f32, f64
from xbuild.core.graph import Computation, Instruction
from xbuild.core.memos import memos, remembered
from xbuild.core.op import OPS, opcodes
from xbuild.properties.effects import COLLECTIVES, IDENTITIES, communicates_anywhere
from xbuild.properties.order import live_instructions, operands_of, users_of

from ..kernels.functions import lost_by_product
from ..kernels.products import Settled

__all__ = ["COLLECTIVES", "communicates", "depends_on_device", "largest_buffer", "live", "weight", "yields_request"]


# ----------------------------------------------------------------------------
# Effects, live instructions, size with every call inlined.


def yields_request(instruction: Instruction) -> bool:
    """Whether an instruction or one of its callees yields a request: to other devices, the host or a custom call."""
    if communicates_anywhere(instruction) or instruction.opcode == "custom_call":
        return True
    return any(map(communicates, instruction.called))


@remembered
def communicates(computation: Computation) -> bool:
    """Whether a run of a computation may yield a request to the grid."""
    return any(map(yields_request, computation.instructions))


OF_DEVICE = opcodes(lambda op: op.depends_on in ("device", "random_state"))


@remembered
def depends_on_device(computation: Computation) -> bool:
    """Whether a computation uses the ids or the random state of the device."""
    return any(i.opcode in OF_DEVICE or any(map(depends_on_device, i.called)) for i in computation.instructions)


@remembered
def weight(computation: Computation) -> int:
    """The number of instructions of a computation with every call inlined, up to a million."""
    inner = sum(weight(called) for i in computation.instructions for called in i.called)
    return min(len(computation.instructions) + inner, 1_000_000)


@remembered
def live(computation: Computation) -> frozenset[Instruction]:
    """The instructions that the root or an effect needs; the others are not evaluated."""
    return frozenset(live_instructions(computation.instructions, computation.root, operands_of))


def native_code(computation: Computation) -> Callable[..., Any] | None:
    """The function that computes a called computation outside of plans; None if plans compute it."""
    return memos(computation, _NATIVE).get(_NATIVE)


def give_native_code(computation: Computation, function: Callable[..., Any]) -> None:
    """Have all plans call this function instead of the computation; it takes and returns what a plan's function does.

    No plan may call the computation before.
    """
    memos(computation, _NATIVE)[_NATIVE] = function


_NATIVE = "native"

_VIEWS = opcodes(lambda op: op.is_view and op.half == "none")


@remembered
def largest_buffer(computation: Computation) -> Instruction:
    """The instruction whose value takes the most memory, callees included; a view takes none."""
    candidates = [i for called in computation.reachable() for i in called.instructions if i.opcode not in _VIEWS]
    return max([computation.root, *candidates], key=lambda i: i.shape.bytes)


MOST_BYTES = 2**63 - 1
"""The most bytes that NumPy can address; a larger view cannot be made, though a view takes no memory."""


@remembered
def largest_value(computation: Computation) -> Instruction:
    """The instruction whose value has the most bytes, callees and views included."""
    every = (i for called in computation.reachable() for i in called.instructions)
    return max(every, key=lambda i: i.shape.bytes)


# ----------------------------------------------------------------------------
# Sums whose product is not rounded, as in a fused multiply-add on XLA:CPU: those that are only compared.
#
# LLVM contracts a product and a sum of a kernel into one fused operation where nothing else in the kernel uses the
# product. A loop that runs while any |a·b - 1| is at least half an ulp ends only with the fused operation: a
# rounded a·b may stay one ulp below 1, and the loop never ends.

Users: TypeAlias = Mapping[Instruction, Sequence[Instruction]]

NEAR = 2.0**-10
"""The ratio of sum to product below which the rounding error of the product is added to the sum."""

_SIZES = frozenset({"abs", "negate"})
_LOGIC = frozenset({"and", "or", "xor", "not"})


def product_of(instruction: Instruction) -> Instruction | None:
    """The only operand of an add or a subtract of arrays that is a multiply; None if neither or both are."""
    if instruction.opcode not in ("add", "subtract"):
        return None
    products = [operand for operand in instruction.operands if operand.opcode == "multiply"]
    if len(products) != 1:
        return None
    shapes = {_contractible_shape(value) for value in (instruction, *instruction.operands, *products[0].operands)}
    return products[0] if len(shapes) == 1 and None not in shapes else None


def _contractible_shape(instruction: Instruction) -> Shape | None:
    """The shape of a static f32 or f64 array, whose products LLVM contracts; None for any other value."""
    shape = instruction.shape
    if not isinstance(shape, Shape) or shape.dtype not in (f32, f64) or not shape.dims or shape.is_dynamic:
        return None
    return shape.plain()


@remembered
def unrounded_sums(computation: Computation) -> Mapping[Instruction, Instruction]:
    """The sums whose product is not rounded, each with the product; such a sum is only compared, for a reduction.

    The product is not a result of the computation, and the reduction depends on it only through the sum.
    """
    sums = {i: product for i in computation.instructions if (product := product_of(i)) is not None}
    if not sums:
        return sums
    users = users_of(computation)
    results = {computation.root, *(computation.root.operands if computation.root.opcode == "tuple" else ())}
    return {
        i: product for i, product in sums.items() if product not in results and _is_only_compared(i, product, users)
    }


def _is_only_compared(instruction: Instruction, product: Instruction, users: Users) -> bool:
    reductions = _comparison_reductions(instruction, users)
    return reductions is not None and not any(_depends_on(reduction, product, instruction) for reduction in reductions)


def _comparison_reductions(instruction: Instruction, users: Users) -> list[Instruction] | None:
    """The reductions of the comparisons of an instruction's value; None if the value has any other use."""
    reductions: dict[Instruction, None] = {}
    seen: set[tuple[Instruction, bool]] = set()
    stack = [(instruction, False)]
    while stack:
        value, is_compared = stack.pop()
        if not users[value]:
            return None
        for user in users[value]:
            if is_compared and user.opcode == "reduce":
                reductions[user] = None
            elif user.opcode == "compare" or user.opcode in (_LOGIC if is_compared else _SIZES):
                item = user, is_compared or user.opcode == "compare"
                if item not in seen:
                    seen.add(item)
                    stack.append(item)
            else:
                return None
    return list(reductions)


def _depends_on(value: Instruction, product: Instruction, without: Instruction) -> bool:
    """Whether a value depends on the product by a path that avoids the instruction `without`."""
    stack, seen = [value], {without}
    while stack:
        instruction = stack.pop()
        if instruction is product:
            return True
        if instruction not in seen:
            seen.add(instruction)
            stack += instruction.operands
    return False


def unrounded_sum_text(bind: Callable[[str, Any], str], instruction: Instruction, text: str, values: list[str]) -> str:
    """The text of the unrounded sum; `text` is that of the rounded sum, `values` has its operands and the factors."""
    lhs, rhs, *factors = values
    is_right = instruction.operands[1].opcode == "multiply"
    rest = f"{rhs if is_right else lhs}, {', '.join(factors)})"
    name = bind("r", add_unrounded)
    return f"-{name}(-({text}), {rest}" if is_right and instruction.opcode == "subtract" else f"{name}({text}, {rest}"


def add_unrounded(total: Any, product: Any, a: Any, b: Any) -> Any:
    """The sum of a·b and a third number, rounded once; `total` is the sum of the rounded product."""
    near = is_near(total, product)
    if not near.any():
        return total
    return np.where(near, total + lost_by_product(a, b, product), total).astype(total.dtype)


def is_near(total: Any, product: Any) -> Any:
    """The elements at which the sum is so small that rounding the product changes it, as a mask."""
    return np.abs(total) < np.abs(product) * NEAR


# ----------------------------------------------------------------------------
# Denormal numbers in a run that flushes them: which values have none, and which values only arithmetic reads.

_WITH_DENORMALS = frozenset({bf16, f32, f64, c64, c128, f8e8m0fnu})
"""The types with numbers that are denormal in the type in which they are computed; f16 and smaller types have none."""

_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide"})
"""Ops that NumPy computes with one processor instruction per element, which flushes operands and result."""

_FLUSHING = _ARITHMETIC | {"convolution", "logistic", "rsqrt", "sqrt"}
"""Ops whose f32 and f64 results have no denormal numbers, since such an instruction computes them last."""

_KEEPS_FLUSHED = IDENTITIES | {"abs", "convert", "maximum", "minimum", "negate", "real", "imag", "tanh"}
"""Ops that return no denormal number if no operand has one."""

_MOVES = opcodes(lambda op: bool(op.moves) and op.needs == "nobody")


def product_facts(instruction: Instruction, computation: Computation, *, is_observed: bool) -> Settled:
    """What is known of denormal numbers in the operands and the result of a product; an observed result is flushed."""
    lhs, rhs = (operand in without_denormals(computation) for operand in instruction.operands[:2])
    return Settled(lhs, rhs, not is_observed and instruction in read_by_arithmetic(computation))


@remembered
def without_denormals(computation: Computation) -> frozenset[Instruction]:
    """The instructions whose values have no denormal number, whatever the parameters are."""
    known: set[Instruction] = set()
    for instruction in computation.instructions:
        if _has_no_denormals(instruction, computation, known):
            known.add(instruction)
    return frozenset(known)


def _has_no_denormals(instruction: Instruction, computation: Computation, known: set[Instruction]) -> bool:
    opcode, shape = instruction.opcode, instruction.shape
    if not isinstance(shape, Shape):
        return False
    if shape.dtype not in _WITH_DENORMALS or opcode == "iota":
        return True
    if opcode == "constant":
        return not _constant_has_denormals(instruction)
    if opcode == "get_tuple_element":
        packed, index = instruction.operands[0], instruction.attributes.index
        return packed.opcode == "tuple" and packed.operands[index] in known
    if opcode in _MOVES:
        return all(
            _has_same_type(instruction, operand) and operand in known for operand in _moved_operands(instruction)
        )
    if shape.dtype not in (f32, f64):
        return False
    if opcode == "dot":
        return instruction not in read_by_arithmetic(computation)
    return opcode in _FLUSHING or (opcode in _KEEPS_FLUSHED and known.issuperset(instruction.operands))


def _has_same_type(instruction: Instruction, operand: Instruction) -> bool:
    """Whether an op returns elements of the operand's type."""
    shapes = instruction.shape, operand.shape
    return all(isinstance(shape, Shape) for shape in shapes) and shapes[0].dtype is shapes[1].dtype  # type: ignore[union-attr]


def _moved_operands(instruction: Instruction) -> list[Instruction]:
    """The operands whose elements an op that moves elements copies to its result."""
    schema = OPS[instruction.opcode]
    return [instruction.operands[n] for n in schema.places(schema.properties.moves, instruction.segments)]


def _constant_has_denormals(constant: Instruction) -> bool:
    """Whether a constant has denormal numbers, or unknown numbers."""
    literal = constant.attributes.literal
    if isinstance(literal, ElidedArray) or constant.shape.dtype is f8e8m0fnu:  # type: ignore[union-attr]
        return True
    parts = (literal.real, literal.imag) if literal.dtype.kind == "c" else (literal,)
    tiny = ml_dtypes.finfo(parts[0].dtype).tiny  # type: ignore[no-untyped-call]
    return any(bool(((np.abs(part) < tiny) & (part != 0)).any()) for part in parts)


@remembered
def read_by_arithmetic(computation: Computation) -> frozenset[Instruction]:
    """The products that only arithmetic, which flushes its operands, reads, directly or after moves of elements."""
    products = [i for i in computation.instructions if i.opcode == "dot" and i.shape.dtype in (f32, f64)]  # type: ignore[union-attr]
    if not products:
        return frozenset()
    users = users_of(computation)
    return frozenset(product for product in products if _has_only_arithmetic_users(product, computation.root, users))


def _has_only_arithmetic_users(
    product: Instruction, root: Instruction, users: Mapping[Instruction, Sequence[Instruction]]
) -> bool:
    stack, seen = [product], {product}
    while stack:
        instruction = stack.pop()
        if instruction is root:
            return False
        for user in users[instruction]:
            if not _has_same_type(user, instruction):
                return False
            if user.opcode in _ARITHMETIC or user in seen:
                continue
            if user.opcode not in _MOVES or instruction in _index_operands(user):
                return False
            seen.add(user)
            stack.append(user)
    return True


def _index_operands(instruction: Instruction) -> list[Instruction]:
    """The operands of an op that moves elements which it does not move, such as indices."""
    schema = OPS[instruction.opcode]
    return [instruction.operands[n] for n in schema.places(schema.properties.chosen_by, instruction.segments)]
