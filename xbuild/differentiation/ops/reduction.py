"""Cotangents of reduce: by what its region is known to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ...core.graph import Computation
from ...properties.patterns import number_in, pairwise_reducers, selects_pairs
from ..rules import Cotangents, Pullback, refuse_derivative, vjp
from ..support import dims_of, is_equal, spread_over, sum_over, total


@vjp
def reduce(
    back: Pullback,
    operands: Sequence[Value],
    init_values: Sequence[Value],
    *,
    to_apply: Computation,
    dimensions: Sequence[int],
) -> Cotangents:
    count = len(operands)
    known = pairwise_reducers(to_apply)
    if known is None and selects_pairs(to_apply):
        return _of_selection(back, operands, dimensions)
    parts = [_Part(back, n, count, operands[n], init_values[n], tuple(dimensions)) for n in range(count)]
    found = [(None, None) if part.ct is None else _by_reducer(part, known, n) for n, part in enumerate(parts)]
    return tuple([x for x, _ in found] + [init for _, init in found])


class _Part:
    """One operand of a reduce, with its init value, its result and the cotangent of that."""

    def __init__(
        self, back: Pullback, n: int, count: int, operand: Value, init: Value, dimensions: tuple[int, ...]
    ) -> None:
        self.back, self.operand, self.init, self.dimensions = back, operand, init, dimensions
        self.wants_operand, self.wants_init = back.wants(n), back.wants(count + n)
        is_one = count == 1
        self.ct = back.ct if is_one and not isinstance(back.ct, tuple | list) else back.ct[n]
        self.n, self.is_one = n, is_one

    @property
    def result(self) -> Value:
        from shape_inference import TupleShape

        whole = self.back.result
        return ops.get_tuple_element(whole, index=self.n) if isinstance(whole.shape, TupleShape) else whole

    def spread(self, value: Value) -> Value:
        return spread_over(value, dims_of(self.operand), self.dimensions)


def _by_reducer(part: _Part, known: Sequence[str] | None, n: int) -> tuple[Value | None, Value | None]:
    reducer = known[n] if known is not None else None
    if reducer == "add":
        return part.spread(part.ct), total(part.ct) if part.wants_init else None
    if reducer in ("maximum", "minimum"):
        return _extremum(part)
    if reducer != "multiply":
        refuse_derivative(
            "its to_apply is not known: add, multiply, maximum and minimum have a derivative, alone or side by side",
            "write it with these, or as an xb.scan over the dimension, which has a derivative",
        )
    return _product(part)


def _extremum(part: _Part) -> tuple[Value | None, Value | None]:
    """All elements that are the result share the cotangent, the init value among them."""
    wins = is_equal(part.operand, part.spread(part.result))
    shape: Any = part.operand.shape
    ones = ops.convert(wins, new_element_type=shape.dtype)
    count = sum_over(ones, part.dimensions)
    init = number_in(part.init.instruction)
    if part.wants_init or init is None or np.isfinite(init):
        first = is_equal(_at_each(part.init, part.result), part.result)
        count = count + ops.convert(first, new_element_type=shape.dtype)
        share = part.ct / count
        of_init = total(ops.select(first, share, part.back.zeros(share))) if part.wants_init else None
    else:
        share, of_init = part.ct / count, None
    return ops.select(wins, part.spread(share), part.back.zeros(part.operand)), of_init


def _at_each(scalar: Value, like: Value) -> Value:
    return ops.broadcast(scalar, sizes=dims_of(like), dimensions=())


def _product(part: _Part) -> tuple[Value | None, Value | None]:
    """The product of all others, found without a division, so that zeros do not matter."""
    others, whole = _others(part)
    init = part.spread(_at_each(part.init, part.ct))
    of_operand = part.spread(part.ct) * others * init if part.wants_operand else None
    return of_operand, total(part.ct * whole) if part.wants_init else None


def _others(part: _Part) -> tuple[Value, Value]:
    """For each element the product of the others that are folded with it; and the product of all of them."""
    extents, dimensions = dims_of(part.operand), part.dimensions
    kept = [d for d in range(len(extents)) if d not in dimensions]
    order = (*kept, *dimensions)
    turned = ops.transpose(part.operand, permutation=order)
    rows = [extents[d] for d in kept]
    length = int(np.prod([extents[d] for d in dimensions]))
    flat = ops.reshape(turned, new_sizes=(*rows, length))
    before = _exclusive(part.back, flat, 1)
    others = before * _exclusive(part.back, flat, -1)
    back_turned = ops.reshape(others, new_sizes=dims_of(turned))
    inverse = tuple(sorted(range(len(order)), key=lambda n: order[n]))
    one = part.back.full(1, part.operand.shape.dtype[()])  # type: ignore[union-attr]
    whole = ops.reduce((part.operand,), (one,), to_apply=ops.multiply, dimensions=dimensions)
    return ops.transpose(back_turned, permutation=inverse), whole


def _exclusive(back: Pullback, flat: Value, direction: int) -> Value:
    """The products of the elements before each along the last dimension (after each, backwards), in log(n) steps."""
    length = dims_of(flat)[-1]
    found = _shifted(back, flat, direction)
    step = 1
    while step < length:
        found = found * _shifted(back, found, direction * step)
        step *= 2
    return found


def _shifted(back: Pullback, flat: Value, by: int) -> Value:
    """The elements moved along the last dimension, with ones where none arrive."""
    none = PaddingDimension(0, 0)
    one = back.full(1, flat.shape.dtype[()])  # type: ignore[union-attr]
    return ops.pad(flat, one, padding=(*(none for _ in dims_of(flat)[:-1]), PaddingDimension(by, -by)))


def _of_selection(back: Pullback, operands: Sequence[Value], dimensions: Sequence[int]) -> Cotangents:
    """Values and their indices folded to the pair that is chosen: the cotangent goes to the place of the index."""
    values, indices = operands
    if indices.instruction.opcode != "iota" or tuple(dimensions) != (indices.instruction.attributes.iota_dimension,):
        refuse_derivative(
            "it chooses values with indices that are no iota along the dimension that is folded",
            "fold the values alone, or gather them at the index that is found",
        )
    chosen = spread_over(ops.get_tuple_element(back.result, index=1), dims_of(values), dimensions)
    spread = spread_over(back.ct[0], dims_of(values), dimensions)
    return ops.select(is_equal(indices, chosen), spread, back.zeros(values)), None, None, None
