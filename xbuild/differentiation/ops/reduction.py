"""Cotangents of reduce, by what its region is known to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shape_inference.windows import WindowDimension

from ... import ops
from ...core.attributes import PaddingDimension
from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...properties.patterns import chooses, number_in, pairwise_reducers
from ..arrays import broadcast_over, dims_of, is_equal, sum_all, sum_over
from ..folds import WindowedFold, chosen_places, give_to_chosen, is_associative, pull_back_by_others
from ..rules import Cotangents, Pullback, refuse_derivative, vjp


@vjp
def reduce(
    back: Pullback,
    operands: Sequence[Value],
    init_values: Sequence[Value],
    *,
    to_apply: Computation,
    dimensions: Sequence[int],
) -> Cotangents:
    count, to_apply = len(operands), back.context.inline_all(to_apply)
    known = pairwise_reducers(to_apply)
    parts = [_ReducedOperand(back, n, count, operands[n], init_values[n], tuple(dimensions)) for n in range(count)]
    if (known is None or not {*known} <= {"add", "multiply", "maximum", "minimum"}) and chooses(to_apply):
        folded = [_pull_back_chosen(part, to_apply, operands, init_values) for part in parts]
    elif known is None and count == 1 and is_associative(back.instruction):
        folded = [_pull_back_by_others(parts[0], to_apply)]
    else:
        folded = [(None, None) if part.ct is None else _pull_back_known(part, known, n) for n, part in enumerate(parts)]
    return tuple([x for x, _ in folded] + [init for _, init in folded])


class _ReducedOperand:
    """One operand of a reduce, with its init value, its result and the result's cotangent."""

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
        return broadcast_over(value, dims_of(self.operand), self.dimensions)


def _pull_back_known(part: _ReducedOperand, known: Sequence[str] | None, n: int) -> tuple[Value | None, Value | None]:
    reducer = known[n] if known is not None else None
    if reducer == "add":
        return part.spread(part.ct), sum_all(part.ct) if part.wants_init else None
    if reducer in ("maximum", "minimum"):
        return _pull_back_extremum(part)
    if reducer != "multiply":
        refuse_derivative(
            "its to_apply is not recognized: only add, multiply, maximum and minimum have a derivative, with "
            "one reducer per operand",
            "use one of these reducers, or an xb.scan over the dimension, which has a derivative",
        )
    return _pull_back_product(part)


def _pull_back_extremum(part: _ReducedOperand) -> tuple[Value | None, Value | None]:
    """All elements equal to the result share the cotangent, including the init value."""
    wins = is_equal(part.operand, part.spread(part.result))
    shape: Any = part.operand.shape
    ones = ops.convert(wins, new_element_type=shape.dtype)
    count = sum_over(ones, part.dimensions)
    init = number_in(part.init.instruction)
    if part.wants_init or init is None or np.isfinite(init):
        first = is_equal(_broadcast_scalar(part.init, part.result), part.result)
        count = count + ops.convert(first, new_element_type=shape.dtype)
        share = part.ct / count
        of_init = sum_all(ops.select(first, share, part.back.zeros(share))) if part.wants_init else None
    else:
        share, of_init = part.ct / count, None
    return ops.select(wins, part.spread(share), part.back.zeros(part.operand)), of_init


def _broadcast_scalar(scalar: Value, like: Value) -> Value:
    return ops.broadcast(scalar, sizes=dims_of(like), dimensions=())


def _pull_back_product(part: _ReducedOperand) -> tuple[Value | None, Value | None]:
    """The product of all other elements, computed without division, so that zeros do no harm."""
    others, whole = _products_of_others(part)
    init = part.spread(_broadcast_scalar(part.init, part.ct))
    of_operand = part.spread(part.ct) * others * init if part.wants_operand else None
    return of_operand, sum_all(part.ct * whole) if part.wants_init else None


