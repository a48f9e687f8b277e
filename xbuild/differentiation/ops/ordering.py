"""Cotangents of ops that put elements in order: each goes to the place that its element came from."""

from __future__ import annotations

from ... import ops
from ...core.builder import Value, Values
from ...core.graph import Computation
from ..forms.arrays import array_of, counting
from ..forms.indexing import Places
from ..forms.regions import applied, cotangents, element, overwrite
from ..recorder import Augmented
from ..regions.calls import recorder_of
from ..rules import Cotangents, Pullback, vjp


@vjp
def sort(back: Pullback, operands: Values, *, to_apply: Computation, dimension: int, is_stable: bool) -> Cotangents:
    """Each cotangent is put back where its element came from."""
    if not array_of(operands[0]).size or array_of(operands[0]).dims[dimension] < 2:
        return cotangents(back, len(operands))
    cts = cotangents(back, len(operands))
    sources = _sources(back, operands, to_apply, dimension)
    return tuple(
        None if ct is None or not back.wants(number) else put_back(ct, sources, dimension, back.zeros(operand))
        for number, (operand, ct) in enumerate(zip(operands, cts, strict=True))
    )


def _sources(back: Pullback, operands: Values, to_apply: Computation, dimension: int) -> Value:
    """From which place along the dimension each element of the result came."""
    for number, operand in enumerate(operands):
        made = operand.instruction
        if made.opcode == "iota" and made.attributes.iota_dimension == dimension and array_of(operand).dtype.is_integer:
            return element(back, number, len(operands))
    return _sorted_along(back, operands, to_apply, dimension)


def _sorted_along(back: Pullback, operands: Values, to_apply: Computation, dimension: int) -> Value:
    """The numbers of the elements, sorted along by the sort itself, which gives them beside its results."""
    recorder, count = recorder_of(back), len(operands)

    def in_order(*elements: Value) -> Value:
        return applied(to_apply, elements[:-2])

    with recorder.aside() as before:
        numbers = counting(back.builder, array_of(operands[0]).dims, dimension)
        value = ops.sort((*operands, numbers), to_apply=in_order, dimension=dimension, is_stable=True)
    before.remove(value.instruction)
    with recorder.aside() as after:
        results = [ops.get_tuple_element(value, index=number) for number in range(count)]
        stand_in = ops.tuple_(results) if count > 1 else results[0]
    recorder.augmented[back.instruction] = Augmented(before, value.instruction, after, stand_in.instruction, count > 1)
    return ops.get_tuple_element(value, index=count)


def put_back(ct: Value, sources: Value, dimension: int, zeros: Value) -> Value:
    """Zeros in which each element of the cotangent stands at its source along a dimension."""
    rank = array_of(ct).rank
    others = tuple(dim for dim in range(rank) if dim != dimension)
    places = Places((), (dimension,), (dimension,), others, others, rank)
    return places.scattered(zeros, sources, ct, overwrite, is_unique=True)


@vjp
def topk(back: Pullback, operand: Value, *, k: int, largest: bool) -> Cotangents:
    ct, _ = back.ct
    if ct is None or not array_of(ct).size:
        return (None,)
    return (put_back(ct, element(back, 1, 2), array_of(operand).rank - 1, back.zeros(operand)),)
