"""The transposes of collectives and casts by the types of their operands: where the way back communicates.

Cotangents of varying and invarying values are so, too; those of reduced values are unreduced, and the other way round.
Source: JAX, jax._src.lax.parallel and jax._src.core (transpose rules of psum_invariant, pvary, all_gather_invariant,
all_gather_reduced, preduced and their like).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from shape_inference import RuleTable

from .. import derived, ops
from ..core.builder import Value
from ..core.graph import Instruction
from ..properties.variances import Variance, type_of
from .named import (
    cast,
    coordinate,
    exchanged,
    gathered,
    own_slice,
    permuted,
    reduced,
    scattered_sum,
)
from .region import Region
from .rules.marks import Mark, cast_of, mark_of

transposes = RuleTable("transpose")
"""name of a collective or cast -> rule(back): the cotangents of its operands that are arrays of the mesh."""


@frozen(eq=False)
class Back:
    """What a transpose is given: the region, the axes, the cotangent of the result, and the instruction."""

    region: Region
    axes: tuple[str, ...]
    ct: Any
    result: Value
    operands: tuple[Value, ...]
    instruction: Instruction
    number: int = 0

    @property
    def attributes(self) -> Any:
        return self.instruction.attributes

    def state(self) -> str:
        """The state of the axes in which the operand goes in."""
        given = type_of(self.instruction.operands[self.number])
        assert isinstance(given, Variance)
        return given.state(self.axes[0])


def transpose_of(instruction: Instruction, region: Region) -> Callable[..., list[Any]] | None:
    """The transpose of what an instruction stands for, or None where it stands for no collective and no cast."""
    mark = mark_of(instruction) or cast_of(instruction)
    if mark is None or mark.op == "axis_index":
        return None
    return lambda back, *operands, **_: _transposed(mark, region, back, operands)


def _transposed(mark: Mark, region: Region, back: Any, arguments: tuple[Any, ...]) -> list[Any]:
    """The cotangents of all operands; an all-reduce of several arrays goes back array by array."""
    lists = [each if isinstance(each, tuple) else (each,) for each in arguments]
    operands: tuple[Value, ...] = sum(lists, ())
    cts = back.ct if isinstance(back.ct, (tuple, list)) else [back.ct]
    found = []
    for number, ct in enumerate(cts):
        result = back.result if len(cts) == 1 else derived.get_tuple_element(back.result, number)
        given = Back(region, mark.axes, ct, result, operands[number:], back.instruction, number)
        found.append(None if ct is None else transposes[mark.op](given))
    return [*found, *[None] * (len(operands) - len(found))]


@transposes
def psum(back: Back) -> Value:
    """Of a varying value the cotangent as it is, cast to varying; of an unreduced one cast to reduced."""
    return cast(back.ct, "pvary" if back.state() != "unreduced" else "to_reduced", back.axes)


def _extreme(back: Back) -> Value:
    """The cotangent to the devices that hold the extreme value, in equal parts."""
    (operand, *_) = back.operands
    is_it = derived.convert(derived.eq(operand, cast(back.result, "pvary", back.axes)), back.ct.shape.dtype)
    count = reduced("psum", ops.add, is_it, back.region, back.axes)
    return derived.multiply(is_it, cast(derived.divide(back.ct, count), "pvary", back.axes))


transposes.enter("pmax", _extreme)
transposes.enter("pmin", _extreme)


@transposes
def pvary(back: Back) -> Value:
    return reduced("psum", ops.add, back.ct, back.region, back.axes)


@transposes
def to_varying(back: Back) -> Value:
    """Of an invarying value the sum; of a reduced one the cotangent itself as a part of the sum."""
    if back.state() == "reduced":
        return cast(back.ct, "to_unreduced", back.axes)
    return pvary(back)


@transposes
def to_reduced(back: Back) -> Value:
    return reduced("psum", ops.add, back.ct, back.region, back.axes)


@transposes
def to_unreduced(back: Back) -> Value:
    return cast(back.ct, "to_varying", back.axes)


@transposes
def all_gather(back: Back) -> Value:
    return scattered_sum(back.ct, back.region, back.axes, back.attributes.all_gather_dimension, True)


transposes.enter("all_gather_reduced", all_gather)


@transposes
def all_gather_invariant(back: Back) -> Value:
    return own_slice(back.ct, back.region, back.axes, back.attributes.all_gather_dimension, True)


@transposes
def psum_scatter(back: Back) -> Value:
    op = "all_gather_reduced" if back.state() == "unreduced" else "all_gather"
    return gathered(op, back.ct, back.region, back.axes, back.attributes.scatter_dimension, True)


@transposes
def pscatter(back: Back) -> Value:
    sizes = zip(back.attributes.dynamic_slice_sizes, back.operands[0].shape.dims, strict=True)  # type: ignore[union-attr]
    cut = [number for number, (size, extent) in enumerate(sizes) if size != extent]
    axis = cut[0] if cut else 0
    return gathered("all_gather_invariant", back.ct, back.region, back.axes, axis, True)


@transposes
def all_to_all(back: Back) -> Value:
    split, concat = back.attributes.split_dimension, back.attributes.concat_dimension
    return exchanged(back.ct, back.region, back.axes, split if concat is None else concat, split, True)


@transposes
def ppermute(back: Back) -> Value:
    group = back.region.mesh.groups(back.axes)[0]
    pairs = back.attributes.source_target_pairs
    inside = [(group.index(target), group.index(source)) for source, target in pairs if source in group]
    return permuted(back.ct, back.region, back.axes, inside)


@transposes
def pbroadcast(back: Back) -> Value:
    """The sum of all cotangents on the source, zeros elsewhere."""
    mesh = back.region.mesh
    source = mesh.groups(back.axes)[0].index(_first(back))
    total = cast(reduced("psum", ops.add, back.ct, back.region, back.axes), "pvary", back.axes)
    place = coordinate(back.region, back.axes, back.ct.builder)
    return derived.select(derived.eq(place, source), total, 0.0)


def _first(back: Back) -> int:
    """The source of the first group of the mesh."""
    group = back.region.mesh.groups(back.axes)[0]
    found: int = next(ids[0] for ids in back.attributes.replica_groups if ids[0] in group)
    return found