def _products_of_others(part: _ReducedOperand) -> tuple[Value, Value]:
    """For each element the product of the others reduced with it, and the product of all."""
    extents, dimensions = dims_of(part.operand), part.dimensions
    kept = [d for d in range(len(extents)) if d not in dimensions]
    order = (*kept, *dimensions)
    turned = ops.transpose(part.operand, permutation=order)
    rows = [extents[d] for d in kept]
    length = int(np.prod([extents[d] for d in dimensions]))
    flat = ops.reshape(turned, new_sizes=(*rows, length))
    before = _exclusive_products(part.back, flat, 1)
    others = before * _exclusive_products(part.back, flat, -1)
    back_turned = ops.reshape(others, new_sizes=dims_of(turned))
    inverse = tuple(sorted(range(len(order)), key=lambda n: order[n]))
    one = part.back.full(1, part.operand.shape.dtype[()])  # type: ignore[union-attr]
    whole = ops.reduce((part.operand,), (one,), to_apply=ops.multiply, dimensions=dimensions)
    return ops.transpose(back_turned, permutation=inverse), whole


def _exclusive_products(back: Pullback, flat: Value, direction: int) -> Value:
    """The product of all elements before each one along the last dimension (after it, for -1), in log(n) steps."""
    length = dims_of(flat)[-1]
    products = _shift(back, flat, direction)
    step = 1
    while step < length:
        products = products * _shift(back, products, direction * step)
        step *= 2
    return products


def _shift(back: Pullback, flat: Value, by: int) -> Value:
    """The elements shifted along the last dimension; vacated places hold ones."""
    none = PaddingDimension(0, 0)
    one = back.full(1, flat.shape.dtype[()])  # type: ignore[union-attr]
    return ops.pad(flat, one, padding=(*(none for _ in dims_of(flat)[:-1]), PaddingDimension(by, -by)))


def _pull_back_chosen(
    part: _ReducedOperand, to_apply: Computation, operands: Sequence[Value], inits: Sequence[Value]
) -> tuple[Value | None, Value | None]:
    """The cotangent of each result goes to the chosen element: by an index that is reduced too, if there is one."""
    if part.ct is None or not (part.wants_operand or part.wants_init):
        return None, None
    index = _index_along(operands, part, to_apply)
    init = number_in(part.init.instruction)
    if index is not None and init is not None and not np.isfinite(init):
        at = ops.get_tuple_element(part.back.result, index=index)
        wins = is_equal(operands[index], part.spread(at))
        return ops.select(wins, part.spread(part.ct), part.back.zeros(part.operand)), None
    places = chosen_places(
        to_apply,
        operands,
        inits,
        part.n,
        lambda *given: ops.reduce(*given[:2], to_apply=given[2], dimensions=part.dimensions),
    )
    return give_to_chosen(part.ct, places, part.operand, part.init, (part.wants_operand, part.wants_init))


def _index_along(operands: Sequence[Value], part: _ReducedOperand, to_apply: Computation) -> int | None:
    """The operand that holds the index along the one reduced dimension and is chosen together with this one."""
    roots = to_apply.root.operands if to_apply.root.opcode == "tuple" else (to_apply.root,)
    mine = roots[part.n]
    for n, operand in enumerate(operands):
        if part.dimensions == (_iota_dimension(operand.instruction),) and mine.opcode == roots[n].opcode == "select":
            ours = [[side is to_apply.parameters[k] for side in roots[k].operands[1:]] for k in (part.n, n)]
            if roots[n].operands[0] is mine.operands[0] and ours[0] == ours[1]:
                return n
    return None


def _iota_dimension(instruction: Instruction) -> int | None:
    """The dimension along which an iota counts, through broadcasts."""
    if instruction.opcode == "iota":
        return int(instruction.attributes.iota_dimension)
    if instruction.opcode != "broadcast":
        return None
    inner = _iota_dimension(instruction.operands[0])
    return None if inner is None else int(instruction.attributes.dimensions[inner])


def _pull_back_by_others(part: _ReducedOperand, to_apply: Computation) -> tuple[Value | None, Value | None]:
    """A fold by any other function: everything reduced to one element is one window."""
    extents = dims_of(part.operand)
    window = tuple([WindowDimension(extent if d in part.dimensions else 1) for d, extent in enumerate(extents)])
    sizes = [1 if d in part.dimensions else extent for d, extent in enumerate(extents)]
    ct = ops.reshape(part.ct, new_sizes=tuple(sizes))
    windows = WindowedFold(part.operand, part.init, ct, (part.wants_operand, part.wants_init), window)
    return pull_back_by_others(part.back, to_apply, None, 1, windows)
