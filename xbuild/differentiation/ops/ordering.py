"""Cotangents of sort and topk: each goes to the place from which its element came."""

from __future__ import annotations

from ... import ops
from ...core.builder import Value, Values
from ...core.graph import Computation
from ..arrays import array_shape, index_along
from ..folds import apply_region, overwrite, result_cotangents, result_element
from ..indexing import SlicePlaces
from ..recorder import Augmented
from ..rules import Cotangents, Pullback, vjp


@vjp
def sort(back: Pullback, operands: Values, *, to_apply: Computation, dimension: int, is_stable: bool) -> Cotangents:
    """Each cotangent goes back to where its element came from."""
    if not array_shape(operands[0]).size or array_shape(operands[0]).dims[dimension] < 2:
        return result_cotangents(back, len(operands))
    cts = result_cotangents(back, len(operands))
    sources = _find_sources(back, operands, to_apply, dimension)
    return tuple(
        None if ct is None or not back.wants(number) else put_back(ct, sources, dimension, back.zeros(operand))
        for number, (operand, ct) in enumerate(zip(operands, cts, strict=True))
    )


def _find_sources(back: Pullback, operands: Values, to_apply: Computation, dimension: int) -> Value:
    """The source index along the dimension of each element of the result."""
    for number, operand in enumerate(operands):
        made = operand.instruction
        if (
            made.opcode == "iota"
            and made.attributes.iota_dimension == dimension
            and array_shape(operand).dtype.is_integer
        ):
            return result_element(back, number, len(operands))
    return _sort_numbers(back, operands, to_apply, dimension)


def _sort_numbers(back: Pullback, operands: Values, to_apply: Computation, dimension: int) -> Value:
    """The indices of the elements, sorted by the sort itself as a further operand."""
    recorder, count = back.recorder, len(operands)

    def in_order(*elements: Value) -> Value:
        return apply_region(to_apply, elements[:-2])

    with recorder.recording_aside() as before:
        numbers = index_along(back.builder, array_shape(operands[0]).dims, dimension)
        value = ops.sort((*operands, numbers), to_apply=in_order, dimension=dimension, is_stable=True)
    before.remove(value.instruction)
    with recorder.recording_aside() as after:
        results = [ops.get_tuple_element(value, index=number) for number in range(count)]
        stand_in = ops.tuple_(results) if count > 1 else results[0]
    recorder.augmented[back.instruction] = Augmented(before, value.instruction, after, stand_in.instruction, count > 1)
    return ops.get_tuple_element(value, index=count)


def put_back(ct: Value, sources: Value, dimension: int, zeros: Value) -> Value:
    """Zeros with each element of the cotangent placed at its source along a dimension."""
    rank = array_shape(ct).rank
    others = tuple(dim for dim in range(rank) if dim != dimension)
    places = SlicePlaces((), (dimension,), (dimension,), others, others, rank)
    return places.scatter(zeros, sources, ct, overwrite, is_unique=True)


@vjp
def topk(back: Pullback, operand: Value, *, k: int, largest: bool) -> Cotangents:
    ct, _ = back.ct
    if ct is None or not array_shape(ct).size:
        return (None,)
    return (put_back(ct, result_element(back, 1, 2), array_shape(operand).rank - 1, back.zeros(operand)),)
