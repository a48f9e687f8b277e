"""Products of matrices and convolutions over prime fields: value rules in f64 on digits, whose sums are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ...rules import compute
from . import residues
from .arithmetic import minus, plus
from .complexes import joined, parts
from .evaluation import enter_by_type, is_float
from .primes import current
from .residues import Word
from .tables import Undecidable, fields

_DIGIT = np.uint64(16)
_LOW = np.uint64(0xFFFF)
MOST = 1 << 20
"""The most terms of a sum: each is below 2^32, and sums are exact below 2^53."""

Product = Callable[[Array, Array], Array]


def bilinear(product: Product, lhs: Word, rhs: Word) -> Word:
    """A product of numbers of the fields by one of f64 arrays that sums at most `MOST` terms."""
    if lhs.dtype.kind == "c" or rhs.dtype.kind == "c":
        return _complex(product, lhs, rhs)
    if residues.has_special(lhs, rhs):
        return _with_special(product, lhs, rhs)
    if max(lhs.size, rhs.size) > MOST and _terms(product, lhs, rhs) > MOST:
        raise Undecidable(f"sums of more than {MOST} products")
    pairs = zip(residues.halves(lhs), residues.halves(rhs), current().words, strict=True)
    return residues.packed(*(_modulo(product, a, b, prime) for a, b, prime in pairs))


def _terms(product: Product, lhs: Word, rhs: Word) -> int:
    return int(product(np.ones(lhs.shape), np.ones(rhs.shape)).max(initial=0))


def _modulo(product: Product, a: Array, b: Array, prime: np.uint64) -> Array:
    (a0, a1), (b0, b1) = _digits(a), _digits(b)
    low = _whole(product(a0, b0), prime)
    middle = (_whole(product(a0, b1), prime) + _whole(product(a1, b0), prime)) % prime
    high = _whole(product(a1, b1), prime)
    shifted = (middle << _DIGIT) % prime + (((high << _DIGIT) % prime) << _DIGIT) % prime
    return np.asarray((low + shifted) % prime)


def _digits(values: Array) -> tuple[Array, Array]:
    return (values & _LOW).astype(np.float64), (values >> _DIGIT).astype(np.float64)


def _whole(sums: Array, prime: np.uint64) -> Array:
    return np.asarray(sums).astype(np.uint64) % prime


def _with_special(product: Product, lhs: Word, rhs: Word) -> Word:
    """A product in which infinities and NaN have part: those results are NaN to which one contributes."""
    special = [residues.is_special(each) for each in (lhs, rhs)]
    clean = bilinear(product, *(np.where(s, np.uint64(0), each) for s, each in zip(special, (lhs, rhs), strict=True)))
    touched = product(special[0].astype(np.float64), np.ones(rhs.shape))
    touched = touched + product(np.ones(lhs.shape), special[1].astype(np.float64))
    return np.where(touched > 0, residues.UNDEFINED, clean)


def _complex(product: Product, lhs: Word, rhs: Word) -> Word:
    (a, b), (c, d) = (parts(each) if each.dtype.kind == "c" else (each, np.zeros_like(each)) for each in (lhs, rhs))
    real = minus(bilinear(product, a, c), bilinear(product, b, d))
    return joined(real, plus(bilinear(product, a, d), bilinear(product, b, c)))


def _rule(opcode: str) -> Callable[..., Word]:
    def rule(instruction: Instruction, lhs: Any, rhs: Any, *rest: Any) -> Word:
        if not is_float(instruction.shape):
            raise Undecidable("products of floats with an integer result")
        attributes = {**instruction.attribute_values()}
        attributes.pop("preferred_element_type")
        words = [
            operand if is_float(of.shape) else residues.of_integers(operand)
            for operand, of in zip((lhs, rhs), instruction.operands, strict=False)
        ]
        product = partial(_by_value_rule, opcode, rest, attributes)
        if opcode == "dot" and max(each.size for each in words) > BLOCK:
            return _in_blocks(product, attributes, *words)
        return bilinear(product, *words)

    return rule


BLOCK = 1 << 23
"""The elements of the largest operand of a dot that is computed at once: a product has about ten arrays of its size."""


def _in_blocks(product: Product, attributes: Mapping[str, Any], lhs: Word, rhs: Word) -> Word:
    """A dot block by block along the largest free dimension of the larger operand."""
    sides = ("lhs", "rhs")
    free = [
        [dim for dim in range(each.ndim)
         if dim not in (*attributes[f"{side}_batch_dims"], *attributes[f"{side}_contracting_dims"])]
        for side, each in zip(sides, (lhs, rhs), strict=True)
    ]  # fmt: skip
    number = int(rhs.size > lhs.size)
    large = (lhs, rhs)[number]
    along = max(free[number], key=lambda dim: large.shape[dim], default=None)
    if along is None:
        return bilinear(product, lhs, rhs)
    out = len(attributes["lhs_batch_dims"]) + len(free[0]) * number + free[number].index(along)
    parts = np.array_split(large, -(-large.size // BLOCK), along)
    given = [(part, rhs) if number == 0 else (lhs, part) for part in parts if part.shape[along]]
    return np.concatenate([bilinear(product, *pair) for pair in given], out)


def _by_value_rule(opcode: str, rest: Any, attributes: dict[str, Any], lhs: Array, rhs: Array) -> Array:
    found: Array = compute[opcode](lhs, rhs, *rest, preferred_element_type=None, **attributes)
    return found


for _opcode in ("dot", "convolution", "ragged_dot"):
    enter_by_type(_opcode, _rule(_opcode))


@fields
def scaled_dot(
    lhs: Word, rhs: Word, lhs_scale: Word, rhs_scale: Word, *, preferred_element_type: Any, **attributes: Any
) -> Word:
    """The dot of both operands, each multiplied by its scales."""
    product = partial(_by_value_rule, "dot", (), attributes)
    return bilinear(product, _scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale))


def _scaled(operand: Word, scale: Word) -> Word:
    for axis, (extent, blocks) in enumerate(zip(operand.shape, scale.shape, strict=False)):
        if blocks not in (1, extent):
            scale = np.repeat(scale, extent // blocks, axis)
    return fields["multiply"](operand, scale)
