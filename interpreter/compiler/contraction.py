"""Fused multiply-add: the product in a sum stays unrounded, as on XLA:CPU, where the sum is only compared.

LLVM contracts a product and a sum of a kernel into one fused operation where nothing else in the kernel uses the
product. A loop that runs while any |a·b - 1| is at least half an ulp ends only with the fused operation: a rounded a·b
may stay one ulp below 1 for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from shape_inference import Shape
from shape_inference.types import f32, f64
from xbuild.core.graph import Computation, Instruction
from xbuild.core.memos import remembered

from ..kernels.functions import lost_by_product

Users: TypeAlias = Mapping[Instruction, list[Instruction]]

NEAR = 2.0**-10
"""The ratio of sum to product below which the rounding error of the product is added to the sum."""

_SIZES = frozenset({"abs", "negate"})
_LOGIC = frozenset({"and", "or", "xor", "not"})


def product_of(instruction: Instruction) -> Instruction | None:
    """The only operand of an add or a subtract of arrays that is a multiply; None where no operand or both are."""
    if instruction.opcode not in ("add", "subtract"):
        return None
    products = [operand for operand in instruction.operands if operand.opcode == "multiply"]
    if len(products) != 1:
        return None
    shapes = {_plain(each) for each in (instruction, *instruction.operands, *products[0].operands)}
    return products[0] if len(shapes) == 1 and None not in shapes else None


def _plain(instruction: Instruction) -> Shape | None:
    """The shape of a static array of f32 or f64, whose products LLVM contracts; None for any other value."""
    shape = instruction.shape
    if not isinstance(shape, Shape) or shape.dtype not in (f32, f64) or not shape.dims or shape.is_dynamic:
        return None
    return shape.plain()


@remembered
def contracted(computation: Computation) -> Mapping[Instruction, Instruction]:
    """Each sum whose product is not rounded, with the product; such a sum is only compared, for a reduction.

    The product is no result of the computation, and the reduction depends on the product through the sum alone.
    """
    found = {i: product for i in computation.instructions if (product := product_of(i)) is not None}
    if not found:
        return found
    users = _users(computation)
    kept = {computation.root, *(computation.root.operands if computation.root.opcode == "tuple" else ())}
    return {i: product for i, product in found.items() if product not in kept and _is_only_compared(i, product, users)}


def _users(computation: Computation) -> Users:
    users: dict[Instruction, list[Instruction]] = {i: [] for i in computation.instructions}
    for user in computation.instructions:
        for operand in user.operands:
            users[operand].append(user)
    return users


def _is_only_compared(instruction: Instruction, product: Instruction, users: Users) -> bool:
    ends = list(_ends(instruction, users, is_compared=False))
    return all(end is not None and not _uses(end, product, instruction) for end in ends)


def _ends(instruction: Instruction, users: Users, *, is_compared: bool) -> Iterator[Instruction | None]:
    """The reductions of the comparisons of an instruction's value; None for each other use of the value."""
    if not users[instruction]:
        yield None
    for user in users[instruction]:
        if is_compared and user.opcode == "reduce":
            yield user
        elif user.opcode == "compare" or user.opcode in (_LOGIC if is_compared else _SIZES):
            yield from _ends(user, users, is_compared=is_compared or user.opcode == "compare")
        else:
            yield None


def _uses(end: Instruction, product: Instruction, without: Instruction) -> bool:
    """Whether a value depends on the product by a path around the instruction `without`."""
    stack, seen = [end], {without}
    while stack:
        instruction = stack.pop()
        if instruction is product:
            return True
        if instruction not in seen:
            seen.add(instruction)
            stack += instruction.operands
    return False


def contracted_text(bind: Callable[[str, Any], str], instruction: Instruction, text: str, taken: list[str]) -> str:
    """The Python text of the unrounded sum; `text` is that of the rounded sum, `taken` its operands and the factors."""
    lhs, rhs, *factors = taken
    is_right = instruction.operands[1].opcode == "multiply"
    rest = f"{rhs if is_right else lhs}, {', '.join(factors)})"
    name = bind("r", unrounded)
    return f"-{name}(-({text}), {rest}" if is_right and instruction.opcode == "subtract" else f"{name}({text}, {rest}"


def unrounded(total: Any, product: Any, a: Any, b: Any) -> Any:
    """The sum of a·b and a third number, rounded once; `total` is the sum of the rounded product."""
    near = is_near(total, product)
    if not near.any():
        return total
    return np.where(near, total + lost_by_product(a, b, product), total).astype(total.dtype)


def is_near(total: Any, product: Any) -> Any:
    """Where the sum is so much smaller than the product that the rounding of the product changes the sum."""
    return np.abs(total) < np.abs(product) * NEAR
