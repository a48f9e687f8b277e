"""Derivatives of programs on a mesh: transposes of collectives by type, and psums delayed and merged.

Sections:

    Transposes of collectives and casts, by the types of their operands
    merge_sums: psums moved behind the ops that make their operand smaller, and merged
    Derivatives of programs on a mesh, with the specs of their results
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve, frozen

from shape_inference import AnyShape, RuleTable, TupleShape, leaves
from shape_inference.trees import flatten
from shape_inference.types import is_differentiable

from .. import derived, ops
from ..core.builder import Value
from ..core.graph import Computation, Instruction
from ..properties.rewriting import Rewriter, rewired
from ..properties.variances import Variance, type_of
from .collectives import (
    cast,
    coordinate,
    record_all_gather,
    record_all_reduce,
    record_all_to_all,
    record_own_slice,
    record_permute,
    record_reduce_scatter,
)
from .program import ManualRegion, MeshProgram, recording, retype_program
from .specs import P
from .types import NamedCollective, cast_of, is_sum, is_zero, mark_of

# ----------------------------------------------------------------------------
# Transposes of collectives and casts, by the types of their operands
#
# Cotangents of varying and invarying values have the same type; those of reduced values are unreduced, and vice versa.
# Source: JAX, jax._src.lax.parallel and jax._src.core (transpose rules of psum_invariant, pvary,
# all_gather_invariant, all_gather_reduced, preduced and their like).

transposes = RuleTable("transpose")
"""name of a collective or cast -> rule(back): the cotangent of its operand."""


@frozen(eq=False)
class TransposedCollective:
    """What a transpose receives: the region, the axes, the cotangent of the result, and the instruction."""

    region: ManualRegion
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
        """The state of the axes in the operand."""
        operand_type = type_of(self.instruction.operands[self.number])
        assert isinstance(operand_type, Variance)
        return operand_type.state(self.axes[0])


def transpose_of(instruction: Instruction, region: ManualRegion) -> Callable[..., list[Any]] | None:
    """The transpose of the collective or cast that an instruction implements; None if it implements none."""
    mark = mark_of(instruction) or cast_of(instruction)
    if mark is None or mark.op == "axis_index":
        return None
    return lambda back, *operands, **_: _transpose(mark, region, back, operands)


def _transpose(mark: NamedCollective, region: ManualRegion, back: Any, arguments: tuple[Any, ...]) -> list[Any]:
    """The cotangents of all operands; an all-reduce of several arrays is transposed array by array."""
    lists = [each if isinstance(each, tuple) else (each,) for each in arguments]
    operands: tuple[Value, ...] = sum(lists, ())
    cts = back.ct if isinstance(back.ct, (tuple, list)) else [back.ct]
    found = []
    for number, ct in enumerate(cts):
        result = back.result if len(cts) == 1 else derived.get_tuple_element(back.result, number)
        site = TransposedCollective(region, mark.axes, ct, result, operands[number:], back.instruction, number)
        found.append(None if ct is None else transposes[mark.op](site))
    return [*found, *[None] * (len(operands) - len(found))]


@transposes
def psum(back: TransposedCollective) -> Value:
    """The cotangent, cast to varying for a varying operand, to reduced for an unreduced one."""
    return cast(back.ct, "pvary" if back.state() != "unreduced" else "to_reduced", back.axes)


def _extreme(back: TransposedCollective) -> Value:
    """The cotangent, divided equally among the devices that hold the extreme value."""
    (operand, *_) = back.operands
    is_it = derived.convert(derived.eq(operand, cast(back.result, "pvary", back.axes)), back.ct.shape.dtype)
    count = record_all_reduce("psum", ops.add, is_it, back.region, back.axes)
    return derived.multiply(is_it, cast(derived.divide(back.ct, count), "pvary", back.axes))


transposes.enter("pmax", _extreme)
transposes.enter("pmin", _extreme)


@transposes
def pvary(back: TransposedCollective) -> Value:
    return record_all_reduce("psum", ops.add, back.ct, back.region, back.axes)


@transposes
def to_varying(back: TransposedCollective) -> Value:
    """The sum of the cotangents for an invarying operand; for a reduced one, the cotangent as a partial sum."""
    if back.state() == "reduced":
        return cast(back.ct, "to_unreduced", back.axes)
    return pvary(back)


@transposes
def to_reduced(back: TransposedCollective) -> Value:
    return record_all_reduce("psum", ops.add, back.ct, back.region, back.axes)


@transposes
def to_unreduced(back: TransposedCollective) -> Value:
    return cast(back.ct, "to_varying", back.axes)


@transposes
def all_gather(back: TransposedCollective) -> Value:
    return record_reduce_scatter(back.ct, back.region, back.axes, back.attributes.all_gather_dimension, True)


transposes.enter("all_gather_reduced", all_gather)


@transposes
def all_gather_invariant(back: TransposedCollective) -> Value:
    return record_own_slice(back.ct, back.region, back.axes, back.attributes.all_gather_dimension, True)


@transposes
def psum_scatter(back: TransposedCollective) -> Value:
    op = "all_gather_reduced" if back.state() == "unreduced" else "all_gather"
    return record_all_gather(op, back.ct, back.region, back.axes, back.attributes.scatter_dimension, True)


@transposes
def pscatter(back: TransposedCollective) -> Value:
    sizes = zip(back.attributes.dynamic_slice_sizes, back.operands[0].shape.dims, strict=True)  # type: ignore[union-attr]
    cut = [number for number, (size, extent) in enumerate(sizes) if size != extent]
    axis = cut[0] if cut else 0
    return record_all_gather("all_gather_invariant", back.ct, back.region, back.axes, axis, True)


@transposes
def all_to_all(back: TransposedCollective) -> Value:
    split, concat = back.attributes.split_dimension, back.attributes.concat_dimension
    return record_all_to_all(back.ct, back.region, back.axes, split if concat is None else concat, split, True)


@transposes
def ppermute(back: TransposedCollective) -> Value:
    group = back.region.mesh.groups(back.axes)[0]
    pairs = back.attributes.source_target_pairs
    inside = [(group.index(target), group.index(source)) for source, target in pairs if source in group]
    return record_permute(back.ct, back.region, back.axes, inside)


@transposes
def pbroadcast(back: TransposedCollective) -> Value:
    """The sum of all cotangents on the source, zeros elsewhere."""
    mesh = back.region.mesh
    source = mesh.groups(back.axes)[0].index(_first(back))
    total = cast(record_all_reduce("psum", ops.add, back.ct, back.region, back.axes), "pvary", back.axes)
    place = coordinate(back.region, back.axes, back.ct.builder)
    return derived.select(derived.eq(place, source), total, 0.0)


def _first(back: TransposedCollective) -> int:
    """The source of the first group of the mesh."""
    group = back.region.mesh.groups(back.axes)[0]
    found: int = next(ids[0] for ids in back.attributes.replica_groups if ids[0] in group)
    return found


# ----------------------------------------------------------------------------
# merge_sums: psums moved behind the ops that make their operand smaller, and merged

_COMMUTING = frozenset({"reshape", "transpose", "negate"})
"""Ops that a psum passes without changing the bytes that are sent; a reduction makes these fewer."""


def merge_sums(computation: Computation) -> Computation:
    """The program in which each psum whose only use is a reduction, or an addition of two psums, runs after that.

    A sum over devices commutes with a sum of elements, and the sum of two psums is one psum. This includes loops and
    branches.
    """
    return _SumMerging().program(computation)


class _SumMerging(Rewriter):
    """The pass that merges psums; it counts the uses of each instruction, and lists the psums that are used once."""

    def computation(self, computation: Computation) -> Computation:
        self.users = Counter(operand for each in computation.instructions for operand in each.operands)
        self.users[computation.root] += 1
        self.controlling = {before for each in computation.instructions for before in each.control}
        self.free: set[Instruction] = set()
        return super().computation(computation)

    def instruction(self, instruction: Instruction) -> Instruction:
        renewed = self.rewired(instruction)
        sum_after = self._move_sum_after(instruction, renewed)
        found = sum_after if sum_after is not None else self.add(renewed)
        is_used_once = self.users[instruction] == 1 and instruction not in self.controlling
        if is_used_once and _is_sum_of_devices(found):
            self.free.add(found)
        return found

    def _move_sum_after(self, old: Instruction, each: Instruction) -> Instruction | None:
        """The psum of the op on the addends, in place of the op on psums; None if it stays."""
        sums = [operand for operand in each.operands if operand in self.free]
        if not sums or each.control or old in self.controlling or len({mark_of(s) for s in sums}) > 1:
            return None
        if each.opcode == "add":
            together = len(sums) == 2 and sums[0] is not sums[1]
        else:
            together = each.opcode in _COMMUTING or _is_plain_reduction(each)
        return self._record_sum_after(each, sums) if together else None

    def _record_sum_after(self, each: Instruction, sums: list[Instruction]) -> Instruction:
        for taken in sums:
            del self.kept[taken]
        inside = {taken: taken.operands[0] for taken in sums}
        local = self.add(rewired(each, inside))
        return self.add(evolve(sums[0], operands=(local,), shape=local.shape))


def _is_sum_of_devices(instruction: Instruction) -> bool:
    mark = mark_of(instruction)
    return mark is not None and mark.op == "psum" and instruction.opcode == "all_reduce" and not instruction.control


def _is_plain_reduction(instruction: Instruction) -> bool:
    """Whether an instruction is a sum of one operand, starting from zero."""
    if instruction.opcode != "reduce" or len(instruction.operands) != 2:
        return False
    return is_sum(instruction.called[0]) and is_zero(instruction.operands[1])


# ----------------------------------------------------------------------------
# Derivatives of programs on a mesh, with the specs of their results

Transform = Callable[[ManualRegion], Computation]
Specs = Any


def differentiate_program(program: MeshProgram, transform: Transform, specs: tuple[Specs, Specs]) -> MeshProgram:
    """The derivative of a typed program, with specs of its parameters and its result."""
    region = program.region()
    with recording(region):
        computation = transform(region)
    return retype_program(program, merge_sums(computation), *specs)


def specs_of_vjp(program: MeshProgram) -> tuple[Specs, Specs]:
    """The parameters and a cotangent for each leaf of the result; a cotangent for each leaf of the parameters."""
    entry = program.typed.entry
    seeds = cotangents(program.out_specs, entry.root.shape)
    shapes = [parameter.shape for parameter in entry.parameters]
    found = [leaf for pair in zip(program.in_specs, shapes, strict=True) for leaf in cotangents(*pair)]
    return (*program.in_specs, *seeds), tuple(found)


def specs_of_grad(program: MeshProgram, argnums: int | Sequence[int], with_value: bool) -> tuple[Specs, Specs]:
    """The parameters; the gradient with respect to each requested parameter, nested as the parameter."""
    parameters = program.typed.entry.parameters
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    found = [_gradient_specs(program.in_specs[n], parameters[n].shape) for n in numbers]
    result = found[0] if isinstance(argnums, int) else tuple(found)
    return program.in_specs, (program.out_specs, result) if with_value else result


def specs_of_jvp(program: MeshProgram) -> tuple[Specs, Specs]:
    """The parameters and a tangent for each of their leaves; a tangent for each leaf of the result."""
    entry = program.typed.entry
    shapes = [parameter.shape for parameter in entry.parameters]
    given = [leaf for pair in zip(program.in_specs, shapes, strict=True) for leaf in tangents(*pair)]
    return (*program.in_specs, *given), tuple(tangents(program.out_specs, entry.root.shape))


def cotangents(specs: Specs, shape: AnyShape) -> list[P]:
    """The specs of the cotangents of the float and complex leaves of a value."""
    return [each.transposed for each in tangents(specs, shape)]


def tangents(specs: Specs, shape: AnyShape) -> list[P]:
    """The specs of the tangents of the float and complex leaves of a value, which are those of the leaves."""
    return [spec for leaf, spec in zip(leaves(shape), flatten(specs), strict=True) if is_differentiable(leaf)]


def _has_cotangent(shape: AnyShape) -> bool:
    """Whether a shape has floats or complex numbers."""
    return any(map(is_differentiable, leaves(shape)))


def _gradient_specs(specs: Specs, shape: AnyShape) -> Specs:
    """The specs of the gradient with respect to a parameter; for a tuple, those of the elements that have one."""
    if isinstance(shape, TupleShape):
        parts = zip(specs, shape.elements, strict=True)
        return tuple(_gradient_specs(*pair) for pair in parts if _has_cotangent(pair[1]))
    return specs.transposed
